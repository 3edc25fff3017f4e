"""Weights: the published and derived numbers to their digits, and an optimum that nothing beats."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from collegium.accounting import gdp_mu
from collegium.errors import InputError
from collegium.weighted_sums.weights import (
    effective_people,
    errors_of,
    saturation,
    staircase,
    weights_of,
)

SIZES = [540, 370, 90]
LAPLACE, GAUSSIAN = 2.0, 1.0
QUARTER = 0.25  # largest variance on a range of 1


def mus(*epsilon: float) -> list[float]:
    return [float(gdp_mu(one, 1e-5)) for one in epsilon]


@pytest.mark.parametrize(
    ("bounds", "noise", "expected"),
    [
        ([0.01, 0.2, 1.0], LAPLACE, (0.142302, 0.031356, 0.026141)),
        (mus(1, 2, 3), GAUSSIAN, (0.016246, 0.017095, 0.016226)),
        (mus(0.1, 0.2, 0.3), GAUSSIAN, (None, 0.026767, 0.026767)),
    ],
)
def test_errors_of_a_mean_to_their_digits(
    bounds: list[float], noise: float, expected: tuple[float | None, ...]
) -> None:
    rules = ("uniform", "proportional", "saturating")
    for rule, digits in zip(rules, expected, strict=True):
        weights = weights_of(rule, bounds, SIZES, noise, QUARTER)
        if digits is not None:
            assert round(errors_of(weights, SIZES, noise, QUARTER).population, 6) == digits


def test_uniform_mean_of_small_budgets() -> None:
    weights = weights_of("uniform", mus(0.1, 0.2, 0.3), SIZES)
    assert round(errors_of(weights, SIZES, 1.0, QUARTER).population, 6) == 0.034577


def test_where_weights_saturate() -> None:
    assert round(saturation([0.01, 0.2, 1.0], SIZES, LAPLACE, QUARTER), 5) == 0.28783
    assert round(saturation(mus(1, 2, 3), SIZES, GAUSSIAN, QUARTER), 6) == 0.295685
    assert saturation(mus(0.1, 0.2, 0.3), SIZES, GAUSSIAN, QUARTER) == math.inf


@pytest.mark.parametrize(
    ("rule", "error"), [("uniform", 141.42), ("proportional", 25.05), ("saturating", 19.83)]
)
def test_errors_of_a_count_to_their_digits(rule: str, error: float) -> None:
    spread = 0.3 * 0.7 * 1000 / 999  # of 300 among 1,000, drawn without replacement
    weights = weights_of(rule, [0.01, 0.2, 1.0], SIZES, LAPLACE, QUARTER)  # the share is not known
    assert round(1000 * errors_of(weights, SIZES, LAPLACE, spread).table, 2) == error


def test_two_groups_in_closed_form() -> None:
    first, n = 0.1, 200
    assert saturation([first, 5.0], [n, 50], LAPLACE, QUARTER) == pytest.approx(
        first + 8 / (n * first)
    )
    assert saturation([first, 5.0], [n, 50], GAUSSIAN, QUARTER) == pytest.approx(
        first + 4 / (n * first)
    )


GROUPS = st.integers(1, 6).flatmap(
    lambda k: st.tuples(
        st.lists(st.floats(1e-3, 4.0), min_size=k, max_size=k),
        st.lists(st.integers(1, 3000), min_size=k, max_size=k),
        st.floats(0.01, 9.0),
        st.floats(1e-4, 1.0),
    )
)


@given(GROUPS)
def test_no_other_weights_err_less(case: tuple[list[float], list[int], float, float]) -> None:
    bounds, sizes, noise, spread = case
    best = errors_of(weights_of("saturating", bounds, sizes, noise, spread), sizes, noise, spread)
    least = best.noise + best.people
    rng = np.random.default_rng(len(bounds))
    others = rng.uniform(0.01, 1, (20, len(bounds))) * bounds
    for weights in [
        *others,
        weights_of("uniform", bounds, sizes),
        weights_of("proportional", bounds, sizes),
    ]:
        other = errors_of(weights, sizes, noise, spread)
        assert least <= (other.noise + other.people) * (1 + 1e-9) + 1e-15


def test_a_general_optimiser_finds_the_same() -> None:
    bounds, sizes = np.array([0.05, 0.1, 0.4, 0.4, 3.0]), np.array([300, 30, 200, 10, 60])

    def squared(weights: np.ndarray) -> float:
        one = errors_of(weights, sizes, LAPLACE, QUARTER)
        return 1e4 * (one.noise + one.people)

    found = minimize(squared, bounds / 2, bounds=[(1e-6, b) for b in bounds], tol=1e-14)
    expected = weights_of("saturating", bounds, sizes, LAPLACE, QUARTER)
    assert squared(expected) <= found.fun + 1e-9
    np.testing.assert_allclose(found.x, expected, rtol=2e-3)


@given(st.lists(st.floats(1e-3, 5.0), min_size=1, max_size=6))
def test_a_staircase_takes_nobody_more_than_their_budget_and_uses_it_up(
    bounds: list[float],
) -> None:
    steps = staircase(bounds)
    paid = np.sqrt(sum(step**2 for step in steps))
    assert (paid <= np.array(bounds) * (1 + 1e-15)).all()
    np.testing.assert_allclose(paid, bounds, rtol=1e-9)
    assert set(steps[0]) == {min(bounds)}


def test_effective_people() -> None:
    assert effective_people([1.0, 1.0], [30, 70]) == pytest.approx(100)
    assert effective_people([1.0, 1e-9], [30, 70]) == pytest.approx(30, rel=1e-6)


@pytest.mark.parametrize("bounds", [[1.0], [1.0, -1.0], [1.0, math.inf], [0.0, 1.0]])
def test_weights_that_cannot_be(bounds: list[float]) -> None:
    with pytest.raises(InputError, match="bound"):
        weights_of("saturating", bounds, [10, 20])


def test_an_unknown_rule() -> None:
    with pytest.raises(InputError, match="saturating, proportional, uniform"):
        weights_of("optimal", [1.0], [10])
