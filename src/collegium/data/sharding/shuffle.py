"""From rows in the order of files to rows in the order of teachers, with bounded memory.

Every piece of the data set is sorted by teacher and written to files of its own, one record batch for
each *bucket* of neighbouring teachers. Then every bucket is gathered from all these files and cut into
shards. So the number of open files does not grow with the number of teachers, and no process holds more
than one piece or one bucket.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.data.sharding.disk import disk_trouble, read_json, write_json
from collegium.data.sharding.levels import Granted
from collegium.data.sharding.roles import Roles, record_hashes
from collegium.data.sharding.source import PIECE_ROWS, Piece, Reader, values_of
from collegium.durable import digest_of
from collegium.errors import InputError
from collegium.names import as_names
from collegium.personalisation.plan import Plan

if TYPE_CHECKING:
    import pyarrow as pa

#: Columns that stand beside the features.
CLASS, TEACHER = "collegium:class", "collegium:teacher"
_CODEC = "lz4"


@dataclass(frozen=True, kw_only=True)
class Reading:
    """All that a worker needs to read private records, and to know whose they are.

    ``features``, ``categorical``: columns that models learn from, and those of them that are
        categories.
    ``granted``: what the levels mean.
    ``levels``: level of each group.
    ``classes``: the public list of classes.
    """

    reader: Reader
    roles: Roles
    features: tuple[str, ...]
    categorical: tuple[str, ...]
    granted: Granted
    levels: pd.Index
    classes: NDArray[Any]

    def known(
        self, piece: Piece
    ) -> Iterator[tuple[pa.Table, NDArray[Any], NDArray[np.intp], NDArray[np.intp]]]:
        """Read a piece, some rows at a time, as it was when it was checked.

        Yields features, names of owners, groups and class numbers, by record.
        """
        roles = self.roles
        special = [name for name in (roles.owner, roles.level, roles.target) if name is not None]
        columns = list(dict.fromkeys([*special, *self.features]))
        for first_row, table in self.reader.batches(piece, columns):
            silent = self.granted.silent(values_of(table, roles.level))
            table, rows = roles.taught(first_row, table, self.features, self.categorical, silent)
            level = values_of(table, roles.level)
            level = level.astype(np.float64) if self.levels.dtype.kind == "f" else as_names(level)
            groups = self.levels.get_indexer(pd.Index(level))
            target = pd.Index(values_of(table, roles.target))
            classes = pd.Index(self.classes).get_indexer(target)
            if (groups < 0).any() or (classes < 0).any():
                raise InputError(
                    f"{piece.file} has another level or label than when it was checked: do not change files "
                    "while they are read; run again"
                )
            yield table.select(list(self.features)), roles.names(table, rows), groups, classes


@dataclass(frozen=True, kw_only=True)
class Sorting(Reading):
    """All that a worker needs to sort a piece by teacher.

    ``group_names``: name of each group.
    ``plan``: who gets which teachers.
    ``key``: public randomness.
    ``first_teachers`` (n_buckets + 1,): where the buckets begin; the last number is that of all
        teachers.
    """

    group_names: tuple[str, ...]
    plan: Plan
    key: bytes
    first_teachers: NDArray[np.intp]


def sort_piece(sorting: Sorting, piece: Piece, folder: Path) -> dict[str, int]:
    """Write the records of a piece, sorted by teacher, into files of its own.

    ``folder``: where; nothing there counts before the piece's ``.json`` is there.
    Returns: ``files`` and ``records`` of the piece.
    """
    done = folder / f"piece-{piece.number:06d}.json"
    shape = {"files": int, "records": int, "sha256": [str]}
    if done.exists() and (known := _whole(folder, piece, read_json(done, shape))):
        return known
    files = records = 0
    digests: list[str | None] = []
    for rows, table in _large(_placed(sorting, piece)):
        path = _piece_file(folder, piece.number, files)
        _write_buckets(path, table, sorting.first_teachers)
        digests.append(digest_of(path))
        files, records = files + 1, records + rows
    counted = {"files": files, "records": records}
    write_json(done, {**counted, "sha256": digests})
    return counted


def _whole(folder: Path, piece: Piece, known: dict[str, Any]) -> dict[str, int] | None:
    """Return what an earlier call counted, if its files are as it wrote them."""
    for file, digest in enumerate(known["sha256"]):
        path = _piece_file(folder, piece.number, file)
        if digest_of(path) != digest:
            return None
    return {"files": known["files"], "records": known["records"]}


def _piece_file(folder: Path, piece: int, file: int) -> Path:
    return folder / f"piece-{piece:06d}-{file:04d}.arrow"


def gather_bucket(folder: Path, pieces: Sequence[tuple[int, int]], bucket: int) -> pa.Table:
    """Collect a bucket from the files of all pieces, in the order of the data set.

    ``folder``: where :func:`sort_piece` wrote.
    ``pieces``: number and count of files of every piece.
    Returns: features, :data:`CLASS` and :data:`TEACHER`.
    """
    import pyarrow as pa

    batches: list[Any] = []
    schema: pa.Schema | None = None
    for piece, files in pieces:
        for file in range(files):
            path = _piece_file(folder, piece, file)
            try:
                with pa.OSFile(str(path)) as stream:
                    opened = pa.ipc.open_file(
                        stream, options=pa.ipc.IpcReadOptions(use_threads=False)
                    )
                    schema = opened.schema
                    batches.append(opened.get_batch(bucket))
            except (pa.ArrowException, OSError) as error:
                raise InputError(
                    f"{path} cannot be read ({type(error).__name__}): delete {folder} and run again"
                ) from None
    return pa.Table.from_batches(batches, schema)


def _placed(sorting: Sorting, piece: Piece) -> Iterator[tuple[int, pa.Table]]:
    """Read a piece; give each record once for each of its teachers, with the teacher's number."""
    import pyarrow as pa

    for table, names, groups, classes in sorting.known(piece):
        hashes = record_hashes(names, sorting.key)
        chosen = sorting.plan.teachers_of(hashes, sorting.group_names, groups)
        record, column = np.nonzero(chosen >= 0)
        placed = table
        if chosen.shape[1] > 1:  # otherwise every record has exactly one teacher
            placed = placed.take(record)
        placed = placed.append_column(CLASS, pa.array(classes[record].astype(np.int32)))
        yield len(table), placed.append_column(TEACHER, pa.array(chosen[record, column]))


def _large(parts: Iterator[tuple[int, pa.Table]]) -> Iterator[tuple[int, pa.Table]]:
    """Put batches together to what a worker may hold at a time."""
    import pyarrow as pa

    waiting: list[pa.Table] = []
    rows = held = 0
    for count, table in parts:
        waiting.append(table)
        rows, held = rows + count, held + len(table)
        if held >= PIECE_ROWS:
            yield rows, pa.concat_tables(waiting)
            waiting, rows, held = [], 0, 0
    if waiting:
        yield rows, pa.concat_tables(waiting)


def _write_buckets(path: Path, table: pa.Table, first_teachers: NDArray[np.intp]) -> None:
    import pyarrow as pa

    teachers = table.column(TEACHER).to_numpy()
    order = np.argsort(teachers, kind="stable")
    ends = np.searchsorted(teachers[order], first_teachers)
    table = table.combine_chunks()  # or each take below would combine them
    with disk_trouble(path.parent):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            with pa.ipc.new_file(stream, table.schema, options=write_options()) as writer:
                for start, end in pairwise(ends.tolist()):
                    writer.write_batch(one_batch(table.take(order[start:end])))
            stream.flush()
            os.fsync(stream.fileno())


def write_options() -> Any:
    """How records are written: compressed, and always to the same bytes."""
    import pyarrow as pa

    codec = _CODEC if pa.Codec.is_available(_CODEC) else None
    return pa.ipc.IpcWriteOptions(compression=codec, use_threads=False)


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """Turn a table into one batch, also if it has no row."""
    import pyarrow as pa

    whole = table.combine_chunks().to_batches()
    if len(whole) > 1:
        raise InputError(
            "some records hold more than 2 GB of text together: shorten the longest texts"
        )
    return whole[0] if whole else pa.RecordBatch.from_pylist([], schema=table.schema)


def bucket_starts(n_teachers: int, n_records: int, rows: int = PIECE_ROWS) -> NDArray[np.intp]:
    """Cut teachers into buckets of about so many records.

    Examples
    --------
    >>> bucket_starts(10, 1_000_000).tolist()
    [0, 2, 5, 8, 10]
    """
    n_buckets = min(n_teachers, max(1, -(-n_records // rows)))
    return np.rint(np.linspace(0, n_teachers, n_buckets + 1)).astype(np.intp)
