"""Ctrl-C: it ends a command once, in order; what comes while it ends disturbs nothing."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from collegium.errors import ONE_PRESS_S

INTERRUPTED = 130
_GOES_ON = "nothing that was paid for is lost; the same command goes on from here"
_what_is_true: Callable[[bool], str] | None = None


def say_if_interrupted(what_is_true: Callable[[bool], str] | None) -> None:
    """Let a command in which not everything goes on say what is true; None: everything does.

    ``what_is_true``: given whether the command ended in order, and was not killed by another Ctrl-C.
    """
    global _what_is_true
    _what_is_true = what_is_true


def said(in_order: bool = True) -> str:
    """Say what an interruption has left."""
    return f"interrupted: {_GOES_ON if _what_is_true is None else _what_is_true(in_order)}"


class Interrupts:
    """Turns the first Ctrl-C into a KeyboardInterrupt, and no other while that is dealt with.

    Whoever presses again, seconds later, does not want to wait: the process ends at once, as if it was
    killed, which a study survives.

    ``ends_process``: whether nothing comes afterwards, so that nothing is left to interrupt.
    """

    def __init__(self, ends_process: bool = False) -> None:
        self._first: float | None = None
        self._ends_process = ends_process

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before: Any = signal.signal(signal.SIGINT, self._interrupt)
            self._told, sys.unraisablehook = sys.unraisablehook, self._unraisable
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if threading.current_thread() is threading.main_thread():
            sys.unraisablehook = self._told
            if self._first is None:
                ignored = signal.SIG_IGN if self._ends_process else self._before
                signal.signal(signal.SIGINT, ignored)

    def ended(self) -> None:
        """Count as pressed: from now on this process only clears up, and Python gives up its handlers."""
        if self._first is None:
            self._first = time.monotonic()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first = now
            raise KeyboardInterrupt
        if now - self._first > ONE_PRESS_S:
            try:
                os.write(2, f"\n{said(in_order=False)}\n".encode())
            finally:
                os._exit(INTERRUPTED)

    def _unraisable(self, about: Any) -> None:
        """Interrupt again where Python swallowed it: it came while an object was thrown away."""
        if isinstance(about.exc_value, KeyboardInterrupt):
            self._first = None
            signal.raise_signal(signal.SIGINT)
        elif self._first is None:
            self._told(about)
