"""The one picture of a budget: of a hundred decisions, how many are right by guessing, and how many more.

Consent pages, receipts and reports draw it in marks, terminals in letters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

GUESS, GAIN, REST = "guess", "gain", "rest"
_LETTERS = {GUESS: "o", GAIN: "+", REST: "."}
_ROW = 20
_STEP = 16  # from mark to mark


@dataclass(frozen=True)
class Chances:
    """A hundred decisions; ``right``: so many of them are right at most, 50 by guessing alone."""

    right: int

    @property
    def kinds(self) -> list[str]:
        """What each of them is: 50 that guessing gets right, what can be gained, and the rest."""
        gain = self.right - 50
        return [GUESS] * 50 + [GAIN] * gain + [REST] * (50 - gain)

    def dots(self) -> list[dict[str, Any]]:
        """Place a mark for each decision on a page."""
        return [
            {
                "x": _STEP // 2 + _STEP * (place % _ROW),
                "y": _STEP // 2 + _STEP * (place // _ROW),
                "kind": kind,
            }
            for place, kind in enumerate(self.kinds)
        ]

    def letters(self) -> list[str]:
        """Draw the same in letters, in five rows."""
        marks = [_LETTERS[kind] for kind in self.kinds]
        rows = (marks[first : first + _ROW] for first in range(0, len(marks), _ROW))
        return [f"  {' '.join(row)}" for row in rows]


def key_in_letters(meanings: Mapping[str, str]) -> list[str]:
    """Say what the letters of a picture mean."""
    return [f"  {_LETTERS[kind]}  {meaning}" for kind, meaning in meanings.items()]
