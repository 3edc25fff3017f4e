"""Weighted sums of what is read off rows: here private values are added up, and noise is drawn.

Everything is whole numbers of grid steps: a row adds floor(cap·φ_j + ½) in coordinate j, where its cap comes
from what its owner weighs (:mod:`collegium.weighted_sums.weighing`). With ‖φ‖ ≤ 1 its vector has a norm of at
most cap + r, where r bounds what rounding adds, so all rows of an owner together move a sum by no more than
they are charged for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from collegium.errors import InputError
from collegium.noise.sums import NoisySum
from collegium.weighted_sums.reading import Reading, rounded
from collegium.weighted_sums.weighing import Batch, Floats, Weighing, noised

Steps = NDArray[np.int64]
_MOST_STEPS = 2**52


class Sums:
    """Sums of several questions, or steps of one, over the rows of a table, batch by batch. Sensitive."""

    def __init__(self, features: Reading, weighing: Weighing) -> None:
        self.features, self.weighing = features, weighing
        self.sensitive_steps = np.zeros((features.n_cells, features.width), dtype=np.int64)
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
        n = self.features.n_cells
        for j in range(self.features.width):
            # Whole numbers below 2**52, so that floats add them exactly.
            added = (
                caps.astype(np.float64) if self.features.counts else rounded(caps * values[:, j])
            )
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
        pairs = batch.owner[inside].astype(np.int64) * self.features.n_cells + cells[inside]
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


def added_up(
    batches: Iterable[Batch], reading: Reading, weighings: Sequence[Weighing]
) -> list[Steps]:
    """Add up all rows of some batches, with each of these weights: what any table can do. Sensitive.

    Returns for each an array (n_cells, width).
    """
    sums = [Sums(reading, one) for one in weighings]
    for batch in batches:
        read = reading.read(batch.arrays)
        for one in sums:
            one.add(batch, read)
    return [one.sensitive_steps for one in sums]
