"""Rows that leave a database: typed as it declares them, each cell by itself, and in an order of their own.

A database gives its rows in any order, and in another one the next time. What must be the same the next time
(which row is whose, where several are alike) follows from the rows alone: they are put in the order of hashes
of what they hold.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.checks import listed, nearest
from collegium.data.engines.connections import Connection, opened
from collegium.data.engines.places import Place
from collegium.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

_MISSING = np.uint64(0x9E3779B97F4A7C15)
_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_OF_OTHER_TYPES = (
    "holds lists, records, bytes or times of day: give numbers, text, truth values or dates, "
    "or leave it out"
)
_UNREADABLE = "column {} of {} " + _OF_OTHER_TYPES
_FORBIDDEN = "may not be read by this role: GRANT SELECT on it, or leave it out"
_DAY, _SECOND = r"^\d{4}-\d{2}-\d{2}", r"^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}"


@contextlib.contextmanager
def connected(place: Place) -> Iterator[Connection]:
    """Lend a connection with one snapshot."""
    connection = opened(place)
    try:
        yield connection
    finally:
        connection.close()


def declared(connection: Connection) -> pa.Schema:
    """Say which columns a table has, and as what their cells are read.

    Columns of lists, records, bytes and times of day are not among these.
    """
    import pyarrow as pa

    found = connection.table.schema()
    kinds = {name: _read_as(found[name]) for name in connection.table.columns}
    return pa.schema([(name, kind) for name, kind in kinds.items() if kind is not None])


def unreadable_in(connection: Connection) -> dict[str, str]:
    """Say of columns that :func:`declared` does not name why they cannot be read."""
    types = declared(connection)
    others = {name: _OF_OTHER_TYPES for name in connection.table.columns if name not in types.names}
    return others | dict.fromkeys(connection.forbidden, _FORBIDDEN)


def batches_of(
    connection: Connection, place: Place, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """Read a table some rows at a time, in the order in which the database gives them.

    ``columns``: which ones; None: all that can be read. Where there are none, rows are read all the same.
    Yields tables of the types that :func:`declared` names; one without rows where there are none.

    Raises InputError if a column is missing, or cannot be read.
    """
    import pyarrow as pa

    fields = list(_of_columns(connection, place, columns))
    names = [one.name for one in fields]
    sent = {
        name: cells.cast("string") if _is_sent_as_text(cells.type()) else cells
        for name, cells in ((name, connection.table[name]) for name in names)
    }
    empty = True
    for batch in connection.stream(connection.table.select(**sent)):
        read = [_as_declared(batch.column(at), one.type) for at, one in enumerate(fields)]
        yield pa.Table.from_arrays(read, schema=pa.schema(fields)).select(list(columns or names))
        empty = False
    if empty:
        yield pa.schema(fields).empty_table()


def _of_columns(connection: Connection, place: Place, columns: Sequence[str] | None) -> pa.Schema:
    """Find the types of some columns; of one, where none is asked for: rows are counted all the same."""
    import pyarrow as pa

    types = declared(connection)
    for name in columns or ():
        if name in types.names:
            continue
        if name in connection.table.columns:
            raise InputError(_UNREADABLE.format(name, place))
        if name in connection.forbidden:
            raise InputError(f"column {name} of {place} {_FORBIDDEN}")
        raise InputError(f"{place} has no column {name!r}: {nearest(name, types.names)}")
    if not types.names:
        raise InputError(f"{place} has no column of numbers, text, truth values or dates")
    wanted = types.names if columns is None else list(columns) or types.names[:1]
    return pa.schema([types.field(name) for name in wanted])


def table_at(place: Place, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a table into memory, of one snapshot; rows are in an order that follows from them alone."""
    with connected(place) as connection:
        return _in_order(batches_of(connection, place, columns))


def everything_at(place: Place, except_for: Sequence[str] = ()) -> tuple[pa.Table, tuple[str, ...]]:
    """Read all columns of a table into memory, as :func:`table_at` does.

    ``except_for``: columns that may hold what cannot be read.
    Returns the table, and which of these were not read.
    """
    with connected(place) as connection:
        unread = unread_columns(connection, place, except_for)
        return _in_order(batches_of(connection, place)), unread


def unread_columns(
    connection: Connection, place: Place, except_for: Sequence[str]
) -> tuple[str, ...]:
    """Name the columns that cannot be read, and refuse those that somebody needs."""
    types = declared(connection)
    unread = tuple(name for name in connection.table.columns if name not in types.names)
    if needed := [name for name in unread if name not in except_for]:
        raise InputError(_UNREADABLE.format(listed(needed), place))
    return unread


def _in_order(batches: Iterator[pa.Table]) -> pa.Table:
    import pyarrow as pa

    table = pa.concat_tables(list(batches))
    return table.take(pa.array(np.argsort(_hashes(table), kind="stable")))


class RowsDigest:
    """Tells whether rows are the same again, in whatever order: a sum of hashes of them.

    A changed, added or removed row changes the sum, but for one chance in 2**64; two rows that change places
    do not. It is no secret's keeper: whoever knows all rows but one can test guesses of that one with it.

    Examples
    --------
    >>> import pyarrow as pa
    >>> one, other = pa.table({"age": [40, None, 50]}), pa.table({"age": [50, 40, None]})
    >>> RowsDigest.of(one) == RowsDigest.of(other), RowsDigest.of(one) == RowsDigest.of(one[:2])
    (True, False)
    """

    def __init__(self) -> None:
        self.n_rows, self._sum, self._types = 0, 0, ""

    def add(self, table: pa.Table) -> None:
        """Take more rows of the same columns."""
        self._types = json.dumps([[one.name, str(one.type)] for one in table.schema])
        self.n_rows += table.num_rows
        self._sum = (self._sum + int(np.sum(_hashes(table), dtype=np.uint64))) % 2**64

    @property
    def value(self) -> str:
        """The digest, in hexadecimal digits."""
        return hashlib.sha256(f"{self._types} {self.n_rows} {self._sum}".encode()).hexdigest()

    @classmethod
    def of(cls, table: pa.Table) -> str:
        """Take that of a table."""
        digest = cls()
        digest.add(table)
        return digest.value


def digest_at(place: Place, columns: Sequence[str] | None = None) -> str:
    """Tell whether rows are the same again without keeping any: as :class:`RowsDigest` does, if not by the
    same hashes.

    PostgreSQL hashes its rows by itself, several times as fast as it gives them away. Of DuckDB, whose
    hashes are others in each of its versions, rows pass by.
    """
    with connected(place) as connection:
        if place.engine == "postgresql":
            return _digest_within(connection, place, columns)
        digest = RowsDigest()
        for table in batches_of(connection, place, columns):
            digest.add(table)
    return digest.value


def _digest_within(connection: Connection, place: Place, columns: Sequence[str] | None) -> str:
    """Have a sum of hashes of rows, each as text in which no two rows are alike, added up by an engine."""
    import ibis

    types = _of_columns(connection, place, columns)
    table = connection.table
    row = ibis.literal("")
    for name in types.names:
        cell = table[name].cast("string")
        row = row + ibis.coalesce(cell.length().cast("string") + ":" + cell, "-")
    total = row.hash().cast("decimal(38, 0)").sum()
    found = connection.fetch(table.aggregate(rows=table.count(), total=total))
    about = [place.engine, [[one.name, str(one.type)] for one in types], [str(x) for x in found[0]]]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def as_text_table(frame: pd.DataFrame) -> pa.Table:
    """Take a table of text and dates (from :func:`~collegium.data.engines.places.read_place`) as text."""
    import pyarrow as pa

    return pa.table(
        {
            name: pa.array(
                [None if cell is None else str(cell) for cell in frame[name].tolist()],
                type=pa.string(),
            )
            for name in frame.columns
        }
    )


def _read_as(kind: Any) -> pa.DataType | None:
    """Say as what a column is read; None: it is not."""
    import pyarrow as pa

    if kind.is_boolean():
        return pa.bool_()
    if kind.is_integer():
        return pa.uint64() if kind.is_unsigned_integer() and kind.nbytes == 8 else pa.int64()
    if kind.is_floating() or kind.is_decimal():
        return pa.float64()
    if kind.is_date():
        return pa.date32()
    if kind.is_timestamp():
        return pa.timestamp("s")
    unread = (kind.is_nested, kind.is_binary, kind.is_time, kind.is_interval, kind.is_null)
    return None if any(check() for check in unread) else pa.string()


def _is_sent_as_text(kind: Any) -> bool:
    """Whether its cells are sent as text: one that Python or Arrow has no room for would end the reading."""
    plain = (kind.is_boolean, kind.is_integer, kind.is_floating, kind.is_string)
    return not any(check() for check in plain)


def _as_declared(column: Any, kind: pa.DataType) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    types = pa.types
    if column.type == kind:
        return column
    if types.is_string(column.type) or types.is_large_string(column.type):
        if types.is_string(kind):
            return column.cast(kind)
        cells = column.to_pandas().astype(object)
        if types.is_floating(kind):
            return pa.array(
                pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64), from_pandas=True
            )
        mark, length, how = (_DAY, 10, "%Y-%m-%d")
        if types.is_timestamp(kind):
            mark, length, how = _SECOND, 19, "%Y-%m-%d %H:%M:%S"
        usual = pc.match_substring_regex(column, mark + ("$" if length == 10 else ""))
        text = pc.utf8_slice_codeunits(pc.if_else(usual, column, None), 0, length)
        found = pc.strptime(text, format=how, unit="s", error_is_null=True)
        return found.cast(kind)
    return column.cast(kind)


def _hashes(table: pa.Table) -> NDArray[np.uint64]:
    """Hash each row by all of its cells."""
    total = np.zeros(table.num_rows, dtype=np.uint64)
    for column in table.columns:
        total = total * _FACTOR + _of_cells(column.combine_chunks())
        total ^= total >> np.uint64(29)
    return total


def _of_cells(column: Any) -> NDArray[np.uint64]:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    missing = column.is_null().to_numpy(zero_copy_only=False)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        coded = column.dictionary_encode()
        words = np.array([*coded.dictionary.to_pylist(), ""], dtype=object)
        hashes = pd.util.hash_array(words, categorize=False)
        places = pc.fill_null(coded.indices, len(words) - 1).to_numpy(zero_copy_only=False)
        found = hashes[places]
    else:
        if pa.types.is_date(kind):
            column = column.cast(pa.int32())
        elif pa.types.is_timestamp(kind):
            column = column.cast(pa.int64())
        values = pc.fill_null(column, False if pa.types.is_boolean(kind) else 0)
        found = pd.util.hash_array(values.to_numpy(zero_copy_only=False))
    return np.where(missing, _MISSING, np.asarray(found, dtype=np.uint64))
