"""How far a journal has come, in a second place: whole lines that are missing at its end are noticed.

The mark tells how many lines the journal had when something was last reserved or settled, and the HMAC of the
last of them. It is written after that line, and before noise is drawn: a crash between the two leaves a mark
that is one line behind, never one that is ahead. It has two halves, each a sector of the disk, which are
written in turn, so that a torn one leaves the other. Writing over what is there needs no room on the disk and
leaves the file's metadata as they are: it costs a fraction of what a line of the journal does
(``python benchmarks/labelling.py --journal FOLDER``).
"""

from __future__ import annotations

import hmac
import os
from pathlib import Path

from collegium.durable import write_durably
from collegium.errors import StudyMismatchError

_SECTOR = 512


class Mark:
    """A journal's mark.

    ``path``: made before the first line that says so.
    ``key``: of the journal's chain.
    """

    def __init__(self, path: Path, key: bytes) -> None:
        self._path, self._key = path, key
        self._next = 0

    @property
    def name(self) -> str:
        """Of its file."""
        return self._path.name

    def make(self) -> None:
        """Make it, durably, unless it is there."""
        if not self._path.exists():
            write_durably(self._path, 2 * self._half(0, ""), private=True)

    def read(self) -> dict[int, str] | None:
        """Tell heads of the journal by number of lines, as marked last; None if it is not there."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return None
        halves = [content[:_SECTOR], content[_SECTOR:]]
        marks = [self._whole(half) for half in halves]
        known = [mark for mark in marks if mark is not None]
        if not known:
            raise StudyMismatchError(
                f"{self._path} is damaged: nothing was asked or charged; restore the whole folder from one "
                "backup"
            )
        numbers = [-1 if mark is None else mark[0] for mark in marks]
        self._next = numbers.index(min(numbers))
        return {records: head for records, head in known if records}

    def write(self, records: int, head: str, *, is_durable: bool) -> None:
        """Put this in place of the older half.

        ``is_durable``: whether to wait for the disk. What a killed process has written stays either way.
        """
        descriptor = os.open(self._path, os.O_WRONLY | getattr(os, "O_BINARY", 0))
        try:
            os.lseek(descriptor, self._next * _SECTOR, os.SEEK_SET)
            os.write(descriptor, self._half(records, head))
            if is_durable:
                getattr(os, "fdatasync", os.fsync)(descriptor)
        finally:
            os.close(descriptor)
        self._next = 1 - self._next

    def _half(self, records: int, head: str) -> bytes:
        text = f"{records} {head}".encode()
        seal = hmac.digest(self._key, b"mark " + text, "sha256").hex().encode()
        return b"%s %s\n" % (seal, text) + bytes(_SECTOR - len(seal) - len(text) - 2)

    def _whole(self, half: bytes) -> tuple[int, str] | None:
        try:
            _, records, head = half.rstrip(b"\0").decode().removesuffix("\n").split(" ")
            found = int(records), head
        except ValueError:
            return None
        return found if hmac.compare_digest(half, self._half(*found)) else None
