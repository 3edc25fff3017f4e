"""What every method's memory on disk does alike: charges before noise, draws kept after it, one Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator

from collegium.errors import ONE_PRESS_S
from collegium.study.folder import StudyFolder
from collegium.study.journal import FileJournal

_FIRST_ROOM = 2**20


class StudyInterrupted(KeyboardInterrupt):
    """Ctrl-C: everything that was paid for is on disk, and the same command goes on."""


class ChargedSteps:
    """Draws that are numbered, charged one after the other before noise is drawn, and kept in files.

    Room for what is drawn is set aside before it is charged, twice as much as was written last: where the
    disk fills up meanwhile, it is written into that room.

    ``folder``: the study's, claimed.
    """

    def __init__(self, folder: StudyFolder) -> None:
        self._folder = folder
        self._room = _FIRST_ROOM

    @property
    def _journal(self) -> FileJournal:
        assert self._folder.journal is not None, "a folder is claimed before anything is drawn"
        return self._folder.journal

    @property
    def charged(self) -> int:
        """The number up to which draws are charged."""
        return self._journal.steps

    def charge(self, number: int) -> None:
        """Make durable that noise may be drawn up to this number from now on."""
        self._journal.charge_steps(number, self._room)

    def keep(self, name: str, content: bytes) -> None:
        """Make durable what was drawn, before it is shown; ``name``: of a file in the folder."""
        path = self._folder.path / name
        self._journal.in_the_room(lambda: self._folder.write_bytes(path, content))
        self._room = max(self._room, 2 * len(content))


@contextlib.contextmanager
def drawing(folder: StudyFolder, *, at_once: bool = False) -> Iterator[Callable[[], bool]]:
    """Lend what tells, between two draws, whether to stop; give back, in the end, the room set aside.

    ``at_once``: whether Ctrl-C ends a draw: it waits for others, and is taken up again.
    """
    with contextlib.nullcontext(_never) if at_once else _interruptible() as should_stop:
        try:
            yield should_stop
        finally:
            if folder.journal is not None:
                folder.journal.give_room_back()


def _never() -> bool:
    return False


@contextlib.contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a question that is asked between two queries; one after that interrupts.

    Several within a second are one. What had been reserved by then is charged and counts as lost, as after
    a crash.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    asked_to_stop = threading.Event()
    first = 0.0

    def interrupt(*_: object) -> None:
        nonlocal first
        if not asked_to_stop.is_set():
            first = time.monotonic()
            asked_to_stop.set()
        elif time.monotonic() - first > ONE_PRESS_S:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield asked_to_stop.is_set
    finally:
        signal.signal(signal.SIGINT, before)
