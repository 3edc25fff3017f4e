"""A session of questions from the command line, on a ledger or on none."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from collegium.accounting.neighbours import Neighbours
from collegium.accounting.promises import Promise
from collegium.budgets import Budgets, Policy
from collegium.data.engines.places import Place as Table
from collegium.data.engines.sources import Source
from collegium.data.schema import Schema
from collegium.data.schema_arrays import take_frame_rows
from collegium.errors import InputError
from collegium.ledger.admission import ON_THE_COMMAND_LINE, refuse_strangers
from collegium.ledger.places import Place, find_place
from collegium.runs.observer import Observer
from collegium.statistics.ledgered import StatisticsSpending
from collegium.statistics.query import Query
from collegium.statistics.session import Statistics
from collegium.study.on_ledger import place_beside
from collegium.study.query_table import Rows
from collegium.weighted_sums.whose import held, in_engine
from collegium.zero_and_public_budgets import has_budget, subset

if TYPE_CHECKING:
    from collegium.ledger.ledger import Ledger

_LONGEST = 50  # letters of a question in the name of a release: receipts have lines of 78


def place_of(
    ledger: str | None,
    key: Path | None,
    table: Source,
    owner: str | None,
    noise_seed: int | None,
    observer: Observer,
) -> Place | None:
    """Find the ledger that remembers these people; None if none does, which the user is told.

    Raises InputError if there is one already, and it cannot remember this: every release is recorded there.
    """
    if isinstance(table, Table):
        place = place_beside(ledger, key, table, owner, "--ledger people.ledger", Path())
    else:
        place = find_place(ledger, key, table)
    if place is None:
        return None
    reason = ""
    if owner is None:
        reason = "nobody is named whose rows these are (--owner COLUMN names them)"
    if noise_seed is not None:
        reason = "its noise is seeded"
    if not reason:
        return place
    there, _ = place.of_anybody()
    if place.is_asked_for or Path(there.url).exists():
        raise InputError(
            f"the ledger {there} remembers every release about these people, and it cannot remember "
            f"this one: {reason}; to spend without a record, give --ledger none; nothing was asked or spent"
        )
    observer.note(f"nobody remembers what is spent here, and the next one spends it anew: {reason}")
    return None


def how_to_show(place: Place) -> str:
    """Write the command that shows a ledger."""
    key = [] if place.key is None else ["--key", str(place.key)]
    return shlex.join(["collegium", "ledger", "show", place.url, *key])


@dataclass
class SessionProgress:
    """How far a command that asks has come: what Ctrl-C says of it.

    ``record``: file that keeps answers, if any. ``place``: the ledger, if one remembers.
    ``begins``: whether a session is being opened, in which much is set aside on a ledger.
    ``pressed``: whether Ctrl-C came after the first answer.
    """

    record: Path | None
    place: Place | None = None
    begins: bool = False
    session: Statistics | None = None
    pressed: bool = False

    def in_words(self, in_order: bool) -> str:
        """Say what is paid for, what is kept, and what the same command does next.

        ``in_order``: whether the session was closed, so that a ledger got back what was not used.
        """
        opened = self.begins or self.session is not None
        if self.place is not None and (self.session is None or not in_order) and opened:
            paid = (
                f"what was to be spent may count as spent in the ledger {self.place} "
                f"(`{how_to_show(self.place)}` tells, and `collegium ledger settle` ends it)"
            )
        elif self.session is None or (self.session.left()["share_left"] >= 1).all():
            return "nothing was paid for; the same command begins anew"
        elif self.place is not None:
            paid = f"what was asked is charged in the ledger {self.place}, and nothing more"
        else:
            paid = "what was asked is paid for, and nobody remembers it"
        answers = [] if self.session is None else self.session.answers
        if self.record is not None and answers:
            return (
                f"{paid}; {len(answers):,} answer(s) are in {self.record}: the same command gives them for "
                "free, and is charged for the rest"
            )
        came = "the answers above are all that came, and not kept" if answers else "no answer came"
        if answers and not in_order:
            came = "answers that came are lost without --record"
        return f"{paid}; {came}: the same command asks, and is charged for, everything anew"


def title_of(table: Source, asked: Sequence[Query]) -> str:
    """Name a release by its table and its first question: for people, in a ledger and in their receipts."""
    first = f"{table.name}: {asked[0]}"
    first = first if len(first) <= _LONGEST else first[: _LONGEST - 1] + "…"
    return first if len(asked) == 1 else f"{first}; and {len(asked) - 1:,} more"


def session_of(
    rows: Rows,
    standing: SessionProgress,
    settings: dict[str, Any],
    observer: Observer,
    *,
    allow_new_people: bool,
    only_plans: bool,
) -> Statistics:
    """Open a session; on a ledger, what it may use is reserved there, unless it ``only_plans``.

    ``standing``: where the ledger was looked for; from here on, where it is.
    The observer is told if the ledger has a release of this name: the same was probably asked before.
    """
    frame, budgets, place = rows.frame, rows.budgets, standing.place
    if place is None:
        return Statistics(frame, budgets, **rows.columns, **settings)
    granted = _named(rows, settings["schema"])
    some = has_budget(granted)
    people = subset(granted, some) if len(some) < len(granted) else granted
    if (
        granted is not budgets and only_plans
    ):  # of how many people there are, and nothing else of them
        frame, budgets = pd.DataFrame({"": np.zeros(len(granted), np.int8)}), granted
    place, ledger = place.of(people)
    standing.place = place
    if ledger is None:
        if not allow_new_people:
            refuse_strangers(people, str(place), ON_THE_COMMAND_LINE)
        if only_plans:  # these people have all that they granted
            return _PlannedOnLedger(frame, budgets, Promise.GAUSSIAN, **settings)
        replaced = settings["neighbours"] == "replace-one"
        ledger = place.made(Neighbours.ANY_CHANGE if replaced else Neighbours.ADD_OR_REMOVE)
    ledger.allow_new_people, ledger.face = allow_new_people, ON_THE_COMMAND_LINE
    _tell_of_the_same(ledger, settings["name"], observer)
    if not only_plans:
        return Statistics(frame, budgets, ledger=ledger, **rows.columns, **settings)
    relation, spending = StatisticsSpending.begin(
        ledger, people, settings["neighbours"], settings["noise_seed"]
    )
    blanked = relation is Neighbours.ADD_OR_REMOVE
    settings = {**settings, "neighbours": "zero-out" if blanked else "replace-one"}
    left = take_frame_rows(frame, some[spending.records])
    promise = spending.allowance.lifetime.promise
    planned = _PlannedOnLedger(left, spending.budgets, promise, **settings)
    planned._remember(spending)
    return planned


def _named(rows: Rows, schema: Schema) -> Budgets:
    """Who granted what, by name; of a table that stays in its database, one record for each person."""
    if not isinstance(rows.budgets, Policy):
        return rows.budgets
    table = in_engine(held(rows.frame), rows.budgets, **rows.columns, schema=schema)
    try:
        return table.people(rows.budgets)
    finally:
        table.close()


class _PlannedOnLedger(Statistics):
    """A session with what people have left in a ledger: it only plans, so nothing is reserved there."""

    def __init__(self, frame: Any, budgets: Any, promise: Promise, **settings: Any) -> None:
        self._kept_in = promise
        super().__init__(frame, budgets, **settings)


def _tell_of_the_same(ledger: Ledger, name: str, observer: Observer) -> None:
    same = [
        one
        for one in ledger.contents().releases.values()
        if one.name == name and any(cost.mu_squared for cost in one.costs)
    ]
    if same:
        observer.note(
            f"the ledger has {len(same):,} release(s) of this name already ({name}): what is asked again is "
            "charged again; --record FILE, with the answers of then, gives them for free"
        )
