"""A label costs less than the noisy counts: the bound against arg max distributions, near and far."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import ndtr

from collegium.accounting import (
    DEFAULT_ORDERS,
    Gaussian,
    GaussianAccountant,
    GaussianArgMax,
    RenyiAccountant,
    gaussian_rdp,
)
from collegium.accounting.arg_max import LEAST_SHARE, MOMENTS, STEP, gaussian_arg_max_rdp
from collegium.errors import InputError

ORDERS = np.array([2.0, 4.0, 9.0, 17.0, 40.0, 120.0])
Z, WIDTH = np.linspace(-12, 12, 1601, retstep=True)
DENSITY = np.exp(-Z * Z / 2) / np.sqrt(2 * np.pi) * WIDTH


def winners(counts):
    """Probability of each winner, noise N(0, 1): the trapezoidal rule is exact to 1e-14 here."""
    gaps = np.asarray(counts)[:, None] - np.asarray(counts)
    others = ndtr(Z[:, None, None] + gaps)
    others[:, np.arange(len(counts)), np.arange(len(counts))] = 1
    return DENSITY @ others.prod(axis=2)


def divergence(p, q, orders):
    """Rényi divergence at each order."""
    kept = (p > 1e-250) & (q > 1e-250)
    logs = orders[:, None] * np.log(p[kept]) - (orders[:, None] - 1) * np.log(q[kept])
    return np.log(np.exp(logs).sum(axis=1)) / (orders - 1)


@pytest.mark.parametrize("delta", [0.001, 0.02, 0.1, 0.3])
def test_no_counts_and_no_move_of_votes_cost_more(delta):
    """Random counts, tied and untied, of 2 to 10 classes; votes of up to six teachers move as they like."""
    rng = np.random.default_rng(5)
    bound = gaussian_arg_max_rdp(delta, 1.0, ORDERS)
    dearest = np.zeros(len(ORDERS))
    for _ in range(60):
        n_classes = int(rng.choice([2, 2, 3, 4, 10]))
        counts = rng.normal(size=n_classes) * rng.choice([0.0, 0.3, 1.0, 3.0])
        counts[2:] -= rng.choice([0.0, 1.0, 3.0, 8.0])
        shares = rng.dirichlet(np.ones(rng.integers(1, 7)))
        move = np.zeros(n_classes)
        np.add.at(move, rng.integers(0, n_classes, shares.size), shares * delta)
        np.add.at(move, rng.integers(0, n_classes, shares.size), -shares * delta)
        cost = divergence(winners(counts + move), winners(counts), ORDERS)
        assert (cost <= bound).all()
        dearest = np.maximum(dearest, cost)
    assert (dearest > 0.1 * bound).all()


def winners_of_three(a, b, others, n_others):
    """The first, the second, or any of n others that are alike."""
    below = ndtr(Z - others) ** n_others
    p = [
        (
            np.exp(-((Z - mine) ** 2) / 2) / np.sqrt(2 * np.pi) * WIDTH * ndtr(Z - yours) * below
        ).sum()
        for mine, yours in ((a, b), (b, a))
    ]
    return np.array([*p, 1 - sum(p)])


@pytest.mark.parametrize(
    ("delta", "order"), [(0.005, 17.0), (0.02, 17.0), (0.03, 9.0), (0.05, 4.0)]
)
def test_an_adversary_who_searches_comes_close_and_not_beyond(delta, order):
    """The bound is at most 4 % above what two tied classes with many others below them give."""
    bound = gaussian_arg_max_rdp(delta, 1.0, [order])[0]
    found = []
    for n_others, below in ((1, -9.0), (1, -1.0), (400, -4.0), (10_000, -5.1)):

        def saved(place, n_others=n_others):
            a, others = place
            p = winners_of_three(a + delta, -a - delta, others, n_others)
            return (
                -divergence(p, winners_of_three(a, -a, others, n_others), np.array([order]))[0]
                * 1e4
            )

        found.append(-minimize(saved, [0.05, below], method="Nelder-Mead").fun / 1e4)
    assert max(found) <= bound <= 1.04 * max(found)
    assert bound < 0.70 * gaussian_rdp(2**0.5 * delta, 1.0, [order])[0]


def test_the_two_way_tie_is_not_quite_the_worst_case():
    """The score's variance for two tied classes is 2/π, and larger where 10,000 others are just below."""
    variance, step = [], 1e-4
    for others, n_others in ((-20.0, 1), (-5.1, 10_000)):
        p, up, down = (
            winners_of_three(-shift, shift, others, n_others) for shift in (0.0, step, -step)
        )
        slope = (up - down) / (2 * step)
        variance.append((slope[p > 0] ** 2 / p[p > 0]).sum() / 2)
    assert variance[0] == pytest.approx(2 / np.pi, abs=1e-6)
    assert 2 / np.pi + 5e-4 < variance[1] < 2 * MOMENTS[0]


def test_rounding_and_ties_on_a_coarse_grid_are_paid_for():
    """Counts and noise on a grid, the first of equal ones wins: exact, over all pairs of grid points."""
    scale, moved = 6400.0, 128  # in grid steps
    k = np.arange(-64_000, 64_001)
    resolved = gaussian_arg_max_rdp(float(moved), scale, ORDERS, resolution=1.0)
    smooth = gaussian_arg_max_rdp(float(moved), scale, ORDERS)
    assert (smooth <= resolved).all() and smooth[3] < resolved[3]
    for gap in (-3000, -257, -129, -128, 0, 1, 900):

        def first_wins(ahead):
            mass = ndtr((k + 0.5) / scale) - ndtr((k - 0.5) / scale)
            return (mass * ndtr((k + ahead + 0.5) / scale)).sum()

        p, q = (np.array([x, 1 - x]) for x in (first_wins(gap + 2 * moved), first_wins(gap)))
        assert (divergence(p, q, ORDERS) <= resolved).all()
        assert (divergence(q, p, ORDERS) <= resolved).all()


def test_where_the_bound_does_not_apply_the_whole_histogram_is_paid():
    histogram = gaussian_rdp(2**0.5, 1.0, [1.5, 2, 64])
    assert gaussian_arg_max_rdp(1.0, 1.0, [1.5, 2, 64]) == pytest.approx(histogram, rel=1e-12)
    few_steps = gaussian_arg_max_rdp(127.0, 1e6, [16.0], resolution=1.0)
    assert few_steps == pytest.approx(gaussian_rdp(2**0.5 * 127, 1e6, [16.0]), rel=1e-12)
    assert (gaussian_arg_max_rdp(0.0, 40.0, DEFAULT_ORDERS) == 0).all()


def test_the_event_costs_less_in_renyi_dp_and_the_same_in_gaussian_dp():
    label, counts = GaussianArgMax([1.0], 40.0), Gaussian([1.0], 40.0, coordinates=2)
    assert label.mu_squared == counts.mu_squared
    assert (label.rdp(DEFAULT_ORDERS) <= counts.rdp(DEFAULT_ORDERS)).all()
    assert GaussianAccountant([1.0], 1e-5).how_many(label) == 57
    assert RenyiAccountant([1.0], 1e-5).how_many(counts) == 48
    assert RenyiAccountant([1.0], 1e-5).how_many(label) == 74
    with pytest.raises(InputError, match="two coordinates"):
        GaussianArgMax([1.0], 40.0, coordinates=1)


@pytest.mark.parametrize("knot", [0, 8])
def test_constants_are_proved(knot):
    """The others: ``python benchmarks/labels.py``."""
    source = Path(__file__).parents[2] / "benchmarks" / "labels.py"
    spec = importlib.util.spec_from_file_location("labels_benchmark", source)
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    f = benchmark.moment(STEP * knot)
    assert benchmark.proves(f, MOMENTS[knot])
    assert not benchmark.proves(f, MOMENTS[knot] * 0.997, depth=8)


def test_the_least_share_is_below_the_bound_everywhere():
    orders = np.geomspace(2, 5000, 400)
    shares = [
        gaussian_arg_max_rdp(h / 2**0.5, 1.0, orders) / (orders * h * h / 2)
        for h in np.geomspace(1e-6, 0.5, 60)
    ]
    assert LEAST_SHARE < 0.641 < np.min(shares) < 0.642
