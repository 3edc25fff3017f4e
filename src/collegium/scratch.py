"""A folder of this process for what is not kept: for its owner's eyes only, and gone after it.

A process that is killed cannot clear up; the next one does. That the former is gone is known from a lock
that it held, which ends with it, and not from its number, which another may have by then.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
import time
from functools import cache
from pathlib import Path

from filelock import FileLock, Timeout

_PREFIX, _NEW = "collegium-", ".collegium-"
_LOCK = ".lock"
_SETTLED = (
    60.0  # seconds after which a folder under its first name was left by a process that was killed
)


def scratch_folder(base: Path | None = None) -> Path:
    """Make this process's folder (mode 0700), unless it is there; clear up what killed processes left.

    ``base``: where; default: the system's folder for temporary files.
    """
    return _made(Path(tempfile.gettempdir()) if base is None else base, os.getpid())


@cache
def _made(base: Path, process: int) -> Path:
    _clear_up(base)
    folder = Path(tempfile.mkdtemp(prefix=_NEW, dir=base))
    lock = FileLock(folder / _LOCK, timeout=0, mode=0o600)
    if (
        os.name != "nt"
    ):  # which neither renames folders that are in use, nor takes away files that are
        lock.acquire()
        settled = folder.with_name(_PREFIX + folder.name.removeprefix(_NEW))
        folder = folder.rename(settled)
    _LOCKS.append(lock)
    atexit.register(_remove, folder, process)
    return folder


_LOCKS: list[FileLock] = []  # held as long as this process lives


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # not where a copy of this process ends
        shutil.rmtree(folder, ignore_errors=True)


def _clear_up(base: Path) -> None:
    """Remove folders of this user that nobody holds the lock of."""
    if os.name == "nt":
        return
    for folder in [*base.glob(f"{_PREFIX}*"), *base.glob(f"{_NEW}*")]:
        with contextlib.suppress(OSError, Timeout):
            about = folder.lstat()
            new = folder.name.startswith(_NEW) and time.time() - about.st_mtime < _SETTLED
            if new or about.st_uid != os.getuid() or not (folder / _LOCK).is_file():
                continue
            with FileLock(folder / _LOCK, timeout=0):
                shutil.rmtree(folder, ignore_errors=True)
