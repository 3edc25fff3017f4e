"""What everybody had spent after each query, recomputed from what was released (worst case only)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collegium.pate.voting.composition import charge_outcomes
from collegium.pate.voting.labelling import NO_LABEL, Outcome
from collegium.pate.voting.noisy_maxima import Aggregator
from collegium.pate.voting.pricing import worst_case_pricing
from collegium.pate.voting.release import HISTOGRAM
from collegium.personalisation.electorate import Electorate

_POINTS = 60


@dataclass(frozen=True)
class SpendingPoint:
    """The account after some queries.

    ``asked``, ``labels``: queries asked and labels released so far.
    ``epsilon_spent``: the most that any owner of each group has spent, rounded up.
    """

    asked: int
    labels: int
    epsilon_spent: dict[str, float]


def spending_history(
    aggregator: Aggregator,
    electorate: Electorate,
    outcomes: Sequence[Outcome],
    price: str = HISTOGRAM,
) -> list[SpendingPoint]:
    """Charge released outcomes again, and look at the account now and then.

    Under the worst-case guarantee costs depend on released outcomes only, so this history may be
    published.

    ``outcomes``: every query asked, in order.
    ``price``: what the job charged an answer.
    Returns: about 60 points; the last one is always there.
    """
    pricing = worst_case_pricing(price, aggregator, electorate)
    wanted = set(
        np.linspace(0, len(outcomes), min(_POINTS, len(outcomes)) + 1).astype(int).tolist()
    )
    points = [SpendingPoint(0, 0, pricing.accountant.epsilon_spent_by_name())]
    labels = 0
    for asked, (outcome, _) in enumerate(charge_outcomes(pricing, electorate, outcomes), 1):
        labels += outcome.label != NO_LABEL
        if asked in wanted:
            spent = pricing.accountant.epsilon_spent_by_name()
            points.append(SpendingPoint(asked, labels, spent))
    return points
