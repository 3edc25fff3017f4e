"""The exact probability of another winner: against mpmath, simulation, and the union bound."""

from collections import Counter

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium.accounting import DEFAULT_ORDERS
from collegium.accounting.votes.gaussian_max import gnmax_log_q, gnmax_rdp
from collegium.accounting.votes.winner_probability import gnmax_log_q_exact
from collegium.errors import InputError


def exact(gaps):
    """log q for gaps in units of sigma, by another quadrature in 30 digits."""
    with mpmath.workdps(30):
        times = Counter(map(float, gaps))

        def density(z):
            others = mpmath.fprod(mpmath.ncdf(z + gap) ** often for gap, often in times.items())
            return mpmath.npdf(z) * (1 - others)

        low, high = -min(times) - 13, 13
        steps = mpmath.linspace(low, high, int(high - low) + 1)
        # 24 nodes for each unit of an entire function: digits to spare.
        rule = {"method": "gauss-legendre", "maxdegree": 4, "error": True}
        q, error = mpmath.quad(density, steps, **rule)
        assert error < 1e-20 * q
        return mpmath.log(q)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 10, 40])
def test_against_mpmath(n_classes):
    """Of many classes some are tied, so that the reference has few factors."""
    rng = np.random.default_rng(n_classes)
    for spread in (0.1, 1.0, 4.0) if n_classes < 10 else (1.0,):
        different = rng.uniform(0, spread, min(n_classes - 1, 5)) + rng.choice([0, 1, 6])
        gaps = np.resize(different, n_classes - 1)
        counts = 100.0 + np.concatenate([[0.0], -gaps])
        wanted = min(exact(100.0 - counts[1:]), mpmath.log1p(-mpmath.mpf(1) / n_classes))
        got = mpmath.mpf(float(gnmax_log_q_exact([counts], 1.0)[0]))
        assert -1e-14 * max(1, abs(wanted)) <= got - wanted < 2e-11


@settings(max_examples=150)
@given(
    counts=st.lists(st.floats(0, 300), min_size=2, max_size=12),
    sigma=st.floats(0.5, 400),
    order=st.permutations(range(12)),
)
def test_never_above_the_union_bound_and_never_below_the_nearest_rival(counts, sigma, order):
    log_q = gnmax_log_q_exact([counts], sigma)
    union = gnmax_log_q([counts], sigma)
    assert log_q[0] <= union[0] * (1 - 1e-14)
    ranked = np.sort(counts)[::-1]
    assert log_q[0] >= gnmax_log_q([ranked[:2]], sigma)[0] * (1 + 1e-12)
    mixed = [counts[i] for i in order if i < len(counts)]
    assert gnmax_log_q_exact([mixed], sigma)[0] == pytest.approx(log_q[0], rel=1e-12, abs=1e-12)
    sharp, papers = (gnmax_rdp(value, [1.0], sigma, DEFAULT_ORDERS) for value in (log_q, union))
    assert (sharp <= papers * (1 + 1e-9)).all()  # log q is near -1e5: an ulp shows


def test_ties_are_fair_and_rounding_shortens_gaps():
    for n_classes in (2, 3, 7, 100):
        tied = gnmax_log_q_exact(np.full((1, n_classes), 5.0), 3.0)[0]
        assert tied == pytest.approx(np.log1p(-1 / n_classes), abs=2e-11)
    one_step = gnmax_log_q_exact([[20.0, 15.0, 10.0]], 4.0, resolution=1.0)
    assert one_step[0] == gnmax_log_q_exact([[20.0, 16.0, 11.0]], 4.0)[0]


def test_simulation_agrees():
    """400,000 draws; false alarms 1e-6."""
    counts, sigma, size = np.array([90.0, 80.0, 70.0, 70.0]), 25.0, 400_000
    noisy = counts + np.random.default_rng(5).normal(0, sigma, (size, 4))
    share = (noisy.argmax(axis=1) != 0).mean()
    q = float(np.exp(gnmax_log_q_exact([counts], sigma)[0]))
    assert abs(share - q) < 4.9 * np.sqrt(q * (1 - q) / size)


def test_tiny_and_vanishing_probabilities_stay_bounded():
    log_q = gnmax_log_q_exact([[1e5, 0.0, 0.0], [400.0, 0.0, 0.0]], [1.0, 10.0])
    assert log_q[0] == gnmax_log_q([[1e5, 0.0, 0.0]], 1.0)[0]
    assert np.isfinite(log_q).all()
    assert gnmax_log_q_exact(np.empty((0, 3)), 1.0).shape == (0,)


def test_queries_in_several_blocks_are_those_asked_alone():
    counts = np.random.default_rng(0).multinomial(250, np.full(10, 0.1), size=3000)
    chosen = np.r_[0:3000:250, 1430:1445, 2870:2885, 2999]  # a block holds some 1,400 queries
    alone = [gnmax_log_q_exact([row], 40.0)[0] for row in counts[chosen]]
    np.testing.assert_allclose(gnmax_log_q_exact(counts, 40.0)[chosen], alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: gnmax_log_q_exact([[1.0]], 1.0),
        lambda: gnmax_log_q_exact([[1.0, -2.0]], 1.0),
        lambda: gnmax_log_q_exact([[1.0, 2.0]], 0.0),
        lambda: gnmax_log_q_exact([[1.0, 2.0]], 1.0, resolution=-1.0),
    ],
)
def test_bad_input_is_refused(bad):
    with pytest.raises(InputError):
        bad()
