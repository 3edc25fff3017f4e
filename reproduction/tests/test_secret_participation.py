"""The derivation of ``reproduction/docs/secret-participation.md``, checked by brute force."""

import math
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

pytest.importorskip("dp_accounting")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
import secret_participation as secret

from collegium.accounting import gdp_epsilon

DELTA = 1e-5
LOSSES = np.array([-0.6, -0.2, 0.0, 0.05, 0.3, 0.8])


def plane(noise, reach=9.0, points=601):
    axis = np.linspace(-reach * noise, reach * noise + 1.0, points)
    return axis, (axis[1] - axis[0]) ** 2


def mixture(axis, noise, parts):
    """Density on a grid of the plane of Σ p·N((a, b), noise²·I), for parts (p, a, b)."""
    return sum(
        p * np.outer(norm.pdf(axis, a, noise), norm.pdf(axis, b, noise)) for p, a, b in parts
    )


def hockey_stick(one, other, cell):
    return np.array([np.maximum(one - math.exp(loss) * other, 0).sum() * cell for loss in LOSSES])


def of_loss(loss):
    return np.array([loss.get_delta_for_epsilon(float(epsilon)) for epsilon in LOSSES])


@pytest.mark.parametrize(("noise", "p"), [(0.9, 0.1), (3.0, 0.5), (0.9, 1.0)])
def test_the_pair_of_an_answer_is_a_product_of_both_subsampled_pairs(noise, p):
    """p·N(e_a) + (1-p)·N(0) against p·N(e_b) + (1-p)·N(0), integrated in the plane."""
    axis, cell = plane(noise)
    here = mixture(axis, noise, [(p, 1, 0), (1 - p, 0, 0)])
    there = mixture(axis, noise, [(p, 0, 1), (1 - p, 0, 0)])
    expected = hockey_stick(here, there, cell)
    bound = of_loss(secret.answer_loss(noise, p))
    assert bound == pytest.approx(expected, abs=2e-4)
    assert (bound >= expected - 3e-5).all()


def voters(p, votes, shift=0):
    """All ways to take part: (probability, votes for class 0, votes for class 1)."""
    parts = {}
    for present in product((0, 1), repeat=len(votes)):
        chance = math.prod(p[i] if here else 1 - p[i] for i, here in enumerate(present))
        counts = [0, 0]
        for i, here in enumerate(present):
            counts[votes[i]] += here
        parts[tuple(counts)] = parts.get(tuple(counts), 0.0) + chance
    return [(chance, *counts) for counts, chance in parts.items()]


@pytest.mark.parametrize(("p", "others"), [(0.2, ()), (0.7, (0,)), (0.7, (1, 1)), (0.2, (0, 1, 1))])
def test_whoever_else_takes_part_an_answer_never_tells_more(p, others):
    noise, rest = 1.1, [0.3, 0.8, 1.0][: len(others)]
    axis = np.linspace(-8, 12, 501)
    cell = (axis[1] - axis[0]) ** 2
    here = mixture(axis, noise, voters([p, *rest], (0, *others)))
    there = mixture(axis, noise, voters([p, *rest], (1, *others)))
    bound = of_loss(secret.answer_loss(noise, p))
    for one, other in ((here, there), (there, here)):
        assert (hockey_stick(one, other, cell) <= bound + 3e-5).all()


@pytest.mark.parametrize(
    ("p", "others"), [(0.7, ()), (0.2, (0,)), (0.2, (1, 1)), (0.7, (0, 1, 1)), (0.2, (0, 0, 1))]
)
def test_whoever_else_takes_part_a_check_never_tells_more(p, others):
    noise, rest = 1.1, [0.3, 0.8, 1.0][: len(others)]
    axis = np.linspace(-12, 18, 20001)
    step = axis[1] - axis[0]

    def largest(vote):
        parts = voters([p, *rest], (vote, *others))
        return sum(chance * norm.pdf(axis, max(counts), noise) for chance, *counts in parts)

    bound = of_loss(secret.check_loss(noise, p))
    for one, other in ((largest(0), largest(1)), (largest(1), largest(0))):
        tells = hockey_stick(one, other, step)
        assert (tells <= bound + 1e-6).all()


def test_who_always_takes_part_pays_the_gaussian_price():
    expected = gdp_epsilon(math.sqrt(secret.squared(1.0, 283, 640)), DELTA)
    assert secret.secret_epsilon(1.0, 1.0, 283, 640) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("p", [0.1, 0.373, 0.698])
def test_secret_participation_costs_far_less_than_public_and_no_less_than_weighting(p):
    spent = secret.secret_epsilon(p, 1.0, 283, 640)
    public = gdp_epsilon(math.sqrt(p * secret.squared(1.0, 283, 640)), DELTA)
    weight = gdp_epsilon(p * math.sqrt(secret.squared(1.0, 283, 640)), DELTA)
    assert weight <= spent <= 1.002 * weight
    assert spent < 0.85 * public


@pytest.mark.parametrize("order", [2, 3, 8, 32])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("noise", [1.0, 5.0, 40.0])
def test_at_every_whole_order_a_coin_costs_no_less_than_its_mean(order, p, noise):
    """Jensen: E exp(k(k-1)/2σ²) over k ~ Bin(α, p) is at least exp(α(α-1)p²/2σ²)."""
    log_moment = -math.inf
    for k in range(order + 1):
        term = math.log(math.comb(order, k)) + k * math.log(p) + (order - k) * math.log1p(-p)
        log_moment = np.logaddexp(log_moment, term + k * (k - 1) / (2 * noise**2))
    assert log_moment >= order * (order - 1) * p**2 / (2 * noise**2) * (1 - 1e-9)


def test_more_participation_never_costs_less():
    spent = [secret.secret_epsilon(p, 1.0, 50, 110) for p in (0.05, 0.2, 0.4, 0.8, 1.0)]
    assert spent == sorted(spent)
