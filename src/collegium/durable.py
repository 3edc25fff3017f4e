"""Files that are there completely and durably, or not at all; with a digest, if damage is to be noticed.

A file is written under a temporary name in its own folder, brought to the disk, renamed, and then the
folder's entry is brought to the disk, too. Temporary names end in :data:`PARTIAL` and are drawn at
random, so that any number of processes, on any machine, may write the same file: the last one wins.

A writer that is killed leaves its temporary file, which may hold a whole copy of what is private. So every
writer removes, first of all, what killed writers of the same file left. It knows them by a lock that each
writer holds on its temporary file, and that ends with the process.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import io
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from collegium.errors import InputError

if os.name != "nt":
    import fcntl

PARTIAL = ".partial"
"""Ending of files that are being written; a process that was killed leaves one."""

_HEX_BYTES = 8
_TEMPORARY = re.compile(rf"\.(.+)\.[0-9a-f]{{{2 * _HEX_BYTES}}}{re.escape(PARTIAL)}")
SEAL_BYTES = hashlib.sha256().digest_size
"""By how much :func:`write_sealed` makes a file longer."""


@contextlib.contextmanager
def writing_durably(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """Open a file that takes its name only when the block has ended well.

    ``path``: where; a file that is there is replaced, or stays as it was if anything fails.
    ``private``: whether only its owner may read it (mode 0600, from the first byte on), not
        everybody (0644, less the process's mask).

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "counts"
    ...     with writing_durably(path) as file:
    ...         _ = file.write(b"1 2")
    ...         there_before_the_end = path.exists()
    ...     path.read_bytes(), there_before_the_end
    (b'1 2', False)
    """
    clear_leftovers(path)
    temporary, descriptor = _begun(path, 0o600 if private else 0o644)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name != "nt":  # under its lock: nobody takes it for a leftover
                temporary.replace(path)
        if os.name == "nt":  # where a file that is open cannot be renamed
            temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


class Digesting(io.BufferedIOBase):
    """A file that is written from its beginning to its end, and digested on the way.

    ``file``: takes what is written.

    Examples
    --------
    >>> target = io.BytesIO()
    >>> file = Digesting(target)
    >>> file.write(b"1 2"), file.tell(), target.getvalue()
    (3, 3, b'1 2')
    >>> file.digest == hashlib.sha256(b"1 2").hexdigest()
    True
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._hash, self._size = file, hashlib.sha256(), 0

    def writable(self) -> bool:
        """True."""
        return True

    def write(self, content: Any, /) -> int:
        """Write, and digest."""
        self._hash.update(content)
        written = memoryview(content).nbytes
        self._file.write(content)
        self._size += written
        return written

    def tell(self) -> int:
        """How much is written."""
        return self._size

    @property
    def digest(self) -> str:
        """SHA-256 of what is written so far, in hexadecimal."""
        return self._hash.hexdigest()


def _begun(path: Path, mode: int) -> tuple[Path, int]:
    """Make a temporary file, and lock it."""
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(_HEX_BYTES)}{PARTIAL}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            _lock(descriptor)
            is_there = os.name == "nt" or os.fstat(descriptor).st_nlink > 0
        except BaseException:
            os.close(descriptor)
            temporary.unlink(missing_ok=True)
            raise
        if is_there:
            return temporary, descriptor
        os.close(descriptor)  # another writer took it for a leftover before it was locked


def _lock(descriptor: int) -> None:
    if os.name != "nt":  # where a file that is open cannot be removed
        with contextlib.suppress(OSError):  # not every file system has locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)


def leftovers(path: Path) -> list[Path]:
    """List the temporary files of a file's writers: killed ones, and those that are writing now."""
    begin = f".{path.name}."
    # As text: folders of many teachers are listed once for each of them.
    near = [name for name in os.listdir(path.parent) if name.startswith(begin)]  # noqa: PTH208
    found = [(name, _TEMPORARY.fullmatch(name)) for name in near]
    return [path.with_name(name) for name, is_one in found if is_one and is_one[1] == path.name]


def clear_leftovers(path: Path) -> list[Path]:
    """Remove what killed writers of a file left beside it.

    Returns: what is still there, since its writer lives, or it cannot be removed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     left = Path(folder, ".private.csv.0123456789abcdef.partial")
    ...     left.touch()
    ...     clear_leftovers(Path(folder, "private.csv")), left.exists()
    ([], False)
    """
    return [one for one in leftovers(path) if not _is_cleared(one)]


def clear_all_leftovers(folder: Path) -> None:
    """Remove what killed writers left in a folder and the folders in it, whichever file it was to be."""
    for path in folder.rglob(f".*{PARTIAL}"):
        if _TEMPORARY.fullmatch(path.name):
            _is_cleared(path)


def _is_cleared(partial: Path) -> bool:
    try:
        if os.name == "nt":
            partial.unlink()
            return True
        descriptor = os.open(partial, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            partial.unlink()
        finally:
            os.close(descriptor)
    except FileNotFoundError:  # its writer has ended meanwhile
        return True
    except OSError:  # its writer lives, or it is somebody else's
        return False
    return True


def write_durably(path: Path, *parts: bytes | memoryview, private: bool = False) -> None:
    """Write a whole file; see :func:`writing_durably`.

    ``private``: whether only its owner may read it.
    """
    with writing_durably(path, private=private) as file:
        for part in parts:
            file.write(part)


def write_sealed(
    path: Path,
    content: bytes | memoryview,
    *,
    private: bool = False,
    key: bytes | None = None,
    about: str = "",
) -> None:
    """Write a file that :func:`read_sealed` can tell from a damaged one: its SHA-256 digest comes first.

    ``private``: whether only its owner may read it.
    ``key``: makes the digest an HMAC: nobody without the key can write a file that is taken for one
        of these.
    ``about``: with a key: what else must be the same when it is read, such as the file's name.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "sealed"
    ...     write_sealed(path, b"content")
    ...     whole = read_sealed(path)
    ...     _ = path.write_bytes(path.read_bytes()[:-1])
    ...     whole, read_sealed(path)
    (b'content', None)
    """
    write_durably(path, _seal(content, key, about), content, private=private)


def read_sealed(path: Path, *, key: bytes | None = None, about: str = "") -> bytes | None:
    """Read what :func:`write_sealed` wrote.

    ``key``, ``about``: as it was written.
    Returns: None if not every bit is as it was written, or if it was written in another way.
    """
    with path.open("rb") as file:
        digest, content = file.read(SEAL_BYTES), file.read()
    return content if hmac.compare_digest(_seal(content, key, about), digest) else None


def _seal(content: bytes | memoryview, key: bytes | None, about: str) -> bytes:
    if key is None:
        return hashlib.sha256(content).digest()
    seal = hmac.new(key, about.encode() + b"\0", "sha256")
    seal.update(content)
    return seal.digest()


def check_folder(path: Path) -> None:
    """Make a folder, unless it is there, and write a file into it that is gone at once.

    To be asked before hours are spent on what is to be written there: only writing shows whether it can
    be done.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_folder(Path(folder, "results"))
    ...     [file.name for file in Path(folder).rglob("*")]
    ['results']
    """
    path.mkdir(parents=True, exist_ok=True)
    probe = path / f".{secrets.token_hex(8)}{PARTIAL}"
    probe.touch(exist_ok=False)
    probe.unlink()


def private_folder(path: Path) -> None:
    """Make a folder for its owner's eyes only (mode 0700), whatever the process's mask.

    One that is there is refused if it is a link or another user's, and nobody else may write into it.
    """
    refuse_link_or_foreign(path)
    try:
        path.mkdir(mode=0o700, parents=True)
        path.chmod(0o700)
    except FileExistsError:
        if not path.is_dir():
            raise
        mode = path.stat().st_mode
        if mode & 0o022:
            path.chmod(mode & 0o7755)


def refuse_link_or_foreign(path: Path) -> None:
    """Refuse a folder that is a link, or another user's; nothing is changed."""
    if path.is_symlink():
        raise InputError(
            f"{path} is a link, and links are not followed here: put the folder itself there"
        )
    if path.is_dir() and is_foreign(path):
        raise InputError(f"{path} belongs to another user: choose another folder with --out")


def is_foreign(path: Path) -> bool:
    """Tell whether a file or folder belongs to another user; a link is not followed."""
    return hasattr(os, "geteuid") and path.lstat().st_uid != os.geteuid()


def digest_of(path: Path) -> str | None:
    """SHA-256 of a file; None if it is not there."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


def sync(path: Path) -> None:
    """Bring a file's content, or a folder's entries, to the disk.

    Windows cannot open folders, and brings their entries to the disk itself; files it brings there if they
    are opened for writing.
    """
    on_windows = os.name == "nt"
    if on_windows and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if on_windows else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
