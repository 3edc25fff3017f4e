"""A table in Parquet files, read in batches: memory does not grow with its rows.

Who granted what is a column of the files, read along with each batch. Only where somebody may have several
rows (an owner column, and ``rows_per_owner`` in the schema) are owners counted first, in memory: one number
for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from numpy.typing import NDArray

from collegium.budgets import Budget, Policy, unknown_level
from collegium.checks import people as counted_people
from collegium.data.datasets.table_files import refuse_other_columns
from collegium.data.schema import Schema
from collegium.data.sharding.source import ParquetSource, unreadable
from collegium.errors import InputError, RecordError
from collegium.weighted_sums.tables import ROWS, ByBatches
from collegium.weighted_sums.weighing import Batch


class InParquet(ByBatches):
    """Parquet files, each row of which says who it is of and what was granted.

    Parameters
    ----------
    paths : sequence of Path
        Files, or folders of files.
    policy : Policy
        What levels mean.
    privacy : str
        Column with everybody's level.
    owner : str or None
        Column with everybody's name; None: each row is somebody else's.
    schema : Schema
        Of the columns that are asked about.

    Raises
    ------
    InputError
        If files cannot be read, lack a column, or a level is unknown, or an owner has two.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        policy: Policy,
        privacy: str,
        owner: str | None,
        schema: Schema,
    ) -> None:
        self._path = paths[0]
        self._files = _dataset_of(paths)
        names = self._files.schema.names
        for column in (privacy, *((owner,) if owner else ())):
            if column not in names:
                raise InputError(
                    f"the files have no column {column!r}: they have {', '.join(names)}"
                )
        self._schema, self._privacy, self._owner = schema, privacy, owner
        self._as_counted = self._state()
        self._levels = {name: code for code, name in enumerate(policy.levels)}
        self._outside = policy.outside
        owned, people = self._count_owners(policy) if owner else self._count_rows(policy)
        used = np.flatnonzero(owned)
        if not used.size:
            raise InputError("nobody in these files granted a budget: there is nothing to ask")
        self._place = np.full(len(owned), -1, dtype=np.intp)
        self._place[used] = np.arange(len(used))
        budgets = list(policy.levels.items())
        self.groups: Mapping[str, Budget] = {budgets[i][0]: budgets[i][1] for i in used}
        self.sizes = self.here = owned[used]
        self._people = people
        self._one_row_each = people is None or bool(people[1].max() <= 1)
        self.named = owner is not None

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Yield all rows of those who granted something, with these columns."""
        self._refuse_changed()
        sources = self._schema.sources(names)
        read = list(
            dict.fromkeys([*sources, self._privacy, *([self._owner] if self._owner else [])])
        )
        for batch in self._read(read):
            group = self._place[self._codes(batch)]
            rows, owner = np.ones(len(group), dtype=np.int64), None
            if self._people is not None and not self._one_row_each:
                found = pc.index_in(_plain(batch.column(self._owner)), value_set=self._people[0])
                owner = found.to_numpy(zero_copy_only=False).astype(np.intp)
                rows = self._people[1][owner]
            inside = group >= 0
            if not inside.all():
                batch = batch.filter(pa.array(inside))
                group, rows = group[inside], rows[inside]
                owner = None if owner is None else owner[inside]
            arrays: dict[str, NDArray[Any]] = self._schema.arrays(batch, list(names))
            yield Batch(arrays or {"": np.zeros(len(group), np.int8)}, group, rows, owner)
        self._refuse_changed()

    def _state(self) -> list[tuple[str, int, int]]:
        """Which files these are, how large, and of when."""
        states = ((name, Path(name).stat()) for name in self._files.files)
        return [(name, one.st_size, one.st_mtime_ns) for name, one in states]

    def _refuse_changed(self) -> None:
        """What a row weighs was counted before: of other rows, an owner could have any number.

        Called before anything is charged or drawn for these rows.
        """
        try:
            same = self._state() == self._as_counted
        except OSError:
            same = False
        if not same:
            raise InputError(
                "the files have changed since the session was opened, when people and levels were "
                "counted: open another session; if this question was charged already, it stays charged"
            )

    def _read(self, columns: list[str]) -> Iterator[Any]:
        try:
            for batch in self._files.to_batches(
                columns=columns, batch_size=ROWS, batch_readahead=2
            ):
                if batch.num_rows:
                    yield pa.Table.from_batches([_with_dictionaries(batch)])
        except (pa.ArrowException, OSError) as error:
            raise unreadable(self._path, error, "write all files with the same types") from None

    def _codes(self, batch: Any) -> NDArray[np.intp]:
        """Number of each row's level; the last one: none of those with a budget."""
        column = batch.column(self._privacy).combine_chunks()
        if not isinstance(column.type, pa.DictionaryType):
            column = column.dictionary_encode()
        words = [None if word is None else str(word) for word in column.dictionary.to_pylist()]
        known = [self._number(word, words) for word in words]
        codes = column.indices.to_numpy(zero_copy_only=False)
        if column.null_count:
            self._number(None, words)
        return np.asarray(np.array(known, dtype=np.intp)[codes.astype(np.intp)])

    def _number(self, word: str | None, words: Sequence[str | None]) -> int:
        if word in self._levels:
            return self._levels[word]
        if word in self._outside:
            return len(self._levels)
        raise unknown_level(word, [*self._levels, *self._outside], 1, 0)

    def _count_rows(self, policy: Policy) -> tuple[NDArray[np.int64], None]:
        owned = np.zeros(len(self._levels) + 1, dtype=np.int64)
        for batch in self._read([self._privacy]):
            owned += np.bincount(self._codes(batch), minlength=len(owned))
        owned[-1] = 0
        return owned, None

    def _count_owners(
        self, policy: Policy
    ) -> tuple[NDArray[np.int64], tuple[Any, NDArray[np.int64]]]:
        """Count owners by level, and each one's rows."""
        assert self._owner is not None
        parts: list[pd.DataFrame] = []
        for batch in self._read([self._owner, self._privacy]):
            name = _plain(batch.column(self._owner))
            if name.null_count:
                raise InputError(
                    f"{name.null_count:,} rows have no name in column {self._owner!r}: give each row "
                    "its person's name"
                )
            part = pd.DataFrame({"owner": name.to_pandas(), "level": self._codes(batch)})
            parts.append(
                part.groupby(["owner", "level"], sort=False).size().reset_index(name="rows")
            )
            if len(parts) == 16:
                parts = [_merged(parts)]
        table = _merged(parts)
        torn = int(table["owner"].duplicated().sum())
        if torn:
            raise RecordError(
                f"{counted_people(torn)} with two levels: all records of one person need the same level",
                0,
            )
        owned = np.bincount(table["level"], minlength=len(self._levels) + 1).astype(np.int64)
        owned[-1] = 0
        return owned, (pa.array(table["owner"]), table["rows"].to_numpy(dtype=np.int64))


def _dataset_of(paths: Sequence[Path]) -> Any:
    """Files, and those of folders, brought to one type for each column; other columns are refused."""
    sources = [ParquetSource(path) for path in paths]
    files = [file for one in sources for file in one.files]
    schema = None
    if len(files) > 1:
        try:
            refuse_other_columns(paths[0], files, [pq.read_schema(file) for file in files])
            known = [one.reader.schema for one in sources]
            schema = pa.unify_schemas(known, promote_options="permissive")
        except (pa.ArrowException, OSError) as error:
            raise unreadable(paths[0], error, "write all files with the same types") from None
        keys = {name for one in sources for name in one.reader.keys.names}
        schema = pa.schema([field for field in schema if field.name not in keys])
    return ds.dataset([str(file) for file in files], schema=schema, format="parquet")


def _merged(parts: list[pd.DataFrame]) -> pd.DataFrame:
    whole = pd.concat(parts, ignore_index=True)
    return whole.groupby(["owner", "level"], sort=False)["rows"].sum().reset_index()


def _with_dictionaries(batch: Any) -> Any:
    """Text as a dictionary: each different word is looked at once."""
    columns = [
        column.dictionary_encode()
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _plain(column: Any) -> Any:
    """A column without chunks or dictionary."""
    whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    return whole.dictionary_decode() if isinstance(whole.type, pa.DictionaryType) else whole
