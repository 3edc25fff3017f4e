"""A session of questions from the command line, on a ledger or on none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from collegium.accounting.neighbours import Neighbours
from collegium.budgets import Budgets
from collegium.errors import InputError
from collegium.extremes import granting, part_of
from collegium.ledger.places import Place, find_place
from collegium.pate.observer import Observer
from collegium.statistics.ledgered import begin
from collegium.statistics.session import Statistics
from collegium.study.asked_rows import Rows, taken


def place_of(
    ledger: str | None,
    key: Path | None,
    table: Path,
    owner: str | None,
    noise_seed: int | None,
    observer: Observer,
) -> Place | None:
    """Find the ledger that remembers these people; None if none does, which the user is told."""
    place = find_place(ledger, key, table)
    if place is None:
        return None
    reason = ""
    if owner is None:
        reason = "nobody is named whose rows these are; --owner names the column"
    if noise_seed is not None:
        reason = "its noise is seeded"
    if not reason:
        return place
    if place.is_asked_for:
        raise InputError(f"no ledger can remember this: {reason}; or name none (--ledger none)")
    observer.note(f"nobody remembers what is spent here, and the next one spends it anew: {reason}")
    return None


def session_of(
    rows: Rows, place: Place | None, settings: dict[str, Any], *, only_plans: bool
) -> Statistics:
    """Open a session; on a ledger, what it may use is reserved there, unless it ``only_plans``."""
    frame, budgets = rows.frame, rows.budgets
    if place is None:
        return Statistics(frame, budgets, **rows.columns, **settings)
    assert isinstance(budgets, Budgets)
    if not only_plans:
        replaced = settings["neighbours"] == "replaced"
        made = place.made(Neighbours.ANY_CHANGE if replaced else Neighbours.ADD_OR_REMOVE)
        return Statistics(frame, budgets, ledger=made, **settings)
    planned = {**settings, "noise": _noise_on_ledger(settings)}
    ledger = place.opened()
    if ledger is None:  # these people have all that they granted
        return Statistics(frame, budgets, **planned)
    some = granting(budgets)
    people = part_of(budgets, some) if len(some) < len(budgets) else budgets
    relation, spending = begin(ledger, people, settings["neighbours"], settings["noise_seed"])
    planned["neighbours"] = "blanked" if relation is Neighbours.ADD_OR_REMOVE else "replaced"
    return Statistics(taken(frame, some[spending.records]), spending.budgets, **planned)


def _noise_on_ledger(settings: dict[str, Any]) -> str:
    """What a session on a ledger takes where nothing is said."""
    noise: str = settings["noise"]
    return "gaussian" if noise == "auto" else noise
