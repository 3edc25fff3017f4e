"""A Parquet data set on disk, read piece by piece and never as a whole."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.data.datasets.raw import UNREADABLE, existing_file, reason_of, refusal, sha256_of
from collegium.data.datasets.table_files import parquet_files, refuse_other_columns
from collegium.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows that one worker gets at a time: some 100 MB of a table with 20 columns.
PIECE_ROWS = 262_144
#: Rows that are decoded at a time.
BATCH_ROWS = 65_536


@dataclass(frozen=True)
class Piece:
    """Some row groups of one file; or all rows of a table in a database.

    ``number``: position among the pieces of the data set, in the order of its rows.
    ``file``: that holds it; or what the table is called.
    ``first_row``: position of the first row in the whole data set.
    """

    number: int
    file: Path | str
    row_groups: tuple[int, ...]
    first_row: int
    n_rows: int


class Reader(Protocol):
    """What a worker needs to read a piece: small, and without any record."""

    def batches(self, piece: Piece, columns: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        """Read a piece in order, some rows at a time: position of the first of them, and a table."""
        ...


class RecordSource(Protocol):
    """Records that are read piece by piece, and never as a whole.

    ``path``: where they lie. ``columns``: names. ``categorical``: those of categories.
    ``pieces``: all rows, in order. ``n_rows``: how many.
    """

    path: Any
    columns: tuple[str, ...]
    categorical: tuple[str, ...]
    pieces: tuple[Piece, ...]
    n_rows: int

    @property
    def reader(self) -> Reader:
        """Reads pieces, in whichever process."""
        ...

    def fingerprint(self) -> str:
        """Name the content."""
        ...

    def empty_frame(self, columns: Sequence[str]) -> pd.DataFrame:
        """Make the table of no record: names and kinds of the columns."""
        ...


@dataclass(frozen=True)
class PieceReader:
    """What a worker needs to read a piece: small, and without any record.

    ``schema``: columns and types that all files are brought to. Dictionaries are plain values here.
    ``keys``: columns that stand in the names of folders (``key=value``).
    """

    schema: pa.Schema
    keys: pa.Schema
    base: str

    def batches(self, piece: Piece, columns: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        """Read a piece in order, some rows at a time.

        ``columns``: which columns; the others are not decoded.
        Yields ``first_row``: position of the first row of the table in the whole data set.
        Yields ``table``: at most :data:`BATCH_ROWS` rows.
        """
        import pyarrow as pa

        row, end = piece.first_row, piece.first_row + piece.n_rows
        try:
            for batch in self._scan(piece, columns):
                if batch.num_rows:
                    yield row, pa.Table.from_batches([batch])
                    row += batch.num_rows
        except (pa.ArrowException, *UNREADABLE) as error:
            raise unreadable(piece.file, error) from None
        if row != end:
            raise refusal(
                piece.file,
                f"holds {row - piece.first_row} rows where its footer promises {piece.n_rows}",
                "write it again",
            )

    def _scan(self, piece: Piece, columns: Sequence[str]) -> Iterator[Any]:
        # Without pre-buffering, a file is read as its rows are asked for and not a row group ahead.
        import pyarrow.dataset as pads

        options = pads.ParquetFragmentScanOptions(
            use_buffered_stream=True, pre_buffer=False, page_checksum_verification=True
        )
        found = pads.dataset(
            [str(piece.file)],
            schema=self.schema,
            format=pads.ParquetFileFormat(default_fragment_scan_options=options),
            partitioning=pads.partitioning(self.keys, flavor="hive") if len(self.keys) else None,
            partition_base_dir=self.base,
        )
        fragment = next(found.get_fragments()).subset(row_group_ids=list(piece.row_groups))
        scanner = fragment.scanner(
            schema=self.schema,
            columns=list(columns),
            batch_size=BATCH_ROWS,
            batch_readahead=1,
            fragment_readahead=1,
            use_threads=False,
        )
        yield from scanner.to_batches()


class ParquetSource:
    """A Parquet file, or a folder of them, of which only footers are read at first.

    ``path``: a ``.parquet`` file, or a folder with ``.parquet`` files (read in the order of their
        names; ``key=value`` folders become columns), as :func:`collegium.data.datasets.read_table`
        takes them.
    ``piece_rows``: rows that one worker gets at a time; a larger row group is one piece of its own.
    ``files``: in the order in which they are read.
    ``pieces``: all rows, in order.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pd.DataFrame({"age": [30, 40]}).to_parquet(f"{folder}/1.parquet")
    ...     pd.DataFrame({"age": [50]}).to_parquet(f"{folder}/2.parquet")
    ...     source = ParquetSource(folder)
    ...     source.n_rows, source.columns
    (3, ('age',))
    """

    def __init__(self, path: str | os.PathLike[str], piece_rows: int = PIECE_ROWS) -> None:
        import pyarrow as pa

        self.path = Path(path)
        self.files = _files(self.path)
        footers = [_footer(file) for file in self.files]
        schemas = [footer.schema.to_arrow_schema() for footer in footers]
        refuse_other_columns(self.path, self.files, schemas)
        try:
            types = pa.unify_schemas(schemas, promote_options="permissive")
            keys = self._keys(types)
        except (ValueError, TypeError, *UNREADABLE) as error:
            raise unreadable(self.path, error, "write all files with the same types") from None
        index = {name for schema in schemas for name in _pandas_index(schema)}
        fields = [pa.field(field.name, _plain(field.type)) for field in (*types, *keys)]
        self.categorical = tuple(f.name for f in types if pa.types.is_dictionary(f.type))
        self.columns: tuple[str, ...] = tuple(f.name for f in fields if f.name not in index)
        base = self.path if self.path.is_dir() else self.path.parent
        self.reader = PieceReader(pa.schema(fields), keys, str(base))
        self.pieces = tuple(_pieces(self.files, footers, piece_rows))
        self.n_rows = sum(piece.n_rows for piece in self.pieces)
        if not self.n_rows:
            raise refusal(self.path, "holds no record", "give a data set with at least one row")

    def fingerprint(self) -> str:
        """Hash every byte of every file, as a study's manifest does."""
        if not self.path.is_dir():
            return sha256_of(self.path)
        files = sorted(file for file in self.path.rglob("*") if file.is_file())
        return " ".join(f"{file.relative_to(self.path)}:{sha256_of(file)}" for file in files)

    def empty_frame(self, columns: Sequence[str]) -> pd.DataFrame:
        """Make the table of no record: names and kinds of the columns."""
        import pyarrow as pa

        fields = [self.reader.schema.field(name) for name in columns]
        return as_frame(pa.schema(fields).empty_table(), self.categorical)

    def _keys(self, types: pa.Schema) -> pa.Schema:
        import pyarrow as pa
        import pyarrow.dataset as pads

        if not self.path.is_dir():
            return pa.schema([])
        found = pads.dataset(
            [str(file) for file in self.files],
            partitioning=pads.partitioning(flavor="hive"),
            partition_base_dir=str(self.path),
        )
        return pa.schema([field for field in found.schema if field.name not in types.names])


def as_frame(
    table: pa.Table, categorical: Sequence[str] = (), *, dates_as_names: bool = False
) -> pd.DataFrame:
    """Convert records, such that the kind of a column does not depend on who misses a value.

    ``categorical``: columns that were dictionaries, and become categories again (those of these
        records).
    ``dates_as_names``: whether days stay what they are spelt by, as names of people must.
    """
    import pyarrow as pa

    truths = []
    for position, field in enumerate(table.schema):
        column = table.column(position)
        if field.name in categorical:
            table = table.set_column(position, field.name, column.dictionary_encode())
        elif pa.types.is_boolean(field.type) and column.null_count:
            truths.append(field.name)  # pandas would make objects of them
    frame = table.to_pandas(use_threads=False, date_as_object=dates_as_names)
    return frame.astype(dict.fromkeys(truths, "boolean")) if truths else frame


def values_of(table: pa.Table, name: str) -> NDArray[Any]:
    """Take a column as the array that reading the whole table would give."""
    return np.asarray(table.column(name).to_pandas())


def unreadable(
    path: Path | str, error: BaseException, advice: str = "write it again"
) -> InputError:
    """Name a damaged file in one line. Arrow's own words may quote values, unless they are about bytes."""
    reason = reason_of(error) if isinstance(error, OSError) else type(error).__name__
    return refusal(path, f"is not readable Parquet ({reason})", advice)


def _files(path: Path) -> tuple[Path, ...]:
    if not path.is_dir():
        return (existing_file(path),)
    return tuple(existing_file(file) for file in parquet_files(path))


def _footer(file: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_metadata(file)
    except (pa.ArrowException, *UNREADABLE) as error:
        raise unreadable(file, error) from None


def _pandas_index(schema: pa.Schema) -> list[str]:
    known = schema.pandas_metadata or {}
    return [name for name in known.get("index_columns", []) if isinstance(name, str)]


def _plain(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _pieces(files: Sequence[Path], footers: Sequence[Any], piece_rows: int) -> Iterator[Piece]:
    number = row = 0
    for file, footer in zip(files, footers, strict=True):
        groups: list[int] = []
        n_rows = 0
        sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
        for group, size in enumerate(sizes):
            if groups and n_rows + size > piece_rows:
                yield Piece(number, file, tuple(groups), row, n_rows)
                number, row, groups, n_rows = number + 1, row + n_rows, [], 0
            groups.append(group)
            n_rows += size
        if groups:
            yield Piece(number, file, tuple(groups), row, n_rows)
            number, row = number + 1, row + n_rows
