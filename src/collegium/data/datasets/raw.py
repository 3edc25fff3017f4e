"""Bytes on disk: opening plain and gzip files alike, checksums, and the one-line refusals."""

import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from collegium.errors import InputError

ALLOWED_FORMATS = (
    "tables: .csv, .csv.gz, .parquet or a folder of .parquet files; "
    "arrays: .npy, .npz (X, and classes y), IDX named .idx or -ubyte (also .gz); a folder of images"
)
GZIP_MAGIC = b"\x1f\x8b"
CHUNK_BYTES = 1 << 20
#: A gzip file may unpack to this, or to so many times its size, whichever is more.
SMALL_BYTES, MOST_TIMES_LARGER = 1 << 27, 100
MOST_COLUMNS = 100_000
#: What reading and unpacking a missing, forbidden, truncated or damaged file raises.
UNREADABLE = (OSError, EOFError, zlib.error)


def refusal(path: str | os.PathLike[str], problem: str, advice: str) -> InputError:
    """Make the one-line error about a file: what was given, what is wrong with it, what to do.

    ``path``: the file or folder that was given.
    ``problem``: what is wrong with it, without any of its content.
    ``advice``: what the user can do.
    Returns: the error, to be raised by the caller.
    """
    # repr() keeps a line break in a file's name from breaking the line.
    return InputError(f"{os.fspath(path)!r} {problem}: {advice}")


def unknown_format(path: str | os.PathLike[str], problem: str, advice: str) -> InputError:
    """Make the same error about a file of another format, with those that can be read."""
    return refusal(path, problem, f"{advice}. Allowed are {ALLOWED_FORMATS}")


def reason_of(error: BaseException) -> str:
    """Say in one short line why something failed.

    Returns: the error's text without line breaks, cut at 160 characters.
    """
    strerror = getattr(error, "strerror", None)
    text = " ".join(str(strerror or error).split()) or type(error).__name__
    return text if len(text) <= 160 else text[:157] + "..."


def existing_file(path: str | os.PathLike[str]) -> Path:
    """Check that a path names a file that is there and is not empty.

    Raises InputError if nothing is there, if it is not a file, or if the file is empty.
    """
    path = Path(path)
    try:
        if not path.exists():
            raise refusal(path, "does not exist", "check the name and the folder")
        if not path.is_file():
            raise refusal(path, "is not a file", "give a file")
        if path.stat().st_size == 0:
            raise refusal(path, "is empty", "give a file with content")
    except OSError as error:
        raise refusal(path, f"cannot be looked up ({reason_of(error)})", "check it") from error
    return path


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path names a folder; a name that no file can have names none.

    Returns: false also if the path cannot be looked up.

    Examples
    --------
    >>> is_folder("."), is_folder("x" * 10_000)
    (True, False)
    """
    try:
        return Path(path).is_dir()
    except OSError:
        return False


class _Bounded(io.RawIOBase):
    """What a gzip file unpacks to, up to a limit: a few bytes can become all memory there is."""

    def __init__(self, unpacked: gzip.GzipFile, most: int) -> None:
        self._unpacked, self._left = unpacked, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._unpacked.readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise OSError(
                f"it unpacks to more than {MOST_TIMES_LARGER} times its size: unpack it if that is meant"
            )
        return count


@contextmanager
def open_raw(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for reading its raw bytes, through gzip if the content (not the name) says so.

    Yields: the uncompressed bytes.
    """
    with Path(path).open("rb") as stream:
        magic = stream.read(len(GZIP_MAGIC))
        stream.seek(0)
        if magic == GZIP_MAGIC:
            most = max(SMALL_BYTES, MOST_TIMES_LARGER * Path(path).stat().st_size)
            with gzip.GzipFile(fileobj=stream, mode="rb") as unpacked:
                yield cast(BinaryIO, io.BufferedReader(_Bounded(unpacked, most)))
        else:
            yield stream


def sha256_of(path: str | os.PathLike[str], *, decompressed: bool = False) -> str:
    """Compute the SHA-256 of a file, one chunk at a time.

    ``decompressed``: whether a gzip file's content is hashed instead of the file as it lies there,
        so that ``table.csv`` and ``table.csv.gz`` agree.
    Returns: 64 lower-case hexadecimal digits.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "abc.txt")
    ...     _ = path.write_bytes(b"abc")
    ...     sha256_of(path)[:12]
    'ba7816bf8f01'
    """
    path = Path(path)
    digest = hashlib.sha256()
    try:
        with open_raw(path) if decompressed else path.open("rb") as stream:
            while chunk := stream.read(CHUNK_BYTES):
                digest.update(chunk)
    except UNREADABLE as error:
        raise InputError(
            f"{os.fspath(path)!r} cannot be read for its checksum ({reason_of(error)}); "
            "a readable file is needed; check its name, or get it again"
        ) from error
    return digest.hexdigest()
