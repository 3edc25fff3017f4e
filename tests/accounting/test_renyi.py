"""Rényi curves and their conversion."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collegium.accounting import DEFAULT_ORDERS, gaussian_rdp, gdp_epsilon, rdp_to_epsilon
from collegium.accounting.renyi import (
    CONVERSIONS,
    SEED_ORDERS,
    poisson_gaussian_rdp,
    validate_orders,
)
from collegium.errors import InputError


def test_grids():
    assert SEED_ORDERS.tolist() == list(range(2, 51))
    assert set(SEED_ORDERS) <= set(DEFAULT_ORDERS)
    assert DEFAULT_ORDERS[0] == pytest.approx(1.01)
    assert DEFAULT_ORDERS[-1] >= 1e4
    assert (np.diff(DEFAULT_ORDERS) > 0).all()
    with pytest.raises(ValueError, match="read-only"):
        DEFAULT_ORDERS[0] = 3.0


def test_gaussian_rdp_is_the_divergence_of_two_gaussians():
    orders = [1.5, 2.0, 7.0]
    curve = gaussian_rdp(3.0, 2.0, orders)
    for order, cost in zip(orders, curve, strict=True):
        with mpmath.workdps(30):
            moment = mpmath.quad(
                lambda z, a=order: mpmath.npdf(z, 3, 2) ** a * mpmath.npdf(z, 0, 2) ** (1 - a),
                [-40, 0, 3 * order, 80],
            )
            exact = mpmath.log(moment) / (order - 1)
        assert cost == pytest.approx(float(exact), rel=1e-12)
    assert gaussian_rdp(np.ones((2, 3)), 1.0, orders).shape == (2, 3, 3)


@pytest.mark.parametrize("noise", [1.0, 5.0])
@pytest.mark.parametrize("rate", [0.3, 1e-2, 1e-4, 1e-6, 1e-8])
def test_the_curve_of_a_poisson_sample_is_rounded_up_however_rare_it_is(rate, noise):
    """Mironov, Talwar & Zhang 2019, section 3.3: a finite sum for whole orders."""
    pytest.importorskip("dp_accounting")
    orders = [2, 5, 50]
    for order, cost in zip(orders, poisson_gaussian_rdp(rate, noise, orders), strict=True):
        with mpmath.workdps(60):
            q, variance = mpmath.mpf(rate), mpmath.mpf(noise) ** 2
            moment = mpmath.fsum(
                mpmath.binomial(order, k)
                * (1 - q) ** (order - k)
                * q**k
                * mpmath.exp(k * (k - 1) / (2 * variance))
                for k in range(order + 1)
            )
            exact = mpmath.log(moment) / (order - 1)
            assert exact <= cost <= exact * (1 + mpmath.mpf("3e-9")) + 2e-12 * q


@pytest.mark.parametrize("delta", [1e-10, 1e-5, 0.1])
@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_conversion_matches_mpmath_and_rounds_up(conversion, delta):
    rdp = gaussian_rdp(1.0, 3.0, DEFAULT_ORDERS)
    epsilon, best_order = rdp_to_epsilon(rdp, DEFAULT_ORDERS, delta, conversion)
    candidates = []
    with mpmath.workdps(50):
        for order, cost in zip(DEFAULT_ORDERS, rdp, strict=True):
            order, cost = mpmath.mpf(float(order)), mpmath.mpf(float(cost))
            if conversion == "mironov":
                candidates.append(cost - mpmath.log(delta) / (order - 1))
            else:
                tail = (mpmath.log(delta) + mpmath.log(order)) / (order - 1)
                candidates.append(cost + mpmath.log((order - 1) / order) - tail)
        exact = min(candidates)
        assert exact <= mpmath.mpf(float(epsilon)) <= exact * (1 + mpmath.mpf("1e-12"))
    assert best_order == DEFAULT_ORDERS[candidates.index(exact)]


@given(st.floats(0.01, 5), st.floats(-12, -1))
def test_order_of_tightness(mu, log10_delta):
    delta = 10**log10_delta
    rdp = gaussian_rdp(mu, 1.0, DEFAULT_ORDERS)
    canonne = rdp_to_epsilon(rdp, DEFAULT_ORDERS, delta)[0]
    mironov = rdp_to_epsilon(rdp, DEFAULT_ORDERS, delta, "mironov")[0]
    assert gdp_epsilon(mu, delta) <= canonne <= mironov
    assert rdp_to_epsilon(2 * rdp, DEFAULT_ORDERS, delta)[0] >= canonne


@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_no_work_costs_nothing(conversion):
    curves = np.stack([np.zeros(49), np.full(49, 1e-11), np.full(49, 1e-9)])
    epsilon, _ = rdp_to_epsilon(curves, SEED_ORDERS, 1e-5, conversion)
    assert epsilon[:2].tolist() == [0.0, 0.0]  # 1e-11 is below 2 delta^2: within delta by Pinsker
    assert epsilon[2] > 0


def test_infinite_orders_are_ignored():
    rdp = gaussian_rdp(1.0, 3.0, SEED_ORDERS)
    epsilon, order = rdp_to_epsilon(rdp, SEED_ORDERS, 1e-5)
    partly = np.where(2 * order < SEED_ORDERS, np.inf, rdp)
    assert rdp_to_epsilon(partly, SEED_ORDERS, 1e-5)[0] == epsilon
    nothing, no_order = rdp_to_epsilon(np.full(49, np.inf), SEED_ORDERS, 1e-5)
    assert nothing == np.inf
    assert np.isnan(no_order)


def test_shapes_and_clipping():
    epsilon, order = rdp_to_epsilon(np.full((4, 3, 49), 1e-3), SEED_ORDERS, 0.5)
    assert epsilon.shape == order.shape == (4, 3)
    assert (epsilon >= 0).all()


@pytest.mark.parametrize("orders", [[1.0, 2.0], [0.5], [2.0, math.inf], [], 3.0, [[2.0]], ["a"]])
def test_orders_are_checked(orders):
    with pytest.raises(InputError):
        validate_orders(orders)


def test_the_offending_order_is_named():
    with pytest.raises(InputError, match=r"0\.75"):
        validate_orders([2.0, 0.75])


@pytest.mark.parametrize(
    "call",
    [
        lambda: rdp_to_epsilon([0.1], [2.0], 0.0),
        lambda: rdp_to_epsilon([0.1], [2.0], 1.0),
        lambda: rdp_to_epsilon([0.1, 0.1], [2.0], 1e-5),
        lambda: rdp_to_epsilon(0.1, [2.0], 1e-5),
        lambda: rdp_to_epsilon([-0.1], [2.0], 1e-5),
        lambda: rdp_to_epsilon([math.nan], [2.0], 1e-5),
        lambda: rdp_to_epsilon([0.1], [2.0], 1e-5, "best"),
        lambda: gaussian_rdp(-1.0, 1.0, [2.0]),
        lambda: gaussian_rdp(1.0, 0.0, [2.0]),
        lambda: gaussian_rdp(1.0, math.inf, [2.0]),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(InputError) as refusal:
        call()
    assert "\n" not in str(refusal.value)
