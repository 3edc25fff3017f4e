"""A statement as a draft record of the Differential Privacy Deployments Registry.

Follows ``schemas/deployments-schema.yaml`` of github.com/opendp/deployments-registry-data at commit 057e5d8,
and adds ``individual_budgets``, which that schema does not know: ``docs/releases.md`` proposes it. What only
people can tell is left empty.
"""

from __future__ import annotations

from typing import Any

from collegium.accounting.neighbours import OWNER, ROW, TEACHER
from collegium.accounting.statement import budget_in_digits
from collegium.errors import InputError
from collegium.study.terms import WORST_CASE, Terms

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
_UNITS = {
    OWNER: "one person (all their records)",
    ROW: "one record",
    TEACHER: "the data of one teacher",
}
#: How methods whose noise is drawn on a grid speak of it.
EXACT_NOISE = (
    "Noise comes from the operating system's cryptographic randomness and is drawn exactly rounded to a "
    "grid, so that floating-point arithmetic leaves no trace."
)
#: How methods that charge before every draw speak of it.
FILTER = "Adaptive composition by a filter, before every draw and for each owner:"


def record_of(statement: dict[str, Any], terms: Terms) -> dict[str, Any]:
    """Map a statement (:func:`~collegium.study.statement_json.statement_of`) to the registry's fields.

    ``terms``: of the release: what the registry is told of its method.

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
    words = terms.for_registry(statement)
    by = " ".join(filter(None, ("Collegium", statement["made_with"]["collegium"])))
    return {
        "url_slug": "",
        "deployment": {
            "basic": {
                "name": statement["name"] or "",
                "data_curators": [{"data_curator_name": "", "data_curator_type": ""}],
                "description": words.description,
                "intended_use": "",
                "data_product_type": words.product_type,
                "data_product_region": "",
                "publication_date": "",
            },
            "dp_variant": {
                "variant_name": "Approximate DP" if _holds_always(statement) else "Custom",
                "data_domain": "",
                "unprotected_quantities": words.unprotected,
            },
            "privacy_loss": _privacy_loss(statement, terms.arrangement.unit),
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": words.holder,
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
                "mechanisms": f"{words.mechanism}, by {by}. {words.noise}",
                "composition": f"{words.composition} {_INFLUENCE}",
                "post_processing": words.post_processing,
                "justification": "",
                "utility": "",
                "additional_information": "\n\n".join(statement["statement"]),
            },
            "administrative": {"status": "Draft", "registry_authors": [""], "tier": 2},
        },
    }


def _privacy_loss(statement: dict[str, Any], unit: str) -> dict[str, Any]:
    groups = statement["groups"]
    loss = {
        "privacy_unit": _UNITS[unit],
        "privacy_unit_details": statement["neighbours"]["sentence"],
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
    return kind == WORST_CASE


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
