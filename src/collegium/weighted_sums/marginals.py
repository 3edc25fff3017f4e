"""Marginals of a table: what synthetic tables, and they alone, ask of its rows.

Every row is in one cell of each column, and everybody adds whole steps of a grid
(:class:`~collegium.weighted_sums.weighing.Weighing`) to one cell of each marginal: an owner of weight N who
has k rows, of which m count, adds floor(N·min(1, m/k)) for each, and so at most N·m to all cells of a
marginal together. A row that says nothing in any column is blank, and counts nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.data.cells import Cells
from collegium.weighted_sums.weighing import Batch, Weighing

Steps = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Marginals:
    """Which cells rows are counted in.

    Attributes
    ----------
    cells : Cells
        Of each column.
    cliques : sequence of tuple of int
        Columns of each marginal, by their places.
    coarse : sequence of ndarray of int, optional
        For each column, which of its cells count as one: the number of each. None: each by itself.
    """

    cells: Cells
    cliques: Sequence[tuple[int, ...]]
    coarse: Sequence[NDArray[np.int64]] | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells each column has, of those that are counted."""
        if self.coarse is None:
            return self.cells.sizes
        return tuple(int(place.max()) + 1 for place in self.coarse)

    def none(self) -> list[Steps]:
        """Marginals of nobody."""
        sizes = self.sizes
        return [
            np.zeros(tuple(sizes[one] for one in clique), dtype=np.int64) for clique in self.cliques
        ]

    def counted(self, column: int, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tell the cells that are counted of those that :class:`Cells` knows."""
        return codes if self.coarse is None else self.coarse[column][codes]

    def places(
        self, clique: tuple[int, ...], codes: Mapping[int, NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        """Tell the place of each row in a marginal by its counted cells of each column: shape (n,)."""
        sizes, place = self.sizes, codes[clique[0]]
        for one in clique[1:]:
            place = place * sizes[one] + codes[one]
        return place

    def added_up(
        self, batches: Iterable[Batch], weighings: Sequence[Weighing]
    ) -> list[list[Steps]]:
        """Add up all rows of some batches, with each of these weights: what any table can do. Sensitive."""
        totals = [self.none() for _ in weighings]
        for batch in batches:
            there = ~_blank(batch.arrays)
            codes = {
                place: self.counted(place, one.codes(batch.arrays[one.name]))
                for place, one in enumerate(self.cells.columns)
            }
            # Whole numbers below 2**53, so that floats add them exactly.
            weights = [
                np.where(there, one.caps(batch, 1), 0).astype(np.float64) for one in weighings
            ]
            for number, clique in enumerate(self.cliques):
                place = self.places(clique, codes)
                for added, total in zip(weights, totals, strict=True):
                    shape = total[number].shape
                    found = np.bincount(place, weights=added, minlength=math.prod(shape))
                    total[number] += found.astype(np.int64).reshape(shape)
        return totals


def _blank(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """Tell which rows have no readable value in any column."""
    blank: NDArray[np.bool_] | None = None
    for values in arrays.values():
        absent = np.isnan(values) if values.dtype.kind == "f" else values < 0
        blank = absent if blank is None else blank & absent
    assert blank is not None, "there is at least one column"
    return blank
