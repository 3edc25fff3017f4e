"""Files that are there completely or not at all, and one clear line when the disk is full."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from collegium.errors import InputError


def write_durably(path: Path, content: bytes) -> None:
    """Write a file for its owner's eyes only, so that it is there completely or not at all.

    Parameters
    ----------
    path : Path
        Where; replaced if it exists.
    content : bytes
        What.

    Raises
    ------
    InputError
        If it cannot be written, the disk being full, say.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with disk_trouble(path.parent):
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def write_json(path: Path, content: Any) -> None:
    """Write JSON durably."""
    write_durably(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def read_json(path: Path) -> Any:
    """Read JSON back.

    Raises
    ------
    InputError
        If the file is damaged.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read ({type(error).__name__}): delete {path.parent} and run again"
        ) from None


def private_folder(path: Path) -> Path:
    """Make a folder for its owner's eyes only (mode 0700)."""
    with disk_trouble(path):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
    return path


def sync_entries(folder: Path) -> None:
    """Make the names of a folder's files durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def disk_trouble(folder: Path) -> Iterator[None]:
    """Turn what goes wrong in writing into one line that says what to do."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        advice = "make room there" if full else "see to it"
        raise InputError(
            f"{folder} cannot be written ({error.strerror or type(error).__name__}): {advice} and run "
            "again; what was finished is kept"
        ) from None
