"""Statistics on a ledger: a session is one release, whose share of what people have left is reserved at once.

Questions draw on the reservation; what they did not use is given back when the session ends. A session that
is never ended has cost all that it reserved.
"""

from __future__ import annotations

import numpy as np

from collegium.accounting.neighbours import Arrangement, Neighbours
from collegium.budgets import Budgets
from collegium.errors import InputError
from collegium.ledger.allowance import SEEDED, Allowance
from collegium.ledger.event_spending import EventSpending
from collegium.ledger.ledger import Ledger
from collegium.ledger.limits import Limit


class StatisticsSpending(EventSpending):
    """What a session does about a ledger: parameters and attributes as of :class:`EventSpending`."""

    method = "statistics"
    drawn = "answer"

    @property
    def granted_in_all(self) -> dict[str, Limit]:
        """What the people of each of its groups granted over all releases together."""
        levels = list(self.people.groups.values())
        code_of = dict(
            zip(self.allowance.codes.tolist(), self.people.owner_group.tolist(), strict=True)
        )
        return {
            name: self.allowance.lifetime.limit(levels[code_of[code]])
            for code, name in enumerate(self.allowance.groups)
            if code in code_of
        }

    @property
    def silent(self) -> dict[str, int]:
        """How many people take no part, by level: they have nothing left."""
        its = self.people.owner_group[self.allowance.codes < 0]
        counts = np.bincount(its, minlength=len(self.people.group_names)).tolist()
        return {name: n for name, n in zip(self.people.group_names, counts, strict=True) if n}

    def reserve_share(
        self,
        ledger: Ledger,
        name: str,
        most: dict[str, float],
        arrangement: Arrangement,
    ) -> None:
        """Set aside what the session may cost; as :meth:`at_most`."""
        # All who are offered were asked about when they were looked up.
        self.reserve(ledger, name, self.at_most(most), arrangement, allow_new_people=True)


def begin(
    ledger: Ledger, granted: Budgets, neighbours: str | None, noise_seed: int | None
) -> tuple[Neighbours, StatisticsSpending]:
    """Find out what a ledger allows, and about which neighbours.

    Raises
    ------
    InputError
        If it is no ledger, noise is from a seed, or neighbours are said to be less than it promises about.
    BudgetExceededError
        If nobody has anything left.
    """
    if not hasattr(ledger, "reserve"):
        raise InputError(
            f"ledger must be a collegium.Ledger, got {type(ledger).__name__}: open it with Ledger(place)"
        )
    if noise_seed is not None:
        raise InputError(SEEDED)
    relation = relation_on(ledger, neighbours)
    left = ledger.left(granted)
    allowance = Allowance.what_is_left(granted, left, 1)
    return relation, StatisticsSpending(granted, allowance)


def relation_on(ledger: Ledger, neighbours: str | None) -> Neighbours:
    """Find out about which neighbours answers must be charged: as is said, if the ledger promises no more."""
    blanked = ledger.neighbours is Neighbours.ADD_OR_REMOVE
    if neighbours == "zero-out" and not blanked:
        raise InputError(
            f"the ledger at {ledger} promises something where {ledger.neighbours.in_words}, and "
            "neighbours = 'zero-out' would promise less: leave neighbours out, or give 'replace-one'"
        )
    return (
        Neighbours.ADD_OR_REMOVE
        if blanked and neighbours != "replace-one"
        else Neighbours.ANY_CHANGE
    )
