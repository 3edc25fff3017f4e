"""What an attacker finds: the numbers against high precision, and against tests that were really made."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from collegium import Budget, PrivacyStatement
from collegium.accounting import (
    Gaussian,
    GaussianAccountant,
    Laplace,
    Neighbours,
    PureAccountant,
    RenyiAccountant,
    gdp_mu,
)
from collegium.accounting.neighbours import TEACHER, Arrangement
from collegium.accounting.statement import FALSE_ALARMS, Answers, GroupSpending, statement
from collegium.accounting.tradeoff import TradeOff
from collegium.errors import InputError
from collegium.mechanisms import SeededNoise

mp.mp.dps = 40
BUDGETS = [(0.05, 1e-5), (0.5, 1e-6), (1.0, 1e-5), (3.0, 1e-5), (8.0, 1e-7), (30.0, 1e-5)]


def phi(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def quantile(p):
    return mp.sqrt(2) * mp.erfinv(2 * mp.mpf(p) - 1)


def exact_mu(epsilon, delta):
    def excess(mu):
        e = mp.mpf(epsilon)
        return mp.log(phi(-e / mu + mu / 2) - mp.exp(e) * phi(-e / mu - mu / 2)) - mp.log(
            mp.mpf(delta)
        )

    return mp.findroot(excess, mp.mpf(gdp_mu(epsilon, delta)))  # fmt: skip


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("alpha", [1e-9, 0.001, *FALSE_ALARMS, 0.5, 0.9])
def test_gaussian_bounds_are_those_of_high_precision_rounded_up(epsilon, delta, alpha):
    found = TradeOff(Budget(epsilon, delta), gaussian=True).most_found(alpha)
    exact = phi(quantile(alpha) + exact_mu(epsilon, delta))
    assert exact * (1 - mp.mpf("1e-10")) <= found <= min(1, exact * (1 + mp.mpf("1e-9")))
    at_the_mu_of_the_filter = phi(quantile(alpha) + mp.mpf(gdp_mu(epsilon, delta)))
    assert found >= at_the_mu_of_the_filter or found == 1


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("alpha", [0.0, 1e-9, 0.001, *FALSE_ALARMS, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("one_way", [False, True])
def test_other_bounds_are_those_of_high_precision_rounded_up(epsilon, delta, alpha, one_way):
    found = TradeOff(Budget(epsilon, delta), one_way=one_way).most_found(alpha)
    e, d, a = mp.mpf(epsilon), mp.mpf(delta), mp.mpf(alpha)
    missed = max(mp.mpf(0), 1 - d - mp.exp(e) * a)
    if not one_way:
        missed = max(missed, mp.exp(-e) * (1 - d - a))
    assert 1 - missed <= found <= min(1, (1 - missed) * (1 + mp.mpf("1e-11")) + mp.mpf("1e-299"))


@given(st.floats(1e-3, 50), st.floats(1e-12, 0.1), st.floats(0, 1), st.floats(0, 1), st.booleans())
def test_bounds_grow_with_false_alarms_and_budgets_and_gaussian_ones_are_never_worse(
    epsilon, delta, one, other, gaussian
):
    small, large = sorted((one, other))
    curve = TradeOff(Budget(epsilon, delta), gaussian)
    assert small <= curve.most_found(small) <= curve.most_found(large) <= 1
    more = TradeOff(Budget(2 * epsilon, delta), gaussian)
    assert curve.most_found(one) <= more.most_found(one) * (1 + 1e-9)
    # What is (epsilon, delta)-DP for every mu-GDP mechanism holds for this one.
    sharp, blunt = (
        TradeOff(Budget(epsilon, delta), kind).most_found(one) for kind in (True, False)
    )
    assert sharp <= blunt * (1 + 1e-9)  # fmt: skip


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_best_test_against_noise_that_was_really_drawn_errs_as_the_curve_says(epsilon):
    """A sum of what one owner moved over 50 answers, at a budget that is just used up.

    The best test compares the sum of the noisy values with a threshold (Neyman & Pearson). 40,000 runs a
    side: an estimate is off by more than 5 standard errors in one of a million cases.
    """
    budget, answers, runs = Budget(epsilon, 1e-5), 50, 40_000
    curve = TradeOff(budget, gaussian=True)
    moved, sigma = (
        curve.mu * 8.0 / math.sqrt(answers),
        8.0,
    )  # mu of all answers together: the budget's
    noise = SeededNoise(3)
    drawn = np.array(
        [noise.gaussian(sigma, 2 * runs, query=q, purpose="answer") for q in range(answers)]
    )
    without, with_it = drawn[:, :runs].sum(axis=0), drawn[:, runs:].sum(axis=0) + answers * moved
    for alpha in FALSE_ALARMS:
        threshold = float(quantile(1 - alpha)) * sigma * math.sqrt(answers)
        alarms, found = (without > threshold).mean(), (with_it > threshold).mean()
        expected = curve.most_found(alpha)
        assert abs(alarms - alpha) < 5 * math.sqrt(alpha / runs)
        assert abs(found - expected) < 5 * math.sqrt(0.25 / runs)
    # And the loss is beyond epsilon as often as is said: far more often than delta.
    scale = answers * sigma**2
    loss = with_it * answers * moved / scale - (answers * moved) ** 2 / (2 * scale)
    beyond, said = (loss > epsilon).mean(), curve.loss_beyond()
    assert abs(beyond - said) < 6 * math.sqrt(said / runs)


@pytest.mark.parametrize(
    ("epsilon", "times"), [(0.05, 198.9), (0.1, 111.2), (1.0, 16.1), (3.0, 6.89), (8.0, 3.61)]
)
def test_the_loss_is_beyond_epsilon_many_times_as_often_as_delta(epsilon, times):
    budget = Budget(epsilon, 1e-5)
    mu = exact_mu(epsilon, 1e-5)
    exact = phi(mu / 2 - mp.mpf(epsilon) / mu)
    said = TradeOff(budget, gaussian=True).loss_beyond()
    assert exact <= said * (1 + 1e-12) and said <= exact * (1 + mp.mpf("1e-8"))
    assert said / budget.delta == pytest.approx(times, rel=5e-3)
    assert said > budget.delta


def test_delta_is_the_sum_of_excesses_and_not_the_chance_of_a_loss_beyond_epsilon():
    """Integrate both for a Gaussian at a used-up budget: the hockey stick gives delta, the tail far more."""
    epsilon, delta = mp.mpf(1), mp.mpf("1e-5")
    mu = exact_mu(1.0, 1e-5)
    density = lambda x, m: mp.exp(-((x - m) ** 2) / 2) / mp.sqrt(2 * mp.pi)  # noqa: E731
    start = epsilon / mu + mu / 2  # where the loss is epsilon
    excess = mp.quad(
        lambda x: density(x, mu) - mp.exp(epsilon) * density(x, 0), [start, start + 5, 30]
    )
    tail = mp.quad(lambda x: density(x, mu), [start, start + 5, 30])
    assert abs(excess / delta - 1) < mp.mpf("1e-8")
    assert tail / delta > 16  # fmt: skip


def test_without_a_limit_everything_may_be_found():
    open_budget = TradeOff(Budget(math.inf), gaussian=True)
    assert open_budget.most_found(0.0) == 1.0
    assert open_budget.loss_beyond() is None
    assert TradeOff(Budget(1.0)).loss_beyond() is None


@pytest.mark.parametrize("alpha", [-0.1, 1.1, math.nan])
def test_false_alarms_are_probabilities(alpha):
    with pytest.raises(InputError, match="between 0 and 1"):
        TradeOff(Budget(1.0)).most_found(alpha)


# ---------------------------------------------------------------- which curve a statement may use


def gaussian_account(*events):
    account = GaussianAccountant([4.0, 4.0], 1e-5, ["a", "a"])
    for event in events:
        account.charge(event)
    return account


def test_only_where_all_noise_is_gaussian_is_the_gaussian_curve_used():
    noise, pure = Gaussian([1.0, 2.0], 20.0), Laplace([1.0, 2.0], 0.1)
    assert gaussian_account(noise).is_gaussian
    assert gaussian_account(noise, pure).is_gaussian  # inf: the pure filter never allowed anything
    assert not gaussian_account(pure).is_gaussian
    assert not gaussian_account().is_gaussian
    assert not RenyiAccountant([1.0], 1e-5, [2.0, 8.0], "canonne", ["a"]).is_gaussian
    assert not PureAccountant([1.0]).is_gaussian
    # Cohorts who never took part say nothing; one whose noise was pure does.
    assert gaussian_account(Gaussian([1.0, 0.0], 20.0)).is_gaussian
    assert not gaussian_account(Laplace([1.0, 0.0], 0.1), Gaussian([0.0, 1.0], 20.0)).is_gaussian


def test_pure_noise_may_use_up_more_than_the_gaussian_curve_allows():
    """Why (ε, 0)-DP noise gets the weaker curve: Σε within the budget does not bound μ by the budget's."""
    epsilon = 3.0
    pure = TradeOff(Budget(epsilon, 1e-5))
    gaussian = TradeOff(Budget(epsilon, 1e-5), gaussian=True)
    # Randomised response spends exactly ε; its best test finds e^ε/(1 + e^ε) at 1/(1 + e^ε) false alarms.
    alpha = 1 / (1 + math.exp(epsilon))
    finds = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert gaussian.most_found(alpha) < finds <= pure.most_found(alpha)


def said(guarantee="worst-case", gaussian=True):
    groups = (
        GroupSpending("high", 540, Budget(1.0), 0.9),
        GroupSpending("open", 3, Budget(math.inf), 9.0),
    )
    return PrivacyStatement(
        guarantee, "x", True, groups, Answers.LABELS, Neighbours.ANY_CHANGE, gaussian=gaussian
    )


def right_of_100(budget, gaussian):
    """How often of 100 the best test is right, found by trying false alarms."""
    alphas = np.linspace(0.0, 1.0, 20_001)
    curve = TradeOff(budget, gaussian=gaussian)
    return 100 * max((1 - alpha + curve.most_found(alpha)) / 2 for alpha in alphas)


def test_statements_say_how_often_the_best_test_is_right_and_what_delta_means():
    words = " ".join(said().sentences())
    assert "is right at most 56 times in 100; by guessing alone, 50 times" in words
    assert 55 < right_of_100(Budget(1.0), gaussian=True) <= 56  # 55.33
    assert "It is not the chance of being exposed" in words
    assert "sure that" not in words
    assert "high" in words and "open" in words and words.count("times in 100") == 1
    found = said().to_dict()["groups"][0]
    assert found["right_of_100"] == 56
    assert found["found_at_most"]["0.05"] == TradeOff(Budget(1.0), gaussian=True).most_found(0.05)
    assert list(found["found_at_most"]) == ["0.01", "0.05", "0.1"]
    assert said().found_of_100(said().groups[0], 0.05) == "8.5"  # 8.43
    assert "at most 74 times in 100" in " ".join(said(gaussian=False).sentences())
    assert 73 < right_of_100(Budget(1.0), gaussian=False) <= 74  # 73.1


def test_a_data_dependent_statement_uses_the_one_direction_that_its_bounds_have():
    document = said("data-dependent", gaussian=False)
    row = GroupSpending("far", 1, Budget(3.0), math.nan)
    assert document.trade_off(row).one_way
    assert not said().trade_off(row).one_way
    both_ways = said(gaussian=False).trade_off(row)
    assert document.trade_off(row).most_found(0.05) > both_ways.most_found(0.05)


def test_statements_of_accounts_know_which_curve_is_theirs():
    budgets = {"a": Budget(4.0)}
    for event, gaussian in ((Gaussian([1.0, 2.0], 20.0), True), (Laplace([1.0, 2.0], 0.1), False)):
        account = gaussian_account(event)
        assert (
            statement(account, {"a": 5}, budgets, Arrangement(), True, Answers.LABELS).gaussian
            is gaussian
        )
    teachers = statement(
        gaussian_account(), {"a": 5}, budgets, Arrangement(unit=TEACHER), True, Answers.LABELS
    )
    assert "Each of the 5 teachers" in " ".join(teachers.sentences())
    assert teachers.to_dict()["groups"][0]["teachers"] == 5


# ---------------------------------------------------------------- mu-GDP but for a leak


@pytest.mark.parametrize("delta_0", [1e-9, 1e-3, 0.2])
def test_what_leaks_is_found_beside_what_noise_leaves(delta_0):
    """The best test of "all is told with probability δ₀, or N(μ, 1)": if told, or else by a threshold."""
    ample = TradeOff(Budget(50.0, 0.5), mu_beside=0.7, leak_beside=delta_0)
    for threshold in (-3.0, 0.0, 1.0, 2.5):
        alarms = (1 - delta_0) * float(ndtr(-threshold))
        finds = delta_0 + (1 - delta_0) * float(ndtr(0.7 - threshold))
        assert ample.most_found(alarms) == pytest.approx(finds, rel=1e-11)
        assert ample.most_found(alarms) >= finds * (1 - 1e-15)
    assert ample.most_found(1.0) == 1.0
    assert TradeOff(Budget(0.01, 1e-9), mu_beside=0.7, leak_beside=0.1).most_found(0.1) < 0.102


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize(
    "how", [{}, {"gaussian": True}, {"one_way": True}, {"mu_beside": 0.4, "leak_beside": 1e-3}]
)
def test_who_is_right_most_often_is_nowhere_on_the_curve_right_more_often(epsilon, delta, how):
    """Right is who finds, and who accuses nobody wrongly: half of each; the best false alarms decide."""
    tests = TradeOff(Budget(epsilon, delta), **how)
    alarms = np.concatenate([np.linspace(0, 1, 2001), np.geomspace(1e-14, 1, 2000)])
    along = max((tests.most_found(float(a)) + 1 - float(a)) / 2 for a in alarms)
    assert along <= tests.right_guesses
    # With another account beside, the best test of each bounds what is said; otherwise it is that test.
    assert "mu_beside" in how or tests.right_guesses == pytest.approx(along, abs=1e-3)
