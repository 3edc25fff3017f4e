"""Warnings of private training stay silent, whichever threads train at the same time."""

from __future__ import annotations

import threading
import warnings
from types import TracebackType


class _NoWarnings:
    """Ignores all warnings from the first thread that enters until the last one leaves.

    ``warnings.catch_warnings`` alone would not do: its filters belong to the process, and of two threads
    that overlap the first to leave would let the other's warnings through.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._filters = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._filters = warnings.catch_warnings()
                self._filters.__enter__()
                warnings.simplefilter("ignore")
            self._inside += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._filters.__exit__(kind, error, traceback)


NO_WARNINGS = _NoWarnings()  # a warning about a shard would tell something about it
