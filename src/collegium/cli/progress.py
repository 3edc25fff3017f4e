"""What the command line shows while a study runs, on the standard error."""

from __future__ import annotations

from typing import Any

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from collegium.cli.console import err
from collegium.pate.observer import Observer


class NoteObserver(Observer):
    """Shows what the user should know, on the standard error, and no progress."""

    def note(self, line: str) -> None:
        """Learn what the user should know about the student."""
        err.print(f"Note: {line}", soft_wrap=True)


class ProgressObserver(NoteObserver):
    """Shows a progress bar for each stage, on the standard error."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description:<12}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=err,
        )
        self._task: Any = None

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
        if self._task is not None:
            self._progress.update(self._task, completed=done)

    def skipped(self, name: str) -> None:
        """Learn that a stage was finished in an earlier run."""
        self._finish()
        err.print(f"{name:<12} done in an earlier run")

    def _finish(self) -> None:
        if self._task is not None:
            for task in self._progress.tasks:
                if task.id == self._task and task.total is None:
                    self._progress.update(self._task, total=1, completed=1)
            self._progress.stop_task(self._task)
            self._task = None
