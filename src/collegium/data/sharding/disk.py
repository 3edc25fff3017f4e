"""Private files and folders of the shards, and one clear line when the disk is full."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from collegium import durable, json_files
from collegium.durable import write_durably
from collegium.errors import InputError


def write_json(path: Path, content: Any) -> None:
    """Write JSON durably, for its owner's eyes only, with a digest by which damage is noticed."""
    sealed = {"sha256": _digest(content), "content": content}
    text = json.dumps(sealed, indent=1, ensure_ascii=False) + "\n"
    with disk_trouble(path.parent):
        write_durably(path, text.encode(), private=True)


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def private_folder(path: Path) -> Path:
    """Make a folder, or one that is there, for its owner's eyes only (mode 0700)."""
    with disk_trouble(path):
        durable.private_folder(path.resolve())
        path.chmod(0o700)
    return path


def read_json(path: Path, shape: Any) -> Any:
    """Read JSON back, in the shape in which it was written, if it is as it was written."""
    advice = f"delete {path.parent} and run again"
    sealed = json_files.read_json(path, {"sha256": str, "content": shape}, advice, InputError)
    if sealed["sha256"] != _digest(sealed["content"]):
        raise InputError(f"{path} is damaged and cannot be read: {advice}")
    return sealed["content"]


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
