"""Whose rows these are, batch by batch: a table in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from collegium.budgets import Budget, Budgets
from collegium.checks import shown
from collegium.data.schema import Schema
from collegium.data.schema_arrays import n_rows
from collegium.errors import InputError
from collegium.weighted_sums.marginals import Marginals
from collegium.weighted_sums.reading import Reading
from collegium.weighted_sums.sums import added_up
from collegium.weighted_sums.weighing import Batch, Weighing


def paths_of(frame: Any) -> list[Path]:
    """The files that were given instead of a table; none: it is one."""
    given = frame if isinstance(frame, list | tuple) else [frame]
    if not given or not all(isinstance(one, str | Path) for one in given):
        return []
    paths = [Path(one) for one in given]
    for path in paths:
        try:
            is_there = path.exists()
        except (OSError, ValueError):  # no name of a file
            is_there = False
        if not is_there:
            raise InputError(f"there is no file {shown(str(path))}: give a table, or Parquet files")
        if path.is_file() and path.suffix != ".parquet":
            raise InputError(
                f"{path} is not a Parquet file: read it first, with columns of text as text (in pandas: "
                "read_csv(path, dtype=str)), and give the table"
            )
    return paths


def refuse_empty(frame: Any) -> None:
    """Refuse a table without a row or a column: there is nobody, or nothing, to ask about."""
    if not n_rows(frame):
        raise InputError("the table has no rows: give one with the people to ask about")
    names = getattr(frame, "column_names", getattr(frame, "columns", None))
    if names is not None and not len(names):
        raise InputError(
            "the table has no columns: give those to ask about, named as in the schema"
        )


def read_all(paths: Sequence[Path]) -> Any:
    """Read Parquet files into memory."""
    import pyarrow.dataset as ds

    return ds.dataset([str(path) for path in paths], format="parquet").to_table()


ROWS = 1 << 18
"""Rows that are looked at together, so that what is computed of them stays small."""


class Table(Protocol):
    """Rows of people who granted budgets.

    ``groups``: budget of each group that has members. ``sizes`` (n_groups,): people of each, everywhere.
    ``here`` (n_groups,): those of them whose rows are in this table, where others are elsewhere.
    ``named``: whether owners are named, and may have several rows.
    """

    groups: Mapping[str, Budget]
    sizes: NDArray[np.int64]
    here: NDArray[np.int64]
    named: bool

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Yield all rows, with these columns; at least one batch."""
        ...

    def summed(self, reading: Reading, weighings: Sequence[Weighing]) -> list[NDArray[np.int64]]:
        """Add up what is read off all rows, with each of these weights: (n_cells, width) each. Sensitive."""
        ...

    def marginals(
        self, of: Marginals, weighings: Sequence[Weighing]
    ) -> list[list[NDArray[np.int64]]]:
        """Add up marginals of all rows, with each of these weights. Sensitive."""
        ...

    def why_here(self, names: Sequence[str]) -> str:
        """Why rows of a table that lies elsewhere are read here for these columns; "": they are not."""
        ...

    def close(self) -> None:
        """Let go of what was held open to read it."""
        ...


class ByBatches:
    """A table whose rows are added up here, some at a time."""

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Yield all rows, with these columns; at least one batch."""
        raise NotImplementedError

    def summed(self, reading: Reading, weighings: Sequence[Weighing]) -> list[NDArray[np.int64]]:
        """Add up what is read off all rows, with each of these weights. Sensitive."""
        return added_up(self.batches(reading.needs), reading, weighings)

    def marginals(
        self, of: Marginals, weighings: Sequence[Weighing]
    ) -> list[list[NDArray[np.int64]]]:
        """Add up marginals of all rows, with each of these weights. Sensitive."""
        return of.added_up(self.batches(of.cells.names), weighings)

    def why_here(self, names: Sequence[str]) -> str:
        """They lie here."""
        return ""

    def close(self) -> None:
        """Nothing is held open."""


class InMemory(ByBatches):
    """A table in memory: a frame of pandas, polars or pyarrow, beside its budgets.

    Raises InputError if there are as many budgets as not rows, or a column of the schema is missing.
    """

    def __init__(self, frame: Any, budgets: Budgets, schema: Schema) -> None:
        if n_rows(frame) != len(budgets):
            raise InputError(
                f"{n_rows(frame):,} rows, but {len(budgets):,} budgets: give one for each row"
            )
        self._frame, self._schema = frame, schema
        sizes = budgets.public_sizes()
        owned = np.array([sizes[name] for name in budgets.group_names], dtype=np.int64)
        used = np.flatnonzero(owned)
        place = np.full(len(owned), -1, dtype=np.intp)
        place[used] = np.arange(len(used))
        self.groups: Mapping[str, Budget] = {
            budgets.group_names[i]: budgets.groups[budgets.group_names[i]] for i in used
        }
        self.sizes = owned[used].astype(np.int64)
        counted = budgets.group_sizes()
        self.here = np.array([counted[name] for name in self.groups], dtype=np.int64)
        rows = np.bincount(budgets.record_owner, minlength=budgets.n_owners)
        self.named = budgets.named
        group = budgets.owner_group[budgets.record_owner]
        # Whose records are public has no budget: nothing is asked of them, here as in files.
        self._asked: slice | NDArray[np.intp] = slice(None)
        if (group < 0).any():
            self._asked = np.flatnonzero(group >= 0)
        self._group = place[group[self._asked]]
        self._rows = rows[budgets.record_owner].astype(np.int64)[self._asked]
        self._owner = np.asarray(budgets.record_owner, dtype=np.intp)[self._asked]
        self._known: dict[str, NDArray[Any]] = {}

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """All rows, some at a time, with columns that are read once."""
        missing = [name for name in names if name not in self._known]
        if missing:
            read = self._schema.arrays(self._frame, missing)
            self._known.update({name: values[self._asked] for name, values in read.items()})
        arrays = {name: self._known[name] for name in names}
        if not arrays:  # a question about no column still has rows
            arrays = {"": np.zeros(len(self._group), dtype=np.int8)}
        for start in range(0, len(self._group), ROWS):
            part = slice(start, start + ROWS)
            some = {name: values[part] for name, values in arrays.items()}
            yield Batch(some, self._group[part], self._rows[part], self._owner[part])
