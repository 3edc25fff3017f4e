"""Systematic sampling: counts are expectations rounded up or down, unbiased, and never impossible."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from collegium.synthesis.belief import Beliefs
from collegium.synthesis.junction_tree import JunctionTree
from collegium.synthesis.sampling import sample_codes, systematic


@given(st.integers(1, 5), st.integers(1, 7), st.integers(0, 400), st.integers(0, 2**32 - 1))
def test_each_cell_is_its_expectation_rounded_up_or_down(rows, width, n, seed):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(width, 0.3), rows) * 10.0 ** rng.integers(-300, 3, (rows, 1))
    where = rng.integers(0, rows, n)
    drawn = systematic(weights, where, rng)
    assert drawn.shape == (n,)
    for row in range(rows):
        found = np.bincount(drawn[where == row], minlength=width)
        expected = weights[row] / weights[row].sum() * (where == row).sum()
        assert (np.abs(found - expected) < 1 + 1e-6).all()


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_what_weighs_nothing_is_never_drawn(width, seed):
    """First, last and between; after weights whose floating-point sum is not quite their total."""
    rng = np.random.default_rng(seed)
    weights = rng.random((3, width)) * (rng.random((3, width)) < 0.5)
    weights[:, rng.integers(0, width)] += 1e-17  # barely possible: may be drawn or not
    weights[0] = 0.1
    weights[0, width // 2 :] = 0.0 if width > 1 else 0.1
    where = np.repeat([0, 1, 2], 2000)
    drawn = systematic(weights, where, rng)
    assert (weights[where, drawn] > 0).all()


def test_the_last_possible_column_is_drawn_and_nothing_beyond_it():
    """Points as near to 1 as can be, where the sum of the shares is rounded."""

    class Highest(np.random.Generator):
        def random(self, size=None):
            return np.full(size, 1 - 2.0**-53)

    rng = Highest(np.random.PCG64(0))
    weights = np.array([[0.1] * 10 + [0.0], [1.0] + [0.0] * 10])
    drawn = systematic(weights, np.array([0] * 10 + [1] * 10), rng)
    assert drawn[:10].max() == 9 and not drawn[10:].any()


def test_a_row_of_no_weight_at_all_is_drawn_from_uniformly():
    drawn = systematic(np.zeros((1, 4)), np.zeros(400, dtype=int), np.random.default_rng(0))
    assert np.bincount(drawn).tolist() == [100] * 4


def test_sampling_is_unbiased_over_seeds():
    """Means over 4,000 seeds, by a χ² test of each cell's mean remainder: false alarm 1e-4."""
    weights = np.array([[0.5, 0.31, 0.19, 0.0], [0.07, 0.6, 0.03, 0.3]])
    where, runs = np.repeat([0, 1], [7, 5]), 4_000
    total = np.zeros((2, 4))
    squares = np.zeros((2, 4))
    for seed in range(runs):
        drawn = systematic(weights, where, np.random.default_rng(seed))
        counts = np.stack([np.bincount(drawn[where == row], minlength=4) for row in (0, 1)])
        total += counts
        squares += counts**2
    mean, expected = total / runs, weights * np.array([[7], [5]])
    variance = squares / runs - mean**2
    # A cell is rounded up with the probability of its remainder, so its variance is that of a coin.
    remainder = expected % 1
    assert variance == pytest.approx(remainder * (1 - remainder), abs=0.03)
    possible = remainder > 1e-9
    z = (mean - expected)[possible] / np.sqrt((remainder * (1 - remainder))[possible] / runs)
    # Cells of a row add up to a constant, so that there are fewer degrees of freedom: the safe side.
    assert float(z @ z) < chi2.ppf(1 - 1e-4, possible.sum())
    assert (mean == expected)[weights == 0].all()


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(8)
    sizes, factors = (3, 2, 4, 3), [(0, 1), (1, 2), (2, 3), (0, 3)]
    thetas = [rng.normal(0, 1, [sizes[c] for c in factor]) for factor in factors]
    thetas[1][0, 2] = -np.inf
    beliefs = Beliefs(JunctionTree.of(sizes, factors), factors)
    return beliefs, beliefs.tables(thetas)[0], factors


def test_rows_of_a_tree_have_each_cliques_counts_given_their_separator(fitted):
    beliefs, tables, _ = fitted
    n = 1_000
    codes = sample_codes(beliefs.tree, tables, n, np.random.default_rng(1))
    for table, clique, separator in zip(
        tables, beliefs.tree.cliques, beliefs.tree.separators, strict=True
    ):
        found = np.zeros(table.shape)
        np.add.at(found, tuple(codes[:, clique].T), 1)
        others = tuple(axis for axis, one in enumerate(clique) if one not in separator)
        given_counts = found.sum(axis=others, keepdims=True)
        given_shares = table.sum(axis=others, keepdims=True)
        expected = table / given_shares * given_counts
        assert (np.abs(found - expected) < 1 + 1e-6).all()
    assert not ((codes[:, 1] == 0) & (codes[:, 2] == 2)).any()  # the known zero


def test_rows_of_a_tree_have_the_distribution_that_was_fitted(fitted):
    """All measured pairs, by a χ² test that systematic draws pass more easily: false alarm below 1e-6."""
    beliefs, tables, factors = fitted
    n = 40_000
    codes = sample_codes(beliefs.tree, tables, n, np.random.default_rng(2))
    for factor, expected in zip(factors, beliefs.marginals(tables), strict=True):
        found = np.zeros(expected.shape)
        np.add.at(found, tuple(codes[:, factor].T), 1)
        possible = expected > 0
        statistic = ((found - n * expected)[possible] ** 2 / (n * expected[possible])).sum()
        assert statistic < chi2.ppf(1 - 1e-6, possible.sum() - 1)


def test_rows_are_in_random_order(fitted):
    """The first half has the same distribution as the second: |z| < 5 for each cell, false alarm 1e-5."""
    beliefs, tables, _ = fitted
    codes = sample_codes(beliefs.tree, tables, 20_000, np.random.default_rng(3))
    for column, size in enumerate(beliefs.tree.sizes):
        first, second = (
            np.bincount(half, minlength=size) for half in np.split(codes[:, column], 2)
        )
        assert (np.abs(first - second) < 5 * np.sqrt(first + second + 1)).all()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_are_possible_ones(fitted, n):
    beliefs, tables, _ = fitted
    for seed in range(200):
        codes = sample_codes(beliefs.tree, tables, n, np.random.default_rng(seed))
        for table, clique in zip(tables, beliefs.tree.cliques, strict=True):
            assert (table[tuple(codes[:, clique].T)] > 0).all()
