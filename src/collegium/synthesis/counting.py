"""Weighted counts of cells: the one place of synthesis that asks for private rows.

How much an owner adds is in :mod:`collegium.weighted_sums.marginals`. With neighbours of whom all records are
there or blank, a marginal therefore moves by at most N·m in L1, and so in L2; where records may be replaced,
too, by √2·N·m in L2 and by 2·N·m in L1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from collegium.data.cells import Cells
from collegium.data.engines.connections import EngineError
from collegium.synthesis.coarsening import Coarsening
from collegium.synthesis.junction_tree import Clique
from collegium.weighted_sums.marginals import Marginals
from collegium.weighted_sums.tables import Table
from collegium.weighted_sums.weighing import Weighing

Steps = NDArray[np.int64]


def sensitive_counts(
    table: Table,
    cells: Cells,
    weighings: Sequence[Weighing],
    cliques: Sequence[Clique],
    coarse: Sequence[Coarsening] | None = None,
) -> list[list[Steps]]:
    """Count, in steps of the grid, the rows in each cell of some marginals: with each of these weights.

    ``coarse``: of each column, where cells were put together.

    Raises EngineError if an engine stops: whoever calls has charged the draw.
    """
    together = None if coarse is None else [one.place for one in coarse]
    try:
        return table.marginals(Marginals(cells, cliques, together), weighings)
    except EngineError as error:
        raise EngineError(
            f"{error}; this draw and those before stay charged, since an error may tell of somebody's row"
        ) from None


def sensitive_errors(counts: Sequence[Steps], expected: Sequence[Steps]) -> Steps:
    """Sum, for each marginal, how far its cells are from what was expected: in steps, shape (n,)."""
    return np.array(
        [int(np.abs(one - other).sum()) for one, other in zip(counts, expected, strict=True)],
        dtype=np.int64,
    )
