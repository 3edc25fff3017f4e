"""A statement as a draft record of the Differential Privacy Deployments Registry.

Follows ``schemas/deployments-schema.yaml`` of github.com/opendp/deployments-registry-data at commit 057e5d8,
and adds ``individual_budgets``, which that schema does not know: ``docs/releases.md`` proposes it. What only
people can tell is left empty.
"""

from __future__ import annotations

from typing import Any

from collegium.accounting.neighbours import TEACHER
from collegium.accounting.statement import budget_in_digits
from collegium.errors import InputError
from collegium.pate.voting.release import LABELS

#: What is left for whoever publishes it to fill in.
LEFT_EMPTY = (
    "url_slug",
    "basic: data_curators, intended_use, data_product_region, publication_date",
    "dp_variant: data_domain",
    "deployment_model: trust_assumptions, actors",
    "implementation: justification, utility",
    "administrative: evidence_sources, registry_authors",
)

_INFLUENCE = (
    "Budgets are individual: every owner's loss is accounted by how far that owner can move what is noised, "
    "and a mechanism is used only while nobody's budget would be exceeded."
)
_OF_STEPS = {
    "gaussian": "Steps fixed beforehand, everybody in each of them: exact Gaussian differential privacy "
    "(squares of mu add up), for each owner.",
    "pld": "Steps and rates fixed beforehand, Poisson samples of owners: privacy loss distributions, rounded "
    "pessimistically, for each owner.",
    "rdp": "Steps and rates fixed beforehand, Poisson samples of owners: Renyi differential privacy (the "
    "moments accountant), for each owner.",
}
_FILTER = "Adaptive composition by a filter, before every draw and for each owner:"


def record_of(statement: dict[str, Any]) -> dict[str, Any]:
    """Map a statement (:func:`~collegium.study.statement_json.statement_of`) to the registry's fields.

    Raises
    ------
    InputError
        If its noise was seeded: then nothing is promised to anybody.
    """
    if not statement["guarantee"]["noise_is_private"]:
        raise InputError(
            "the noise was drawn from a seed, so it protects nobody and there is nothing to register: run it "
            "with secure noise"
        )
    has_student = statement["released"]["student"]
    return {
        "url_slug": "",
        "deployment": {
            "basic": {
                "name": statement["name"] or "",
                "data_curators": [{"data_curator_name": "", "data_curator_type": ""}],
                "description": _description(statement),
                "intended_use": "",
                "data_product_type": "Machine learning model" if has_student else "Dataset",
                "data_product_region": "",
                "publication_date": "",
            },
            "dp_variant": {
                "variant_name": "Approximate DP" if _holds_always(statement) else "Custom",
                "data_domain": "",
                "unprotected_quantities": _unprotected(statement),
            },
            "privacy_loss": _privacy_loss(statement),
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": (
                    "Whoever runs Collegium holds the records."
                    if _is_direct(statement)
                    else "Whoever runs Collegium holds the records, the teachers and their votes."
                ),
                "trust_assumptions": "",
                "actors": "",
                "release_type": "One release",
                "release_type_details": (
                    "The account is of this release alone. Other releases about the same people add to it."
                ),
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": (
                    "Settings were fixed before the first draw of noise. Whether anybody chose them by "
                    "looking at private records is not known to the program, and not accounted for."
                ),
                "mechanisms": _mechanisms(statement),
                "composition": f"{_composition(statement)} {_INFLUENCE}",
                "post_processing": _post_processing(statement),
                "justification": "",
                "utility": "",
                "additional_information": "\n\n".join(statement["statement"]),
            },
            "administrative": {"status": "Draft", "registry_authors": [""], "tier": 2},
        },
    }


def _privacy_loss(statement: dict[str, Any]) -> dict[str, Any]:
    groups = statement["groups"]
    sentence = statement["neighbours"]["sentence"]
    one_row = (
        "one record" if sentence.startswith("one record") else "one person (all their records)"
    )
    loss = {
        "privacy_unit": "the data of one teacher" if statement["unit"] == TEACHER else one_row,
        "privacy_unit_details": sentence,
        "number_of_privacy_units": sum(_members(group) for group in groups),
        "privacy_parameters_details": _parameters_in_words(statement),
        "individual_budgets": {
            "schema": statement["schema"],
            "groups": [
                {
                    "name": group["group"],
                    "number_of_privacy_units": _members(group),
                    "privacy_parameters": {
                        key: group["promised"][key] for key in ("epsilon", "delta")
                    },
                    **{
                        key: group["promised"][key]
                        for key in ("mu", "profile")
                        if "mu" in group["promised"]
                    },
                    **{key: group[key] for key in ("spent", "events") if key in group},
                }
                for group in groups
            ],
        },
    }
    promised = [group["promised"] for group in groups]
    if promised and all(one["epsilon"] != "inf" for one in promised):
        loss["privacy_parameters"] = {
            key: max(one[key] for one in promised) for key in ("epsilon", "delta")
        }
    return loss


def _members(group: dict[str, Any]) -> int:
    count: int = group["people"] if "people" in group else group["teachers"]
    return count


def _holds_always(statement: dict[str, Any]) -> bool:
    kind: str = statement["guarantee"]["kind"]
    return kind == "worst-case"


def _parameters_in_words(statement: dict[str, Any]) -> str:
    said = [
        "Each group has budgets of its own (individual differential privacy); the parameters are those of "
        "the least protected group."
    ]
    if not _holds_always(statement):
        said.insert(0, f"Data-dependent: {statement['guarantee']['meaning']}.")
    for group in statement["groups"]:
        promised = group["promised"]
        if promised["epsilon"] == "inf":
            said.append(f"Group {group['group']!r}: no privacy is promised.")
            continue
        mu = f", within mu = {promised['mu']:.6g} of Gaussian DP" if "mu" in promised else ""
        epsilon = budget_in_digits(promised["epsilon"])
        said.append(
            f"Group {group['group']!r} ({_members(group):,} {statement['unit']}s): epsilon = {epsilon} at "
            f"delta = {promised['delta']:g}{mu}."
        )
    return " ".join(said)


def _is_direct(statement: dict[str, Any]) -> bool:
    is_direct: bool = statement["mechanism"]["name"] == "dp-sgd"
    return is_direct


def _description(statement: dict[str, Any]) -> str:
    if _is_direct(statement):
        steps = statement["released"]["steps"]
        return (
            f"A classifier, made of {steps:,} noisy sums of clipped gradients of the private records "
            "(individual DP-SGD); each of these sums counts as released."
        )
    labels = statement["released"]["labels"]
    student = ", and a classifier that learnt from them" if statement["released"]["student"] else ""
    return (
        f"{labels:,} labels of public records{student}. The labels come from noisy votes of teachers, each "
        "trained on some of the private records (PATE); teachers and votes are not published."
    )


def _unprotected(statement: dict[str, Any]) -> str:
    more = "" if _holds_always(statement) else " How many labels were released."
    return (
        "Budgets and who is in which group, group sizes, the list of classes, all settings, and all public "
        f"records.{more}"
    )


def _composition(statement: dict[str, Any]) -> str:
    if not _holds_always(statement):
        return (
            "Renyi differential privacy of this one data set, computed from raw votes. What was spent is "
            "sensitive and is not published; the number of labels depends on private data."
        )
    if _is_direct(statement):
        return _OF_STEPS[statement["mechanism"]["accountant"]]
    if statement["guarantee"]["gaussian"]:
        return f"{_FILTER} exact Gaussian differential privacy (squares of mu add up)."
    if statement["mechanism"]["price"] == LABELS:
        return (
            f"{_FILTER} Renyi differential privacy of labels alone, at one order fixed beforehand."
        )
    return (
        f"{_FILTER} Gaussian differential privacy, or the sum of pure epsilons where that is less."
    )


def _mechanisms(statement: dict[str, Any]) -> str:
    version, direct = statement["made_with"]["collegium"], _is_direct(statement)
    what = "" if direct else ": noise on the weighted votes of teachers"
    after = "Times" if direct else "Queries are not asked interactively; times"
    return (
        f"{statement['mechanism']['in_words']}{what}, by Collegium"
        f"{f' {version}' if version else ''}. Noise comes from the operating system's cryptographic "
        "randomness and is drawn exactly rounded to a grid, so that floating-point arithmetic "
        f"leaves no trace. {after} are not hidden."
    )


def _post_processing(statement: dict[str, Any]) -> str:
    if _is_direct(statement):
        return (
            "The model follows from the noisy sums, and so does a student that learns from what it believes "
            "about public records."
        )
    first = (
        "The label is the largest of the released noisy counts"
        if statement["released"]["what"] == "histogram"
        else "Labels are released as drawn"
    )
    learnt = (
        "; the student is trained on public records with them"
        if statement["released"]["student"]
        else ""
    )
    return f"{first}{learnt}."
