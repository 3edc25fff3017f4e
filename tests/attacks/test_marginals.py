"""Membership inference from marginals: the bound holds and is reached, and without noise people are found."""

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import kstest

from collegium import Budget
from collegium.accounting.gaussian import gdp_mu
from collegium.accounting.neighbours import Arrangement
from collegium.accounting.tradeoff import TradeOff
from collegium.attacks.marginals import (
    Cliques,
    mu_of_weight,
    scores_knowing_others,
    scores_knowing_population,
    scores_of_rows,
    simulate_attacks,
)
from collegium.attacks.membership import RATES, judge_membership
from collegium.errors import InputError
from collegium.report.audit import Audit

SIZES = (6, 5, 4, 3)
PAIRS = Cliques([(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)], SIZES)


def records(n, seed):
    """Columns that go together, with rare cells."""
    rng = np.random.default_rng(seed)
    first = rng.geometric(0.4, n) - 1
    return np.stack([(first + rng.geometric(0.5, n) - 1) % size for size in SIZES], axis=1)


def simulated(sigma, *, n=600, releases=500, weights=None, seed=0):
    weights = np.ones(n) if weights is None else weights
    return simulate_attacks(
        PAIRS,
        records(n, 1),
        weights,
        [sigma] * len(PAIRS.columns),
        records(5_000, 2),
        releases=releases,
        asked=8,
        seed=seed,
    )


def test_tables_are_counts():
    codes, weights = records(300, 0), np.random.default_rng(0).random(300)
    for clique, table in zip(PAIRS.columns, PAIRS.tables(codes, weights), strict=True):
        expected = np.zeros([SIZES[place] for place in clique])
        np.add.at(expected, tuple(codes[:, clique].T), weights)
        assert table == pytest.approx(expected.ravel(), abs=1e-12)
    read = PAIRS.read(PAIRS.tables(codes), codes)
    same = (codes[:, None, [1, 3]] == codes[None, :, [1, 3]]).all(axis=2).sum(axis=1)
    assert read[:, 3].tolist() == same.tolist()


def test_the_best_test_has_the_distribution_of_the_account():
    """N(±μ²/2, μ²): two Kolmogorov-Smirnov tests of 4,000 scores, each failing once in 1,000."""
    found = simulated(5.0, releases=1_000)
    mu = mu_of_weight(1.0, [5.0] * 5)
    assert mu == pytest.approx(math.sqrt(5) / 5)
    for is_in, sign in ((True, 1), (False, -1)):
        scores = found.knowing_others[found.is_in == is_in]
        assert kstest(scores, "norm", (sign * mu**2 / 2, mu)).pvalue > 1e-3


def test_its_score_is_the_likelihood_ratio():
    """Of two releases that differ in one person, by the densities of all cells."""
    rng = np.random.default_rng(3)
    codes, weights, sigmas = records(40, 3), rng.random(40) + 0.5, [2.0, 3.0, 1.0, 4.0, 2.5]
    exact = PAIRS.tables(codes, weights)
    others = PAIRS.tables(codes[1:], weights[1:])
    noisy = [
        table + sigma * rng.standard_normal(len(table))
        for table, sigma in zip(exact, sigmas, strict=True)
    ]
    ratio = sum(
        (((seen - without) ** 2 - (seen - inside) ** 2) / (2 * sigma**2)).sum()
        for seen, inside, without, sigma in zip(noisy, exact, others, sigmas, strict=True)
    )
    for present, table in ((True, exact), (False, others)):
        [score] = scores_knowing_others(
            PAIRS, codes[:1], weights[:1], noisy, table, np.array([present]), sigmas
        )
        assert score == pytest.approx(ratio, rel=1e-9)


@pytest.mark.parametrize("attack", ["knowing_others", "knowing_population"])
def test_no_group_is_found_more_often_than_its_budget_allows(attack):
    """Weights in proportion to μ, three budgets, 95 % for each of 3 groups and attacks.

    A lower bound above its claim, or an interval wholly above what is allowed, has a probability of at most
    5 % + 3 · 2.5 % for each group; the seed is fixed and none of the six shows one.
    """
    budgets = {name: Budget(epsilon) for name, epsilon in (("a", 0.5), ("b", 2.0), ("c", 4.0))}
    mus = {name: gdp_mu(one.epsilon, one.delta) for name, one in budgets.items()}
    names = np.array(list(budgets))[np.arange(600) % 3]
    weights = np.array([mus[name] for name in names])
    sigma = math.sqrt(len(PAIRS.columns))  # so that a person of weight w pays w
    found = simulated(sigma, weights=weights, releases=2_500, seed=4)
    judged = judge_membership(
        getattr(found, attack), found.is_in, mus, names[found.people], budgets
    )
    for one in judged:
        assert mu_of_weight(mus[one.group], [sigma] * 5) == pytest.approx(one.mu)
        assert one.holds
        assert one.lower_mu <= one.mu
        assert one.auc.low <= one.most_auc
        assert len(one.rates) == 3
        for at in one.rates:
            curve = TradeOff(budgets[one.group], gaussian=True)
            assert at.most == pytest.approx(curve.most_found(at.alarms), rel=1e-6)
            assert at.found.low <= at.most
    if attack == "knowing_others":  # reaches its bound, and is seen to be more with more budget
        assert judged[2].verdict == "detected"
        for one in judged:
            assert one.auc.low <= one.most_auc <= one.auc.high
            assert one.rates[2].found.low <= one.rates[2].most <= one.rates[2].found.high
        assert judged[0].auc.value < judged[1].auc.value < judged[2].auc.value


def test_a_mechanism_with_too_little_noise_is_refuted():
    """Half of the noise that the account believes: found, at 95 %."""
    found = simulated(1.0, releases=1_000)
    claimed = mu_of_weight(1.0, [2.0] * 5)
    [one] = judge_membership(
        found.knowing_others, found.is_in, {"all": claimed}, budgets={"all": Budget(3.0)}
    )
    assert not one.holds
    assert one.lower_mu > claimed
    assert one.verdict == "more than the account allows"


def test_the_control_without_noise_is_found_by_both_attackers():
    found = simulated(0.0, n=60, releases=800)
    [best] = judge_membership(found.knowing_others, found.is_in, {"all": math.inf})
    assert best.auc.value == 1
    assert all(at.found.value == 1 for at in best.rates)
    [good] = judge_membership(found.knowing_population, found.is_in, {"all": math.inf})
    assert good.verdict == "detected"
    assert good.auc.low > 0.6
    assert good.lower_mu > gdp_mu(2.0, 1e-5)


def test_noise_hides_the_people_whom_the_control_finds():
    """The same 60 people as in the control, at ε = 0.5."""
    sigma = math.sqrt(5) / gdp_mu(0.5, 1e-5)
    found = simulated(sigma, n=60, releases=500)
    [one] = judge_membership(found.knowing_population, found.is_in, {"all": gdp_mu(0.5, 1e-5)})
    assert one.auc.high < 0.6
    assert one.holds


def test_synthetic_rows_of_copied_marginals_are_found_and_fresh_ones_are_not():
    """Rows drawn from the very records, or from the population: 300 in, 300 out, 20 times.

    AUC of 6,000 against 6,000 scores that teach nothing leaves 0.5 ± 0.02 once in 10,000 times, about.
    """
    scores = {"copied": [], "fresh": []}
    reference = records(20_000, 9)
    triples = Cliques([(0, 1, 2), (1, 2, 3), (0, 1, 3)], SIZES)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        inside, outside = records(300, 1_000 + seed), records(300, 2_000 + seed)
        both = np.concatenate([inside, outside])
        copied = inside[rng.integers(0, 300, 3_000)]
        for name, rows in (("copied", copied), ("fresh", records(3_000, 3_000 + seed))):
            scores[name].append(scores_of_rows(triples, both, rows, reference))
    is_in = np.tile(np.repeat([True, False], 300), 20)
    found = {
        name: judge_membership(np.concatenate(of), is_in, {"all": math.inf})[0]
        for name, of in scores.items()
    }
    assert found["copied"].verdict == "detected"
    assert found["copied"].auc.low > 0.6
    assert abs(found["fresh"].auc.value - 0.5) < 0.02
    assert found["fresh"].verdict == "not detected"


def test_the_population_attack_needs_no_better_reference_than_it_has():
    """With all records of the population as its reference, it is nearly as good as without sampling error."""
    codes = records(100, 5)
    exact = PAIRS.tables(codes)
    weights = np.ones(100)
    near, far = (
        scores_knowing_population(PAIRS, codes, weights, exact, records(m, 6), weights, [1.0] * 5)
        for m in (20, 50_000)
    )
    assert near.std() < far.std()


def test_lower_bounds_fail_as_rarely_as_they_say():
    """A Gaussian attack of μ = 1 at 80 %: of 400 runs of 2,000, above 25 % with probability 0.01 at most."""
    rng = np.random.default_rng(7)
    is_in = np.arange(2_000) < 1_000
    wrong = sum(
        judge_membership(rng.normal(size=2_000) + is_in, is_in, {"all": 1.0}, confidence=0.8)[
            0
        ].lower_mu
        > 1
        for _ in range(400)
    )
    assert wrong <= 100


def test_intervals_of_what_is_found_hold():
    """A Gaussian attack of μ = 1, 300 runs: at 95 %, fewer than 275 hold with probability 0.005 at most."""
    rng = np.random.default_rng(8)
    is_in = np.arange(4_000) < 2_000
    held = dict.fromkeys(RATES, 0)
    for _ in range(300):
        [one] = judge_membership(rng.normal(size=4_000) + is_in, is_in, {"all": 1.0})
        for at in one.rates:
            held[at.alarms] += at.found.low <= at.most <= at.found.high
    assert min(held.values()) >= 275


def test_rates_without_enough_people_are_left_out():
    rng = np.random.default_rng(0)
    is_in = np.arange(120) < 60
    [one] = judge_membership(rng.normal(size=120), is_in, {"all": 1.0})
    assert [at.alarms for at in one.rates] == [0.1]
    assert one.verdict == "not detected"


def test_a_weak_leak_that_shows_in_the_area_alone_is_detected():
    """1,200 in and 1,200 out are too few for shares of false alarms, and not for the area."""
    rng = np.random.default_rng(5)
    is_in = np.arange(2_400) < 1_200
    [one] = judge_membership(rng.normal(size=2_400) + 0.25 * is_in, is_in, {"all": 0.25})
    assert max(at.lower_mu for at in one.rates) < one.auc_mu
    assert 0 < one.auc_mu < 0.25
    assert one.verdict == "detected"


def test_ties_are_no_finds():
    is_in = np.arange(40_000) % 2 == 0
    [one] = judge_membership(np.zeros(40_000), is_in, {"all": 1.0})
    assert [at.found.value for at in one.rates] == [0.0] * len(RATES)
    assert one.auc.value == 0.5


def test_the_audits_table_and_json_show_it():
    found = simulated(5.0, releases=300)
    mu = mu_of_weight(1.0, [5.0] * 5)
    judged = judge_membership(
        found.knowing_others, found.is_in, {"all": mu}, budgets={"all": Budget(2.0)}
    )
    audit = Audit("five pairs", 0.95, Arrangement(), judged)
    table = audit.table()
    assert [column.name for column in table.columns][4:6] == ["AUC", "found at 0.1 %"]
    assert table.rows[0][-1] == "holds"
    written = audit.to_json()["groups"]["all"]
    assert written["verdict"] in ("detected", "not detected")
    assert written["found"][1]["at_most"] == pytest.approx(ndtr(ndtri(0.01) + mu))
    assert audit.figure().axes


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Cliques([], [2]), "at least one marginal"),
        (lambda: Cliques([(0, 2)], [2, 2]), r"columns from 0 to 1, got \(0, 2\)"),
        (
            lambda: PAIRS.read([np.zeros(3)] * 5, records(3, 0)),
            r"must have 30 cells in one row, got \(3,\)",
        ),
        (
            lambda: judge_membership(np.zeros(3), np.ones(3, bool), {"a": 1.0}),
            "3 people in and 0 out",
        ),
        (
            lambda: judge_membership(np.array([np.nan]), np.ones(1, bool), {"a": 1.0}),
            "scores must be finite, got 1 NaN",
        ),
        (
            lambda: judge_membership(np.zeros(2), np.eye(2)[0], {"a": 1.0}, confidence=1),
            "confidence",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
