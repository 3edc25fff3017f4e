"""Replaying released outcomes: the account after them, and what it is composed of. Worst case only."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from collegium.accounting.accountant import WorstCaseAccountant, WorstCaseCost
from collegium.accounting.costs import ANY_CHANGE
from collegium.accounting.export import Mechanism
from collegium.pate.voting.aggregators import Aggregator, LNMax
from collegium.pate.voting.labelling import ANSWERED, LOST, Outcome
from collegium.pate.voting.pricing import WorstCasePricing
from collegium.personalisation.electorate import Electorate


@dataclass(frozen=True, eq=False)
class Replay:
    """A job's worst-case account, from its released outcomes.

    Attributes
    ----------
    account : WorstCaseAccountant
        After all outcomes, with the job's own budgets.
    composition : dict of str to list of Mechanism
        For each group, what its most burdened owners were exposed to.
    """

    account: WorstCaseAccountant
    composition: dict[str, list[Mechanism]]


def replay(
    aggregator: Aggregator,
    electorate: Electorate,
    outcomes: Sequence[Outcome],
    adjacency: str = ANY_CHANGE,
) -> Replay:
    """Charge released outcomes again, as the job did.

    Parameters
    ----------
    aggregator : Aggregator
        The mechanism.
    electorate : Electorate
        Weights, participation and cohorts.
    outcomes : sequence of Outcome
        Every query asked, in order. Lost queries are charged in full, as the job charges them.
    adjacency : str, optional
        Which neighbours, in words.

    Returns
    -------
    Replay
    """
    pricing = WorstCasePricing(aggregator, electorate, adjacency)
    account = pricing.accountant
    used: list[tuple[str, WorstCaseCost]] = []
    for _, charges in charge_again(pricing, electorate, outcomes):
        used.extend(charges)
    names = np.asarray(electorate.cohort_groups, dtype=object)
    composition = {}
    for group in electorate.groups:
        cohorts = np.flatnonzero(names == group)
        most = int(cohorts[np.argmax(account.mu_squared[cohorts])])
        composition[group] = _mechanisms(aggregator, used, most)
    return Replay(account, composition)


def charge_again(
    pricing: WorstCasePricing, electorate: Electorate, outcomes: Sequence[Outcome]
) -> Iterator[tuple[Outcome, list[tuple[str, WorstCaseCost]]]]:
    """Charge released outcomes to the pricing's account, one after the other.

    Yields
    ------
    outcome, charges
        After they were charged. Ends before a lost query that was never affordable.
    """
    account = pricing.accountant
    for outcome in outcomes:
        pricing.begin(outcome.position, [electorate.ballot(outcome.position)], np.empty((0, 2)))
        if outcome.verdict == LOST and not account.affords(pricing.reserve(outcome.position)):
            return
        charges = list(_charges(pricing, outcome))
        for _, cost in charges:
            account.charge(cost)
        yield outcome, charges


def _charges(pricing: WorstCasePricing, outcome: Outcome) -> Iterator[tuple[str, WorstCaseCost]]:
    yield "check", pricing.check(outcome.position)
    if outcome.verdict in (ANSWERED, LOST):
        yield "answer", pricing.answer(outcome.position)


def _mechanisms(
    aggregator: Aggregator, used: list[tuple[str, WorstCaseCost]], cohort: int
) -> list[Mechanism]:
    counts = Counter(
        (purpose, float(cost.mu_squared[cohort]), float(cost.pure_epsilon[cohort]))
        for purpose, cost in used
        if cost.mu_squared[cohort] > 0
    )
    mechanisms = []
    for (purpose, mu_squared, pure), count in counts.items():
        if isinstance(aggregator, LNMax):
            mechanisms.append(Mechanism(purpose, "laplace", 2 / pure, count))
            continue
        kind = "gaussian" if math.isinf(pure) else "pure"
        mechanisms.append(Mechanism(purpose, kind, 1 / math.sqrt(mu_squared), count))
    return mechanisms
