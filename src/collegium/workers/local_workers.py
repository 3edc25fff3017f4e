"""Processes on this machine, as joblib starts them, that end with the process that started them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from joblib.parallel import LokyBackend

from collegium.scratch import scratch_folder

_LOOK_EVERY_S = 0.5
_IN_MEMORY = Path("/dev/shm")
_ROOM = 2_000_000_000  # bytes, below which joblib does not use it


class LocalBackend(LokyBackend):  # type: ignore[misc]
    """Joblib's processes, but for what outlives a process that is killed.

    Joblib's workers wait five minutes for a process that is gone, and the records that they share stay in
    memory until the machine is started again.
    """

    def configure(self, *arguments: Any, **settings: Any) -> int:
        """Start workers, or take those that are there."""
        ours = {
            "initializer": end_with_parent,
            "initargs": (os.getpid(),),
            "temp_folder": str(scratch_folder(_where())),
        }
        with _ctrl_c_blocked():
            count: int = super().configure(*arguments, **{**settings, **ours})
        return count

    def submit(self, *arguments: Any, **settings: Any) -> Any:
        """Give a task to a worker, and start workers where there are too few."""
        with _ctrl_c_blocked():
            return super().submit(*arguments, **settings)

    def apply_async(self, *arguments: Any, **settings: Any) -> Any:
        """Do so as earlier versions of joblib did."""
        with _ctrl_c_blocked():
            return super().apply_async(*arguments, **settings)


@contextlib.contextmanager
def _ctrl_c_blocked() -> Iterator[None]:
    """Let Ctrl-C wait: who is started meanwhile never sees it, not even before :func:`end_with_parent`."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _where() -> Path | None:
    """Choose where records are shared, as joblib does."""
    chosen = os.environ.get("JOBLIB_TEMP_FOLDER")
    if chosen:
        return Path(chosen).expanduser().absolute()
    if os.access(_IN_MEMORY, os.W_OK) and shutil.disk_usage(_IN_MEMORY).free > _ROOM:
        return _IN_MEMORY
    return None


def end_with_parent(parent: int) -> None:
    """End this worker soon after the process that started it; Ctrl-C is for that process to answer.

    ``parent``: number of the process that started it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "getppid") and os.getppid() == parent:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_EVERY_S)
    os._exit(1)
