"""Uniform PATE: everybody pays what the strictest allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from collegium.budgets import Budget
from collegium.personalisation.base import Personalisation, finish_plan, members_only
from collegium.personalisation.plan import Plan


@dataclass(frozen=True)
class Uniform(Personalisation):
    """Every owner is taught to one teacher, every teacher has one vote (Papernot et al. 2017).

    The strictest budget ends the voting; whatever others granted above it is unused. The baseline.

    Examples
    --------
    >>> plan = Uniform().plan({"a": Budget(1.0), "b": Budget(3.0)}, {"a": 500, "b": 500}, 50)
    >>> plan.groups["a"].sensitivity, round(plan.groups["b"].utilisation, 2), round(plan.efficiency, 2)
    (1.0, 0.37, 0.54)
    """

    name: ClassVar[str] = "uniform"
    rules: ClassVar[tuple[str, ...]] = ("exact",)

    def plan(self, groups: Mapping[str, Budget], sizes: Mapping[str, int], n_teachers: int) -> Plan:
        """Put all owners into one pool; see :meth:`Personalisation.plan`."""
        used = members_only(groups, sizes, n_teachers)
        return finish_plan(
            self,
            n_nominal=n_teachers,
            n_teachers=n_teachers,
            mixed=True,
            used=used,
            sizes=sizes,
            teachers=dict.fromkeys(used, n_teachers),
        )
