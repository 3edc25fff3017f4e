"""Statistics on a ledger: a session is one release, whose share of what people have left is reserved at once.

Questions draw on the reservation; what they did not use is given back when the session ends. A session that
is never ended has cost all that it reserved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from collegium.accounting.accountants import GaussianAccountant
from collegium.accounting.events import Event
from collegium.accounting.export import uses_of
from collegium.accounting.gaussian import pure_to_gdp
from collegium.accounting.neighbours import Arrangement, Neighbours
from collegium.budgets import Budgets
from collegium.errors import InputError
from collegium.ledger.allowance import SEEDED, Allowance, Spending
from collegium.ledger.ledger import Ledger
from collegium.ledger.limits import Cost

_SLACK = 1 + 1e-9


class StatisticsSpending(Spending):
    """What a session does about a ledger: parameters and attributes as of :class:`Spending`."""

    method = "statistics"

    def reserve_share(
        self,
        ledger: Ledger,
        name: str,
        most: dict[str, float],
        laplace: bool,
        arrangement: Arrangement,
    ) -> None:
        """Set aside what the session may cost; as :meth:`at_most`."""
        self.reserve(ledger, name, self.at_most(most, laplace), arrangement)

    def at_most(self, most: dict[str, float], laplace: bool) -> list[Cost]:
        """Costs of the ledger's groups. ``most``: Σμ², or Σε, by group."""
        costs = {group: _cost(one * _SLACK, laplace) for group, one in most.items()}
        return self.of_each_group(costs, Cost(0.0))

    def settle(self, account: GaussianAccountant, events: Sequence[Event]) -> None:
        """Enter what was charged; nothing, if nothing was."""
        assert self._reservation is not None
        place: dict[str, int] = {name: cohort for cohort, name in enumerate(account.names)}
        costs: list[Cost] = []
        uses: list[list[dict[str, Any]]] = []
        cohorts = self.of_each_group(place, -1)
        for cohort, at_most in zip(cohorts, self._reservation.costs, strict=True):
            if not events or cohort < 0:
                costs.append(Cost(0.0))
                uses.append([])
                continue
            spent, pure = float(account.mu_squared[cohort]), float(account.pure_epsilon[cohort])
            if math.isfinite(at_most.pure_epsilon) and pure <= at_most.pure_epsilon:
                # What is reserved holds as well: pure ε composes, and is μ-GDP as a whole.
                spent = min(spent, at_most.mu_squared)
            costs.append(Cost(spent, pure))
            uses.append(
                [use.to_json() for event in events for use in uses_of(event, cohort, "answer")]
            )
        self._reservation.settle(costs, uses)


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
    allowance = Allowance.what_is_left(granted, left, 1, ledger.delta_0_share)
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


def _cost(most: float, laplace: bool) -> Cost:
    return Cost(pure_to_gdp(most) ** 2 * _SLACK, most) if laplace and most else Cost(most)
