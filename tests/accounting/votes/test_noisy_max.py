"""Noisy-max costs against a plain loop, mpmath and what theory promises."""

import itertools
import math
import runpy
from pathlib import Path
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium.accounting import DEFAULT_ORDERS
from collegium.accounting.renyi import SEED_ORDERS
from collegium.accounting.votes.noisy_max import (
    gnmax_log_q,
    gnmax_rdp,
    gnmax_rdp_data_independent,
    lnmax_log_q,
    lnmax_pure_epsilon,
    lnmax_rdp,
    threshold_log_q,
    threshold_rdp,
    threshold_rdp_data_independent,
)
from collegium.errors import InputError

reference = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("reference_loop.py"))))

ORDERS = np.array([1.25, 2.0, 3.5, 8.0, 20.0, 50.0])
SENSITIVITIES = np.array([0.0, 0.4, 1.0, 2.5])


def random_votes(n_queries, n_classes, n_teachers, seed):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(n_classes, 0.3), n_queries)
    return np.array([rng.multinomial(n_teachers, share) for share in shares], dtype=float)


@pytest.mark.parametrize(("sigma", "gamma"), [(2.0, 0.5), (10.0, 0.1), (40.0, 0.02)])
def test_totals_equal_the_reference_loop(sigma, gamma):
    votes = random_votes(150, 5, 60, seed=1)
    answered = np.arange(150) % 3 > 0
    threshold, sigma_threshold = 40.0, 3 * sigma
    gnmax = gnmax_rdp(gnmax_log_q(votes, sigma), SENSITIVITIES, sigma, ORDERS)
    checks = threshold_rdp(
        threshold_log_q(votes.max(axis=1), threshold, sigma_threshold),
        SENSITIVITIES,
        sigma_threshold,
        ORDERS,
    )
    lnmax = lnmax_rdp(lnmax_log_q(votes, gamma), SENSITIVITIES, gamma, ORDERS)
    confident = checks.sum(axis=0) + gnmax[answered].sum(axis=0)
    for (i, delta), (j, order) in itertools.product(enumerate(SENSITIVITIES), enumerate(ORDERS)):
        rows, flags = votes.tolist(), answered.tolist()
        close = {"rel": 1e-12, "abs": 1e-13}
        total = reference.gnmax_total(rows, delta, sigma, order)
        assert gnmax[:, i, j].sum() == pytest.approx(total, **close)
        total = reference.confident_gnmax_total(
            rows, flags, delta, threshold, sigma_threshold, sigma, order
        )
        assert confident[i, j] == pytest.approx(total, **close)
        total = reference.lnmax_total(rows, delta, gamma, order)
        assert lnmax[:, i, j].sum() == pytest.approx(total, **close)


@pytest.mark.parametrize("gap", [0.0, 1.0, 30.0, 300.0, 3e4])
def test_log_q_matches_mpmath_far_below_the_smallest_float(gap):
    counts = [[gap + 2.0, 2.0, 1.0]]
    with mpmath.workdps(40):
        gaussian = sum(mpmath.erfc((gap + more) / (2 * mpmath.mpf(4))) / 2 for more in (0, 1))
        laplace = sum(
            (2 + (gap + more) / 2) / (4 * mpmath.exp((gap + more) / mpmath.mpf(2)))
            for more in (0, 1)
        )
        check = mpmath.ncdf(-mpmath.mpf(gap) / 4)
        expected = [
            min(mpmath.log(gaussian), mpmath.log(mpmath.mpf(2) / 3)),
            min(mpmath.log(laplace), mpmath.log(mpmath.mpf(2) / 3)),
            mpmath.log(check),
        ]
    ours = [
        gnmax_log_q(counts, 4.0)[0],
        lnmax_log_q(counts, 0.5)[0],
        threshold_log_q([gap + 2.0], 2.0, 4.0)[0],
    ]
    for ours_one, exact in zip(ours, expected, strict=True):
        assert ours_one == pytest.approx(float(exact), rel=1e-13)


@settings(max_examples=100)
@given(
    log_q=st.floats(-600, -0.8),
    scale=st.floats(0.3, 1e5),
    order=st.floats(1.01, 200),
)
def test_gnmax_cost_matches_theorem_6_in_high_precision(log_q, scale, order):
    ours = gnmax_rdp([log_q], [1.0], scale, [order])[0, 0, 0]
    with mpmath.workdps(400):
        q, scale, order = mpmath.exp(mpmath.mpf(log_q)), mpmath.mpf(scale), mpmath.mpf(order)
        exact = order / scale**2
        mu_2 = scale * mpmath.sqrt(-mpmath.mpf(log_q))
        mu_1 = mu_2 + 1
        epsilon_1, epsilon_2 = mu_1 / scale**2, mu_2 / scale**2
        if mu_2 > 1 and order <= mu_1 and q * mpmath.exp(epsilon_2) < 1:
            factor = mu_1 / (mu_1 - 1) * mu_2 / (mu_2 - 1)
            if q <= mpmath.exp((mu_2 - 1) * epsilon_2) / factor**mu_2:
                moved = (q * mpmath.exp(epsilon_2)) ** ((mu_2 - 1) / mu_2)
                a = ((1 - q) / (1 - moved)) ** (order - 1)
                b = (mpmath.exp(epsilon_1) / q ** (1 / (mu_1 - 1))) ** (order - 1)
                exact = min(exact, mpmath.log((1 - q) * a + q * b) / (order - 1))
    assert ours == pytest.approx(float(exact), rel=1e-11)


def test_no_cost_underflows_to_zero_except_without_influence():
    for costs in (
        gnmax_rdp([-1e5, -math.inf], [0.0, 1.0], 40.0, SEED_ORDERS),
        lnmax_rdp([-1e5, -math.inf], [0.0, 1.0], 0.1, SEED_ORDERS),
    ):
        assert (costs[:, 0] == 0).all()
        assert (costs[:, 1] > 0).all()
        assert (costs[:, 1] < 1e-300).all()


def test_orders_of_proposition_10_beat_those_that_the_thesis_prints():
    scale, log_q, order = 4.0, -20.0, 10.0
    root = scale * math.sqrt(-log_q)
    papernot = reference.theorem_6(math.exp(log_q), scale, order, root + 1, root)
    thesis = reference.theorem_6(math.exp(log_q), scale, order, root, root + 1)
    assert gnmax_rdp([log_q], [1.0], scale, [order]).item() == pytest.approx(papernot, rel=1e-12)
    assert papernot == pytest.approx(0.121621, abs=1e-6)
    assert thesis == pytest.approx(0.124097, abs=1e-6)


@given(
    log_q=st.floats(-80, -1.5), scale=st.floats(2, 60), shifts=st.tuples(*[st.floats(0.3, 3)] * 2)
)
def test_no_other_orders_are_better(log_q, scale, shifts):
    root = scale * math.sqrt(-log_q)
    for order in (2.0, 10.0):
        ours = gnmax_rdp([log_q], [1.0], scale, [order]).item()
        other = reference.theorem_6(
            math.exp(log_q), scale, order, 1 + root * shifts[0], root * shifts[1]
        )
        best = reference.theorem_6(math.exp(log_q), scale, order, 1 + root, root)
        if other is not None and best is not None:
            assert ours <= other * (1 + 1e-9) + 1e-13


log_qs = st.floats(-700, -0.3)
steps = st.floats(1.0, 20.0)


@settings(max_examples=200)
@given(log_q=log_qs, delta=st.floats(1e-3, 30), sigma=st.floats(0.1, 300), step=steps)
def test_gnmax_cost_is_monotone_at_given_q(log_q, delta, sigma, step):
    base = gnmax_rdp([log_q], [delta], sigma, DEFAULT_ORDERS)[0, 0]
    slack = 1 + 1e-9
    assert (gnmax_rdp([log_q], [delta * step], sigma, DEFAULT_ORDERS) * slack >= base).all()
    assert (gnmax_rdp([log_q], [delta], sigma * step, DEFAULT_ORDERS) <= base * slack).all()
    assert (gnmax_rdp([log_q * step], [delta], sigma, DEFAULT_ORDERS) <= base * slack).all()
    assert (np.diff(base) >= -base[1:] * 1e-9).all()
    assert (base <= gnmax_rdp_data_independent(delta, sigma, DEFAULT_ORDERS) * slack).all()


@settings(max_examples=200)
@given(log_q=log_qs, delta=st.floats(1e-3, 30), gamma=st.floats(1e-4, 5), step=steps)
def test_lnmax_cost_is_monotone_at_given_q(log_q, delta, gamma, step):
    base = lnmax_rdp([log_q], [delta], gamma, DEFAULT_ORDERS)[0, 0]
    slack = 1 + 1e-9
    assert (lnmax_rdp([log_q], [delta * step], gamma, DEFAULT_ORDERS) * slack >= base).all()
    assert (lnmax_rdp([log_q], [delta], gamma / step, DEFAULT_ORDERS) <= base * slack).all()
    assert (lnmax_rdp([log_q * step], [delta], gamma, DEFAULT_ORDERS) <= base * slack).all()
    assert (np.diff(base) >= -base[1:] * 1e-9).all()
    assert (base <= lnmax_pure_epsilon(delta, gamma) * slack).all()


def test_more_noise_on_the_same_votes_can_raise_a_data_dependent_cost():
    costs = [
        gnmax_rdp(gnmax_log_q([[200.0, 50.0]], sigma), [1.0], sigma, [10.0]).item()
        for sigma in (20.0, 40.0)
    ]
    assert costs[0] < costs[1]


@given(st.integers(0, 1000))
def test_group_order_and_class_order_have_no_effect(seed):
    rng = np.random.default_rng(seed)
    votes = random_votes(6, 4, 30, seed)
    groups, classes = rng.permutation(SENSITIVITIES.size), rng.permutation(4)
    log_q = gnmax_log_q(votes, 5.0)
    np.testing.assert_allclose(gnmax_log_q(votes[:, classes], 5.0), log_q, rtol=1e-14)
    np.testing.assert_array_equal(
        gnmax_rdp(log_q, SENSITIVITIES[groups], 5.0, ORDERS),
        gnmax_rdp(log_q, SENSITIVITIES, 5.0, ORDERS)[:, groups],
    )


def test_noise_and_sensitivity_scale_together():
    log_q = gnmax_log_q(random_votes(20, 3, 40, 2), 5.0)
    np.testing.assert_allclose(
        gnmax_rdp(log_q, 3 * SENSITIVITIES, 15.0, ORDERS),
        gnmax_rdp(log_q, SENSITIVITIES, 5.0, ORDERS),
        rtol=1e-10,
    )


def test_noise_may_differ_from_query_to_query():
    votes = random_votes(4, 3, 40, 3)
    sigma = np.array([2.0, 5.0, 10.0, 40.0])
    together = gnmax_rdp(gnmax_log_q(votes, sigma), SENSITIVITIES, sigma, ORDERS)
    for i in range(4):
        alone = gnmax_log_q(votes[i : i + 1], sigma[i])
        np.testing.assert_array_equal(
            together[i], gnmax_rdp(alone, SENSITIVITIES, sigma[i], ORDERS)[0]
        )


@pytest.mark.filterwarnings("error")
def test_extremes_give_numbers_without_warnings():
    log_q = np.array([0.0, -1e-300, -1e-12, -0.5, -1.0, -1e3, -1e12, -math.inf])
    moves = np.array([0.0, 1e-150, 1e-6, 1.0, 1e6, 1e100])
    costs = [
        gnmax_rdp(log_q, moves, 40.0, DEFAULT_ORDERS),
        threshold_rdp(log_q, moves, 40.0, DEFAULT_ORDERS),
        lnmax_rdp(log_q, moves, 0.1, DEFAULT_ORDERS),
    ]
    for cost in costs:
        assert cost.shape == (8, 6, DEFAULT_ORDERS.size)
        assert np.isfinite(cost).all()
        assert (cost >= 0).all()


def test_no_queries_are_no_problem():
    votes = np.empty((0, 3))
    assert gnmax_log_q(votes, 1.0).shape == (0,)
    assert lnmax_log_q(votes, 1.0).shape == (0,)
    assert gnmax_rdp(np.empty(0), [1.0, 2.0], 1.0, [2.0, 3.0]).shape == (0, 2, 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda: gnmax_log_q([1.0, 2.0], 1.0),
        lambda: gnmax_log_q([[1.0]], 1.0),
        lambda: gnmax_log_q([[1.0, math.nan]], 1.0),
        lambda: gnmax_log_q([[1.0, math.inf]], 1.0),
        lambda: gnmax_log_q([[1.0, -2.0]], 1.0),
        lambda: gnmax_log_q([[1.0, 2.0]], 0.0),
        lambda: gnmax_log_q([[1.0, 2.0]], [1.0, 1.0]),
        lambda: gnmax_rdp([0.1], [1.0], 1.0, [2.0]),
        lambda: gnmax_rdp([[-1.0]], [1.0], 1.0, [2.0]),
        lambda: gnmax_rdp([math.nan], [1.0], 1.0, [2.0]),
        lambda: gnmax_rdp([-1.0], [-1.0], 1.0, [2.0]),
        lambda: gnmax_rdp([-1.0], [math.inf], 1.0, [2.0]),
        lambda: gnmax_rdp([-1.0], [[1.0]], 1.0, [2.0]),
        lambda: gnmax_rdp([-1.0], [1.0], math.nan, [2.0]),
        lambda: gnmax_rdp([-1.0], [1.0], 1.0, [1.0]),
        lambda: gnmax_rdp_data_independent(1.0, -1.0, [2.0]),
        lambda: threshold_rdp_data_independent(math.nan, 1.0, [2.0]),
        lambda: threshold_log_q([math.inf], 1.0, 1.0),
        lambda: threshold_log_q([1.0], math.nan, 1.0),
        lambda: threshold_log_q([1.0], 1.0, 0.0),
        lambda: threshold_rdp([-1.0], [1.0], -1.0, [2.0]),
        lambda: lnmax_pure_epsilon(1.0, 0.0),
        lambda: lnmax_log_q([[3.0, 1.0]], -1.0),
        lambda: lnmax_rdp([-1.0], [1.0], math.inf, [2.0]),
        lambda: lnmax_rdp([-1.0], ["x"], 1.0, [2.0]),
    ],
)
def test_bad_input_is_refused_in_one_line(call):
    with pytest.raises(InputError) as refusal:
        call()
    assert "\n" not in str(refusal.value)


def test_messages_do_not_repeat_votes():
    with pytest.raises(InputError) as refusal:
        gnmax_log_q([[12345.0, -6789.0]], 1.0)
    assert "6789" not in str(refusal.value)
    assert "12345" not in str(refusal.value)
