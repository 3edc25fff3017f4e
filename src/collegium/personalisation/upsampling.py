"""Upsampling: the more an owner grants, the more teachers see the owner's records."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import ClassVar

from collegium.budgets import Budget
from collegium.errors import InputError
from collegium.parameters import setting
from collegium.personalisation.base import Personalisation, finish_plan, members_only
from collegium.personalisation.plan import Plan
from collegium.personalisation.rules import relative_influence

_MOST_DUPLICATES = 1000
_MOST_TEACHERS = 1_000_000


@dataclass(frozen=True)
class Upsampling(Personalisation):
    """Teach an owner to u teachers; Δ = u.

    Every teacher sees as many records as it would without duplicates, so there are more teachers, and
    threshold and noise grow with them (PoPETs 2023, §4.1; thesis, §6.2).

    Parameters
    ----------
    rule : {"exact", "budget", "sqrt", "algorithm1"}
        ``exact``, ``budget`` and ``sqrt``: the whole numbers up to ``max_duplicates`` whose ratios come
        nearest to the groups' :func:`~collegium.personalisation.rules.relative_influence`; the plan's
        ``utilisation`` and ``efficiency`` state what rounding wastes. Each duplicate costs training
        time, so the smallest numbers within ``tolerance`` of the best are taken. ``algorithm1``:
        Algorithm 1 of the PoPETs 2023 paper, ε·10^p divided by their greatest common divisor.
    max_duplicates : int, default=6
        Most teachers for one owner, for the rules that round. Training time grows with it.
    tolerance : float, default=0.02
        Efficiency that may be given up for fewer duplicates.
    precision : int, default=2
        p of Algorithm 1: decimals of ε that count.

    Notes
    -----
    *Sensitivity.* With or without an owner who is taught to u teachers, each of these may vote
    otherwise. In L2 the count vector moves most when all u move from one class to one other: √2·u; the
    maximum moves by u (PoPETs 2023, Prop. 2; thesis, Thm. 5.1).

    Examples
    --------
    >>> groups = {"high": Budget(1.0), "average": Budget(2.0), "low": Budget(3.0)}
    >>> plan = Upsampling().plan(groups, {"high": 540, "average": 370, "low": 90}, 100)
    >>> [g.duplicates for g in plan.groups.values()], plan.n_teachers, round(plan.efficiency, 2)
    ([1, 2, 3], 155, 0.94)
    """

    max_duplicates: int = setting(
        6, "upsampling: most teachers for one owner.", most=_MOST_DUPLICATES
    )
    tolerance: float = setting(
        0.02,
        "upsampling: efficiency that may be given up for fewer duplicates.",
        least=0,
        below=1,
    )
    precision: int = setting(2, "upsampling, algorithm1: decimals of ε.", least=0, most=6)
    name: ClassVar[str] = "upsampling"
    rules: ClassVar[tuple[str, ...]] = ("exact", "budget", "sqrt", "algorithm1")

    def plan(self, groups: Mapping[str, Budget], sizes: Mapping[str, int], n_teachers: int) -> Plan:
        """Give each group its number of duplicates; see :meth:`Personalisation.plan`."""
        used = members_only(groups, sizes, n_teachers)
        if self.rule == "algorithm1":
            duplicates = self._algorithm1(used)
        else:
            duplicates = self._nearest(relative_influence(used, self.rule), sizes)
        people = sum(sizes[g] for g in used)
        copies = sum(sizes[g] * duplicates[g] for g in used)
        total = max(round(n_teachers * copies / people), max(duplicates.values()))
        if total > _MOST_TEACHERS:
            raise InputError(
                f"rule {self.rule!r} would train {total:,} teachers, which is more than {_MOST_TEACHERS:,}: "
                "lower the precision, bring budgets nearer to each other, or use rule 'exact'"
            )
        return finish_plan(
            self,
            n_nominal=n_teachers,
            n_teachers=total,
            mixed=True,
            used=used,
            sizes=sizes,
            teachers=dict.fromkeys(used, total),
            duplicates=duplicates,
        )

    def _nearest(self, influence: Mapping[str, float], sizes: Mapping[str, int]) -> dict[str, int]:
        """Choose the smallest whole numbers that waste little.

        Waste is measured as the plan's efficiency is: copies · min_g(influence_g / u_g) is what all
        owners together can spend before the first group runs out. For a given minimum, the largest
        numbers that keep it waste least, and the minimum is some influence_g / j: these are tried.
        """
        names = list(influence)
        granted = sum(sizes[g] * influence[g] for g in names)
        candidates: list[tuple[int, float, dict[str, int]]] = []
        for g, j in product(names, range(1, self.max_duplicates + 1)):
            fits = {h: math.floor(j * influence[h] / influence[g] + 1e-9) for h in names}
            if min(fits.values()) < 1:
                continue
            duplicates = {h: min(number, self.max_duplicates) for h, number in fits.items()}
            copies = sum(sizes[h] * duplicates[h] for h in names)
            spendable = copies * min(influence[h] / duplicates[h] for h in names)
            candidates.append((copies, spendable / granted, duplicates))
        enough = max(efficiency for _, efficiency, _ in candidates) - self.tolerance - 1e-9
        good = [candidate for candidate in candidates if candidate[1] >= enough]
        return min(good, key=lambda candidate: (candidate[0], -candidate[1]))[2]

    def _algorithm1(self, used: Mapping[str, Budget]) -> dict[str, int]:
        if any(budget.is_unlimited for budget in used.values()):
            raise InputError(
                "Algorithm 1 divides budgets, which ε = ∞ does not allow: use rule 'exact'"
            )
        scaled = {
            g: round(Fraction(budget.epsilon) * 10**self.precision) for g, budget in used.items()
        }
        if min(scaled.values()) == 0:
            raise InputError(
                f"a budget is 0 when rounded to {self.precision} decimals: raise the precision"
            )
        divisor = math.gcd(*scaled.values())
        return {g: value // divisor for g, value in scaled.items()}
