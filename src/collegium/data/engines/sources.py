"""Tables and arrays from wherever they lie: files, databases, workbooks. One door for whoever reads them."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from collegium.data.column_types import kind_of
from collegium.data.datasets import read_labelled, sha256_of
from collegium.data.datasets.image_files import is_image_folder
from collegium.data.datasets.table_files import is_csv
from collegium.data.engines.places import Place, columns_of, place_of, read_place
from collegium.data.headers import Header, header_of
from collegium.errors import InputError, without_positions

Source = Path | Place
"""Where records lie: a file (or folder of Parquet files), or a table in a database or workbook."""


def source_of(given: str | os.PathLike[str], folder: Path | None = None) -> Source:
    """Say where records lie; see :func:`~collegium.data.engines.places.place_of` for what is refused.

    ``folder``: what a relative file is relative to; None: the working directory.
    """
    if not os.fspath(given).strip():
        raise InputError("an empty name means no file and no table: give one, or leave it out")
    place = place_of(given, folder)
    if place is not None:
        return place
    return Path(given) if folder is None else folder / given


def is_text(source: Source) -> bool:
    """Tell whether cells come as text, each by itself: of CSV files, SQLite and workbooks."""
    return source.in_memory if isinstance(source, Place) else is_csv(source)


@contextlib.contextmanager
def in_its_words(source: Source | None) -> Iterator[None]:
    """Say of an error about records of a database not where in it they are: its rows have no order."""
    try:
        yield
    except InputError as error:
        said = str(error)
        if not isinstance(source, Place) or source.has_order or without_positions(said) == said:
            raise
        raise InputError(without_positions(said)) from None


def adds_up(source: Source) -> bool:
    """Tell whether a table can stay where it lies, in an engine that adds up by itself."""
    return isinstance(source, Place) and not source.in_memory


def header_at(source: Source, separator: str | None = None) -> Header:
    """Read what is said of records before the first of them; nothing of a record is interpreted.

    ``separator``: of a CSV file.
    """
    if not isinstance(source, Place):
        return header_of(source, separator)
    if source.in_memory:
        return Header(columns_of(source))
    # Drivers come with it.
    from collegium.data.engines.rows import connected, declared, unreadable_in

    with connected(source) as connection:
        types = declared(connection)
        unreadable = unreadable_in(connection)
    kinds = types.empty_table().to_pandas(date_as_object=False).dtypes
    known = {name: kind_of(kinds[name]) for name in types.names}
    return Header(tuple(types.names), kinds=known, unreadable=unreadable)


@dataclass(frozen=True, eq=False)
class Whole:
    """All records of a source.

    ``records``: a table, or an array; where :func:`is_text`, cells are text.
    ``fingerprint``: tells that they are the same.
    ``unread``: columns that nobody needs and that cannot be read.
    ``classes``: of each record, where a folder of images or a .npz file says them by itself.
    """

    records: Any
    fingerprint: str
    unread: tuple[str, ...] = ()
    classes: NDArray[Any] | None = None


def read_whole(
    source: Source, separator: str | None = None, *, except_for: Sequence[str] = ()
) -> Whole:
    """Read all records.

    ``separator``: of a CSV file.
    ``except_for``: columns of a database that may hold what cannot be read.
    """
    if not isinstance(source, Place):
        records, classes = read_labelled(source, separator=separator, as_text=True)
        return Whole(records, fingerprint_of(source), classes=classes)
    if source.in_memory:
        cells = read_place(source, as_text=True)
        return Whole(cells, fingerprint_of(source, cells))
    from collegium.data.engines.rows import RowsDigest, everything_at
    from collegium.data.sharding.source import as_frame

    table, unread = everything_at(source, except_for)
    return Whole(as_frame(table, dates_as_names=True), RowsDigest.of(table), unread)


def fingerprint_of(source: Source, frame: Any = None, columns: Sequence[str] | None = None) -> str:
    """Tell that records are the same: a hash of a file, or of every file of a folder; or of a table's rows.

    ``frame``: what was read of a table in a database; None: it is read for this.
    ``columns``: which ones are read for this; None: all.
    """
    if not isinstance(source, Place):
        return _of_files(source)
    if source.has_order:
        return f"{source.table}:{sha256_of(source.where)}"
    from collegium.data.engines.rows import RowsDigest, as_text_table, digest_at

    if source.in_memory:
        read = read_place(source, columns, as_text=True) if frame is None else frame
        return RowsDigest.of(as_text_table(read))
    return digest_at(source, columns) if frame is None else RowsDigest.of(frame)


def _of_files(path: Path) -> str:
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file())
        if is_image_folder(path):  # thousands of them
            digest = hashlib.sha256()
            for file in files:
                digest.update(f"{file.relative_to(path)}:{sha256_of(file)}\n".encode())
            return digest.hexdigest()
        return " ".join(f"{p.relative_to(path)}:{sha256_of(p)}" for p in files)
    return sha256_of(path)
