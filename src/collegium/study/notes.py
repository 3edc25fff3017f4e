"""What the user should know about a study, kept while it runs and between its runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from collegium.json_files import read_json
from collegium.runs.observer import Observer
from collegium.study.folder import StudyFolder


class KeptNotes(Observer):
    """An observer that passes everything on, and keeps each note once, in the vault, until it is published.

    ``folder``: of a study; nothing is written before the first note.
    ``observer``: is told everything.
    """

    def __init__(self, folder: StudyFolder, observer: Observer) -> None:
        self._folder = folder
        self._observer = observer
        self._apart: list[str] | None = None
        self._waiting: list[str] = []

    def stage(self, name: str, total: int | None = None) -> None:
        """Pass it on."""
        self._observer.stage(name, total)

    def advanced(self, done: int, total: int | None = None) -> None:
        """Pass it on."""
        self._observer.advanced(done, total)

    def skipped(self, name: str) -> None:
        """Pass it on."""
        self._observer.skipped(name)

    def waits(self, line: str) -> None:
        """Pass it on."""
        self._observer.waits(line)

    @property
    def lines(self) -> tuple[str, ...]:
        """All notes, in the order in which they came."""
        self._keep()
        path = self._folder.vault / "notes.json"
        return tuple(read_json(path, [str])) if path.exists() else ()

    def note(self, line: str) -> None:
        """Keep a note, and pass it on."""
        self._observer.note(line)
        if self._apart is not None:
            self._apart.append(line)
            return
        self._waiting.append(line)
        self._keep()

    def _keep(self) -> None:
        """Write down what was noted, as soon as the folder is claimed."""
        if self._folder.journal is None or not self._waiting:
            return
        path = self._folder.vault / "notes.json"
        known = read_json(path, [str]) if path.exists() else []
        new = [line for line in dict.fromkeys(self._waiting) if line not in known]
        self._waiting = []
        if new:
            self._folder.write_json(path, [*known, *new])

    @contextlib.contextmanager
    def apart(self) -> Iterator[list[str]]:
        """Collect what is noted in the block, which somebody else keeps."""
        notes: list[str] = []
        self._apart = notes
        try:
            yield notes
        finally:
            self._apart = None
