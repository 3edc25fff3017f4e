"""What the command line shows while something runs, on the standard error."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from collegium.cli.console import err
from collegium.cli.outputs import refuse_no_folder, refuse_taken, taken
from collegium.errors import InputError
from collegium.runs.observer import Observer

_SILENT_S = 5.0
_EVERY_S = 30.0
_RECENT_S = 600.0
_NOWHERE_YET = {"stage": "", "done": 0, "total": None, "seconds_left": None, "waits": ""}


def watching(shown: bool = True, file: Path | None = None) -> AbstractContextManager[Observer]:
    """Choose who is told how a run gets on: bars, lines where a terminal cannot draw, or notes alone.

    ``file``: keeps where it is instead, for programs.
    """
    if file is not None:
        return FileObserver(file)
    if err.quiet or not shown:
        return nullcontext(NoteObserver())
    return ProgressObserver() if err.is_interactive else LineObserver()


class NoteObserver(Observer):
    """Shows what the user should know, on the standard error, and no progress."""

    def note(self, line: str) -> None:
        """Learn what the user should know about the student."""
        err.print(f"Note: {line}", soft_wrap=True)


class ProgressObserver(NoteObserver):
    """Shows a progress bar for each stage, with the time left, on the standard error."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description:<12}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            _TimeLeft(),
            console=err,
            speed_estimate_period=_RECENT_S,  # teachers come in batches: a batch may take minutes
        )
        self._task: Any = None
        self._waits = self._progress.add_task("", total=None, visible=False)

    def __enter__(self) -> ProgressObserver:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._finish()
        self._progress.stop()

    def stage(self, name: str, total: int | None = None) -> None:
        """Learn that a stage begins."""
        self._finish()
        self._task = self._progress.add_task(name, total=total)

    def advanced(self, done: int, total: int | None = None) -> None:
        """Learn that so many steps of the stage are done."""
        self.waits("")
        if self._task is not None:
            # A total that was given when the stage began stands.
            known = None if self._now().total is not None else total
            self._progress.update(self._task, completed=done, total=known)

    def waits(self, line: str) -> None:
        """Learn for whom it waits: a line that the next one replaces."""
        self._progress.update(self._waits, description=line, visible=bool(line))

    def skipped(self, name: str) -> None:
        """Learn that a stage was finished in an earlier run."""
        self._finish()
        err.print(f"{name:<12} done in an earlier run")

    def _now(self) -> Task:
        return next(task for task in self._progress.tasks if task.id == self._task)

    def _finish(self) -> None:
        if self._task is not None:
            if self._now().total is None:
                self._progress.update(self._task, total=1, completed=1)
            self._progress.stop_task(self._task)
            self._task = None


class _TimeLeft(ProgressColumn):
    """The time left of a stage that goes on and whose speed is known; nothing else."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        left = task.time_remaining
        if left is None or task.finished or task.stop_time is not None:
            return Text("")
        return Text(f"about {_duration(left)} left", style="progress.remaining")


class LineObserver(NoteObserver):
    """Writes a line for each stage, and one every half minute, where no terminal shows a bar.

    What takes less than five seconds says nothing.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._begun = clock, clock()
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._name, self._done, self._waits = "", 0, ""
        self._total: int | None = None
        self._since: tuple[float, int] | None = None
        self._told: float | None = None
        self._watch = threading.Thread(target=self._keep_telling, daemon=True)

    def __enter__(self) -> LineObserver:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watch.join()

    def stage(self, name: str, total: int | None = None) -> None:
        """Learn that a stage begins."""
        with self._lock:
            self._name, self._total, self._done = name, total, 0
            self._since = self._told = None
        self.tell_if_due()

    def advanced(self, done: int, total: int | None = None) -> None:
        """Learn that so many steps of the stage are done."""
        with self._lock:
            self._done, self._total, self._waits = done, self._total or total, ""
            # What an earlier run did took no time: it counts from the first word on.
            self._since = self._since or (self._clock(), done)
        self.tell_if_due()

    def waits(self, line: str) -> None:
        """Learn for whom it waits: said with where it is."""
        with self._lock:
            self._waits = line
        self.tell_if_due()

    def skipped(self, name: str) -> None:
        """Learn that a stage was finished in an earlier run."""
        with self._lock:
            self._name = ""
        if self._clock() - self._begun >= _SILENT_S:
            self._write(f"{name}: done in an earlier run")

    def seconds_left(self) -> float | None:
        """How long the stage still takes, as far as its speed is known."""
        if not self._total or self._since is None or self._done <= self._since[1]:
            return None
        since, before = self._since
        return (self._clock() - since) * (self._total - self._done) / (self._done - before)

    def tell_if_due(self) -> None:
        """Write where it is, unless that has been said not long ago, or all has begun just now."""
        with self._lock:
            now = self._clock()
            last = self._begun + _SILENT_S - _EVERY_S if self._told is None else self._told
            is_due = now - self._begun >= _SILENT_S and now - last >= _EVERY_S
            if not self._name or not is_due:
                return
            self._told = now
            said = self._where()
        self._write(said)

    def _where(self) -> str:
        return f"{self._progress()}{'; ' * bool(self._waits)}{self._waits}"

    def _progress(self) -> str:
        if not self._total:
            return self._name
        said, left = f"{self._name}: {self._done:,} of {self._total:,}", self.seconds_left()
        return said if left is None else f"{said}, about {_duration(left)} left"

    def _write(self, said: str) -> None:
        err.print(f"[{_duration(self._clock() - self._begun)}] {said}", soft_wrap=True)

    def _keep_telling(self) -> None:
        while not self._ended.wait(0.5):
            self.tell_if_due()


class FileObserver(LineObserver):
    """Keeps in a file where it is, as JSON, for programs that show it; notes go where they go otherwise.

    It is written anew at most twice a second, and is always whole.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path, self._shown = path, dict(_NOWHERE_YET)

    def tell_if_due(self) -> None:
        """Nothing is written line by line."""

    def skipped(self, name: str) -> None:
        """What was done in an earlier run takes no time."""

    def __exit__(self, *_: object) -> None:
        super().__exit__(*_)
        self._keep()

    def _keep_telling(self) -> None:
        while not self._ended.wait(0.5):
            self._keep()

    def _keep(self) -> None:
        with self._lock:
            left = self.seconds_left()
            now = {
                "stage": self._name,
                "done": self._done,
                "total": self._total,
                "seconds_left": None if left is None else round(left),
                "waits": self._waits,
            }
        if now != self._shown:
            self._shown = now
            with contextlib.suppress(OSError):  # a run does not end because nobody can watch it
                _keep_in(self._path, now)


def begin_progress(path: Path) -> None:
    """Keep in a file that a run begins. Raises InputError if it cannot be kept there, or is another file."""
    refuse_no_folder(path)
    if not _is_progress(path):
        refuse_taken(path)
        if path.exists() and not path.is_file():  # a device or pipe would be replaced
            raise taken(path)
    try:
        _keep_in(path, _NOWHERE_YET)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written ({error.strerror}): give another --progress"
        ) from None


def _is_progress(path: Path) -> bool:
    """Tell whether an earlier run kept in a file where it was."""
    try:
        kept = json.loads(path.read_bytes()) if path.is_file() else None
    except (OSError, ValueError):
        return False
    return isinstance(kept, dict) and kept.keys() == _NOWHERE_YET.keys()


def _keep_in(path: Path, now: Mapping[str, Any]) -> None:
    new = path.with_name(f".{path.name}.new")
    new.write_text(f"{json.dumps(now)}\n", encoding="utf-8")
    new.replace(path)


def _duration(seconds: float) -> str:
    """Say how long something takes: hours, minutes and seconds."""
    return str(timedelta(seconds=round(seconds)))
