"""The exact cost of the threshold check: against mpmath, brute force over neighbours, and its bounds."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from collegium.accounting import DEFAULT_ORDERS, gaussian_rdp
from collegium.accounting.votes.threshold_check import (
    threshold_log_q,
    threshold_rdp,
    threshold_rdp_exact,
)
from collegium.errors import InputError


@pytest.fixture(autouse=True)
def many_digits():
    with mpmath.workdps(60):
        yield


def divergence(here, there, order):
    """Rényi divergence of two outcomes, in many digits, from positions in units of the noise."""
    with mpmath.workdps(60):
        a, b, order = mpmath.mpf(here), mpmath.mpf(there), mpmath.mpf(order)
        total = sum(
            mpmath.ncdf(sign * a) ** order * mpmath.ncdf(sign * b) ** (1 - order)
            for sign in (1, -1)
        )
        return mpmath.log(total) / (order - 1)


def test_against_mpmath_over_twelve_sigmas_and_steps_from_1e_8():
    rng = np.random.default_rng(1)
    for _ in range(400):
        a, x = rng.uniform(-12, 12), 10 ** rng.uniform(-8, 0.8)
        order = 1 + 10 ** rng.uniform(-2, 4.3)
        exact = max(divergence(a, mpmath.mpf(a) + s, order) for s in (x, -x))
        exact = min(exact, mpmath.mpf(x) ** 2 * order / 2)
        got = threshold_rdp_exact([a], 0.0, [x], 1.0, [order])[0, 0, 0]
        if exact > 1e-300:
            assert 0 <= float(mpmath.mpf(float(got)) / exact - 1) < 2.0**-39


def test_both_directions_against_mpmath():
    rng = np.random.default_rng(2)
    differ = 0
    for _ in range(120):
        a, x, order = rng.uniform(-6, 6), 10 ** rng.uniform(-3, 0), 1 + 10 ** rng.uniform(-1, 1.5)
        shifted = [mpmath.mpf(a) + s for s in (x, -x)]
        exact = max(max(divergence(a, b, order), divergence(b, a, order)) for b in shifted)
        exact = min(exact, mpmath.mpf(x) ** 2 * order / 2)
        got = threshold_rdp_exact([a], 0.0, [x], 1.0, [order], two_sided=True)[0, 0, 0]
        one = threshold_rdp_exact([a], 0.0, [x], 1.0, [order])[0, 0, 0]
        assert float(exact) <= got <= float(exact) * (1 + 2.0**-39)
        assert one <= got
        differ += one < got * 0.999
    assert differ > 12


@given(
    value=st.floats(-30, 30),
    moves=st.floats(0.01, 10),
    noise=st.floats(1, 20),
    order=st.sampled_from([1.01, 1.5, 2.0, 8.0, 64.0]),
)
def test_no_shift_between_the_end_points_is_worse(value, moves, noise, order):
    """Brute force over the whole interval of neighbours, both directions of the divergence."""
    here, there = value / noise, (value + np.linspace(-moves, moves, 2001)) / noise
    for two_sided in (False, True):
        bound = threshold_rdp_exact([value], 0.0, [moves], noise, [order], two_sided=two_sided)
        for a, b in [(here, there), (there, here)][: 1 + two_sided]:
            passing = order * stats.norm.logcdf(a) + (1 - order) * stats.norm.logcdf(b)
            failing = order * stats.norm.logsf(a) + (1 - order) * stats.norm.logsf(b)
            worst = np.logaddexp(passing, failing).max() / (order - 1)
            assert worst <= bound[0, 0, 0] * (1 + 1e-9) + 1e-12


@settings(max_examples=100)
@given(
    value=st.floats(-200, 450), moves=st.just(0.0) | st.floats(1e-6, 20), noise=st.floats(5, 300)
)
def test_never_above_the_papers_bound_nor_the_independent_cost(value, moves, noise):
    exact = threshold_rdp_exact([value], 200.0, [moves], noise, DEFAULT_ORDERS)[0, 0]
    log_q = threshold_log_q([value], 200.0, noise)
    slack = 1 + 2.0**-39
    assert (exact <= threshold_rdp(log_q, [moves], noise, DEFAULT_ORDERS)[0, 0] * slack).all()
    assert (exact <= gaussian_rdp(moves, noise, DEFAULT_ORDERS) * slack).all()
    assert (np.diff(exact) >= -exact[1:] * 1e-11).all()
    assert exact.any() == (moves > 0)


@given(value=st.floats(-200, 450), moves=st.floats(0.01, 20), factor=st.floats(1, 5))
def test_more_influence_never_costs_less(value, moves, factor):
    both = threshold_rdp_exact([value], 200.0, [moves, moves * factor], 150.0, DEFAULT_ORDERS)[0]
    assert (both[0] <= both[1] * (1 + 1e-11)).all()


def test_shapes_zero_influence_and_symmetry():
    cost = threshold_rdp_exact([120.0, 280.0], 200.0, [0.0, 1.0, 2.0], 150.0, [2.0, 9.0])
    assert cost.shape == (2, 3, 2)
    assert (cost[:, 0] == 0).all() and (cost[:, 1:] > 0).all()
    assert cost[0] == pytest.approx(cost[1], rel=1e-12)  # as far below the threshold as above it
    assert threshold_rdp_exact([], 200.0, [1.0], 150.0, [2.0]).shape == (0, 1, 1)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: threshold_rdp_exact([np.inf], 0.0, [1.0], 1.0, [2.0]),
        lambda: threshold_rdp_exact([0.0], np.nan, [1.0], 1.0, [2.0]),
        lambda: threshold_rdp_exact([0.0], 0.0, [-1.0], 1.0, [2.0]),
        lambda: threshold_rdp_exact([0.0], 0.0, [1.0], 0.0, [2.0]),
        lambda: threshold_rdp_exact([0.0], 0.0, [1.0], 1.0, [1.0]),
        lambda: threshold_rdp_exact([[0.0]], 0.0, [1.0], 1.0, [2.0]),
    ],
)
def test_bad_input_is_refused(bad):
    with pytest.raises(InputError):
        bad()
