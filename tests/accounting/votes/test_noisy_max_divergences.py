"""Noisy-max costs are upper bounds on the exact divergences of small ensembles."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp, ndtr

from collegium.accounting.votes.noisy_max import (
    gnmax_log_q,
    gnmax_rdp,
    gnmax_rdp_data_independent,
    lnmax_log_q,
    lnmax_pure_epsilon,
    lnmax_rdp,
    threshold_log_q,
    threshold_rdp,
)

ORDERS = np.array([1.25, 2.0, 3.5, 8.0, 20.0, 50.0])


def gnmax_distribution(counts, sigma):
    """Pr[answer = j] for every class, by quadrature."""

    def density(z, j):
        others = [ndtr((z - count) / sigma) for i, count in enumerate(counts) if i != j]
        scaled = (z - counts[j]) / sigma
        return math.exp(-(scaled**2) / 2) / math.sqrt(2 * math.pi) / sigma * math.prod(others)

    low, high = min(counts) - 9 * sigma, max(counts) + 9 * sigma
    points = sorted(counts)
    return np.array(
        [
            quad(density, low, high, (j,), points=points, epsabs=0, epsrel=1e-10, limit=400)[0]
            for j in range(len(counts))
        ]
    )


def lnmax_distribution(counts, gamma):
    """Pr[answer = j] for every class, by quadrature between the kinks."""

    def cdf(z):
        return math.exp(z) / 2 if z < 0 else 1 - math.exp(-z) / 2

    def density(z, j):
        others = [cdf(gamma * (z - count)) for i, count in enumerate(counts) if i != j]
        return gamma / 2 * math.exp(-gamma * abs(z - counts[j])) * math.prod(others)

    edges = sorted({min(counts) - 40 / gamma, max(counts) + 40 / gamma, *counts})
    return np.array(
        [
            sum(
                quad(density, start, stop, (j,), epsabs=0, epsrel=1e-10, limit=400)[0]
                for start, stop in itertools.pairwise(edges)
            )
            for j in range(len(counts))
        ]
    )


def divergence(first, second, order):
    return float(logsumexp(order * np.log(first) + (1 - order) * np.log(second))) / (order - 1)


def neighbours(counts, delta):
    """Tables after one owner moved `delta` votes from one class to another."""
    for origin, target in itertools.permutations(range(len(counts)), 2):
        if counts[origin] >= delta:
            moved = list(counts)
            moved[origin] -= delta
            moved[target] += delta
            yield moved


SMALL_TABLES = [
    [10.0, 1.0],
    [7.0, 5.0],
    [6.0, 6.0],
    [20.0, 3.0, 2.0],
    [9.0, 8.0, 1.0],
    [30.0, 0, 0],
]


@pytest.mark.parametrize("counts", SMALL_TABLES)
@pytest.mark.parametrize("delta", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("sigma", [2.0, 6.0])
def test_gnmax_cost_bounds_the_exact_divergence(counts, delta, sigma):
    log_q = gnmax_log_q([counts], sigma)
    bound = gnmax_rdp(log_q, [delta], sigma, ORDERS)[0, 0]
    loose = gnmax_rdp_data_independent(delta, sigma, ORDERS)
    here = gnmax_distribution(counts, sigma)
    assert 1 - here.max() <= math.exp(log_q[0]) * (1 + 1e-8)
    for moved in neighbours(counts, delta):
        there = gnmax_distribution(moved, sigma)
        for order, cost, independent in zip(ORDERS, bound, loose, strict=True):
            assert divergence(here, there, order) <= cost * (1 + 1e-6) + 1e-9
            assert divergence(there, here, order) <= independent * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("counts", SMALL_TABLES)
@pytest.mark.parametrize("delta", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("gamma", [0.1, 0.6])
def test_lnmax_cost_bounds_the_exact_divergence(counts, delta, gamma):
    log_q = lnmax_log_q([counts], gamma)
    bound = lnmax_rdp(log_q, [delta], gamma, ORDERS)[0, 0]
    here = lnmax_distribution(counts, gamma)
    assert 1 - here.max() <= math.exp(log_q[0]) * (1 + 1e-8)
    for moved in neighbours(counts, delta):
        there = lnmax_distribution(moved, gamma)
        pure = lnmax_pure_epsilon(delta, gamma)
        assert np.abs(np.log(here / there)).max() <= pure + 1e-8
        for order, cost in zip(ORDERS, bound, strict=True):
            assert divergence(here, there, order) <= cost * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("max_count", [0.0, 5.0, 9.0, 10.0, 14.0, 30.0])
@pytest.mark.parametrize("delta", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("sigma_threshold", [1.5, 5.0])
def test_threshold_cost_bounds_the_exact_divergence(max_count, delta, sigma_threshold):
    log_q = threshold_log_q([max_count], 10.0, sigma_threshold)
    bound = threshold_rdp(log_q, [delta], sigma_threshold, ORDERS)[0, 0]
    for step in np.linspace(-delta, delta, 9):
        shift = (np.array([max_count, max_count + step]) - 10) / sigma_threshold
        here, there = (np.array([ndtr(z), ndtr(-z)]) for z in shift)
        for order, cost in zip(ORDERS, bound, strict=True):
            assert divergence(here, there, order) <= cost * (1 + 1e-9) + 1e-12


def test_the_data_dependent_bounds_hold_in_one_direction_only():
    """The documented limit of Theorem 6: from these votes to the neighbour's, not back."""
    counts, moved, sigma, delta, order = [24.0, 0.0], [22.0, 2.0], 2.0, 2.0, 2.0
    bound = gnmax_rdp(gnmax_log_q([counts], sigma), [delta], sigma, [order]).item()
    z = np.array([counts, moved]) @ [1, -1] / (math.sqrt(2) * sigma)
    here, there = (np.array([ndtr(shift), ndtr(-shift)]) for shift in z)
    assert divergence(here, there, order) <= bound
    assert divergence(there, here, order) > 1000 * bound
    assert divergence(there, here, order) <= gnmax_rdp_data_independent(delta, sigma, [order])[0]
