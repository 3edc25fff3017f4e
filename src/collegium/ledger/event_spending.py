"""What a release of noisy events does about a ledger: it reserves their most, and enters them all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from collegium.accounting.accountants import GaussianAccountant
from collegium.accounting.events import Event
from collegium.accounting.export import uses_of
from collegium.accounting.promises import Promise
from collegium.ledger.allowance import Spending
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
