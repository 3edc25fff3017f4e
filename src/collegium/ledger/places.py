"""Where a ledger is: as the user says, as the environment says, or beside private data."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from collegium.accounting.neighbours import Neighbours
from collegium.errors import LedgerError
from collegium.ledger.known_ledgers import known_ledgers, list_file, resolved

if TYPE_CHECKING:
    from collegium.ledger.ledger import Ledger

NONE = "none"
"""Said in place of a ledger by who wants nobody to remember."""
VARIABLE = "COLLEGIUM_LEDGER"
BESIDE_THE_DATA = "people.ledger"


@dataclass(frozen=True)
class Place:
    """Where a ledger is.

    ``url``: a file, or postgresql://….
    ``key``: file of its key; None: beside it.
    ``is_asked_for``: whether the user named it, so that a study that cannot be entered is refused.
    """

    url: str
    key: Path | None = None
    is_asked_for: bool = False

    def __str__(self) -> str:
        return self.url

    def opened(self) -> Ledger | None:
        """Open it; None if it is not there yet, and may be made."""
        if not self.is_asked_for and not Path(self.url).exists():
            if resolved(self.url) in known_ledgers():
                raise LedgerError(
                    f"the ledger at {self.url} is gone: restore its newest backup, or, to give up all "
                    f"that it knew, take its line out of {list_file()}; nothing was asked"
                )
            return None
        from collegium.ledger.ledger import Ledger  # a database comes with it

        if not self.is_asked_for and Ledger.is_to_be_made(self.url, self.key):
            return None
        return Ledger(self.url, self.key)

    def made(self, neighbours: Neighbours) -> Ledger:
        """Open it, or make it."""
        known = self.opened()
        return self._created(neighbours) if known is None else known

    def _created(self, neighbours: Neighbours) -> Ledger:
        from collegium.ledger.ledger import Ledger

        try:
            return Ledger.create(self.url, self.key, neighbours=neighbours)
        except LedgerError:  # somebody else may have made it meanwhile
            known = self.opened()
            if known is None:
                raise
            return known


def find_place(
    url: str | None, key: Path | None, private: Path | None, folder: Path = Path()
) -> Place | None:
    """Find a ledger: where the user says, or the environment, or beside private data; None: not wanted.

    ``folder``: what a relative file is relative to.
    """
    given = url or os.environ.get(VARIABLE) or ""
    if _is_none(given):
        return None
    if given := given.strip():
        file = given if "://" in given else str(folder / Path(given).expanduser())
        return Place(file, key, is_asked_for=True)
    return None if private is None else Place(str(private.resolve().parent / BESIDE_THE_DATA), key)


def is_unwanted() -> bool:
    """Whether the environment says that nobody is to remember."""
    return _is_none(os.environ.get(VARIABLE, ""))


def _is_none(given: str) -> bool:
    return given.strip().casefold() == NONE
