"""Where a ledger is: as the user says, as the environment says, or beside private data.

Beside private data each table has its own, named after it (``visits.ledger`` of ``visits.csv``), unless
another there knows its people, who have one account each. ``people.ledger`` is meant for all tables there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from collegium.accounting.neighbours import Neighbours
from collegium.budgets import Budgets
from collegium.errors import CollegiumError, LedgerError
from collegium.ledger.known_ledgers import known_ledgers, list_file, resolved
from collegium.passwords import refuse_passwords

if TYPE_CHECKING:
    from collegium.ledger.ledger import Ledger

NONE = "none"
"""Said in place of a ledger by who wants nobody to remember."""
VARIABLE = "COLLEGIUM_LEDGER"
ENDING, FOR_ALL = ".ledger", "people.ledger"


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

    def of_anybody(self) -> tuple[Place, Ledger | None]:
        """Find the ledger before people are known: this one, or else ``people.ledger`` beside the data."""
        ledger = self.opened()
        if ledger is not None or self.is_asked_for:
            return self, ledger
        for_all = replace(self, url=str(Path(self.url).with_name(FOR_ALL)))
        return (for_all, for_all.opened()) if Path(for_all.url).exists() else (self, None)

    def of(self, people: Budgets) -> tuple[Place, Ledger | None]:
        """Find the ledger of some people, and open it; None if it is not there yet.

        Where the table has none of its own, one beside it that is called ``people.ledger`` is theirs, or
        another that knows any of them. Where that knows few, the user is asked whether they are the same
        (:func:`~collegium.ledger.admission.refuse_strangers`).
        """
        place, ledger = self.of_anybody()
        if ledger is not None or self.is_asked_for:
            return place, ledger
        for place, other in self._beside():
            if other.knows(people):
                return place, other
        return self, None

    def with_id(self, id: str) -> Ledger | None:
        """Find the ledger that has an id: here, or beside the data."""
        ledger = self.opened()
        if ledger is not None or self.is_asked_for:
            return ledger if ledger is not None and ledger.id == id else None
        return next((other for _, other in self._beside() if other.id == id), None)

    def _beside(self) -> Iterator[tuple[Place, Ledger]]:
        """Open the other ledgers of the folder.

        Raises LedgerError if one cannot be opened: it may have accounts of these people.
        """
        own, keys = Path(self.url), known_ledgers()
        for file in sorted(own.parent.glob(f"*{ENDING}")):
            if file == own:
                continue
            place = Place(str(file), keys.get(resolved(str(file))) or self.key)
            try:
                ledger = place.opened()
            except (CollegiumError, OSError) as error:
                raise LedgerError(
                    f"{file}, beside the private records, may know these people, and cannot be opened "
                    f"({' '.join(str(error).split())[:200]}): mend it, or name the ledger of these people"
                ) from None
            if ledger is not None:
                yield place, ledger

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
    Raises InputError if it says a password.
    """
    given = url or os.environ.get(VARIABLE) or ""
    refuse_passwords([given])
    if is_none(given):
        return None
    if given := given.strip():
        file = given if "://" in given else str(folder / Path(given).expanduser())
        return Place(file, key, is_asked_for=True)
    if private is None:
        return None
    own = private.resolve().with_suffix(ENDING)
    for_all = own.with_name(FOR_ALL)
    is_gone = str(for_all) in known_ledgers() and not (for_all.exists() or own.exists())
    return Place(str(for_all if is_gone else own), key)  # where it is gone, that is told


def is_unwanted() -> bool:
    """Whether the environment says that nobody is to remember."""
    return is_none(os.environ.get(VARIABLE, ""))


def is_none(given: str) -> bool:
    """Whether somebody said that nobody is to remember."""
    return given.strip().casefold() == NONE
