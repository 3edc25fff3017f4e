"""Shares of noise: the law of their sum, by brute force in 60 digits, beside what is claimed of it."""

import itertools
import math
from fractions import Fraction
from functools import lru_cache

import mpmath
import numpy as np
import pytest
from scipy import stats

from collegium.accounting.currency import GaussianBound
from collegium.errors import InputError
from collegium.noise.exact_sampling import operating_system_words
from collegium.noise.sums import Noise
from collegium.parties.noise_shares import LEAST_SHARE, delta_0, log_distance, share_of
from collegium.parties.quorum import Quorum

DIGITS = 60
CASES = [(share, parties) for share in (0.3, 0.5, 1.0, 2.0) for parties in (2, 3, 5)]
each_case = pytest.mark.parametrize(("share", "parties"), CASES)


@lru_cache
def law_of_sum(share, parties):
    """Probabilities of the sum of rounded Gaussians, at all integers that matter, from the least."""
    with mpmath.workdps(DIGITS):
        reach = math.ceil(17 * share) + 2
        edges = [mpmath.ncdf((k - mpmath.mpf(1) / 2) / share) for k in range(-reach, reach + 2)]
        one = [above - below for below, above in itertools.pairwise(edges)]
        total = [mpmath.mpf(1)]
        for _ in range(parties):
            wider = [mpmath.mpf(0)] * (len(total) + len(one) - 1)
            for i, first in enumerate(total):
                for j, second in enumerate(one):
                    wider[i + j] += first * second
            total = wider
        return total


@lru_cache
def law_of_reference(share, parties):
    """Probabilities of round(Z + U_1 + ... + U_{n-1}), at the same integers, by its characteristic function.

    The trapezoidal rule of step h is off by the probabilities 2 pi / h further out: below 1e-60 here.
    """
    width = len(law_of_sum(share, parties))
    with mpmath.workdps(DIGITS):
        reach = (width - 1) // 2
        step = 2 * mpmath.pi / (2 * width + 60)
        values = [mpmath.mpf(1)]
        while True:
            w = step * len(values)
            value = (mpmath.exp(-((share * w) ** 2) / 2) * mpmath.sinc(w / 2)) ** parties
            values.append(value)
            if mpmath.exp(-parties * (share * w) ** 2 / 2) < mpmath.mpf(10) ** -DIGITS:
                break
        half = [
            step
            / mpmath.pi
            * (
                values[0] / 2
                + mpmath.fsum(
                    value * mpmath.cos(step * j * k) for j, value in enumerate(values[1:], start=1)
                )
            )
            for k in range(reach + 1)
        ]
        return half[:0:-1] + half


def profile(law, moved, epsilon):
    """Hockey-stick divergence of a law moved by some integers from itself."""
    padded = [mpmath.mpf(0)] * moved
    factor = mpmath.exp(epsilon)
    return mpmath.fsum(
        max(p - factor * q, mpmath.mpf(0))
        for p, q in zip([*law, *padded], [*padded, *law], strict=True)
    )


@each_case
def test_the_distance_is_bounded_and_the_bound_is_not_empty(share, parties):
    with mpmath.workdps(DIGITS):
        law, reference = law_of_sum(share, parties), law_of_reference(share, parties)
        assert abs(mpmath.fsum(law) - 1) < mpmath.mpf(10) ** -40
        assert abs(mpmath.fsum(reference) - 1) < mpmath.mpf(10) ** -40
        distance = mpmath.fsum(abs(p - q) for p, q in zip(law, reference, strict=True)) / 2
    bound = log_distance(share, parties)
    assert float(mpmath.log(distance)) <= bound
    if share >= 1:
        assert bound < float(mpmath.log(distance)) + math.log(1000)


@each_case
@pytest.mark.parametrize("moved", [1, 3])
def test_the_profile_is_below_the_claimed_one(share, parties, moved):
    mu = moved / (share * math.sqrt(parties))
    claimed = GaussianBound(mu, delta_0(share, parties, coordinates=1, mu=mu))
    with mpmath.workdps(DIGITS):
        law = law_of_sum(share, parties)
        for epsilon in np.linspace(-3, 12, 46):
            assert profile(law, moved, epsilon) <= claimed.delta(float(epsilon))


def test_without_delta_0_coarse_shares_would_break_the_promise():
    share, parties = 0.3, 2
    mu = 1 / (share * math.sqrt(parties))
    with mpmath.workdps(DIGITS):
        law = law_of_sum(share, parties)
        broken = [
            e for e in np.linspace(0, 12, 25) if profile(law, 1, e) > GaussianBound(mu).delta(e)
        ]
    assert broken


def test_one_share_is_the_exact_mechanism():
    assert delta_0(0.1, 1, coordinates=5, mu=1.0) == 0


def test_more_coordinates_and_smaller_shares_cost_more():
    costs = [delta_0(3.0, 2, coordinates=10**power, mu=1.0) for power in range(5)]
    assert costs == sorted(costs) and costs[0] > 0
    costs = [delta_0(share, 3, coordinates=10, mu=1.0) for share in (3.0, 2.0, 1.5, 1.0, 0.5)]
    assert costs == sorted(costs)
    assert costs[-1] == 1


def test_the_least_share_is_negligible_whatever_the_parties():
    for parties in range(1, 20):
        for mu in (1e-3, 0.1, 1.0, 12.0):
            assert delta_0(LEAST_SHARE, parties, coordinates=2**30, mu=mu) < 1e-100


def test_the_oracles_of_shares():
    for sigma, quorum, share, whole in (
        (40.0, Quorum(10, 2, 1), 15.118579, 47.809144),
        (40.0, Quorum(3, 0, 1), 28.284271, 48.989795),
    ):
        assert share_of(Noise("gaussian", sigma), quorum).scale == pytest.approx(share, abs=5e-7)
        assert sigma * quorum.excess(quorum.parties) == pytest.approx(whole, abs=5e-7)


def test_shares_together_are_never_less_than_what_was_asked_for():
    rng = np.random.default_rng(5)
    for sigma in rng.uniform(50, 1e6, 300):
        for quorum in (Quorum(3), Quorum(7, 1, 2), Quorum(20, 3, 4)):
            share = Fraction(share_of(Noise("gaussian", float(sigma)), quorum).scale)
            assert share**2 * quorum.surely_honest >= Fraction(float(sigma)) ** 2


@pytest.mark.parametrize("kind", ["laplace", "exponential", "gumbel"])
def test_only_gaussian_noise_has_shares(kind):
    with pytest.raises(InputError, match=f"'{kind}' noise has no shares .* gaussian"):
        share_of(Noise(kind, 40.0), Quorum(3))


def test_shares_that_are_too_small_are_refused():
    assert share_of(Noise("gaussian", 12.0), Quorum(3)).scale > LEAST_SHARE
    with pytest.raises(InputError, match="at least 12 steps, on a finer grid or with more noise"):
        share_of(Noise("gaussian", 11.0), Quorum(3))


def test_what_is_drawn_has_the_law_of_the_convolution():
    """Chi-square at share 2 and 3 parties, over cells of at least 50 expected; false alarms: 1e-8."""
    share, parties, size = 2.0, 3, 200_000
    noise = Noise("gaussian", share)
    drawn = sum(noise.drawn(size, operating_system_words) for _ in range(parties))
    law = np.array([float(p) for p in law_of_sum(share, parties)])
    reach = (len(law) - 1) // 2
    counts = np.bincount(np.clip(drawn, -reach, reach) + reach, minlength=len(law))
    inner = law * size >= 50
    observed = [*counts[inner], counts[~inner].sum()]
    expected = [*(law[inner] * size), law[~inner].sum() * size]
    assert stats.chisquare(observed, expected, sum_check=False).pvalue > 1e-8
