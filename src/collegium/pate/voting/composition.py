"""Replaying released outcomes: the account after them, and what it is composed of. Worst case only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from collegium.accounting.accountant import Accountant
from collegium.accounting.accountants import GaussianAccountant
from collegium.accounting.events import Event
from collegium.accounting.export import Use
from collegium.accounting.neighbours import Neighbours
from collegium.pate.voting.charging import Charge, charge_again
from collegium.pate.voting.labelling import Outcome
from collegium.pate.voting.noisy_maxima import Aggregator
from collegium.pate.voting.pricing import WorstCasePricing, worst_case_pricing
from collegium.pate.voting.release import HISTOGRAM
from collegium.personalisation.electorate import Electorate


@dataclass(frozen=True, eq=False)
class Replay:
    """A job's worst-case account, from its released outcomes.

    ``account``: after all outcomes, with the job's own budgets.
    ``composition``: for each group, what its most burdened owners were exposed to.
    """

    account: Accountant
    composition: dict[str, list[Use]]


def replay(
    aggregator: Aggregator,
    electorate: Electorate,
    outcomes: Sequence[Outcome],
    neighbours: Neighbours = Neighbours.ANY_CHANGE,
    price: str = HISTOGRAM,
) -> Replay:
    """Charge released outcomes again, as the job did.

    ``outcomes``: every query asked, in order. Lost queries are charged in full, as the job charges
        them.
    ``neighbours``: what the account hides about an owner.
    ``price``: what the job charged an answer.
    """
    pricing = worst_case_pricing(price, aggregator, electorate, neighbours)
    account = pricing.accountant
    used = [charge for _, some in charge_outcomes(pricing, electorate, outcomes) for charge in some]
    names = np.asarray(electorate.cohort_groups, dtype=object)
    squared = account.mu_squared if isinstance(account, GaussianAccountant) else None
    burden = account.epsilon_spent() if squared is None else squared
    composition = {}
    for group in electorate.groups:
        cohorts = np.flatnonzero(names == group)
        most = int(cohorts[np.argmax(burden[cohorts])])
        composition[group] = _uses(used, most)
    return Replay(account, composition)


def charge_outcomes(
    pricing: WorstCasePricing, electorate: Electorate, outcomes: Sequence[Outcome]
) -> Iterator[tuple[Outcome, list[Charge]]]:
    """Charge released outcomes to the pricing's account, one after the other.

    Yields: after they were charged. Ends before a lost query that was never affordable.
    """
    for outcome in outcomes:
        price = pricing.price(electorate.ballot(outcome.position))
        charges = charge_again(pricing.accountant, price, outcome.verdict)
        if charges is None:
            return
        yield outcome, charges


def _uses(used: list[Charge], cohort: int) -> list[Use]:
    counts: Counter[tuple[str, Event]] = Counter()
    towards: dict[int, Event] = {}  # most queries have the same ballot, and so the same events
    for purpose, event in used:
        assert isinstance(event, Event)
        if event.mu_squared[cohort] > 0:
            one = towards.setdefault(id(event), event.towards(cohort))
            counts[purpose, one] += 1
    return [Use(purpose, event, count) for (purpose, event), count in counts.items()]
