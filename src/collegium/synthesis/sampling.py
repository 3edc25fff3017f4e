"""Rows drawn from a fitted table, systematically: the number of rows of each cell is its share, rounded.

Cliques are visited from the roots. In each, the rows that are alike in what they share with its parent are
put in random order, and take equally spaced points of the distribution of the clique's other columns given
that (systematic sampling). So each cell of a clique gets, within each cell of its separator, its expected
number of rows rounded up or down, and has that expectation exactly. Independent draws alone would cost a
total variation of .013 for 32,000 rows of Adult.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from collegium.synthesis.junction_tree import JunctionTree

Floats = NDArray[np.float64]


def sample_codes(
    tree: JunctionTree, tables: Sequence[Floats], n: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw rows.

    ``tables``: marginal of each clique, each adding up to 1.
    Returns (n, n_columns): cells; rows are in random order.
    """
    codes = np.zeros((n, len(tree.sizes)), dtype=np.int64)
    for table, clique, separator in zip(tables, tree.cliques, tree.separators, strict=True):
        new = [one for one in clique if one not in separator]
        if not new:
            continue
        axes = [clique.index(one) for one in (*separator, *new)]
        known = math.prod(tree.sizes[one] for one in separator)
        given = np.transpose(table, axes).reshape(known, -1)
        where = np.zeros(n, dtype=np.int64)
        for one in separator:
            where = where * tree.sizes[one] + codes[:, one]
        drawn = systematic(given, where, rng)
        for one in reversed(new):
            codes[:, one] = drawn % tree.sizes[one]
            drawn //= tree.sizes[one]
    return codes


def systematic(
    weights: Floats, where: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw a column for each row number, in proportion to the weights of that row, systematically.

    ``weights`` (n_rows, n_columns): not negative. A row of zeros is drawn from uniformly.
    ``where`` (n,): number of a row.
    """
    n, width = len(where), weights.shape[1]
    counts = np.bincount(where, minlength=len(weights))
    shuffled = rng.permutation(n)
    order = shuffled[np.argsort(where[shuffled], kind="stable")]
    row = where[order]
    rank = np.arange(n) - (np.cumsum(counts) - counts)[row]
    points = (rank + rng.random(len(weights))[row]) / counts[row]
    summed = np.cumsum(weights, axis=1)
    total = summed[:, -1:]
    even = np.linspace(0, 1, width + 1)[1:]
    shares = np.divide(
        summed, total, out=np.broadcast_to(even, summed.shape).copy(), where=total > 0
    )
    # One search in all rows at once: those of row r lie between r and r + 1. From the last column with any
    # weight on, nothing is above r + 1, so that rounding never draws a column of weight 0.
    shares = np.where(shares >= shares[:, -1:], 1.0, shares)
    edges = (shares + np.arange(len(weights))[:, None]).ravel()
    found = (
        np.searchsorted(edges, row + np.minimum(points, 1 - 2.0**-30), side="right") - row * width
    )
    drawn = np.empty(n, dtype=np.int64)
    drawn[order] = np.clip(found, 0, width - 1)
    return drawn
