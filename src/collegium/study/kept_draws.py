"""Draws that are numbered: each is charged durably before its noise is drawn, and kept right after.

What a crash takes between the two is paid for, and lost: whether noise was drawn, and seen, nobody knows.
Where several parties add to a draw, what each has posted for it stands. So it is taken up again, with the
same charge and the same noise, and the same numbers come of it as at every other party: one that took it as
lost would go on with another result than they.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from collegium.json_files import read_json
from collegium.parties.waiting import SumNotOpenedError
from collegium.runs.observer import Observer
from collegium.study.checkpoint import ChargedSteps, StudyInterrupted, drawing
from collegium.study.folder import StudyFolder
from collegium.study.manifest_check import ANSWERS, ASKING_ENDED
from collegium.study.methods.protocol import Draws
from collegium.study.parties import ALONE, Alone

Drawn = Mapping[int, dict[str, Any]]
"""What was drawn, for JSON, by number from 1 on; what a crash took is missing: it is paid for, and lost."""

_SHAPE = {"answers": [{"number": int}]}
_LOST = "lost"
"""Of a draw that parties did not open; it is kept, so that nobody tries again."""


class NumberedDraws(Draws[Drawn]):
    """A fixed number of draws. What a crash takes between a charge and its result is not drawn again.

    ``folder``: the study's, claimed.
    ``planned``: how many draws. ``what``: what they are, for the observer.
    ``parties``: that draw together.

    Attributes: ``drawn``: what was drawn so far.
    """

    def __init__(
        self,
        folder: StudyFolder,
        planned: int,
        observer: Observer,
        what: str,
        parties: Alone = ALONE,
    ) -> None:
        self._folder, self._planned = folder, planned
        self._observer, self._what = observer, what
        self._takes_up = parties.takes_up
        path = folder.path / ANSWERS
        self._kept: list[dict[str, Any]] = (
            read_json(path, _SHAPE)["answers"] if path.exists() else []
        )
        self._steps = ChargedSteps(folder)
        self.drawn: dict[int, dict[str, Any]] = {}

    @abstractmethod
    def draw_one(self, number: int, charge: Callable[[], None]) -> dict[str, Any]:
        """Call ``charge``, which makes it durable that noise may be drawn; then draw, and return JSON."""

    @abstractmethod
    def charge_again(self, number: int) -> None:
        """Charge, in the account of this process, what an earlier one drew; nothing is read or drawn."""

    @property
    def is_all_charged(self) -> bool:
        """Whether every draw is, and none is left to be taken up."""
        return self._steps.charged == self._planned and not self._is_open(self._planned)

    def _is_open(self, number: int) -> bool:
        return self._takes_up and all(one["number"] != number for one in self._kept)

    def end(self) -> None:
        """Keep that; once."""
        if not (self._folder.path / ASKING_ENDED).exists():
            answers = sum(_LOST not in one for one in self._kept)
            done = {"charged": self._steps.charged, "answers": answers}
            self._folder.write_json(self._folder.path / ASKING_ENDED, done)

    def draw(self) -> Drawn:
        """Draw what was not drawn yet, one after the other."""
        self.drawn = drawn = {}
        if self.is_all_charged:
            self._observer.skipped(self._what)
        else:
            self._observer.stage(self._what, self._planned)
        before = {one["number"]: one for one in self._kept}
        with drawing(self._folder, at_once=self._takes_up) as should_stop:
            for number in range(1, self._planned + 1):
                if number <= self._steps.charged and not self._is_open(number):
                    self.charge_again(number)
                    found = before.get(number, {_LOST: True})
                else:
                    if should_stop():
                        raise StudyInterrupted
                    found = self._draw(number)
                    self._observer.advanced(number)
                if _LOST not in found:
                    drawn[number] = found
        self.end()
        return drawn

    def _draw(self, number: int) -> dict[str, Any]:
        try:
            found = self.draw_one(number, lambda: self.charge(number))
        except SumNotOpenedError as error:
            self._observer.note(str(error))
            found = {_LOST: True}
        if self._steps.charged != number:
            raise RuntimeError(f"draw {number} was not charged before its noise was drawn")
        return self.keep(number, found)

    def charge(self, number: int) -> None:
        """Charge the draw of this number, durably, with room on the disk for what comes of it; once."""
        if self._steps.charged < number:
            self._steps.charge(number)

    def keep(self, number: int, found: dict[str, Any]) -> dict[str, Any]:
        """Keep what was drawn, durably; returned as it will be read again."""
        kept: dict[str, Any] = json.loads(json.dumps({**found, "number": number}))
        self._kept.append(kept)
        content = json.dumps({"answers": self._kept}, ensure_ascii=False)
        self._steps.keep(ANSWERS, content.encode())
        return kept
