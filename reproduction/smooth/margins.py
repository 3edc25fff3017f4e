"""Costs as functions of one number, the margin, and how far they can fall within a window.

The proofs are in ``reproduction/docs/smooth-sensitivity.md``. Everything computed from margins is sensitive.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collegium.errors import InputError
from reproduction.smooth.inputs import Floats

#: Rényi costs are computed to a part in 1e12; differences and sums are rounded up by this share.
SLACK = 4e-12

_CELLS_PER_STEP = 32
_MOST_CELLS = 2**17


@dataclass(frozen=True, eq=False)
class Margins:
    """What a mechanism's costs depend on.

    Attributes
    ----------
    sensitive : ndarray, shape (n_queries,)
        Margin of each query, in votes, at least 0.
    furthest : float
        Public upper bound on every margin.
    reach : float
        How far a change of one vote can move a margin: 2 for answers, 1 for checks.
    rounding : float
        Bound on the rounding error of a margin, in votes.
    cost : callable
        ``cost(margins, delta, order)``: Rényi cost, nonincreasing in the margin.
    """

    sensitive: Floats
    furthest: float
    reach: float
    rounding: float
    cost: Callable[[Floats, float, float], Floats]


def rounding_of(furthest: float, sigma: float) -> float:
    """Bound the rounding error of a margin, far above what is measured (a part in 1e14)."""
    return 1e-10 * (furthest + sigma)


class Window:
    """Grid of cells over the margins, and the largest fall of a cost in windows of cells.

    Cell i is [i, i + 1) times ``width``. One step moves a computed margin by at most ``per_step``
    cells: the width is a little more than reach * step / per_step, to cover rounding.

    Parameters
    ----------
    margins : Margins
        Where the queries are.
    step : float
        Votes that one step moves.
    """

    def __init__(self, margins: Margins, step: float) -> None:
        moved = margins.reach * step
        fitting = math.floor(_MOST_CELLS * moved / (margins.furthest + moved))
        if fitting < 1:
            raise InputError(
                f"a step of {step:g} votes is too small for margins up to {margins.furthest:g} "
                "votes; give the owners fewer steps."
            )
        self.per_step = min(_CELLS_PER_STEP, fitting)
        self.width = (moved + 2 * margins.rounding) / self.per_step
        self._margins = margins
        self._last = math.floor(margins.furthest / self.width)
        cells = np.floor(margins.sensitive / self.width).astype(np.int64)
        self.occupied, self.cell_of = np.unique(np.clip(cells, 0, self._last), return_inverse=True)

    def falls(self, moves: float, delta: float, order: float) -> "Falls":
        """Prepare windows for owners who move so many votes, and the cost of Delta at an order."""
        margins = self._margins
        reach = margins.reach * moves
        start = np.arange(self._last + 1, dtype=np.float64) * self.width
        end: Floats = np.minimum(start + self.width + reach + margins.rounding, margins.furthest)
        # The last cell may begin before the furthest margin and end behind it.
        before = margins.cost(np.asarray(start), delta, order)
        after = margins.cost(np.asarray(end), delta, order)
        fall: Floats = np.maximum(before * (1 + SLACK) - after * (1 - SLACK), 0.0)
        below = math.ceil((reach + margins.rounding) / self.width)
        return Falls(fall, self.occupied, self.per_step, below)


class Falls:
    """Largest fall of a cost within windows around the occupied cells."""

    def __init__(
        self, fall: Floats, occupied: NDArray[np.int64], per_step: int, below: int
    ) -> None:
        self._levels = [fall]
        while 2 ** len(self._levels) <= fall.size:
            half = 2 ** (len(self._levels) - 1)
            previous = self._levels[-1]
            self._levels.append(np.maximum(previous[:-half], previous[half:]))
        self._occupied, self._per_step, self._below = occupied, per_step, below
        self.anywhere = float(fall.max())

    def at_distance(self, distance: int) -> Floats:
        """Largest fall within so many steps, shape (n_occupied,)."""
        last = self._levels[0].size - 1
        first = np.clip(self._occupied - self._per_step * distance - self._below, 0, last)
        final = np.clip(self._occupied + self._per_step * distance, 0, last)
        level = np.log2(final - first + 1.0).astype(np.int64)
        largest = np.empty(first.size)
        for chosen in np.unique(level):
            rows = level == chosen
            table, length = self._levels[chosen], 2 ** int(chosen)
            largest[rows] = np.maximum(table[first[rows]], table[final[rows] - length + 1])
        return largest
