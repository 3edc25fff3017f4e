"""What budgets pay for, worst case: asked before anything is trained, and while a job is running."""

from __future__ import annotations

import numpy as np

from collegium.accounting.accountant import Accountant
from collegium.errors import InputError
from collegium.pate.voting.charging import may_start
from collegium.pate.voting.labelling import BLOCK, refuse_noise_out_of_range
from collegium.pate.voting.noisy_maxima import Aggregator
from collegium.pate.voting.pricing import WorstCasePricing, worst_case_pricing
from collegium.pate.voting.release import HISTOGRAM
from collegium.personalisation.electorate import Electorate
from collegium.personalisation.plan import Plan

#: Answers that are counted for people; more are not of interest.
MOST = 100_000


def answers_affordable(
    pricing: WorstCasePricing,
    electorate: Electorate,
    most: int,
    *,
    first: int = 0,
    account: Accountant | None = None,
) -> int:
    """Count how many queries an account pays for if each is answered.

    ``most``: count no further.
    ``first``: position of the first of them.
    ``account``: who pays, and **is charged**; default: that of the pricing.
    """
    account = pricing.accountant if account is None else account
    if np.isinf(account.epsilon).all():
        return most
    for position in range(first, first + most):
        price = pricing.price(electorate.ballot(position))
        if electorate.is_static:
            return int(min(account.how_many(price.reserve, most), most))
        if not may_start(account, price):
            return position - first
        account.charge(price.reserve)
    return most


def queries_at_once(price: str, aggregator: Aggregator, electorate: Electorate, most: int) -> int:
    """Count the queries between two writes of the journal, which one crash takes: a tenth of all at most.

    ``price``: of an answer, worst case; data-dependent accounts pay for as many at least.
    ``most``: queries that may be asked, or labels that are wanted.
    """
    most = min(most, 10 * BLOCK)
    with np.errstate(over="ignore", divide="ignore"):
        pricing = worst_case_pricing(price, aggregator, electorate)
        most = answers_affordable(pricing, electorate, most)
    return max(1, most // 10)


def refuse_unaffordable(
    aggregator: Aggregator, plan: Plan, guarantee: str, seed: int = 0, price: str = HISTOGRAM
) -> None:
    """Refuse, before anything is trained, a plan under which no query could be answered."""
    electorate = plan.electorate(seed)
    refuse_noise_out_of_range(aggregator, electorate)
    if guarantee != WorstCasePricing.guarantee:
        return
    pricing = worst_case_pricing(price, aggregator, electorate)
    # A price that is too large for a float is infinite, and refused: no warning is needed.
    with np.errstate(over="ignore", divide="ignore"):
        over = pricing.accountant.overspent(pricing.price(electorate.ballot(0)).reserve)
    if over.any():
        name = electorate.cohort_groups[int(np.flatnonzero(over)[0])]
        raise InputError(
            f"group {name!r} (ε = {plan.groups[name].budget.epsilon:g} each) cannot afford a single "
            f"answer of {aggregator}: use more noise with more teachers, or ask for larger budgets"
        )
