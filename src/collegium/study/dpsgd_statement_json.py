"""A statement for programs about direct training; as :mod:`collegium.study.statement_json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from collegium.accounting.export import Use
from collegium.accounting.gaussian import gdp_mu
from collegium.errors import StudyMismatchError
from collegium.personalisation.dpsgd_plan import DPSGDPlan, GroupSteps
from collegium.study.dpsgd_terms import read_dpsgd
from collegium.study.released_files import released_content
from collegium.study.statement_json import (
    SCHEMA,
    as_number,
    mu_and_profile,
    mu_of,
    read_release_json,
)
from collegium.study.student_file import STUDENT_FILE


def dpsgd_statement_of(folder: Path) -> dict[str, Any]:
    """Make a statement of what a study of direct training has released, for JSON.

    Raises
    ------
    InputError
        If nothing was released yet.
    StudyMismatchError
        If anything in the folder is not what was written there, or more was drawn than is released.
    """
    terms, steps = read_dpsgd(folder)
    told = read_release_json(folder, {"steps": int, "steps_lost": int})
    if told["steps"] != steps:
        raise StudyMismatchError(
            f"{steps:,} steps were charged in {folder}, and its release tells of {told['steps']:,}: let it "
            "end with `collegium run` first"
        )
    plan, account = terms.plan, terms.account(steps)
    exact, composition = plan.accountant == "gaussian", account.composition()
    spent = account.epsilon_spent()
    about = {row["group"]: row for row in told["groups"]}
    return {
        "schema": SCHEMA,
        "name": told.get("config", {}).get("study", {}).get("name"),
        "made_with": {"collegium": told.get("versions", {}).get("collegium")},
        "unit": terms.unit,
        "neighbours": {"relation": plan.neighbours.value, "sentence": terms.adjacency},
        "guarantee": {
            "kind": told["guarantee"],
            "meaning": told["meaning"],
            "noise_is_private": terms.private_noise,
            "gaussian": exact,
        },
        "mechanism": {
            "name": "dp-sgd",
            "in_words": _in_words(plan),
            "sampling": plan.kind,
            "bound": plan.bound,
            "noise": plan.noise,
            "accountant": plan.accountant,
        },
        "released": {
            "what": told["released"],
            "student": released_content(folder / "release" / STUDENT_FILE) is not None,
            "steps": steps,
            "steps_lost": told["steps_lost"],
        },
        "groups": [
            {
                "group": name,
                "people": group.owners,
                "promised": _promised(group, about[name], exact),
                "spent": {
                    "epsilon": as_number(spent[name]),
                    "delta": group.budget.delta,
                    **(mu_and_profile(mu_of(composition[name])) if exact else {}),
                },
                "events": _events(composition[name]),
            }
            for name, group in plan.groups.items()
        ],
        "statement": told["statement"],
    }


def _in_words(plan: DPSGDPlan) -> str:
    who = (
        "everybody in every step"
        if plan.kind in ("full-batch", "uniform")
        else f"Poisson samples of owners ({plan.kind})"
    )
    return (
        f"individual DP-SGD, {who}: each owner's gradient clipped to one norm and weighted by group, "
        f"Gaussian noise on the sum, {plan.steps:,} steps"
    )


def _promised(group: GroupSteps, row: dict[str, Any], exact: bool) -> dict[str, Any]:
    budget = group.budget
    promised = {
        "epsilon": as_number(budget.epsilon),
        "delta": budget.delta,
        "found_at_most": row["found_at_most"],
    }
    if budget.is_unlimited or not exact:
        return promised
    return {**promised, **mu_and_profile(gdp_mu(budget.epsilon, budget.delta))}


def _events(uses: list[Use]) -> list[dict[str, Any]]:
    return [use.to_json() for use in uses]
