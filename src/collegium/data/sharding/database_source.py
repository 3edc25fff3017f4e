"""Private records in a database, read row by row; nothing is kept but what callers make of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from collegium.data.engines.places import Place
from collegium.data.engines.rows import (
    RowsDigest,
    batches_of,
    connected,
    declared,
    unread_columns,
)
from collegium.data.sharding.source import BATCH_ROWS, Piece, as_frame
from collegium.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class DatabaseReader:
    """What a worker needs to read a table: it opens a connection of its own, and each reading sees one state.

    All readings must see the same rows. So whichever columns are asked for, all are read, and the digest of
    the rows is compared once the last one is there: before that, no caller may have done anything for good.

    ``columns``: all that are read.
    ``digest``: of the rows that were counted.
    """

    place: Place
    columns: tuple[str, ...]
    digest: str

    def batches(self, piece: Piece, columns: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        """Read the rows in the order in which the database gives them, which is another each time.

        Raises InputError, after the last of them, if these are not the rows that were counted.
        """
        digest, row = RowsDigest(), piece.first_row
        with connected(self.place) as connection:
            for table in batches_of(connection, self.place, self.columns):
                digest.add(table)
                for start in range(0, table.num_rows, BATCH_ROWS):
                    some = table.select(list(columns)).slice(start, BATCH_ROWS)
                    yield row, some
                    row += some.num_rows
        if digest.value != self.digest:
            raise InputError(
                f"{self.place} was changed while it was read: nothing was learnt; run it again"
            )


class DatabaseSource:
    """A table in a database, counted once from end to end.

    Nobody's place in it means anything: rows have no order that stays, so owners need names.

    Parameters
    ----------
    place : Place
        Where it lies.
    except_for : sequence of str
        Columns that may hold what cannot be read.

    Attributes
    ----------
    unread : tuple of str
        Those of them that do.

    Raises
    ------
    InputError
        If it cannot be read, or has no row.
    """

    def __init__(self, place: Place, except_for: Sequence[str] = ()) -> None:
        self.path: Any = place
        self.categorical: tuple[str, ...] = ()
        digest = RowsDigest()
        with connected(place) as connection:
            self.unread = unread_columns(connection, place, except_for)
            self.types = declared(connection)
            self.columns: tuple[str, ...] = tuple(self.types.names)
            for table in batches_of(connection, place):
                digest.add(table)
        if not digest.n_rows:
            raise InputError(f"{place} holds no record: give a table with at least one row")
        self.n_rows = digest.n_rows
        self.pieces: tuple[Piece, ...] = (Piece(0, str(place), (), 0, digest.n_rows),)
        self._reader = DatabaseReader(place, self.columns, digest.value)

    @property
    def reader(self) -> DatabaseReader:
        """Reads the table, in whichever process."""
        return self._reader

    def fingerprint(self) -> str:
        """Name the content: the digest of all rows."""
        return self._reader.digest

    def empty_frame(self, columns: Sequence[str]) -> pd.DataFrame:
        """Make the table of no record: names and kinds of the columns."""
        import pyarrow as pa

        return as_frame(pa.schema([self.types.field(name) for name in columns]).empty_table())
