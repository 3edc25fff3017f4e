"""Weighting: each group has its own teachers, whose votes weigh what the group granted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from collegium.budgets import Budget
from collegium.personalisation.base import (
    Personalisation,
    finish_plan,
    members_only,
    teachers_by_size,
)
from collegium.personalisation.plan import Plan
from collegium.personalisation.rules import relative_influence


@dataclass(frozen=True)
class Weighting(Personalisation):
    """Weight a group's teachers by its budget; Δ = the teacher's weight.

    Parameters
    ----------
    rule : {"exact", "budget", "sqrt", "algorithm2"}
        ``exact``, ``budget`` and ``sqrt``: weights ∝ the group's
        :func:`~collegium.personalisation.rules.relative_influence`, with Σ of all teachers' weights
        = number of teachers. ``algorithm2``: Algorithm 2 of the PoPETs 2023 paper exactly as printed,
        for comparison only (see Notes).

    Notes
    -----
    *Sensitivity.* An owner is taught to one teacher of weight w; with or without the owner, that
    teacher's vote moves at most w from one class to another: √2·w in L2, w in the maximum (PoPETs
    2023, Prop. 3; thesis, Thm. 5.3).

    *Algorithm 2 as printed* sets w_j ∝ ε_j · n_j, with n_j the group's share of the teachers, and
    makes the weights of the *groups*, not of the teachers, add up to k. With two groups of equal size
    the factor n_j cancels, and the overall scale is immaterial here because threshold and noise follow
    the total weight. With three groups of 54 %, 37 % and 9 % at ε = 1, 2, 3 the weights relate as
    0.54 : 0.74 : 0.27, so the most generous group gets the *smallest* weight, half of the strictest
    group's, and spends less than a fifth of its budget (in μ) when the strictest group ends the voting. The
    account stays sound, because cost and budget are tied by the group's name; the budgets are wasted.
    (The published code sorts weights and budgets separately before comparing them; with these three
    groups one group's cost then meets another's budget.)

    Examples
    --------
    >>> groups = {"high": Budget(1.0), "average": Budget(2.0), "low": Budget(3.0)}
    >>> plan = Weighting().plan(groups, {"high": 540, "average": 370, "low": 90}, 100)
    >>> [(g.teachers, round(g.weight, 3)) for g in plan.groups.values()]
    [(54, 0.679), (37, 1.27), (9, 1.82)]
    """

    name: ClassVar[str] = "weighting"
    rules: ClassVar[tuple[str, ...]] = ("exact", "budget", "sqrt", "algorithm2")

    def plan(self, groups: Mapping[str, Budget], sizes: Mapping[str, int], n_teachers: int) -> Plan:
        """Give each group its own teachers and weight; see :meth:`Personalisation.plan`."""
        used = members_only(groups, sizes, n_teachers)
        teachers = teachers_by_size({g: sizes[g] for g in used}, n_teachers, self.name)
        return finish_plan(
            self,
            n_nominal=n_teachers,
            n_teachers=n_teachers,
            mixed=False,
            used=used,
            sizes=sizes,
            teachers=teachers,
            weights=self._weights(used, teachers, n_teachers),
        )

    def _weights(
        self, used: Mapping[str, Budget], teachers: Mapping[str, int], n_teachers: int
    ) -> dict[str, float]:
        if self.rule == "algorithm2":
            influence = relative_influence(used, "budget")
            relative = {g: influence[g] * teachers[g] / n_teachers for g in used}
            factor = n_teachers / sum(relative.values())
            return {g: relative[g] * factor for g in used}
        influence = relative_influence(used, self.rule)
        factor = n_teachers / sum(teachers[g] * influence[g] for g in used)
        return {g: influence[g] * factor for g in used}
