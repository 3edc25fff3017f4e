"""Budgets become influence: uniform, upsampling, weighting, vanishing, bagging and hybrid."""

from collegium.errors import InputError
from collegium.personalisation.assignment import Assignment
from collegium.personalisation.bagging import Bagging
from collegium.personalisation.base import Personalisation
from collegium.personalisation.electorate import Ballot, Electorate, Participation
from collegium.personalisation.hybrid import Hybrid
from collegium.personalisation.plan import GroupPlan, Plan
from collegium.personalisation.uniform import Uniform
from collegium.personalisation.upsampling import Upsampling
from collegium.personalisation.vanishing import Vanishing
from collegium.personalisation.weighting import Weighting

PERSONALISATIONS: dict[str, type[Personalisation]] = {
    cls.name: cls for cls in (Uniform, Upsampling, Weighting, Vanishing, Bagging, Hybrid)
}


def as_personalisation(given: str | Personalisation, rule: str | None = None) -> Personalisation:
    """Look a personalisation up by name, or pass one through.

    ``given``: ``"uniform"``, ``"upsampling"``, ``"weighting"``, ``"vanishing"``, ``"bagging"``,
    ``"hybrid"``, or an object.
    ``rule``: weight rule for a personalisation that is given by name.
    """
    if isinstance(given, Personalisation):
        if rule is not None and rule != given.rule:
            raise InputError(f"weight rule {rule!r} was given beside {given}: set the rule there")
        return given
    if given not in PERSONALISATIONS:
        raise InputError(
            f"unknown personalisation {given!r}: allowed are {', '.join(PERSONALISATIONS)}"
        )
    cls = PERSONALISATIONS[given]
    return cls() if rule is None else cls(rule=rule)


__all__ = [
    "PERSONALISATIONS",
    "Assignment",
    "Bagging",
    "Ballot",
    "Electorate",
    "GroupPlan",
    "Hybrid",
    "Participation",
    "Personalisation",
    "Plan",
    "Uniform",
    "Upsampling",
    "Vanishing",
    "Weighting",
    "as_personalisation",
]
