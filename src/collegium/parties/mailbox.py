"""Where parties leave files for one another: a folder that all of them see, or this process.

A mailbox is trusted with nothing but to bring files sooner or later. A file of one name has one content;
half a file, and files of others, are as if they were not there.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

from collegium.durable import private_folder, write_durably
from collegium.errors import InputError

_NAME = re.compile(r"([a-z0-9][a-z0-9-]{0,80}/)?[a-z0-9][a-z0-9-]{0,40}\.json")
_MOST_IN_ENDING = 100  # letters that a program which copies files between machines adds to a name


class Mailbox(Protocol):
    """Small files by name, posted once and read by whoever looks.

    A name is that of a file, or of a folder and a file in it: ``000003-answer-1f3b2c4d-1/masked-p02.json``.
    """

    def post(self, name: str, content: bytes) -> None:
        """Leave a file; the same content may be left again, another one is refused."""
        ...

    def read(self, name: str, most_bytes: int) -> bytes | None:
        """Read a file; None if it is not there (yet). Raises InputError if it is larger than it may be."""
        ...

    def names(self, folder: str = "") -> Collection[str]:
        """List the names of all files in a folder of it; "" for those in none."""
        ...

    def folders(self) -> Collection[str]:
        """List its folders, and maybe files that are in none."""
        ...


class MemoryMailbox:
    """A mailbox in this process.

    Examples
    --------
    >>> mailbox = MemoryMailbox()
    >>> mailbox.post("keys-p01.json", b"{}")
    >>> mailbox.read("keys-p01.json", 100), mailbox.read("keys-p02.json", 100)
    (b'{}', None)
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def post(self, name: str, content: bytes) -> None:
        """Leave a file."""
        _check_same(name, self.files.setdefault(_checked(name), content), content)

    def read(self, name: str, most_bytes: int) -> bytes | None:
        """Read a file."""
        content = self.files.get(name)
        return None if content is None else _of_fair_size(name, content, most_bytes)

    def names(self, folder: str = "") -> Collection[str]:
        """List what is there."""
        return [name for name in self.files if name.rpartition("/")[0] == folder]

    def folders(self) -> Collection[str]:
        """List the folders."""
        return {name.partition("/")[0] for name in self.files}


class FolderMailbox:
    """A folder that other programs bring to all parties: shared, synchronised or carried.

    Parameters
    ----------
    path : Path
        A folder that is there.

    Raises
    ------
    InputError
        If there is no such folder; later, if a file cannot be written.
    """

    _private = False

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            raise InputError(
                f"{path} is no folder: make it, or give the one that the parties share"
            )

    def post(self, name: str, content: bytes) -> None:
        """Leave a file: completely, or not at all."""
        path = self.path / _checked(name)
        there = self.read(name, len(content) + 1) if path.exists() else None
        if there is not None:
            _check_same(name, there, content)
            return
        try:
            if path.parent != self.path:
                path.parent.mkdir(mode=0o700 if self._private else 0o777, exist_ok=True)
            write_durably(path, content, private=self._private)
        except OSError as error:
            raise InputError(
                f"{path} cannot be written ({error.strerror}): nothing was lost; see to the folder, and go on"
            ) from None

    def read(self, name: str, most_bytes: int) -> bytes | None:
        """Read a file, if it is an ordinary one; what cannot be read now is not there yet."""
        path = self.path / name
        try:
            about = path.lstat()
            if not stat.S_ISREG(about.st_mode):
                return None
            with path.open("rb") as file:
                content = file.read(most_bytes + 1)
        except OSError:
            return None
        return _of_fair_size(name, content, most_bytes)

    def names(self, folder: str = "") -> Collection[str]:
        """List what is there."""
        begin = f"{folder}/" if folder else ""
        try:
            return [begin + name for name in os.listdir(self.path / folder)]  # noqa: PTH208
        except OSError:
            return []

    def folders(self) -> Collection[str]:
        """List the folders."""
        return self.names()


class FolderMemory(FolderMailbox):
    """One party's memory: a folder for its owner's eyes only, for one process at a time.

    It is never to be restored from an older copy: a party whose memory lacks what it posted is refused.

    Parameters
    ----------
    path : Path
        Made, if it is not there.

    Raises
    ------
    InputError
        If another process uses it, or it belongs to another user.
    """

    _private = True

    def __init__(self, path: Path) -> None:
        private_folder(Path(path))
        super().__init__(path)
        self._lock = FileLock(self.path / "lock", timeout=0, mode=0o600)
        try:
            self._lock.acquire()
        except Timeout:
            raise InputError(
                f"{path} is in use by another process: end it, or give the memory of this party"
            ) from None

    def close(self) -> None:
        """Let other processes use it."""
        self._lock.release()


def versions_of(name: str, names: Collection[str]) -> list[str]:
    """Find names that programs which synchronise folders give to second versions of a file.

    Examples
    --------
    >>> versions_of("keys-p01.json", ["keys-p01.json", "keys-p01 (copy of B).json", "keys-p02.json"])
    ['keys-p01 (copy of B).json']
    """
    begin, end = name.removesuffix(".json"), ".json"
    return sorted(
        one
        for one in names
        if one.startswith(begin)
        and one.endswith(end)
        and len(name) < len(one) <= len(name) + _MOST_IN_ENDING
    )


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} cannot be the name of a file of parties: a-z, 0-9, - and .json, in one folder at most"
        )
    return name


def _check_same(name: str, there: bytes, content: bytes) -> None:
    if there != content:
        raise InputError(
            f"{name} is there already with another content, and nothing is posted twice: look who wrote it"
        )


def _of_fair_size(name: str, content: bytes, most_bytes: int) -> bytes:
    if len(content) > most_bytes:
        raise InputError(
            f"{name} is larger than the {most_bytes:,} bytes that it may have: ask who posted it"
        )
    return content
