"""Prices: worked out by hand for every aggregator and personalisation, and blind to votes."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collegium import ConfidentGNMax, ExponentialMax, GNMax, InteractiveGNMax, LNMax, PermuteAndFlip
from collegium.errors import InputError
from collegium.pate.voting.aggregators import Aggregator
from collegium.pate.voting.pricing import (
    BOUNDS,
    DataDependentPricing,
    WorstCasePricing,
    pricing_for,
)
from collegium.personalisation import Ballot

K = 100
ROUNDING = 1e-13

# Groups of 5,400, 3,700 and 900 owners; 54, 37 and 9 of 100 teachers; ε = 1, 2, 3 at δ = 1e-5.
# Influence by rule "budget" relates as 1 : 2 : 3. (Δ of each group, total weight / 100), by hand:
BY_HAND = {
    "uniform": ({}, {"high": 1.0, "average": 1.0, "low": 1.0}, 1.0),
    # 1, 2, 3 duplicates: 54 + 74 + 27 = 155 teachers of weight 1.
    "upsampling": (
        {"rule": "budget", "tolerance": 0.0},
        {"high": 1.0, "average": 2.0, "low": 3.0},
        1.55,
    ),
    # Weights 1, 2, 3 over their mean of 1.55.
    "weighting": (
        {"rule": "budget"},
        {"high": 1 / 1.55, "average": 2 / 1.55, "low": 3 / 1.55},
        1.0,
    ),
}


def events_of(aggregator, ballot):
    return aggregator.check_event(ballot), aggregator.answer_event(ballot)


def expected_prices(aggregator, moved):
    """(μ² of the check, μ² of the answer, pure ε of the answer) of an owner who moves ``moved``."""
    moved = mpmath.mpf(moved)
    if isinstance(aggregator, LNMax):
        pure = 2 * mpmath.mpf(aggregator.gamma) * moved
        share = mpmath.exp(pure) / (1 + mpmath.exp(pure))
        mu = 2 * mpmath.sqrt(2) * mpmath.erfinv(2 * share - 1)
        return 0.0, mu**2, pure
    answer = 2 * moved**2 / mpmath.mpf(aggregator.sigma) ** 2
    if isinstance(aggregator, GNMax):
        return 0.0, answer, math.inf
    return moved**2 / mpmath.mpf(aggregator.sigma_threshold) ** 2, answer, math.inf


def just_above(price, exact):
    """Never below the exact cost, and not above it by more than rounding."""
    return exact <= mpmath.mpf(float(price)) <= exact * (1 + ROUNDING)


@pytest.fixture(autouse=True)
def many_digits():
    with mpmath.workdps(50):
        yield


each_aggregator = pytest.mark.parametrize(
    "aggregator",
    [
        LNMax(gamma=0.05),
        GNMax(sigma=40.0),
        ConfidentGNMax(threshold=80.0, sigma_threshold=60.0, sigma=16.0),
        InteractiveGNMax(threshold=40.0, sigma_threshold=60.0, sigma=16.0),
    ],
    ids=lambda aggregator: aggregator.name,
)


@each_aggregator
@pytest.mark.parametrize("personalisation", BY_HAND)
def test_prices_of_whole_groups_are_those_worked_out_by_hand(house, aggregator, personalisation):
    options, moves, scale = BY_HAND[personalisation]
    electorate = house.plan(personalisation, K, **options).electorate(seed=1)
    assert electorate.cohort_groups == ("high", "average", "low")
    ballot = electorate.ballot(0)
    assert ballot.scale == pytest.approx(scale, rel=1e-6)
    check, answer = events_of(aggregator, ballot)
    for cohort, group in enumerate(electorate.cohort_groups):
        # Weights are rounded to the grid: by less than a millionth.
        assert ballot.sensitivity[cohort] == pytest.approx(moves[group], abs=1e-6)
        moved = mpmath.mpf(ballot.sensitivity[cohort]) / mpmath.mpf(ballot.scale)
        of_check, of_answer, pure = expected_prices(aggregator, moved)
        by_hand = expected_prices(aggregator, moves[group] / scale)
        assert float(of_answer) == pytest.approx(float(by_hand[1]), rel=1e-5)
        assert just_above(check.mu_squared[cohort], of_check)
        assert just_above(answer.mu_squared[cohort], of_answer)
        if math.isinf(pure):
            assert answer.pure_epsilon[cohort] == math.inf
        else:
            assert just_above(answer.pure_epsilon[cohort], pure)


@each_aggregator
def test_vanishing_teachers_cost_their_owners_nothing_and_the_others_more(house, aggregator):
    """ε/ε_max of 1/3, 2/3 and 1: frequencies (1/3)², (2/3)², 1."""
    plan = house.plan("vanishing", K, rule="budget")
    assert [group.frequency for group in plan.groups.values()] == pytest.approx([1 / 9, 4 / 9, 1])
    electorate = plan.electorate(seed=1)
    scales = set()
    for position in (0, 1, 5, 99, 100, 512):
        ballot = electorate.ballot(position)
        present = ballot.weights > 0
        assert ballot.total == present.sum()
        assert ballot.scale == present.sum() / K
        scales.add(ballot.scale)
        assert (ballot.sensitivity == present).all()
        check, answer = events_of(aggregator, ballot)
        of_check, of_answer, pure = expected_prices(aggregator, 1 / mpmath.mpf(ballot.scale))
        for cohort in range(K):
            if not present[cohort]:
                parts = [(cost.mu_squared, cost.pure_epsilon) for cost in (check, answer)]
                assert [part[cohort] for cost in parts for part in cost] == [0.0] * 4
                continue
            assert just_above(check.mu_squared[cohort], of_check)
            assert just_above(answer.mu_squared[cohort], of_answer)
            assert answer.pure_epsilon[cohort] == pytest.approx(float(pure), rel=1e-13)
    assert 0.25 < min(scales) <= max(scales) < 0.4  # 6 + 16.4 + 9 voters, rounded up or down


@each_aggregator
def test_worst_case_prices_do_not_look_at_the_votes(house, aggregator):
    electorate = house.plan("weighting", K).electorate(seed=1)
    generator = np.random.default_rng(0)
    costs = []
    for counts in (np.zeros((5, 3)), generator.random((5, 3)) * 90, np.full((5, 3), np.nan)):
        pricing = WorstCasePricing(aggregator, electorate)
        prices = pricing.prices([electorate.ballot(p) for p in range(5)], counts)
        costs.append(
            [
                cost.tobytes()
                for position in range(5)
                for price in prices[position]
                for cost in (price.mu_squared, price.pure_epsilon)
            ]
        )
    assert costs[0] == costs[1] == costs[2]


@each_aggregator
def test_data_dependent_prices_do_look_at_the_votes_and_are_never_above_the_worst_case(
    house, aggregator
):
    quiet = {"gamma": 0.2} if isinstance(aggregator, LNMax) else {"sigma": 8.0}
    aggregator = replace(aggregator, **quiet)
    electorate = house.plan("weighting", K).electorate(seed=1)
    ballots = [electorate.ballot(p) for p in range(2)]
    pricing = DataDependentPricing(aggregator, electorate)
    prices = pricing.prices(ballots, np.array([[100.0, 0.0, 0.0], [34.0, 33.0, 33.0]]))
    agreed, split = prices[0].answer.sensitive_rdp, prices[1].answer.sensitive_rdp
    assert (agreed <= split).all()
    assert (agreed < split / 2)[:, :20].all()
    if not isinstance(aggregator, LNMax):
        check, answer = events_of(aggregator, ballots[0])
        orders = pricing.accountant.orders
        for price, limit in (
            (prices[0].check.sensitive_rdp, check),
            (agreed, answer),
            (split, answer),
        ):
            assert (price <= limit.mu_squared[:, None] * orders / 2 * (1 + 1e-12)).all()


def ballots():
    weights = st.lists(st.integers(1, 2**22), min_size=1, max_size=6)
    return weights.map(
        lambda steps: Ballot(
            weights=np.array(steps) * 2.0**-20,
            total=sum(steps) * 2.0**-20,
            scale=sum(steps) * 2.0**-20 / 7,
            sensitivity=np.array([0.0, *steps]) * 2.0**-20,
        )
    )


@each_aggregator
@given(ballot=ballots(), factor=st.floats(0.01, 100.0))
def test_scaling_weights_and_noise_together_leaves_prices(aggregator, ballot, factor):
    scaled = Ballot(
        ballot.weights * factor,
        ballot.total * factor,
        ballot.scale * factor,
        ballot.sensitivity * factor,
    )
    for one, other in zip(
        events_of(aggregator, ballot), events_of(aggregator, scaled), strict=True
    ):
        assert other.mu_squared == pytest.approx(one.mu_squared, rel=1e-12)
        assert other.pure_epsilon == pytest.approx(one.pure_epsilon, rel=1e-12)


@each_aggregator
@given(ballot=ballots(), factor=st.floats(1.0, 10.0))
def test_more_noise_never_costs_more_and_more_influence_never_less(aggregator, ballot, factor):
    noisier = {
        name: value / factor if name == "gamma" else value * factor
        for name, value in vars(aggregator).items()
        if name in ("gamma", "sigma", "sigma_threshold")
    }
    stronger = replace(ballot, sensitivity=ballot.sensitivity * factor)
    for base, quiet, strong in zip(
        events_of(aggregator, ballot),
        events_of(replace(aggregator, **noisier), ballot),
        events_of(aggregator, stronger),
        strict=True,
    ):
        for cost in ("mu_squared", "pure_epsilon"):
            assert (getattr(quiet, cost) <= getattr(base, cost)).all()
            assert (getattr(strong, cost) >= getattr(base, cost)).all()


@pytest.mark.parametrize("guarantee", ["worst-case", "data-dependent"])
def test_the_account_ties_each_cohort_to_its_own_budget(house, guarantee):
    for personalisation in house.personalisations:
        electorate = house.plan(personalisation, K).electorate(seed=1)
        account = pricing_for(guarantee, GNMax(40), electorate).accountant
        for name, epsilon, delta in zip(account.names, account.epsilon, account.delta, strict=True):
            assert (epsilon, delta) == (house.groups[name].epsilon, house.groups[name].delta)
        assert account.guarantee == guarantee


def test_what_has_no_price_is_refused(house):
    class Median(Aggregator):
        name = "median"

    electorate = house.unlimited(5)
    with pytest.raises(InputError, match="median"):
        events_of(Median(), electorate.ballot(0))
    with pytest.raises(InputError, match="median"):
        DataDependentPricing(Median(), electorate).prices([electorate.ballot(0)], np.ones((1, 2)))
    with pytest.raises(InputError, match="worst-case, data-dependent"):
        pricing_for("best-case", GNMax(40), electorate)


SCALES_WITH = {  # what is drawn grows with the ballot, so the price is that of this aggregator at scale 1
    LNMax: lambda a, s: replace(a, gamma=a.gamma / s),
    PermuteAndFlip: lambda a, s: replace(a, gamma=a.gamma / s),
    ExponentialMax: lambda a, s: replace(a, gamma=a.gamma / s),
    GNMax: lambda a, s: replace(a, sigma=a.sigma * s),
    ConfidentGNMax: lambda a, s: replace(
        a, sigma=a.sigma * s, sigma_threshold=a.sigma_threshold * s, threshold=a.threshold * s
    ),
    InteractiveGNMax: lambda a, s: replace(
        a, sigma=a.sigma * s, sigma_threshold=a.sigma_threshold * s, threshold=a.threshold * s
    ),
}


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("scale", [0.375, 1.5])
@pytest.mark.parametrize("kind", SCALES_WITH, ids=lambda kind: kind.name)
def test_a_sensitive_price_is_that_of_the_noise_that_is_drawn_at_this_scale(kind, scale, bounds):
    aggregator = kind().resolved(32)
    counts = np.array([[20.0, 4.0, 2.0], [13.0, 12.0, 7.0], [31.0, 1.0, 0.0]]) * scale
    orders = np.array([1.5, 2.0, 8.0, 40.0])
    sensitivity = np.array([0.5, 1.0])
    as_drawn = SCALES_WITH[kind](aggregator, scale)
    for price in ("sensitive_answer_rdp", "sensitive_check_rdp"):
        at_scale = getattr(aggregator, price)(counts, scale, sensitivity, orders, bounds)
        alone = getattr(as_drawn, price)(counts, 1.0, sensitivity, orders, bounds)
        assert np.allclose(at_scale, alone, rtol=1e-9, atol=0)
        if price == "sensitive_answer_rdp" or aggregator.has_check:
            other = getattr(aggregator, price)(counts, 1.0, sensitivity, orders, bounds)
            assert not np.allclose(other, alone, rtol=1e-3, atol=0), "the scale must matter here"


@pytest.mark.parametrize("bounds", BOUNDS)
def test_an_interactive_check_has_one_price_whatever_the_votes_are(bounds):
    """It depends on the student's beliefs as well: bounds from votes would be of another check."""
    aggregator = InteractiveGNMax().resolved(32)
    orders, sensitivity = np.array([2.0, 8.0]), np.array([0.5, 1.0])
    counts = np.array([[32.0, 0.0], [16.0, 16.0]])
    price = aggregator.sensitive_check_rdp(counts, 1.0, sensitivity, orders, bounds)
    of_any_votes = orders * sensitivity[:, None] ** 2 / (2 * aggregator.sigma_threshold**2)
    np.testing.assert_allclose(price, of_any_votes[None], rtol=1e-9)
