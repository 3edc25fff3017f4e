"""Weighted counts of cells: the one place of synthesis that looks at private rows.

Everybody adds whole steps of a grid (:class:`~collegium.weighted_sums.weighing.Weighing`): an owner of
weight N who has k rows, of which m count, adds floor(N·min(1, m/k)) for each, and so at most N·m to all
cells of a marginal together. With neighbours of whom all records are there or blank, a marginal therefore
moves by at most N·m in L1, and so in L2; where records may be replaced as well, by √2·N·m in L2 and by
2·N·m in L1. A row that says nothing in any column is blank, and counts nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.data.cells import Cells
from collegium.synthesis.coarsening import Coarsening
from collegium.synthesis.junction_tree import Clique
from collegium.weighted_sums.tables import Table
from collegium.weighted_sums.weighing import Weighing

Steps = NDArray[np.int64]


def sensitive_counts(
    table: Table,
    cells: Cells,
    weighing: Weighing,
    cliques: Sequence[Clique],
    coarse: Sequence[Coarsening] | None = None,
) -> list[Steps]:
    """Count, in steps of the grid, the rows in each cell of some marginals.

    ``coarse``: of each column, where cells were put together.
    """
    sizes = cells.sizes if coarse is None else tuple(one.size for one in coarse)
    shapes = [tuple(sizes[one] for one in clique) for clique in cliques]
    totals = [np.zeros(shape, dtype=np.int64) for shape in shapes]
    for batch in table.batches(cells.names):
        there = ~_blank(batch.arrays)
        caps = weighing.caps(batch, 1)
        if not there.all():
            caps = np.where(there, caps, 0)
        weights = caps.astype(
            np.float64
        )  # whole numbers below 2**53, so that floats add them exactly
        codes = [one.codes(batch.arrays[one.name]) for one in cells.columns]
        if coarse is not None:
            codes = [one.place[code] for one, code in zip(coarse, codes, strict=True)]
        for clique, shape, total in zip(cliques, shapes, totals, strict=True):
            place = codes[clique[0]]
            for one in clique[1:]:
                place = place * sizes[one] + codes[one]
            found = np.bincount(place, weights=weights, minlength=total.size)
            total += found.astype(np.int64).reshape(shape)
    return totals


def sensitive_errors(counts: Sequence[Steps], expected: Sequence[Steps]) -> Steps:
    """Sum, for each marginal, how far its cells are from what was expected: in steps, shape (n,)."""
    return np.array(
        [int(np.abs(one - other).sum()) for one, other in zip(counts, expected, strict=True)],
        dtype=np.int64,
    )


def _blank(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """Tell which rows have no readable value in any column."""
    blank: NDArray[np.bool_] | None = None
    for values in arrays.values():
        absent = np.isnan(values) if values.dtype.kind == "f" else values < 0
        blank = absent if blank is None else blank & absent
    assert blank is not None, "there is at least one column"
    return blank
