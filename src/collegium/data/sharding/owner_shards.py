"""Shards that hold all records of their owners, as rows of an array: for what bounds a person's say.

Every piece of the data set is shown to a model, and what it sees is sorted by shard into files, one row for
each record; then every shard is gathered from all these files. No process holds more than a piece or a shard,
and no row that a model sees is computed twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.data.sharding.build import Steps, refuse_other_records, work_folder
from collegium.data.sharding.disk import disk_trouble, read_json, write_json
from collegium.data.sharding.owners import OWNER
from collegium.data.sharding.roles import Roles, second_hashes
from collegium.data.sharding.scan import Scanned
from collegium.data.sharding.shuffle import Reading
from collegium.data.sharding.source import Piece, RecordSource, as_frame
from collegium.errors import InputError

Rows = NDArray[np.void]
Show = Callable[[pd.DataFrame, NDArray[np.intp]], Rows]
Make = Callable[[int, Rows, NDArray[np.intp], NDArray[np.intp]], Any]
_MOST_BYTES = 2**26  # of the rows that a worker sorts at a time, and about those of a shard
_SALT = "collegium shards"  # two hashes tell owners apart; which shard they name decides on nothing
_COUNTED = {"rows": int, "counts": [[int]]}


def number_of_shards(n_records: int, row_bytes: int) -> int:
    """Choose how many shards there are: of about 16 megabytes, and 131,072 records at most.

    Examples
    --------
    >>> number_of_shards(10_000_000, 100), number_of_shards(10, 100)
    (77, 1)
    """
    rows = max(1, min(131_072, _MOST_BYTES // 4 // row_bytes))
    return max(1, -(-n_records // rows))


def each_owner_shard(
    source: RecordSource,
    roles: Roles,
    scanned: Scanned,
    folder: Path,
    build: str,
    show: Show,
    row_type: np.dtype[np.void],
    make: Make,
    n_shards: int,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Any]:
    """Sort what a model sees of private records by their owners' shards; make something of each shard.

    Everything runs in workers. What an interrupted call has sorted is used by the next one, if that has the
    same ``build``.

    ``scanned``: from :func:`~collegium.data.sharding.scan.scan` of the same records.
    ``folder``: where rows are kept meanwhile, in a folder of their own that the caller removes.
    ``build``: names all that the result follows from.
    ``show``: ``show(X, y)`` makes a row of each record, by itself, of features and class number.
    ``row_type``: of what it makes.
    ``make``: ``make(number, rows, owner, groups)`` is called for each shard: rows in the order of the data
        set, the position of each row's owner, and the position of each owner's group among the groups.
    ``progress``: called with (steps done, steps in all).
    Returns: what was made, by shard.
    """
    work = work_folder(folder, build)
    reading = Reading(
        reader=source.reader,
        roles=roles,
        features=scanned.features,
        categorical=tuple(name for name in source.categorical if name in scanned.features),
        granted=scanned.granted,
        levels=scanned.levels,
        classes=scanned.classes,
    )
    steps = Steps(progress, len(source.pieces) + n_shards)
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
    pieces: dict[int, list[NDArray[np.intp]]] = {}
    rows = 0
    for piece, counted in zip(
        source.pieces,
        parallel(
            joblib.delayed(_sort)(reading, piece, work, show, n_shards) for piece in source.pieces
        ),
        strict=True,
    ):
        pieces[piece.number] = [np.array(counts, dtype=np.intp) for counts in counted["counts"]]
        rows += counted["rows"]
        steps.one()
    refuse_other_records(source, scanned, rows)
    made: list[Any] = []
    slices = {
        (piece, file): np.concatenate([[0], np.cumsum(counts)])
        for piece, files in pieces.items()
        for file, counts in enumerate(files)
    }
    for one in parallel(
        joblib.delayed(_make)(
            work,
            {where: tuple(ends[number : number + 2].tolist()) for where, ends in slices.items()},
            row_type,
            number,
            make,
        )
        for number in range(n_shards)
    ):
        made.append(one)
        steps.one()
    return made


def _sort(reading: Reading, piece: Piece, work: Path, show: Show, n_shards: int) -> dict[str, Any]:
    """Write what a model sees of a piece, sorted by shard, into files of its own."""
    done = work / f"piece-{piece.number:06d}.json"
    if done.exists():
        counted: dict[str, Any] = read_json(done, _COUNTED)
        return counted
    counts: list[list[int]] = []
    rows = 0
    for seen, owners in _large(_shown(reading, piece, show)):
        shard = (owners["hash"] % np.uint64(n_shards)).astype(np.intp)
        order = np.argsort(shard, kind="stable")
        _write(_file(work, piece.number, len(counts), "rows"), seen[order])
        _write(_file(work, piece.number, len(counts), "owners"), owners[order])
        counts.append(np.bincount(shard, minlength=n_shards).tolist())
        rows += len(seen)
    counted = {"rows": rows, "counts": counts}
    write_json(done, counted)
    return counted


def _shown(reading: Reading, piece: Piece, show: Show) -> Iterator[tuple[Rows, Rows]]:
    for table, names, groups, codes in reading.known(piece):
        owners = np.empty(len(names), OWNER)
        owners["hash"] = second_hashes(names, _SALT)
        owners["second"] = second_hashes(names)
        owners["group"] = groups
        if len(names):
            yield show(as_frame(table, reading.categorical), codes), owners


def _large(parts: Iterator[tuple[Rows, Rows]]) -> Iterator[tuple[Rows, Rows]]:
    """Put parts together to what a worker may hold at a time."""
    waiting: list[tuple[Rows, Rows]] = []
    for part in parts:
        waiting.append(part)
        if sum(seen.nbytes for seen, _ in waiting) >= _MOST_BYTES:
            yield _together(waiting)
            waiting = []
    if waiting:
        yield _together(waiting)


def _together(parts: list[tuple[Rows, Rows]]) -> tuple[Rows, Rows]:
    return np.concatenate([seen for seen, _ in parts]), np.concatenate([own for _, own in parts])


def _make(
    work: Path,
    slices: dict[tuple[int, int], tuple[int, int]],
    row_type: np.dtype[np.void],
    number: int,
    make: Make,
) -> Any:
    rows = np.concatenate(
        [np.empty(0, row_type), *_gathered(work, slices, "rows", row_type)], dtype=row_type
    )
    owners = np.concatenate([np.empty(0, OWNER), *_gathered(work, slices, "owners", OWNER)])
    order = np.lexsort((owners["second"], owners["hash"]))
    ordered = owners[order]
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = ordered["hash"][1:] != ordered["hash"][:-1]
    is_new[1:] |= ordered["second"][1:] != ordered["second"][:-1]
    owner = np.empty(len(order), dtype=np.intp)
    owner[order] = np.cumsum(is_new) - 1
    return make(number, rows, owner, ordered["group"][is_new].astype(np.intp))


def _gathered(
    work: Path, slices: dict[tuple[int, int], tuple[int, int]], what: str, kind: np.dtype[np.void]
) -> Iterator[Rows]:
    for (piece, file), (start, end) in slices.items():
        path = _file(work, piece, file, what)
        try:
            found = np.fromfile(path, kind, end - start, offset=start * kind.itemsize)
        except OSError:
            found = np.empty(0, kind)
        if len(found) != end - start:
            raise InputError(f"{path} is not what was written: delete {work.parent} and run again")
        yield found


def _file(work: Path, piece: int, file: int, what: str) -> Path:
    return work / f"piece-{piece:06d}-{file:04d}.{what}"


def _write(path: Path, rows: Rows) -> None:
    with disk_trouble(path.parent):
        write_private(path, rows)


def write_private(path: Path, rows: Rows) -> None:
    """Write rows as they are in memory, durably, for their owner's eyes only."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(np.ascontiguousarray(rows).view(np.uint8).data)
        file.flush()
        os.fsync(file.fileno())
