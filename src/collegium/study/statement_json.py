"""A release's statement for programs: what was promised and spent, and the events behind it. Public only.

``docs/releases.md`` explains every key, ``docs/statement.schema.json`` is its JSON Schema.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from collegium.accounting.export import Use
from collegium.accounting.gaussian import gdp_delta, gdp_mu
from collegium.accounting.neighbours import OWNER, TEACHER
from collegium.budgets import Budget
from collegium.errors import InputError, StudyMismatchError
from collegium.json_files import parse_json
from collegium.pate.voting.composition import Replay
from collegium.study.released_files import released_content
from collegium.study.student_file import STUDENT_FILE
from collegium.study.terms import JobTerms, read_job

SCHEMA = "collegium-statement/1"

#: Where profiles are told.
PROFILE_AT = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)

_SHAPE = {
    "guarantee": str, "meaning": str, "adjacency": str, "private_noise": bool, "released": str,
    "statement": [str], "groups": [{"group": str}],
}  # fmt: skip
_COUNTED = {
    "queries_asked": int, "labels_released": int, "stopped_by": str,
    "groups": [{"group": str, "found_at_most": dict}],
}  # fmt: skip


def statement_of(folder: Path) -> dict[str, Any]:
    """Make a statement of what a study or label job has released, for JSON.

    What was spent, and the events, are told under the worst-case guarantee only: under the other one they
    are sensitive.

    Raises
    ------
    InputError
        If nothing was released yet.
    StudyMismatchError
        If anything in the folder is not what was written there, or more was asked than is released.
    """
    terms, outcomes = read_job(folder)
    told = read_release_json(folder, _COUNTED, "`collegium run` (or `label`)")
    if told["queries_asked"] != len(outcomes):
        raise StudyMismatchError(
            f"{len(outcomes):,} questions were asked in {folder}, and its release tells of "
            f"{told['queries_asked']:,}: let it end with `collegium run` (or `label`) first"
        )
    replayed = terms.replayed(outcomes) if terms.guarantee == "worst-case" else None
    return {
        "schema": SCHEMA,
        "name": told.get("config", {}).get("study", {}).get("name"),
        "made_with": {"collegium": told.get("versions", {}).get("collegium")},
        "unit": terms.unit,
        "neighbours": {"relation": terms.neighbours.value, "sentence": terms.adjacency},
        "guarantee": {
            "kind": terms.guarantee,
            "meaning": told["meaning"],
            "noise_is_private": terms.private_noise,
            "gaussian": replayed is not None and replayed.account.is_gaussian,
        },
        "mechanism": {
            **terms.aggregator.settings(),
            "in_words": str(terms.aggregator),
            "price": terms.price,
        },
        "released": {
            "what": told["released"],
            "student": released_content(folder / "release" / STUDENT_FILE) is not None,
            "queries_asked": told["queries_asked"],
            "labels": told["labels_released"],
            "stopped_by": told["stopped_by"],
        },
        "groups": [_group(row, terms, replayed) for row in told["groups"]],
        "statement": told["statement"],
    }


def read_release_json(
    folder: Path, counted: dict[str, Any], command: str = "`collegium run`"
) -> dict[str, Any]:
    """Read what a release says of itself.

    ``counted``: what is counted in it, and its type, beside what every release says.
    ``command``: which ends it.
    Raises InputError if nothing was released yet; StudyMismatchError if it is not what was released.
    """
    path = folder / "release" / "privacy.json"
    content = released_content(path)
    if content is None:
        raise InputError(
            f"{folder} has released nothing yet: there is no {path}; let it end with {command}, or see "
            "`collegium account --remaining`"
        )
    told: dict[str, Any] = parse_json(content, path, {**_SHAPE, **counted})
    return told


def _group(row: dict[str, Any], terms: JobTerms, replayed: Replay | None) -> dict[str, Any]:
    name = row["group"]
    budget = terms.electorate.groups[name]
    group = {
        "group": name,
        "people" if terms.unit == OWNER else f"{TEACHER}s": terms.owners.get(name, 0),
        "promised": _promised(budget, row, replayed),
    }
    if replayed is None:
        return group
    uses = replayed.composition[name]
    spent = replayed.account.epsilon_spent_by_name()[name]
    return {
        **group,
        "spent": {
            "epsilon": as_number(spent),
            "delta": budget.delta,
            **mu_and_profile(mu_of(uses)),
        },
        "events": [use.to_json() for use in uses],
    }


def _promised(budget: Budget, row: dict[str, Any], replayed: Replay | None) -> dict[str, Any]:
    promised = {
        "epsilon": as_number(budget.epsilon),
        "delta": budget.delta,
        "found_at_most": row["found_at_most"],
    }
    if budget.is_unlimited or replayed is None:
        return promised
    if replayed.account.is_gaussian:
        return {**promised, **mu_and_profile(gdp_mu(budget.epsilon, budget.delta))}
    # Charged otherwise, everything may stay within a μ as well: a larger one than the budget's.
    return {**promised, **(mu_and_profile(row["mu"]) if "mu" in row else {})}


def mu_of(uses: Sequence[Use]) -> float:
    """μ of all uses together, rounded up."""
    squared = math.fsum(use.count * float(use.event.mu_squared[0]) for use in uses)
    return math.nextafter(math.sqrt(squared) * (1 + 2.0**-50), math.inf) if squared else 0.0


def mu_and_profile(mu: float) -> dict[str, Any]:
    """Tell what μ of Gaussian DP means at some ε."""
    profile = [{"epsilon": epsilon, "delta": gdp_delta(mu, epsilon)} for epsilon in PROFILE_AT]
    return {"mu": as_number(mu), "profile": profile}


def as_number(value: float) -> float | str:
    """Tell a number that may be infinite."""
    return value if math.isfinite(value) else "inf"
