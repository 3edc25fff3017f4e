"""Who may be in a release: people whom the ledger knows as they are given, and newcomers."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from collegium.budgets import Budgets
from collegium.checks import people as counted_people
from collegium.errors import CollegiumError, LedgerError
from collegium.ledger import entries
from collegium.ledger.known_ledgers import known_ledgers, resolved
from collegium.ledger.people import People
from collegium.ledger.refusals import refuse_who_left, require_same_budgets
from collegium.ledger.storage import Storage
from collegium.ledger.transaction import Transaction

_MOST_NEW = 0.5
"""Share of people whom a ledger does not know, above which the user is asked: are they others?"""


@dataclass(frozen=True)
class Face:
    """What the user writes to name a ledger, and to let new people join it.

    ``ledger``: an argument, a key or an option. ``new_people``: the same, with its value.
    """

    ledger: str
    new_people: str


IN_PYTHON = Face("ledger=Ledger(place)", "Ledger(place, allow_new_people=True)")
IN_A_STUDY = Face("ledger.url", "ledger.allow_new_people = true")
ON_THE_COMMAND_LINE = Face("--ledger", "--allow-new-people")


def refuse_strangers(
    people: Budgets, place: str, face: Face, cohort: NDArray[np.intp] | None = None, known: int = 0
) -> None:
    """Refuse people whom a ledger does not know, where they may be another ledger's, or most of them others.

    Who has an account elsewhere would have a second whole budget here: nobody may whose other ledger lies in
    the same folder, and of those in other places not most of the newcomers.

    Asked of everybody who is offered, in every way to use a ledger, before anything is planned or rehearsed;
    the user then says which ledger is theirs, or that they are new.

    ``place``: of the ledger. ``face``: how the user says so.
    ``cohort`` (n_owners,): of each of them in the ledger, 0 for who is new; None: it is yet to be made.
    ``known``: how many people it knows.
    Raises LedgerError.
    """
    n = people.n_owners
    is_new = np.ones(n, dtype=np.bool_) if cohort is None else cohort == 0
    new = int(is_new.sum())
    if found := _elsewhere(people, place, is_new):
        url, count = found
        these = f"these {n:,} people" if new == n else f"the {new:,} people who would be new here"
        raise LedgerError(
            f"another ledger, {url}, knows {count:,} of {these}: name it ({face.ledger}), or, if "
            f"these are other people with the same names, let them join {place} ({face.new_people}); nothing "
            "was released"
        )
    if known and new > _MOST_NEW * n:
        raise LedgerError(
            f"the ledger at {place} knows {counted_people(known)}, but only {n - new:,} of these {n:,}: if "
            f"they are the same, spell their names alike; if others, give them a ledger of their own "
            f"({face.ledger}) or let them join ({face.new_people}); nothing was released"
        )


def _elsewhere(people: Budgets, place: str, is_new: NDArray[np.bool_]) -> tuple[str, int] | None:
    """Find another ledger that knows newcomers, most of them or in the same folder: where, and how many.

    Ledgers that cannot be opened are passed over.
    """
    here = resolved(place)
    for other, key in known_ledgers().items() if is_new.any() else ():
        if other == here:
            continue
        with contextlib.suppress(CollegiumError, OSError):
            storage = Storage.opened(other, key)
            with storage.reading() as seen:
                count = int((People(storage.key, people).look_up(seen)[is_new] > 0).sum())
            is_beside = "://" not in here and Path(other).parent == Path(here).parent
            if count > (0 if is_beside else _MOST_NEW * is_new.sum()):
                return other, count
    return None


def admit(
    transaction: Transaction, people: People, place: str, same_budgets: bool = True
) -> NDArray[np.intp]:
    """Look up everybody's cohort, and let those join who are new.

    Raises LedgerError: where people are not as the ledger knows them.
    """
    known, budgets = transaction.books, people.budgets
    cohort = people.look_up(transaction)
    if same_budgets:
        refuse_who_left(known, cohort)
        require_same_budgets(known, budgets, cohort, place)
    new = cohort == 0
    for code, level in enumerate(budgets.group_names):
        chosen = new & (budgets.owner_group == code)
        if chosen.any():
            ids, tags = people.ids_of(chosen), people.tags(chosen)
            budget = budgets.groups[level]
            cohort[chosen] = transaction.changes.join(level, budget, ids, tags)
    if new.any():
        transaction.write(entries.JOIN, {"joined": int(new.sum())})
    return cohort
