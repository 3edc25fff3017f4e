"""Vanishing: teachers of stricter groups stay away from some of the votes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from collegium.budgets import Budget
from collegium.parameters import setting
from collegium.personalisation.base import (
    Personalisation,
    finish_plan,
    members_only,
    teachers_by_size,
)
from collegium.personalisation.plan import Plan
from collegium.personalisation.rules import relative_influence

_FREQUENCY: dict[str, Callable[[float], float]] = {
    "exact": lambda influence: influence**2,
    "budget": lambda influence: influence**2,
    "sqrt": lambda influence: influence**2,
    "algorithm3": lambda influence: influence,
    "footnote2": lambda influence: influence**4,
    "thesis": lambda influence: 1.0 if influence == 1 else influence**2 / 2,
}


@dataclass(frozen=True)
class Vanishing(Personalisation):
    """Let a group's teachers take part in a share of the queries; Δ = 1 when they do, else 0.

    Parameters
    ----------
    rule : {"exact", "budget", "sqrt", "algorithm3", "footnote2", "thesis"}
        Frequency f of a group whose budget is c times smaller than the most generous one.
        ``exact``: f = (μ/μ_max)², with which all budgets run out together under the worst-case
        account, since μ² grows by the same amount in each vote in which an owner takes part.
        ``budget``: f = (ε/ε_max)², the text of Appendix C of the PoPETs 2023 paper; ``sqrt``: the
        thesis's loose bound, f = ε/ε_max; ``algorithm3``: the same, as that algorithm is printed;
        ``footnote2``: f = (ε/ε_max)⁴, the paper's footnote on its experiments. ``thesis``:
        f = (ε/ε_max)²/2 (1 for the most generous), "the double of the square of the intended budgets'
        ratio" of the thesis's section 6.2.2, which its numbers of labels follow better than footnote 2.
    shuffle_every : int, default=100
        Queries after which the order of participation is dealt anew from public randomness.

    Notes
    -----
    *Sensitivity.* Threshold and noise are scaled to the number of teachers who take part. An owner's
    one teacher moves at most 1 vote when it takes part (PoPETs 2023, Prop. 4). Participation is
    periodic and public, so nothing is gained from subsampling; each teacher's owners have an account of
    their own, since participation counts may differ by a few. Vanishing is the least efficient of the
    personalisations: with the same total influence, unequal participation costs more (μ² adds up
    squares, Cauchy-Schwarz).

    Examples
    --------
    >>> plan = Vanishing().plan({"a": Budget(1.0), "b": Budget(2.0)}, {"a": 500, "b": 500}, 100)
    >>> round(plan.groups["a"].frequency, 3), round(plan.efficiency, 2)
    (0.286, 0.84)
    """

    shuffle_every: int = setting(100, "vanishing: queries after which participation is dealt anew.")
    name: ClassVar[str] = "vanishing"
    rules: ClassVar[tuple[str, ...]] = tuple(_FREQUENCY)

    def plan(self, groups: Mapping[str, Budget], sizes: Mapping[str, int], n_teachers: int) -> Plan:
        """Give each group its own teachers and frequency; see :meth:`Personalisation.plan`."""
        used = members_only(groups, sizes, n_teachers)
        base = self.rule if self.rule in ("exact", "sqrt") else "budget"
        influence = relative_influence(used, base)
        return finish_plan(
            self,
            n_nominal=n_teachers,
            n_teachers=n_teachers,
            mixed=False,
            used=used,
            sizes=sizes,
            teachers=teachers_by_size({g: sizes[g] for g in used}, n_teachers, self.name),
            frequencies={g: _FREQUENCY[self.rule](influence[g]) for g in used},
            shuffle_every=self.shuffle_every,
        )
