"""Direct training over the records of several parties: what they must have in common."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from collegium.accounting.neighbours import Neighbours
from collegium.dpsgd.run import DPSGDRecipe
from collegium.dpsgd.settings import FULL_BATCH, MOMENTUM, PUBLIC
from collegium.errors import InputError
from collegium.noise.sources import noise_from
from collegium.personalisation.bins import few_budgets
from collegium.runs.public_digests import facts_of
from collegium.runs.records import Records

if TYPE_CHECKING:
    from collegium.parties.collective import Party, PartyRelease


def for_parties(recipe: DPSGDRecipe, on_step: Any) -> DPSGDRecipe:
    """Refuse what one party alone would decide, or cannot be added up; take steps that are all parties'.

    Each party makes the next model of what all have opened, and machines round differently: steps along
    gradients end at the same bits, and a solver might not.
    """
    settings = recipe.dpsgd
    if settings.sampling != FULL_BATCH:
        raise InputError(
            f"parties take steps over all their records, and sampling is {settings.sampling!r}: leave it out"
        )
    if settings.individual_filter is not None:
        raise InputError("a filter follows one party's records: leave individual_filter out")
    if on_step is not None:
        raise InputError("on_step could end the steps of one party alone: leave it out")
    if settings.solver == PUBLIC:
        raise InputError(
            f"solver = {PUBLIC!r} may round differently at each party: leave solver out, or use {MOMENTUM!r}"
        )
    return replace(recipe, dpsgd=replace(settings, solver=MOMENTUM))


def together(
    records: Records,
    recipe: DPSGDRecipe,
    y_public: NDArray[Any] | None,
    relation: Neighbours | None,
    party: Party,
    name: str,
) -> tuple[Records, PartyRelease]:
    """Learn how many people of the other parties granted what: then all plan the same steps."""
    if records.given is not None:
        raise InputError(
            "people of a public level are this party's alone, and the start would differ: leave them out"
        )
    if not records.arrangement.on_ledger:
        records = records.regrouped(few_budgets(records.budgets))
    plan = {
        "method": "direct training",
        "settings": recipe.dpsgd,
        "neighbours": None if relation is None else relation.name,
        "preprocessing": recipe.preprocessing,
        "random_state": recipe.seed,
        "bounds": recipe.bounds,
        **facts_of(records, y_public),
    }
    release = party.release(name)
    with release:
        budgets = release.everybody(records.budgets, plan, noise_from(recipe.noise_seed))
    arrangement = release.arranged(records.arrangement)
    return replace(records, budgets=budgets, arrangement=arrangement), release
