"""Private files and folders of the shards, and one clear line when the disk is full."""

from __future__ import annotations

import contextlib
import errno
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from collegium import json_files
from collegium.durable import write_durably
from collegium.errors import InputError


def write_json(path: Path, content: Any) -> None:
    """Write JSON durably, for its owner's eyes only."""
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    with disk_trouble(path.parent):
        write_durably(path, text.encode(), private=True)


def private_folder(path: Path) -> Path:
    """Make a folder for its owner's eyes only (mode 0700)."""
    with disk_trouble(path):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
    return path


def read_json(path: Path, shape: Any) -> Any:
    """Read JSON back, in the shape in which it was written."""
    return json_files.read_json(path, shape, f"delete {path.parent} and run again", InputError)


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
