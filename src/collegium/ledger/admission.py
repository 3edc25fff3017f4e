"""Who may be in a release: people whom the ledger knows as they are given, and newcomers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collegium.checks import people as counted_people
from collegium.errors import LedgerError
from collegium.ledger import entries
from collegium.ledger.people import People
from collegium.ledger.refusals import refuse_who_left, require_same_budgets
from collegium.ledger.transaction import Transaction


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


def admit(
    transaction: Transaction,
    people: People,
    allow_new_people: bool,
    place: str,
    face: Face,
    same_budgets: bool = True,
) -> NDArray[np.intp]:
    """Look up everybody's cohort, and let those join who are new.

    ``face``: how the user says who may join.
    Raises LedgerError: where people are not as the ledger knows them, or most of them are new to it.
    """
    known, budgets = transaction.books, people.budgets
    cohort = people.look_up(transaction)
    if same_budgets:
        refuse_who_left(known, cohort)
        require_same_budgets(known, budgets, cohort, place)
    new = cohort == 0
    if known.n_owners and new.sum() > len(cohort) / 2 and not allow_new_people:
        raise LedgerError(
            f"the ledger at {place} knows {counted_people(known.n_owners)}, but only {(~new).sum():,} "
            f"of these {len(cohort):,}: give the ledger of this data set ({face.ledger}), or, if most of "
            f"these people are new, let them join ({face.new_people}); nothing was released"
        )
    for code, level in enumerate(budgets.group_names):
        chosen = new & (budgets.owner_group == code)
        if chosen.any():
            ids, tags = people.ids_of(chosen), people.tags(chosen)
            budget = budgets.groups[level]
            cohort[chosen] = transaction.changes.join(level, budget, ids, tags)
    if new.any():
        transaction.write(entries.JOIN, {"joined": int(new.sum())})
    return cohort
