"""Rows of people, what each person weighs, and the noise on their sums: public numbers, on one grid.

A weight is a whole number N_g of grid steps. An owner with k rows, of which m count, has the cap
floor(N_g·min(1, m/k) - r) on each, where r bounds what rounding a row's c coordinates adds to its norm: 0 for
one coordinate (a whole number times at most 1 rounds to no more), else ½√c in L2 and ½c in L1. A row that
adds floor(cap·φ + ½), ‖φ‖ ≤ 1, has a norm of at most cap + r, so all rows of an owner together have one of at
most N_g·m, exactly, and noise is exactly rounded on the same grid (``docs/noise.md``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.events import Event, Gaussian, Laplace
from collegium.accounting.neighbours import Neighbours
from collegium.errors import InputError
from collegium.noise.grid import GRID
from collegium.noise.sums import MAX_SCALE, Noise, NoisySum
from collegium.weighted_sums.reading import ARRAYS, Algebra

Arrays = Mapping[str, NDArray[np.generic]]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows: their columns, and who they are of.

    ``group`` (n,): of each row's owner. ``rows`` (n,): how many rows its owner has in the whole table.
    ``owner`` (n,): number of each row's owner; None: each is another one's.
    """

    arrays: Arrays
    group: NDArray[np.intp]
    rows: NDArray[np.int64]
    owner: NDArray[np.intp] | None = None


@dataclass(frozen=True, eq=False)
class Weighing:
    """What everybody weighs, and the noise for it: public, and all that a price depends on.

    Attributes
    ----------
    steps : ndarray of int, shape (n_groups,)
        Weight of each group's owners, in steps of the grid.
    scale : float
        Standard deviation (Gaussian) or b (Laplace) of the noise, in units of weight.
    laplace : bool
        Which noise.
    most_rows : int
        How many rows an owner counts for at most.
    excess : float
        By how much the noise that is drawn is larger, in standard deviations: nobody pays less for it.
    """

    steps: NDArray[np.int64]
    scale: float
    laplace: bool
    most_rows: int
    excess: float = 1.0

    @classmethod
    def of(
        cls,
        weights: Floats,
        laplace: bool,
        most_rows: int,
        diameter: float,
        excess: float = 1.0,
    ) -> Weighing:
        """Put weights that are prices on the grid, and find the noise at which nobody pays more.

        ``weights``: what each group's owners may pay, in μ or ε; 0 where they are not heard.
        """
        largest = float(weights.max())
        # Rounded down: nobody weighs more than they pay for. Who is a millionth of others is not heard.
        steps = np.floor(weights / largest / GRID).astype(np.int64)
        scale = diameter * most_rows / largest * (1 + 2.0**-40)
        if scale > MAX_SCALE:
            raise InputError(
                f"the share of the budget is so small (a price of {largest:.1g}) that the noise would "
                f"be as large as {scale:.1g} people: spend more on fewer questions"
            )
        return cls(steps, max(scale, GRID), laplace, most_rows, excess)

    def weighed(self, steps: NDArray[np.int64]) -> Weighing:
        """The same noise, with these weights, none of which is above its price."""
        return replace(self, steps=steps)

    @property
    def weights(self) -> Floats:
        """Weights of the groups; the largest is 1."""
        return np.asarray(self.steps * GRID)

    @property
    def noise_variance(self) -> float:
        """Of the noise on each coordinate."""
        return (self.scale * self.excess) ** 2 * (2 if self.laplace else 1)

    def event(self, diameter: float, neighbours: Neighbours) -> Event:
        """State what a release of such sums costs each group."""
        moves = diameter * self.most_rows * self.weights
        if self.laplace:
            return Laplace(moves, 1 / self.scale, neighbours=neighbours)
        return Gaussian(moves, self.scale, neighbours=neighbours)

    def caps(self, batch: Batch, width: int) -> NDArray[np.int64]:
        """How much each row may add, in steps."""
        most = self.steps[batch.group].astype(np.float64)
        caps = self.cap_of(most, np.maximum(batch.rows, 1), width)
        return np.asarray(caps, dtype=np.float64).astype(np.int64)

    def cap_of(self, most: Any, rows: Any, width: int, algebra: Algebra = ARRAYS) -> Any:
        """How much a row may add of an owner who weighs ``most`` and has so many ``rows``.

        The quotient of whole numbers a and b below 2**53 is divided as floats, and its floor is exact all the
        same: where a/b is no whole number it is at least 1/b below the next one, and rounding moves it by at
        most a/b·2**-53 < 1/b, which is not that far.
        """
        shared = algebra.floor(most * float(self.most_rows) / rows)
        each = algebra.where(rows <= self.most_rows, most, shared)
        if width == 1:
            return each
        rounding = (width if self.laplace else math.sqrt(width)) / 2
        less = float(math.ceil(rounding + 2.0**-20))
        return algebra.where(each > less, each - less, 0.0)


def noised(
    sensitive_steps: NDArray[np.int64],
    weighing: Weighing,
    noise: NoisySum,
    query: int,
    purpose: str,
) -> Floats:
    """Draw independent noise on sums in steps of the grid, and return them in units of weight.

    The caller has charged what ``weighing`` says.
    """
    its = Noise.in_votes("laplace" if weighing.laplace else "gaussian", weighing.scale)
    return np.asarray(noise.noised(sensitive_steps, its, query=query, purpose=purpose) * GRID)
