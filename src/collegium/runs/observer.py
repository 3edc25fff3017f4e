"""Who is told how a run gets on."""

from __future__ import annotations


class Observer:
    """Is told how a run gets on; the command line shows it. Does nothing by itself."""

    def stage(self, name: str, total: int | None = None) -> None:
        """Learn that a stage begins, and of how many steps (None: unknown)."""

    def advanced(self, done: int, total: int | None = None) -> None:
        """Learn that so many steps of the stage are done."""

    def skipped(self, name: str) -> None:
        """Learn that a stage was finished in an earlier run."""

    def waits(self, line: str) -> None:
        """Learn for whom it waits; empty: for nobody any more."""

    def note(self, line: str) -> None:
        """Learn what the user should know about the student; nothing in it is private."""
