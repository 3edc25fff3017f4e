"""A table's file without the records of one person: all other bytes of a CSV file stay as they are."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from collegium.data.datasets.raw import GZIP_MAGIC, open_raw, refusal
from collegium.data.datasets.table_files import is_csv, read_table, separator_of
from collegium.names import as_names

if TYPE_CHECKING:
    import pyarrow as pa

_MARK = "\ufeff"  # of the order of bytes, with which some programs begin a file


def without_person(
    path: Path, column: str, name: str, separator: str | None = None
) -> tuple[bytes, int]:
    """Make the content of a CSV or Parquet file without the records of one person; nothing is written.

    ``path``: a file that :func:`~collegium.data.datasets.table_files.read_table` reads; no folder.
    ``column``: of the owners.
    ``name``: whose records go, as :func:`~collegium.names.as_names` spells it.
    ``separator``: as in ``read_table``.
    Returns ``content``: a gzip file stays one; of a Parquet file, schema and compression stay.
    Returns ``n_gone``: how many records of this person there were.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_bytes(b'who,age\\r\\nann,"39"\\r\\n\\r\\nbob,50\\nann,4')
    ...     without_person(path, "who", "ann")
    (b'who,age\\r\\n\\r\\nbob,50\\n', 2)
    """
    names = as_names(read_table(path, separator=separator, as_text=True)[column])
    is_gone = names == name
    content = _csv(path, column, name, separator) if is_csv(path) else _parquet(path, ~is_gone)
    return content, int(is_gone.sum())


def _csv(path: Path, column: str, name: str, separator: str | None) -> bytes:
    with open_raw(path) as stream:
        chosen = separator_of(stream) if separator is None else separator
    with open_raw(path) as stream:
        kept = "".join(_kept(io.TextIOWrapper(stream, "utf-8", newline=""), column, name, chosen))
    with path.open("rb") as file:
        is_packed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    return gzip.compress(kept.encode(), mtime=0) if is_packed else kept.encode()


def _kept(text: io.TextIOWrapper, column: str, name: str, separator: str) -> Iterator[str]:
    """Yield the lines of all records but one person's, to the letter."""
    taken: list[str] = []  # lines of the record that is read

    def lines() -> Iterator[str]:
        for number, line in enumerate(text):
            taken.append(line)
            yield line if number else line.removeprefix(_MARK)

    place: int | None = None
    for cells in csv.reader(lines(), delimiter=separator, strict=True):
        if place is None and cells:
            place = cells.index(column)
        elif place is not None and cells and cells[place] == name:
            taken.clear()
        yield from taken
        taken.clear()


def _parquet(path: Path, stays: NDArray[np.bool_]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    if not file.metadata.num_row_groups:
        raise refusal(path, "has no records", "give a file with records")
    first = file.metadata.row_group(0)
    table = _without_unused_categories(file.read().filter(pa.array(stays)))
    written = io.BytesIO()
    pq.write_table(
        table,
        written,
        row_group_size=max(1, first.num_rows),
        compression=first.column(0).compression,
        version=file.metadata.format_version,
    )
    return written.getvalue()


def _without_unused_categories(table: pa.Table) -> pa.Table:
    """Take from the list of a column's categories those that only one person had."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if not pa.types.is_dictionary(field.type):
            continue
        column = table.column(place).unify_dictionaries().combine_chunks()
        codes = column.indices.to_numpy(zero_copy_only=False)
        missing = np.asarray(column.indices.is_null())
        used, codes = np.unique(np.where(missing, -1, codes).astype(np.int64), return_inverse=True)
        if used.size and used[0] < 0:
            used, codes = used[1:], codes - 1
        indices = pa.array(codes, mask=missing).cast(field.type.index_type)
        kept = column.dictionary.take(pa.array(used))
        made = pa.DictionaryArray.from_arrays(indices, kept, ordered=field.type.ordered)
        table = table.set_column(place, field, made)
    return table
