"""Which pairs to measure: those whose noisy scores promise more than the noise on them takes.

A score is how far a pair's counts are from what the first stage lets expect, in L1. Measuring it costs
accuracy as well: noise of standard deviation σ moves each cell by √(2/π)·σ on average, and no further than
the cell's count where counts cannot be negative. Since the noise is known, so is the number of pairs for
which the sum of what is gained is largest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from collegium.synthesis.junction_tree import Clique, cells_needed

Floats = NDArray[np.float64]
MOST_CELLS = 1 << 16
"""Cells of a junction tree, all cliques together: half a megabyte. Six times as many fit Adult no better."""
_MOVED = math.sqrt(2 / math.pi)
_REFUSED_IN_A_ROW = 60


def chosen_pairs(
    scores: Floats,
    candidates: Sequence[Clique],
    expected: Sequence[Floats],
    sd: Callable[[int], float],
    sizes: Sequence[int],
    fixed: Sequence[Clique],
    most_cells: int = MOST_CELLS,
) -> list[Clique]:
    """Choose pairs.

    ``scores`` (n,): noisy, in units of weight. ``expected``: count of each cell of each pair, if nothing is
    measured.
    ``sd``: standard deviation of the noise, given how many pairs are measured.
    ``sizes``: cells of each column. ``fixed``: what is in the tree anyway.
    """
    best, most = [], 0.0
    budget = max(most_cells, 2 * cells_needed(sizes, fixed))
    for count in _counts(len(candidates)):
        moved = _MOVED * sd(count)
        gains = scores - np.array([np.minimum(moved, 2 * one).sum() for one in expected])
        pairs, gained = _within(gains, candidates, count, sizes, fixed, budget)
        if gained > most:
            best, most = pairs, gained
        if not pairs:
            break
    return best


def _counts(n: int) -> list[int]:
    """Numbers that are tried: all small ones, then with steps of an eighth."""
    found = [1]
    while found[-1] < n:
        found.append(min(n, max(found[-1] + 1, found[-1] * 9 // 8)))
    return found


def _within(
    gains: Floats,
    candidates: Sequence[Clique],
    count: int,
    sizes: Sequence[int],
    fixed: Sequence[Clique],
    most_cells: int,
) -> tuple[list[Clique], float]:
    """Take the best pairs, one after the other, as long as the tree stays small."""
    taken: list[Clique] = []
    gained, refused = 0.0, 0
    for place in np.argsort(-gains, kind="stable").tolist():
        if len(taken) == count or gains[place] <= 0 or refused == _REFUSED_IN_A_ROW:
            break
        if cells_needed(sizes, [*fixed, *taken, candidates[place]]) > most_cells:
            refused += 1
            continue
        refused = 0
        taken.append(candidates[place])
        gained += float(gains[place])
    return taken, gained
