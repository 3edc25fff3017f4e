"""Noisy weighted sums: the one place that adds private values up, and draws.

Everything is whole numbers of grid steps: a weight is a number N_g of steps; an owner with k rows, of which m
count, has the cap floor(N_g·min(1, m/k) - r) on each, and a row adds rint(cap·φ_j) in coordinate j. With
‖φ‖ ≤ 1 its vector has a norm of at most cap + r, where r bounds what rounding adds: 0 for one coordinate (a
whole number times at most 1 rounds to no more), else ½√c in L2 and ½c in L1 for c coordinates. So all rows of
an owner together have a norm of at most N_g·m, exactly, and noise is exactly rounded on the same grid
(``docs/noise.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.events import Event, Gaussian, Laplace
from collegium.accounting.neighbours import Neighbours
from collegium.errors import InputError
from collegium.noise.grid import GRID
from collegium.noise.sums import MAX_SCALE, Noise, NoisySum
from collegium.statistics.features import Arrays, Features

Floats = NDArray[np.float64]
_MOST_STEPS = 2**52


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
    """

    steps: NDArray[np.int64]
    scale: float
    laplace: bool
    most_rows: int

    @classmethod
    def of(cls, weights: Floats, laplace: bool, most_rows: int, diameter: float) -> Weighing:
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
        return cls(steps, max(scale, GRID), laplace, most_rows)

    def weighed(self, steps: NDArray[np.int64]) -> Weighing:
        """The same noise, with these weights, none of which is above its price."""
        return Weighing(steps, self.scale, self.laplace, self.most_rows)

    @property
    def weights(self) -> Floats:
        """Weights of the groups; the largest is 1."""
        return np.asarray(self.steps * GRID)

    @property
    def noise_variance(self) -> float:
        """Of the noise on each coordinate."""
        return self.scale**2 * (2 if self.laplace else 1)

    def event(self, diameter: float, neighbours: Neighbours) -> Event:
        """State what a release of such sums costs each group."""
        moves = diameter * self.most_rows * self.weights
        if self.laplace:
            return Laplace(moves, 1 / self.scale, neighbours=neighbours)
        return Gaussian(moves, self.scale, neighbours=neighbours)

    def caps(self, batch: Batch, width: int) -> NDArray[np.int64]:
        """How much each row may add, in steps."""
        most = self.steps[batch.group]
        rounding = 0.0 if width == 1 else (width if self.laplace else math.sqrt(width)) / 2
        few = batch.rows <= self.most_rows
        # Whole numbers, so that no rounding makes a cap too large.
        each = np.where(few, most, most * self.most_rows // np.maximum(batch.rows, 1))
        return np.maximum(each - math.ceil(rounding + 2.0**-20), 0) if rounding else each


class Sums:
    """Sums of several questions, or steps of one, over the rows of a table, batch by batch. Sensitive."""

    def __init__(self, features: Features, weighing: Weighing) -> None:
        self.features, self.weighing = features, weighing
        self.sensitive_steps = np.zeros((len(features.keys), features.width), dtype=np.int64)
        self._sensitive_seen = np.empty(0, dtype=np.int64)

    def add(self, batch: Batch, read: tuple[NDArray[np.int64], Floats] | None = None) -> None:
        """Add the rows of a batch."""
        # Of all rows: how many of them a question is about is nobody's business.
        if len(batch.group) * int(self.weighing.steps.max()) > _MOST_STEPS:
            raise InputError(
                f"{len(batch.group):,} rows at once are more than can be added up exactly: give them in "
                "batches"
            )
        cells, values = self.features.read(batch.arrays) if read is None else read
        if self.features.distinct:  # each person weighs the same in each cell where they have a row
            cells = self._once(batch, cells)
            batch = replace(batch, rows=np.ones_like(batch.rows))
        caps = self.weighing.caps(batch, self.features.width)
        inside = cells >= 0
        cells, values, caps = cells[inside], values[inside], caps[inside]
        if not len(cells):
            return
        n = len(self.features.keys)
        for j in range(self.features.width):
            # Whole numbers below 2**52, so that floats add them exactly.
            added = np.rint(caps * values[:, j])
            total = (
                np.array([added.sum()])
                if n == 1
                else np.bincount(cells, weights=added, minlength=n)
            )
            self.sensitive_steps[:, j] += total.astype(np.int64)

    def _once(self, batch: Batch, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Take the first row of each person in each cell; all others are in none."""
        if batch.owner is None:
            return cells
        inside = np.flatnonzero(cells >= 0)
        pairs = batch.owner[inside].astype(np.int64) * len(self.features.keys) + cells[inside]
        found, first = np.unique(pairs, return_index=True)
        new = np.isin(found, self._sensitive_seen, assume_unique=True, invert=True)
        self._sensitive_seen = np.union1d(self._sensitive_seen, found[new])
        once = np.full_like(cells, -1)
        once[inside[first[new]]] = cells[inside[first[new]]]
        return once

    def noisy(self, noise: NoisySum, query: int, purpose: str) -> Floats:
        """Draw noise on each coordinate of each cell, and return the sums in units of weight.

        The caller has charged :meth:`Weighing.event` before.
        """
        return noised(self.sensitive_steps, self.weighing, noise, query, purpose)


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
