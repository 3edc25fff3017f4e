"""A statement for programs about answers to questions; as :mod:`collegium.study.statement_json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from collegium.accounting.gaussian import gdp_mu
from collegium.study.statement_json import (
    SCHEMA,
    as_number,
    mu_and_profile,
    mu_of,
    read_release_json,
)
from collegium.study.statistics_terms import read_statistics


def statistics_statement_of(folder: Path) -> dict[str, Any]:
    """Make a statement of what a study that asks has released, for JSON.

    Raises
    ------
    InputError
        If nothing was released yet.
    StudyMismatchError
        If anything in the folder is not what was written there.
    """
    terms, charged = read_statistics(folder)
    told = read_release_json(folder, {"questions": int, "questions_lost": int})
    composition, spent = terms.composition(charged), terms.epsilon_spent(charged)
    # Pure answers may have been allowed by ε alone, and promise no μ then.
    charged_any = [one for one in terms.accounts(charged).values() if one.mu_squared.any()]
    gaussian = bool(charged_any) and all(one.is_gaussian for one in charged_any)
    about = {row["group"]: row for row in told["groups"]}
    choice = "permute-and-flip" if terms.noise == "laplace" else "the exponential mechanism"
    return {
        "schema": SCHEMA,
        "name": told.get("config", {}).get("study", {}).get("name"),
        "made_with": {"collegium": told.get("versions", {}).get("collegium")},
        "unit": terms.unit,
        "neighbours": {"relation": terms.neighbours.value, "sentence": terms.adjacency},
        "guarantee": {
            "kind": told["guarantee"],
            "meaning": told["meaning"],
            "noise_is_private": terms.private_noise,
            "gaussian": gaussian,
        },
        "mechanism": {
            "name": "statistics",
            "in_words": f"{len(terms.questions):,} questions to a table; sums weighted by budgets "
            f"({terms.weights}) with {terms.noise} noise, quantiles by {choice}",
            "noise": terms.noise,
            "weights": terms.weights,
        },
        "released": {
            "what": told["released"],
            "student": False,
            "questions": told["questions"],
            "questions_lost": told["questions_lost"],
        },
        "groups": [
            {
                "group": name,
                "people": terms.people[name],
                "promised": {
                    "epsilon": as_number(budget.epsilon),
                    "delta": budget.delta,
                    "found_at_most": about[name]["found_at_most"],
                    **(
                        {}
                        if budget.is_unlimited or not gaussian
                        else mu_and_profile(gdp_mu(budget.epsilon, budget.delta))
                    ),
                },
                "spent": {
                    "epsilon": as_number(spent[name]),
                    "delta": budget.delta,
                    **mu_and_profile(mu_of(composition[name])),
                },
                "events": [use.to_json() for use in composition[name]],
            }
            for name, budget in terms.groups.items()
        ],
        "statement": told["statement"],
    }
