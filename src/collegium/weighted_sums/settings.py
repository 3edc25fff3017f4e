"""Settings that everything with weighted sums has: how budgets become weights, and what is hidden."""

from __future__ import annotations

from dataclasses import dataclass

from collegium.accounting.neighbours import Neighbours
from collegium.parameters import Settings, setting
from collegium.weighted_sums.weights import RULES

REPLACE_ONE = "replace-one"


@dataclass(frozen=True)
class SumsSettings(Settings):
    """What the settings of a method with weighted sums repeat."""

    weights: str = setting(
        "saturating",
        "How budgets become weights. saturating aims at the smallest error; proportional follows the "
        "budgets; uniform counts everybody equally, as the strictest budget allows.",
        choices=RULES,
    )
    neighbours: str | None = setting(
        None,
        "What is hidden. zero-out hides whether all rows of a person are there or blank; replace-one "
        "hides their contents, too, and costs up to twice as much. Default: what the ledger promises, "
        "or else zero-out.",
        kind="text",
        choices=("zero-out", REPLACE_ONE),
        example='"zero-out"',
    )


def relation_of(neighbours: str | None) -> Neighbours:
    """Between which tables the account holds, where no ledger says."""
    return Neighbours.ANY_CHANGE if neighbours == REPLACE_ONE else Neighbours.ADD_OR_REMOVE
