"""Where a ledger is: as the user says, as the environment says, or beside private data."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from collegium.accounting.neighbours import Neighbours
from collegium.budgets import Budgets
from collegium.durable import write_durably
from collegium.errors import CollegiumError, LedgerError

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

    @property
    def resolved(self) -> str:
        """Where its file is, whatever the working folder."""
        return str(Path(self.url).resolve())

    def opened(self) -> Ledger | None:
        """Open it; None if it is not there yet, and may be made."""
        if not self.is_asked_for and not Path(self.url).exists():
            if self.resolved in (one.url for one in known_places()):
                raise LedgerError(
                    f"the ledger at {self.url} is gone: restore its newest backup, or, to give up all "
                    f"that it knew, take its line out of {_list_file()}; nothing was asked"
                )
            return None
        from collegium.ledger.ledger import Ledger  # a database comes with it

        if not self.is_asked_for and Ledger.is_to_be_made(self.url, self.key):
            return None
        return Ledger(self.url, self.key)

    def made(self, neighbours: Neighbours) -> Ledger:
        """Open it, or make it."""
        known = self.opened()
        if known is None:
            known = self._created(neighbours)
        _note(self)
        return known

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


def _list_file() -> Path:
    """File with the ledgers that this user's programs have used: places of files, and nothing else.

    Servers are not in it: a URL may hold a password.
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification asks to ignore a relative path.
    home = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    return home / "collegium" / "ledgers.json"


def known_places() -> list[Place]:
    """List the ledgers that this user's programs have used on this machine, as far as they are told."""
    try:
        rows = json.loads(_list_file().read_bytes())
        return [Place(str(url), Path(key) if key else None, is_asked_for=True) for url, key in rows]
    except (OSError, ValueError, TypeError):
        return []


def _note(place: Place) -> None:
    """Add a ledger to the list, so that the same people are found there; the list is a help, no promise."""
    if "://" in place.url:
        return
    rows = {one.url: one.key for one in known_places()}
    if place.resolved in rows:
        return
    rows[place.resolved] = place.key and place.key.resolve()
    file = _list_file()
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        written = json.dumps([[url, key and str(key)] for url, key in rows.items()])
        write_durably(file, written.encode(), private=True)


def elsewhere(people: Budgets, place: Place) -> tuple[str, int] | None:
    """Find another ledger that knows most of some people: its place, and how many.

    Ledgers that cannot be opened are passed over.
    """
    for other in known_places():
        if other.url == place.resolved:
            continue
        with contextlib.suppress(CollegiumError, OSError):
            ledger = other.opened()
            count = 0 if ledger is None else ledger.count_known(people)
            if 2 * count > people.n_owners:
                return other.url, count
    return None
