"""A release's statement for programs: what was promised and spent, and the events behind it. Public only.

``docs/statement.schema.json``, its JSON Schema, explains every key.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from collegium.accounting.gaussian import gdp_delta, gdp_mu
from collegium.accounting.neighbours import OWNER, TEACHER
from collegium.accounting.spent import Spent
from collegium.errors import InputError, StudyMismatchError
from collegium.json_files import parse_json
from collegium.study.journal import FileJournal
from collegium.study.released_files import released_content
from collegium.study.student_file import STUDENT_FILE
from collegium.study.terms import Terms, read_terms

SCHEMA = "collegium-statement/1"

#: Where profiles are told.
PROFILE_AT = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)

_SHAPE = {
    "guarantee": str, "meaning": str, "adjacency": str, "private_noise": bool, "released": str,
    "statement": [str], "groups": [{"group": str, "right_of_100": int, "found_at_most": dict}],
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
        If anything in the folder is not what was written there, or more was drawn than is released.
    """
    return statement_and_terms(folder)[0]


def statement_and_terms(folder: Path) -> tuple[dict[str, Any], Terms]:
    """Make the statement, and read the terms that it is about."""
    terms, journal = read_terms(folder)
    told = _read_release_json(folder, terms)
    what, drawn, released = terms.drawn_and_told(told, journal)
    if drawn != released:
        raise StudyMismatchError(
            f"{drawn:,} {what} in {folder}, and its release tells of {released:,}: let it end with "
            f"{terms.command} first"
        )
    has_student = released_content(folder / "release" / STUDENT_FILE) is not None
    return _statement(terms, journal, told, has_student), terms


def _statement(
    terms: Terms, journal: FileJournal, told: Mapping[str, Any], has_student: bool
) -> dict[str, Any]:
    spent = terms.spent(journal)
    about = {row["group"]: row for row in told["groups"]}
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
            "gaussian": spent.gaussian,
        },
        "mechanism": terms.mechanism(),
        "released": {"what": told["released"], "student": has_student, **terms.released(told)},
        "groups": [_group(name, about[name], terms, spent) for name in terms.groups],
        "statement": told["statement"],
    }


def _read_release_json(folder: Path, terms: Terms) -> dict[str, Any]:
    """Read what a release says of itself.

    Raises InputError if nothing was released yet; StudyMismatchError if it is not what was released.
    """
    path = folder / "release" / "privacy.json"
    content = released_content(path)
    if content is None:
        raise InputError(
            f"{folder} has released nothing yet: there is no {path}; let it end with {terms.command}, or see "
            "`collegium account --remaining`"
        )
    told: dict[str, Any] = parse_json(content, path, {**_SHAPE, **terms.counted})
    return told


def _group(name: str, row: Mapping[str, Any], terms: Terms, spent: Spent) -> dict[str, Any]:
    group = {
        "group": name,
        "people" if terms.unit == OWNER else f"{TEACHER}s": terms.people[name],
        "promised": _promised(name, row, terms, spent),
    }
    if spent.sensitive:
        return group
    mu = spent.mu(name)
    return {
        **group,
        "spent": {
            "epsilon": as_number(spent.epsilon[name]),
            "delta": terms.groups[name].delta,
            **({} if mu is None else _mu_and_profile(mu)),
        },
        "events": [use.to_json() for use in spent.uses[name]],
    }


def _promised(name: str, row: Mapping[str, Any], terms: Terms, spent: Spent) -> dict[str, Any]:
    budget = terms.groups[name]
    promised = {
        "epsilon": as_number(budget.epsilon),
        "delta": budget.delta,
        "right_of_100": row["right_of_100"],
        "found_at_most": row["found_at_most"],
    }
    if budget.is_unlimited or spent.sensitive:
        return promised
    if spent.gaussian:
        return {**promised, **_mu_and_profile(gdp_mu(budget.epsilon, budget.delta))}
    # Charged otherwise, everything may stay within a μ as well: a larger one than the budget's.
    return {**promised, **(_mu_and_profile(row["mu"]) if "mu" in row else {})}


def _mu_and_profile(mu: float) -> dict[str, Any]:
    """Tell what μ of Gaussian DP means at some ε."""
    profile = [{"epsilon": epsilon, "delta": gdp_delta(mu, epsilon)} for epsilon in PROFILE_AT]
    return {"mu": as_number(mu), "profile": profile}


def as_number(value: float) -> float | str:
    """Tell a number that may be infinite."""
    return value if math.isfinite(value) else "inf"
