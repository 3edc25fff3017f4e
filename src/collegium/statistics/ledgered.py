"""Statistics on a ledger: a session is one release, whose share of what people have left is reserved at once.

Questions draw on the reservation; what they did not use is given back when the session ends. A session that
is never ended has cost all that it reserved.
"""

from __future__ import annotations

import numpy as np

from collegium.ledger.event_spending import EventSpending
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
