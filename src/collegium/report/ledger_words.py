"""How people stand in a ledger, and what happened in it, in the words of a table's cells and of lines."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from collegium.accounting.promises import Promise
from collegium.accounting.statement import (
    budget_and_cost,
    budget_in_digits,
    percent_left,
    percent_spent,
)
from collegium.budgets import Budget
from collegium.ledger.chain import Entry
from collegium.ledger.entries import Release, Standing, cost_from_json
from collegium.ledger.limits import IN_WORDS

STANDINGS = "What each person granted, has spent, and has remaining"


def standing_columns(standings: Sequence[Standing]) -> tuple[list[str], list[list[str]], str]:
    """Write level, people, budget, what was spent and what is left: one row for each history.

    Returns headings, rows, and what the figures are.
    """
    promise = standings[0].limit.promise
    is_pure = promise is Promise.PURE  # which has no δ
    rows = []
    for one in standings:
        granted, spent = budget_and_cost(one.budget.epsilon, one.epsilon_spent)
        rows.append(
            [
                one.level,
                f"{one.owners:,}",
                f"{one.n_releases:,}",
                granted,
                *(() if is_pure else (budget_in_digits(one.budget.delta),)),
                spent,
                "has left" if one.has_left else percent_left(one.share_left),
            ]
        )
    deltas = () if is_pure else ("δ",)
    heads = ["level", "people", "releases", "budget ε", *deltas, "spent ε", "remaining"]
    about = (
        f"{'ε' if is_pure else 'ε and δ'} per person, over all releases and reservations together. "
        f"Remaining: share of the granted {IN_WORDS[promise]}."
    )
    return heads, rows, about


def level_columns(standings: Sequence[Standing]) -> tuple[list[str], list[list[str]], str]:
    """Write level, people, budget, and how much is left at least and at most: one row for each level.

    Returns headings, rows, and what the figures are.
    """
    promise = standings[0].limit.promise
    is_pure = promise is Promise.PURE
    together: dict[tuple[str, Budget, bool], list[Standing]] = {}
    for one in standings:
        together.setdefault((one.level, one.budget, one.has_left), []).append(one)
    rows = []
    for (level, budget, has_left), alike in together.items():
        left = sorted(one.share_left for one in alike)
        ends = dict.fromkeys(percent_left(one) for one in (left[0], left[-1]))
        rows.append(
            [
                level,
                f"{sum(one.owners for one in alike):,}",
                budget_in_digits(budget.epsilon),
                *(() if is_pure else (budget_in_digits(budget.delta),)),
                "have left" if has_left else " to ".join(ends),
            ]
        )
    deltas = () if is_pure else ("δ",)
    about = (
        f"Remaining: share of the granted {IN_WORDS[promise]} that a person has left over all releases and "
        "reservations together, at least and at most."
    )
    return ["level", "people", "budget ε", *deltas, "remaining"], rows, about


def release_line(release: Release, least: float, most: float) -> str:
    """Say in a line when a release was made, about how many people, and what it takes of their budgets.

    ``least``, ``most``: shares of what one person grants.
    """
    since = datetime.fromisoformat(release.opened.at)
    taken = " to ".join(dict.fromkeys(percent_spent(one) for one in (least, most)))
    state = f"takes {taken} of a budget"
    if not release.is_settled:
        age = _age(datetime.now(UTC) - since)
        state = f"Reserved, not settled, for {age}: {state} at most"
    elif all(cost.is_nothing for cost in release.costs):
        state = "released nothing"
    return f"{since:%Y-%m-%d}  {release.name} ({release.id}), {release.n_owners:,} people: {state}."


def _age(age: timedelta) -> str:
    minutes = max(0, int(age.total_seconds())) // 60
    for unit, length in (("day", 24 * 60), ("hour", 60), ("minute", 1)):
        if number := minutes // length:
            return f"{number:,} {unit}{'s' * (number != 1)}"
    return "less than a minute"


def what_happened(entry: Entry) -> str:
    """Say it in a line."""
    body = entry.body
    people = sum(one["members"] for one in body["cohorts"] if one["since"] == entry.number)
    match entry.kind:
        case "begin":
            if body["promise"] == Promise.PURE:
                return "the ledger was made, for releases that are pure (Σε)"
            return (
                f"the ledger was made; {100 * body['delta_0_share']:g} % of every δ is set aside "
                "for δ₀"
            )
        case "join":
            return f"{body['joined']:,} people joined"
        case "change":
            return f"{people:,} people changed their budgets"
        case "leave":
            return "a person left"
        case "reserve":
            people = sum(part[0] for part in body["parts"])
            return (
                f"{body['name']} ({body['release']}) reserved from the budgets of {people:,} people"
            )
        case "take":
            return f"{body['release']} was taken up again"
        case "settle":
            return _how_it_was_settled(body)
        case other:
            return str(other)


def _how_it_was_settled(body: dict[str, Any]) -> str:
    drew = not all(cost_from_json(cost).is_nothing for cost in body["costs"])
    if "by_hand" in body:
        charged = "at all that was reserved" if drew else "at nothing, as nothing was drawn"
        return f"{body['release']} was settled by hand {charged}; reason given: {body['by_hand']}"
    if not drew:
        return f"{body['release']} released nothing, and gave back all that it had reserved"
    return f"{body['release']} was released and settled"
