"""What the user should know about a study, kept while it runs and between its runs."""

from __future__ import annotations

import json
from collections.abc import Callable

from collegium.study.folder import StudyFolder


class KeptNotes:
    """Lines for the report, each once, in the vault until it is written.

    Parameters
    ----------
    folder : StudyFolder
        Of a study; nothing is written before the first line.
    tell : callable
        Told each new line.
    """

    def __init__(self, folder: StudyFolder, tell: Callable[[str], None]) -> None:
        self._folder = folder
        self._tell = tell

    @property
    def lines(self) -> tuple[str, ...]:
        """All lines, in the order in which they came."""
        path = self._folder.vault / "notes.json"
        return tuple(json.loads(path.read_text("utf-8"))) if path.exists() else ()

    def add(self, line: str) -> None:
        """Keep a line, and tell it."""
        self._tell(line)
        known = self.lines
        if line not in known:
            self._folder.write_json(self._folder.vault / "notes.json", [*known, line])
