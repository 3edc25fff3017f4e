"""Public records beside a private table: refused where they are private ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from collegium.data.cells import Cells
from collegium.data.overlap_checks import Likeness, RowsSeen, same_content
from collegium.errors import InputError
from collegium.weighted_sums.tables import Table


def refuse_private_as_public(
    table: Table,
    cells: Cells,
    public: Any,
    role: str = "public",
    key: str = "public_may_overlap=True",
) -> None:
    """Refuse public records of which more than a handful are private ones, as the schema reads both.

    ``role``: "public" or "test". ``key``: how to allow it.
    """
    likeness = Likeness(_frame(cells.schema.arrays(public, list(cells.names))))
    seen, equal, n = [], 0, int(table.sizes.sum())
    for batch in table.batches(cells.names):
        hashes = likeness.hashes(_frame(batch.arrays))
        seen.append(RowsSeen.of(hashes, likeness.public, n))
        equal += len(hashes)
    found = RowsSeen.together(seen)
    if equal == len(likeness.public) and set(likeness.public.tolist()) <= set(found.found.tolist()):
        raise same_content(role, key)
    found.check(likeness.public, role, key)


def _frame(arrays: Any) -> pd.DataFrame:
    return pd.DataFrame({name: values.astype(float) for name, values in arrays.items()})


def refuse_names_of_people(names: Sequence[str], owner: str | None) -> None:
    """Refuse to synthesise the column that says whose a row is: a synthetic row is nobody's."""
    if owner in names:
        raise InputError(
            f"the schema describes {owner!r}, which says whose each row is: rows of a synthetic table are "
            "nobody's; take that column out of the schema"
        )
