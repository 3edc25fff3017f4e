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
MOST_GIVEN_CELLS = 10_000_000
"""The same where a user says what is measured together: 80 MB, as for AIM, and half a minute of a core."""
_MOVED = math.sqrt(2 / math.pi)
_REFUSED_IN_A_ROW = 60


def chosen_pairs(
    scores: Floats,
    score_sd: float,
    candidates: Sequence[Clique],
    expected: Sequence[Floats],
    sd: Callable[[int], float],
    sizes: Sequence[int],
    fixed: Sequence[Clique],
    most_cells: int = MOST_CELLS,
) -> list[Clique]:
    """Choose pairs.

    ``scores`` (n,): noisy, in units of weight; ``score_sd``: standard deviation of their noise.
    ``expected``: count of each cell of each pair, if nothing is measured.
    ``sd``: standard deviation of the noise, given how many pairs are measured.
    ``sizes``: cells of each column. ``fixed``: what is in the tree anyway.
    """
    best, most = [], 0.0
    # What noise may have made of it is not counted, and nothing is further off than all there is, twice.
    surely = np.minimum(scores - score_sd, np.array([2 * float(one.sum()) for one in expected]))
    budget = max(most_cells, 2 * cells_needed(sizes, fixed))
    for count in _counts(len(candidates)):
        moved = _MOVED * sd(count)
        gains = surely - np.array([np.minimum(moved, 2 * one).sum() for one in expected])
        pairs, gained = _within(gains, candidates, count, sizes, fixed, budget)
        if gained > most:
            best, most = pairs, gained
        if len(pairs) < count:  # no more is worth it, or fits
            break
    return best


def _counts(n: int) -> list[int]:
    """Numbers that are tried: all small ones, then with steps of a quarter."""
    found = [1]
    while found[-1] < n:
        found.append(min(n, max(found[-1] + 1, found[-1] * 5 // 4)))
    return found


def _within(
    gains: Floats,
    candidates: Sequence[Clique],
    count: int,
    sizes: Sequence[int],
    fixed: Sequence[Clique],
    most_cells: int,
) -> tuple[list[Clique], float]:
    """Take the best pairs, one after the other, as long as the tree stays small: what is too large is left.

    Several are tried at once: twice as many after each success, half as many after each failure.
    """
    order = [one for one in np.argsort(-gains, kind="stable").tolist() if gains[one] > 0]
    taken: list[int] = []
    at, step, refused = 0, 1, 0
    while at < len(order) and len(taken) < count and refused < _REFUSED_IN_A_ROW:
        step = min(step, count - len(taken), len(order) - at)
        tried = [*taken, *order[at : at + step]]
        if cells_needed(sizes, [*fixed, *(candidates[one] for one in tried)]) <= most_cells:
            taken, at, refused, step = tried, at + step, 0, 2 * step
        elif step > 1:
            step //= 2
        else:
            at, refused = at + 1, refused + 1
    return [candidates[one] for one in taken], float(gains[taken].sum())


def without_room(
    sizes: Sequence[int],
    fixed: Sequence[Clique],
    given: Sequence[Clique],
    most_cells: int,
) -> list[Clique]:
    """Tell which of these, taken in their order, no tree of so many cells has room for."""
    held, left = list(fixed), []
    for clique in given:
        if cells_needed(sizes, [*held, clique]) <= most_cells:
            held.append(clique)
        else:
            left.append(clique)
    return left
