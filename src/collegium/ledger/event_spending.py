"""What a release of noisy events does about a ledger: it reserves their most, and enters them all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from collegium.accounting.accountants import GaussianAccountant
from collegium.accounting.events import Event
from collegium.accounting.export import uses_of
from collegium.accounting.neighbours import Arrangement, Neighbours
from collegium.accounting.promises import Promise
from collegium.budgets import Budgets
from collegium.errors import InputError
from collegium.ledger.allowance import SEEDED, Allowance, Spending
from collegium.ledger.ledger import Ledger
from collegium.ledger.limits import Cost

_SLACK = 1 + 1e-9


class EventSpending(Spending):
    """What it may use: parameters and attributes as of :class:`~collegium.ledger.allowance.Spending`.

    ``drawn``: what comes of an event, in the account that a receipt shows.
    """

    drawn: ClassVar[str] = "draw"

    def at_most(self, most: dict[str, float]) -> list[Cost]:
        """Costs of the ledger's groups. ``most``: Σμ², or Σε where that is promised, by group."""
        lifetime, groups = self.allowance.lifetime, self.allowance.groups
        pure = lifetime.promise is Promise.PURE
        costs: dict[str, Cost] = {}
        for group, one in most.items():
            everything = lifetime.all_of(groups[group]) if group in groups else Cost(math.inf)
            costs[group] = (
                Cost(math.inf if one else 0.0, min(one * _SLACK, everything.pure_epsilon))
                if pure
                else Cost(min(one * _SLACK, everything.mu_squared))
            )
        return self.of_each_group(costs, Cost(0.0))

    @classmethod
    def begin(
        cls,
        ledger: Ledger,
        granted: Budgets,
        neighbours: str | None,
        noise_seed: int | None,
        spend: float = 1.0,
    ) -> tuple[Neighbours, Self]:
        """Find out what a ledger allows, and about which neighbours.

        ``spend``: share of what people have left.

        Raises
        ------
        InputError
            If it is no ledger, noise is from a seed, or neighbours are said to be less than it promises.
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
        allowance = Allowance.what_is_left(granted, ledger.left(granted), 1)
        return relation, cls(granted, allowance if spend == 1.0 else allowance.part(spend))

    def reserve_share(
        self,
        ledger: Ledger,
        name: str,
        most: dict[str, float],
        arrangement: Arrangement,
    ) -> None:
        """Set aside what the release may cost; as :meth:`at_most`."""
        # All who are offered were asked about when they were looked up.
        self.reserve(ledger, name, self.at_most(most), arrangement, allow_new_people=True)

    def settle(self, account: GaussianAccountant, events: Sequence[Event]) -> None:
        """Enter what was charged; nothing, if nothing was."""
        assert self._reservation is not None
        place: dict[str, int] = {name: cohort for cohort, name in enumerate(account.names)}
        costs: list[Cost] = []
        uses: list[list[dict[str, Any]]] = []
        for cohort in self.of_each_group(place, -1):
            if not events or cohort < 0:
                costs.append(Cost(0.0))
                uses.append([])
                continue
            spent, pure = float(account.mu_squared[cohort]), float(account.pure_epsilon[cohort])
            costs.append(Cost(spent, pure))
            uses.append(
                [use.to_json() for event in events for use in uses_of(event, cohort, self.drawn)]
            )
        self._reservation.settle(costs, uses)


def relation_on(ledger: Ledger, neighbours: str | None) -> Neighbours:
    """Find out about which neighbours draws must be charged: as is said, if the ledger promises no more."""
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
