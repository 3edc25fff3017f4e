"""Limits and totals, against the definition in high precision."""

import math

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collegium.budgets import Budget
from collegium.errors import InputError
from collegium.ledger.limits import DELTA_0_SHARE, Cost, Limit, epsilon_of, right_guesses


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
    limit = Limit.of(Budget(epsilon, delta), share)
    mu = math.sqrt(limit.mu_squared)
    assert profile(mu, limit.delta_0, epsilon) <= delta
    assert profile(mu * (1 + 1e-9), limit.delta_0, epsilon) > delta * (1 - 1e-12)
    assert limit.delta_0 <= share * delta
    assert epsilon_of(Cost(limit.mu_squared, math.inf, limit.delta_0), delta) == pytest.approx(
        epsilon, rel=1e-9
    )


@pytest.mark.parametrize("delta_0", [0.0, 1e-8, 9.9e-6])
@pytest.mark.parametrize("mu", [0.01, 0.3, 2.0])
def test_epsilon_of_a_cost_is_rounded_up(mu, delta_0):
    epsilon = epsilon_of(Cost(mu * mu, math.inf, delta_0), 1e-5)
    assert profile(mu, delta_0, epsilon) <= 1e-5
    assert profile(mu, delta_0, epsilon * (1 - 1e-6)) > 1e-5


def test_pure_costs_are_counted_both_ways():
    assert epsilon_of(Cost(100.0, 0.5), 1e-5) == 0.5
    limit = Limit.of(Budget(1.0))
    assert limit.allows(Cost(100.0, 1.0)) and not limit.allows(Cost(100.0, 1.001))
    assert limit.allows(Cost(limit.mu_squared, 50.0, limit.delta_0))
    assert not limit.allows(Cost(limit.mu_squared, 50.0, limit.delta_0 * 1.01))


def test_no_privacy_is_no_limit():
    assert Limit.of(Budget(math.inf)).allows(Cost(math.inf, math.inf, 1.0))


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
    limit, costs = Limit.of(Budget(epsilon)), []
    for value in values:
        if limit.allows(Cost.total([*costs, Cost(value)])):
            costs.append(Cost(value))
    left = limit.left(Cost.total(costs))
    assert limit.allows(Cost.total([*costs, Cost(left.mu_squared, 9.0, left.delta_0)]))
    more = limit.mu_squared * 1e-12
    assert not limit.allows(Cost.total([*costs, Cost(left.mu_squared + more)]))


@pytest.mark.parametrize("mu", [1e-6, 0.268, 3.0])
@pytest.mark.parametrize("delta_0", [0.0, 1e-7, 0.01])
def test_the_best_test_is_right_so_often(mu, delta_0):
    with mp.workdps(30):
        exact = 0.5 + profile(mu, delta_0, mp.mpf(0)) / 2
    assert exact <= right_guesses(Cost(mu * mu, math.inf, delta_0)) <= exact * (1 + 1e-11)


def test_guessing_is_right_half_of_the_time():
    assert right_guesses(Cost(0.0)) == 0.5 == right_guesses(Cost(9.0, 0.0))
    assert right_guesses(Cost(math.inf)) == 1.0
    # Randomised response at ε: its better answer is right with probability e^ε/(1 + e^ε).
    assert right_guesses(Cost(9.0, 1.0)) == pytest.approx(math.e / (1 + math.e))


def test_all_of_a_budget_may_be_used_in_either_way():
    limit = Limit.of(Budget(3.0))
    gaussian = float(mp.ncdf(math.sqrt(limit.mu_squared) / 2))
    assert limit.right_guesses(Cost(0.1)) == pytest.approx(gaussian, abs=1e-7)
    assert limit.right_guesses(Cost(0.1, 0.5)) == pytest.approx(math.exp(3) / (1 + math.exp(3)))


ALONE = Budget(1.0)


@pytest.mark.parametrize("mu_squared", [0.09, math.inf])
def test_one_release_that_keeps_a_budget_by_itself_takes_all_of_it(mu_squared):
    limit, whole = Limit.of(ALONE), Cost(mu_squared, alone=ALONE)
    assert limit.allows(whole) and not limit.allows(Cost(mu_squared))
    assert Cost.total([Cost(0.0), whole]) == whole
    assert limit.share_of(whole) == 1.0 and limit.left(whole).mu_squared == 0.0
    assert epsilon_of(whole, ALONE.delta) <= 1.0
    assert not limit.allows(Cost.total([whole, Cost(1e-9)]))
    assert not Limit.of(Budget(0.9)).allows(whole)
    assert not Limit.of(Budget(1.0, 1e-6)).allows(whole)


def test_what_was_to_take_all_of_a_budget_is_not_settled_at_less():
    """An outcome must not decide whether it counts in full or in μ."""
    whole = Cost(0.09, alone=ALONE)
    assert whole.covers(whole) and whole.covers(Cost(0.0))
    assert not whole.covers(Cost(0.01)) and not whole.covers(Cost(0.01, alone=ALONE))
    assert not Cost(0.09).covers(Cost(0.01, alone=ALONE))


def test_after_a_raise_only_what_it_may_have_cost_in_mu_counts():
    raised, whole = Limit.of(Budget(3.0)), Cost(0.09, alone=ALONE)
    assert raised.left(whole).mu_squared == pytest.approx(raised.mu_squared - 0.09)
    assert raised.allows(Cost.total([whole, raised.left(whole)]))
    assert raised.left(Cost(math.inf, alone=ALONE)).mu_squared == 0.0


def test_the_best_test_on_one_release_by_itself_is_bounded_by_its_own_guarantee():
    apart = (math.e - 1 + 2e-5) / (math.e + 1)
    limit = Limit.of(ALONE)
    assert limit.right_guesses(Cost(math.inf, alone=ALONE)) == pytest.approx(0.5 + apart / 2)
    gaussian = float(mp.ncdf(0.3 / 2))  # μ = 0.3 is known, and says less than (ε, δ)
    assert limit.right_guesses(Cost(0.09, alone=ALONE)) == pytest.approx(gaussian)
    raised = Limit.of(Budget(3.0))
    assert raised.right_guesses(Cost(0.09, alone=ALONE)) == pytest.approx(
        raised.right_guesses(Cost(0.09))
    )
