"""Whether budgets pay for anything at all: asked before anything is trained."""

from __future__ import annotations

import numpy as np

from collegium.errors import InputError
from collegium.pate.voting.aggregators import Aggregator
from collegium.pate.voting.labelling import refuse_noise_out_of_range
from collegium.pate.voting.pricing import pricing_for
from collegium.personalisation.plan import Plan


def refuse_unaffordable(aggregator: Aggregator, plan: Plan, guarantee: str, seed: int = 0) -> None:
    """Refuse, before anything is trained, a plan under which no query could be answered.

    Raises
    ------
    InputError
        If some group cannot afford a single query, or there is no drawing so much noise.
    """
    electorate = plan.electorate(seed)
    refuse_noise_out_of_range(aggregator, electorate)
    if guarantee != "worst-case":
        return
    pricing = pricing_for(guarantee, aggregator, electorate)
    pricing.begin(0, [electorate.ballot(0)], np.empty((0, 2)))
    # A price that is too large for a float is infinite, and refused: no warning is needed.
    with np.errstate(over="ignore", divide="ignore"):
        over = pricing.accountant.overspent(pricing.check(0) + pricing.answer(0))
    if over.any():
        name = electorate.cohort_groups[int(np.flatnonzero(over)[0])]
        raise InputError(
            f"group {name!r} (ε = {plan.groups[name].budget.epsilon:g} per owner) cannot afford a single "
            f"answer of {aggregator}: use more noise with more teachers, or ask for larger budgets"
        )
