"""What a file says of its records before the first of them: names of columns, or the shape of an array.

Nothing of a record is interpreted: whatever records hold, a header is read alike.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from collegium.checks import check_separator
from collegium.data.column_types import NUMBER, TEXT, kind_of
from collegium.data.datasets.array_files import (
    NPY_MAGIC,
    idx_header,
    is_idx_magic,
    is_idx_name,
    npy_header,
)
from collegium.data.datasets.formats import PARQUET_MAGIC
from collegium.data.datasets.image_files import image_header, is_image_folder, npz_header
from collegium.data.datasets.raw import (
    UNREADABLE,
    existing_file,
    is_folder,
    open_raw,
    reason_of,
    refusal,
    unknown_format,
)
from collegium.data.datasets.table_files import header_problem, is_csv, marks_in


@dataclass(frozen=True)
class Header:
    """What a file says of its records.

    ``columns``: names of a table's columns, as a reader of the whole file names them; None: an array.
    ``shape``: of one record of an array; () for a label.
    ``kinds``: "number", "text" or "date", by column, where the file declares types.
    ``classes``: "number" or "text", where an array or a folder of images says its records' classes by itself.
    ``n_records``: where the file says so.
    ``marks``: characters that could separate the names in a CSV file.
    ``separator``: by which they were separated.
    ``unreadable``: why other columns of a database cannot be read, by name.
    """

    columns: tuple[str, ...] | None = None
    shape: tuple[int, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    n_records: int | None = None
    marks: tuple[str, ...] = ()
    separator: str | None = None
    unreadable: Mapping[str, str] = field(default_factory=dict)
    classes: str | None = None

    @property
    def is_table(self) -> bool:
        """Whether it has columns with names."""
        return self.columns is not None


NO_HEADER = "is its first line somebody's record? Then write the names of the columns above it"
"""Said in place of a private table's columns, where they may be no names."""


def has_header(columns: Iterable[str], public: Iterable[str]) -> bool:
    """Tell whether the first line of a private table names its columns: at least half of the public ones.

    ``columns``: as the private table has them.
    ``public``: names that are known in public: those of the public table, or of the schema.
    Returns: otherwise the line may be somebody's record, and no message may show it.

    Examples
    --------
    >>> has_header(["age", "work", "sick"], ["age", "work"]), has_header(["39", "nurse"], ["age", "work"])
    (True, False)
    """
    names, known = set(columns), set(public)
    return 2 * len(names & known) >= len(known) > 0


def header_of(path: str | os.PathLike[str], separator: str | None = None) -> Header:
    """Read what a file says of its records before the first of them.

    ``path``: what :func:`collegium.data.datasets.read_any` reads.
    ``separator``: of a CSV file; default: as a reader of the whole file finds it.

    Raises
    ------
    InputError
        If there is no such file, it is empty or of another format, or its header is damaged.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_bytes(b"age;work\\n39;\\xff")  # what is below the header is not looked at
    ...     header_of(path).columns
    ('age', 'work')
    """
    check_separator(separator)
    if is_folder(path) and is_image_folder(path):
        shape, n_records, by_class = image_header(path)
        return Header(None, shape, {"": NUMBER}, n_records, classes=TEXT if by_class else None)
    if is_folder(path) or Path(path).name.lower().endswith(".parquet"):
        return _of_parquet(Path(path))
    path = existing_file(path)
    classes = None
    try:
        if is_csv(path):
            with open_raw(path) as stream:
                return _of_csv(stream, path, separator)
        with open_raw(path) as stream:
            magic = stream.read(len(NPY_MAGIC))
        with open_raw(path) as stream:
            if path.name.lower().endswith(".npz"):
                shape, kind, classes = npz_header(path)
            elif path.name.lower().endswith(".npy") or magic == NPY_MAGIC:
                shape, kind = npy_header(stream, path)
            elif is_idx_name(path.name) or is_idx_magic(magic):
                shape, kind = idx_header(stream, path)
            elif magic.startswith(PARQUET_MAGIC):
                return _of_parquet(path)
            else:
                raise unknown_format(
                    path, "is of an unknown format", "convert it, or correct its name"
                )
    except UNREADABLE as error:
        raise refusal(
            path, f"cannot be read ({reason_of(error)})", "check the file, or get it again"
        ) from error
    if not shape or not shape[0]:
        raise refusal(path, "holds no record", "give an array with at least one record")
    kinds = {"": kind_of(kind)}
    return Header(
        None, shape[1:], kinds, shape[0], classes=None if classes is None else kind_of(classes)
    )


def _of_csv(stream: BinaryIO, path: Path, separator: str | None) -> Header:
    try:
        lines = _lines(stream)
        first = next((line for line in lines if line.strip()), "")
        marks = marks_in(first)
        used = separator or (marks[0] if len(marks) == 1 else ",")
        header = next(csv.reader(chain([first] if first else [], lines), delimiter=used), None)
    except UnicodeDecodeError as error:
        raise refusal(path, "is not UTF-8 text", "save it again as UTF-8") from error
    except csv.Error as error:
        raise refusal(
            path, f"is not a readable CSV file ({reason_of(error)})", "correct the file"
        ) from error
    problem = header_problem(header, used)
    if header is None or problem is not None:
        raise refusal(path, str(problem), "correct the file")
    names = tuple(
        name or f"Unnamed: {place}" for place, name in enumerate(header)
    )  # as pandas does
    return Header(names, marks=marks, separator=used)


def _lines(stream: BinaryIO) -> Iterator[str]:
    """Decode a file line by line, each only when it is asked for."""
    coding = "utf-8-sig"
    for some in stream:
        for line in some.splitlines(keepends=True):
            yield line.decode(coding)
            coding = "utf-8"


def _of_parquet(path: Path) -> Header:
    from collegium.data.sharding.source import ParquetSource

    source = ParquetSource(path)
    types = source.empty_frame(source.columns).dtypes
    kinds = {name: kind_of(types[name]) for name in source.columns}
    return Header(source.columns, kinds=kinds, n_records=source.n_rows)
