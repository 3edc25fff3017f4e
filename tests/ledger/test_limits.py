"""Limits and totals, against the definition in high precision."""

import math

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collegium import Budget
from collegium.accounting import gdp_mu, pure_to_gdp
from collegium.accounting.promises import Promise
from collegium.accounting.tradeoff import right_guesses
from collegium.errors import InputError
from collegium.ledger import Cost, Lifetime, Limit
from collegium.ledger.limits import DELTA_0_SHARE, PROMISES

PURE = Lifetime(Promise.PURE)


def profile(mu: float, delta_0: float, epsilon: float) -> mp.mpf:
    """δ of "with probability δ₀ everything leaks, otherwise μ-GDP", by definition."""
    with mp.workdps(40):
        mu, epsilon, delta_0 = mp.mpf(mu), mp.mpf(epsilon), mp.mpf(delta_0)
        gaussian = mp.ncdf(-epsilon / mu + mu / 2) - mp.exp(epsilon) * mp.ncdf(
            -epsilon / mu - mu / 2
        )
        return delta_0 + (1 - delta_0) * gaussian


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.01])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("share", [0.0, DELTA_0_SHARE, 0.5])
def test_a_limit_is_within_the_budget_and_no_more_than_needed_below_it(epsilon, delta, share):
    limit = Lifetime(delta_0_share=share).limit(Budget(epsilon, delta))
    mu = math.sqrt(limit.mu_squared)
    assert profile(mu, limit.delta_0, epsilon) <= delta
    assert profile(mu * (1 + 1e-9), limit.delta_0, epsilon) > delta * (1 - 1e-12)
    assert limit.delta_0 <= share * delta
    for used in (0.0, limit.delta_0):  # what is set aside counts, used or not
        spent = Cost(limit.mu_squared, math.inf, used)
        assert limit.epsilon_of(spent, delta) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("share", [0.0, 0.5])
@pytest.mark.parametrize("delta_0", [0.0, 1e-8, 9.9e-6])
@pytest.mark.parametrize("mu", [0.01, 0.3, 2.0])
def test_epsilon_of_a_cost_is_rounded_up(mu, delta_0, share):
    limit = Lifetime(delta_0_share=share).limit(Budget(1.0))
    epsilon = limit.epsilon_of(Cost(mu * mu, math.inf, delta_0), 1e-5)
    kept = max(delta_0, limit.delta_0)
    assert profile(mu, kept, epsilon) <= 1e-5
    assert profile(mu, kept, epsilon * (1 - 1e-6)) > 1e-5


def test_a_limit_is_kept_in_what_was_promised_and_in_nothing_else():
    in_mu, pure = Lifetime().limit(Budget(1.0)), PURE.limit(Budget(1.0))
    assert in_mu.allows(Cost(in_mu.mu_squared, 50.0, in_mu.delta_0))
    assert not in_mu.allows(Cost(in_mu.mu_squared, 50.0, in_mu.delta_0 * 1.01))
    assert not in_mu.allows(Cost(in_mu.mu_squared * 1.01, 1e-9))  # pure, and beyond μ all the same
    assert pure.allows(Cost(100.0, 1.0)) and not pure.allows(Cost(100.0, 1.001))
    assert not pure.allows(Cost(1e-9))
    assert pure.epsilon_of(Cost(100.0, 0.5), 1e-5) == 0.5
    assert in_mu.epsilon_of(Cost(pure_to_gdp(0.1) ** 2, 0.1), 1e-5) > 0.1


@pytest.mark.parametrize("promise", PROMISES)
def test_no_privacy_is_no_limit(promise):
    limit = Lifetime(promise).limit(Budget(math.inf))
    assert limit.allows(Cost(math.inf, math.inf, 1.0))
    assert limit.right_guesses == 1.0 and limit.share_of(Cost(1.0)) == 0.0


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("share", [0.1, 0.7, 1.0])
def test_a_part_of_a_budget_is_within_that_part_of_its_limit(promise, share):
    lifetime, granted = Lifetime(promise), Budget(1.0)
    limit, (part, delta_0) = lifetime.limit(granted), lifetime.part(granted, share)
    if promise == "pure":
        assert (part, delta_0) == (Budget(share), 0.0)
        return
    mu_squared = gdp_mu(part.epsilon, part.delta) ** 2
    assert mu_squared <= limit.mu_squared * share * (1 + 1e-15)
    assert mu_squared == pytest.approx(limit.mu_squared * share, rel=1e-8)
    assert delta_0 == pytest.approx(1e-7 * share) and delta_0 <= limit.delta_0
    assert share < 1 or part.epsilon == 1.0  # all of it is what was granted, to the last bit


@pytest.mark.parametrize("wrong", [-1.0, math.nan])
@pytest.mark.parametrize("which", range(3))
def test_a_cost_is_never_a_refund(which, wrong):
    numbers = [0.0, 0.0, 0.0]
    numbers[which] = wrong
    with pytest.raises(InputError, match="at least 0"):
        Cost(*numbers)


@given(st.lists(st.floats(1e-12, 1e3), max_size=30), st.randoms())
def test_a_total_does_not_depend_on_the_order_and_is_never_too_small(values, random):
    total = Cost.total(Cost(value) for value in values)
    shuffled = random.sample(values, len(values))
    assert Cost.total(Cost(value) for value in shuffled) == total
    with mp.workdps(50):
        exact = mp.fsum(mp.mpf(value) for value in values)
    assert exact <= total.mu_squared <= exact * (1 + mp.mpf(2) ** -51)


@given(st.lists(st.floats(1e-9, 0.05), max_size=20), st.sampled_from([0.01, 1.0, 3.0]))
def test_what_is_left_can_be_spent(values, epsilon):
    limit, costs = Lifetime().limit(Budget(epsilon)), []
    for value in values:
        if limit.allows(Cost.total([*costs, Cost(value)])):
            costs.append(Cost(value))
    left = limit.left(Cost.total(costs))
    assert limit.allows(Cost.total([*costs, Cost(left.mu_squared, 9.0, left.delta_0)]))
    more = limit.mu_squared * 1e-12
    assert not limit.allows(Cost.total([*costs, Cost(left.mu_squared + more)]))


@given(st.lists(st.floats(1e-9, 0.3), max_size=20))
def test_what_is_left_of_pure_epsilon_can_be_spent(values):
    limit, costs = PURE.limit(Budget(1.0)), []
    for value in values:
        if limit.allows(Cost.total([*costs, Cost(math.inf, value)])):
            costs.append(Cost(math.inf, value))
    left = limit.left(Cost.total(costs))
    assert limit.allows(Cost.total([*costs, left]))
    assert not limit.allows(Cost.total([*costs, Cost(0.1, left.pure_epsilon + 1e-12)]))
    assert limit.left(Cost(0.1, 1.1)).is_nothing and not limit.allows(Cost(0.1))


@pytest.mark.parametrize("mu", [1e-6, 0.268, 3.0])
@pytest.mark.parametrize("delta_0", [0.0, 1e-7, 0.01])
def test_the_best_test_is_right_so_often(mu, delta_0):
    with mp.workdps(30):
        exact = 0.5 + profile(mu, delta_0, mp.mpf(0)) / 2
    limit = Limit(Promise.GAUSSIAN, mu * mu, delta_0=delta_0)
    assert exact <= limit.right_guesses <= exact * (1 + 1e-11)


def test_guessing_is_right_half_of_the_time():
    assert right_guesses(mu=0.0) == 0.5 == right_guesses(epsilon=0.0)
    assert right_guesses() == 1.0
    # Randomised response at ε: its better answer is right with probability e^ε/(1 + e^ε).
    assert right_guesses(epsilon=1.0) == pytest.approx(math.e / (1 + math.e))
    with mp.workdps(30):
        exact = 0.5 + (mp.e - 1 + 2 * mp.mpf("1e-3")) / (mp.e + 1) / 2
    assert exact <= right_guesses(epsilon=1.0, delta=1e-3) <= exact * (1 + 1e-11)


@given(
    st.floats(0.05, 6.0),
    st.sampled_from([1e-9, 1e-5, 1e-2]),
    st.sampled_from([0.0, 0.01, 0.5, 0.9]),
)
def test_no_share_that_is_set_aside_leaves_the_best_test_more(epsilon, delta, share):
    """So the consent page, which does not know the ledger, promises no less than a receipt."""
    limits = [Lifetime(delta_0_share=one).limit(Budget(epsilon, delta)) for one in (share, 0.0)]
    assert limits[0].right_guesses <= limits[1].right_guesses * (1 + 1e-11)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 1e-3, 1.0, 10.0])
@pytest.mark.parametrize("share", [1e-4, 0.1, 0.5, 0.9])
def test_a_part_of_a_budget_costs_that_share_however_small(epsilon, share):
    """Where its ε rounds to 0 at the same δ, a part has a smaller δ: it was refused."""
    lifetime, whole = Lifetime(delta_0_share=0.0), Budget(epsilon, 1e-5)
    part, _ = lifetime.part(whole, share)
    taken = lifetime.all_of(part).mu_squared / lifetime.limit(whole).mu_squared
    assert share * (1 - 1e-5) <= taken <= share * (1 + 1e-9)
