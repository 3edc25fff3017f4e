"""Votes on public records, block by block and straight to the disk. **Sensitive.**"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.data.sharding.disk import disk_trouble, read_json, write_json
from collegium.data.tables import take_rows
from collegium.durable import sync
from collegium.errors import InputError
from collegium.pate.voting.vote_table import ABSTAIN, VoteTable

#: Memory for the votes of one block, as they come from the teachers.
BLOCK_BYTES = 256 * 2**20
Ask = Callable[[Any], NDArray[np.int32]]

_CHECKED_ROWS = 1024
_READ_BYTES = 2**20


def blocks_of(
    X_public: Any, n_teachers: int, bytes_at_once: int = BLOCK_BYTES
) -> Iterator[tuple[int, Any]]:
    """Cut public records into blocks whose votes fit into memory.

    ``X_public`` (n_public, n_features): public records.
    ``n_teachers``: who vote on them.
    ``bytes_at_once``: for the votes of a block; 8 bytes per record and teacher are reckoned with.
    Yields ``first``: position of the block's first record.
    Yields ``block``: the records.

    Examples
    --------
    >>> [first for first, _ in blocks_of(np.zeros((10, 2)), n_teachers=5, bytes_at_once=160)]
    [0, 4, 8]
    """
    rows = max(1, bytes_at_once // (8 * n_teachers))
    for first in range(0, X_public.shape[0], rows):
        end = min(first + rows, X_public.shape[0])
        yield first, take_rows(X_public, np.arange(first, end))


def ask_in_blocks(
    path: Path,
    ask: Ask,
    blocks: Iterable[tuple[int, Any]],
    n_public: int,
    n_teachers: int,
    n_classes: int,
    progress: Callable[[int, int], None] | None = None,
    vouch: Callable[[str], None] | None = None,
) -> VoteTable:
    """Let teachers vote on blocks of public records, and write the votes as an ``.npy`` file.

    Memory holds the votes of one block. A call that was interrupted goes on after the last block that it
    finished, if these are as they were written; the file has its name only when it is complete.

    ``path``: where the table of shape (n_public, n_teachers) goes: one byte per vote for up to 127
        classes. A table that is there already is only opened.
    ``ask``: ``ask(block)`` returns the votes on some records, shape (n_block, n_teachers); for
        instance ``lambda X: ensemble.ask(teachers, X)``.
    ``blocks`` (int, records): first position and records of each block, in order; see
        :func:`blocks_of`.
    ``progress``: called with (records voted on, records in all).
    ``vouch``: told the file's SHA-256 digest right before it takes its name.
    Returns: a table whose votes are read from the disk as they are needed.
    """
    if not path.exists():
        kind = vote_type(n_classes)
        about = {"rows": n_public, "teachers": n_teachers, "type": kind.str}
        with _Rows(path, about, kind) as rows:
            done = rows.done
            for first, block in blocks:
                if first < done and first + block.shape[0] <= done:
                    continue
                if first != done:
                    raise InputError(
                        f"blocks of public records must follow each other: record {done} was expected, got "
                        f"{first}"
                    )
                votes = VoteTable.from_predictions(ask(block), n_classes, allow_abstention=True)
                if (votes.n_queries, votes.n_teachers) != (block.shape[0], n_teachers):
                    raise InputError(
                        f"{n_teachers} teachers were asked about {block.shape[0]} records, and gave "
                        f"{votes.n_queries} × {votes.n_teachers} votes"
                    )
                done = rows.append(votes.sensitive_table.astype(kind))
                if progress is not None:
                    progress(done, n_public)
            rows.finish(n_public, vouch)
    return open_votes(path, n_public, n_teachers, n_classes)


def open_votes(path: Path, n_public: int, n_teachers: int, n_classes: int) -> VoteTable:
    """Open a stored table of votes, which stays on the disk.

    ``path``: an ``.npy`` file of whole numbers, -1 for abstentions.
    Returns: a table whose votes are read from the disk as they are needed.
    """
    try:
        table = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}): delete it and run again") from None
    expected = (n_public, n_teachers)
    if table.shape != expected or table.dtype.kind != "i":
        raise InputError(
            f"{path} holds {table.dtype} votes of shape {table.shape}, expected are whole numbers of shape "
            f"{expected}: it is damaged; delete it and run again"
        )
    for first in range(0, len(table), _CHECKED_ROWS):
        rows = table[first : first + _CHECKED_ROWS]
        if rows.min() < ABSTAIN or rows.max() >= n_classes:
            raise InputError(
                f"{path} holds votes outside the {n_classes} classes: it is damaged; delete it and run again"
            )
    return VoteTable(table, n_teachers, n_classes, has_teachers=True)


def vote_type(n_classes: int) -> np.dtype[Any]:
    """Choose the smallest integers that hold every class and the abstention.

    Examples
    --------
    >>> vote_type(127), vote_type(128)
    (dtype('int8'), dtype('int16'))
    """
    assert ABSTAIN == -1
    return next(np.dtype(k) for k in ("i1", "i2", "i4") if n_classes - 1 <= np.iinfo(k).max - 1)


class _Rows:
    """An ``.npy`` file that grows by rows, and knows how many of them are safe.

    Plain writing, not a memory map: where the disk is full, a map kills the process without a word.
    """

    def __init__(self, path: Path, about: dict[str, Any], kind: np.dtype[Any]) -> None:
        self._path = path
        self._partial = path.with_name(f".{path.name}.partial")
        self._counted = path.with_name(f".{path.name}.json")
        self._about = about
        header = io.BytesIO()
        shape = (about["rows"], about["teachers"])
        np.lib.format.write_array_header_1_0(
            header, {"descr": kind.str, "fortran_order": False, "shape": shape}
        )
        self._header = header.getvalue()
        self._row_bytes = about["teachers"] * kind.itemsize
        self._digest = hashlib.sha256(self._header)
        self.done = self._known()

    def _known(self) -> int:
        """Count the rows that are there as they were written: if any is not, none is."""
        try:
            known = read_json(self._counted, {"done": int, "sha256": str})
            done = known["done"]
            if known != {**self._about, "done": done, "sha256": known["sha256"]}:
                return 0
            digest = hashlib.sha256()
            left = len(self._header) + done * self._row_bytes
            with self._partial.open("rb") as file:
                while left and (some := file.read(min(left, _READ_BYTES))):
                    digest.update(some)
                    left -= len(some)
        except (InputError, OSError, KeyError, TypeError):
            return 0
        if left or digest.hexdigest() != known["sha256"]:
            return 0
        self._digest = digest
        return int(done)

    def __enter__(self) -> _Rows:
        with disk_trouble(self._path.parent):
            descriptor = os.open(self._partial, os.O_RDWR | os.O_CREAT, 0o600)
            self._file = os.fdopen(descriptor, "r+b")
            if not self.done:
                self._file.write(self._header)
            self._file.truncate(len(self._header) + self.done * self._row_bytes)
            self._file.seek(0, os.SEEK_END)
        return self

    def __exit__(self, *_: object) -> None:
        with disk_trouble(self._path.parent):
            self._file.close()

    def append(self, rows: NDArray[Any]) -> int:
        """Write rows, durably, and return how many there are now."""
        content = np.ascontiguousarray(rows).tobytes()
        with disk_trouble(self._path.parent):
            self._file.write(content)
            self._file.flush()
            os.fsync(self._file.fileno())
        self.done += len(rows)
        self._digest.update(content)
        sealed = {**self._about, "done": self.done, "sha256": self._digest.hexdigest()}
        write_json(self._counted, sealed)
        return self.done

    def finish(self, n_rows: int, vouch: Callable[[str], None] | None) -> None:
        if self.done != n_rows:
            raise InputError(
                f"there were {self.done} public records, where {n_rows} were expected: do not change files "
                "while they are read; run again"
            )
        if vouch is not None:
            vouch(self._digest.hexdigest())
        with disk_trouble(self._path.parent):
            self._partial.replace(self._path)
            self._counted.unlink(missing_ok=True)
            sync(self._path.parent)
