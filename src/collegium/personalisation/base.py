"""What all personalisations share: from public budgets and group sizes to a plan."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

from collegium.budgets import Budget, Budgets
from collegium.errors import InputError
from collegium.noise.grid import GRID, to_grid
from collegium.parameters import Settings, setting
from collegium.personalisation.assignment import ASSIGNMENTS
from collegium.personalisation.bins import few_budgets
from collegium.personalisation.plan import GroupPlan, Plan
from collegium.personalisation.rules import relative_influence

LEAST_QUOTA = 0.5
"""Part of a teacher's usual number of owners below which a group gets no teacher of its own."""


@dataclass(frozen=True)
class Personalisation(Settings, ABC):
    """Turns public budgets and group sizes into a :class:`Plan`.

    ``rule``: how budgets become influence: see :func:`~collegium.personalisation.rules.relative_influence`
        and the subclass.
    ``assignment``: how owners get their teachers; by keyword.
    """

    rule: str = setting(
        "exact",
        "exact: all budgets run out together. budget, sqrt: as in the papers (∝ ε, ∝ √ε). algorithm1 "
        "(upsampling), algorithm2 (weighting), algorithm3, footnote2 and thesis (vanishing): as printed "
        "there.",
    )
    _: KW_ONLY
    assignment: str = setting(
        "hash",
        "hash: an owner's teachers follow from the owner's name alone. balanced: shards of equal size, "
        "protecting against replacement only.",
        choices=ASSIGNMENTS,
    )
    name: ClassVar[str]
    rules: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rule not in self.rules:
            raise InputError(
                f"personalisation {self.name!r} has no weight rule {self.rule!r}: allowed are "
                f"{', '.join(self.rules)}"
            )

    @abstractmethod
    def plan(self, groups: Mapping[str, Budget], sizes: Mapping[str, int], n_teachers: int) -> Plan:
        """Make the plan.

        ``groups``: every group's budget.
        ``sizes``: number of owners of every group; groups of size 0 take no part.
        ``n_teachers``: nominal number of teachers k.
        Raises InputError if there are more teachers than owners, or a group is too small for one teacher.
        """

    def few_budgets(self, budgets: Budgets, n_teachers: int) -> Budgets:
        """Put people into few groups, where nearly everybody has a budget of their own; else leave them.

        Nobody's group grants more than they did. A function of budgets and group sizes, which are public.
        """
        return few_budgets(budgets)

    def plan_for(self, budgets: Budgets, n_teachers: int) -> Plan:
        """Make the plan for declared group sizes, or else for those of the owners at hand."""
        plan = self.plan(budgets.groups, budgets.public_sizes(), n_teachers)
        return replace(plan, efficiency=plan.efficiency * budgets.kept)


def members_only(
    groups: Mapping[str, Budget], sizes: Mapping[str, int], n_teachers: int
) -> dict[str, Budget]:
    """Drop groups without members, and refuse what cannot be planned."""
    if n_teachers < 1:
        raise InputError(f"the number of teachers must be at least 1, got {n_teachers}")
    used = {name: budget for name, budget in groups.items() if sizes.get(name, 0) > 0}
    people = sum(sizes[name] for name in used)
    if not used:
        raise InputError("no group has any member: give at least one owner's budget")
    if n_teachers > people:
        raise InputError(
            f"{n_teachers} teachers, but only {people} owners of records: use at most {people} "
            "teachers (some dozens of owners for each is usual)"
        )
    return used


def teachers_by_size(
    sizes: Mapping[str, int], n_teachers: int, personalisation: str
) -> dict[str, int]:
    """Share teachers among groups in proportion to their owners (largest remainders, ties by name)."""
    people = sum(sizes.values())
    quotas = {name: n_teachers * size / people for name, size in sizes.items()}
    small = [name for name, quota in quotas.items() if quota < LEAST_QUOTA]
    if small or len(sizes) > n_teachers:
        name = min(sorted(quotas), key=lambda group: quotas[group])
        least = max(
            len(sizes), -(-people // (2 * sizes[name]))
        )  # of which no quota is below one half
        raise InputError(
            f"group {name!r} has {sizes[name]} owner(s), too few for one of {n_teachers} teachers of "
            f"about {people / n_teachers:.0f}: {personalisation} needs a teacher per group; use "
            f"personalisation 'hybrid' or 'upsampling', at least {least} teachers (of about "
            f"{people / least:.0f} owners each), or merge the group with a stricter one"
        )
    return whole_teachers(quotas, n_teachers)


def whole_teachers(quotas: Mapping[str, float], n_teachers: int) -> dict[str, int]:
    """Round quotas to at least one teacher each, by largest remainders; ties by name.

    ``n_teachers``: how many they are together, at least as many as there are quotas.
    """
    given = {name: max(1, math.floor(quota)) for name, quota in quotas.items()}
    while sum(given.values()) < n_teachers:
        given[max(sorted(given), key=lambda group: quotas[group] - given[group])] += 1
    while sum(given.values()) > n_teachers:
        able = sorted(group for group in given if given[group] > 1)
        given[max(able, key=lambda group: given[group] - quotas[group])] -= 1
    return given


def finish_plan(
    personalisation: Personalisation,
    *,
    n_nominal: int,
    n_teachers: int,
    mixed: bool,
    used: Mapping[str, Budget],
    sizes: Mapping[str, int],
    teachers: Mapping[str, int],
    duplicates: Mapping[str, int] | None = None,
    weights: Mapping[str, float] | None = None,
    frequencies: Mapping[str, float] | None = None,
    shuffle_every: int = 100,
    partitions: int = 1,
    pools: tuple[tuple[str, ...], ...] = (),
) -> Plan:
    """Work out utilisation and efficiency, and freeze the plan.

    ``pools``: groups that share teachers, in the order of their teachers; default: each has its own.
    """
    duplicates = duplicates or dict.fromkeys(used, 1)
    weights = weights or dict.fromkeys(used, 1.0)
    frequencies = frequencies or dict.fromkeys(used, 1.0)
    # A group whose weight would round to 0 would have no say at all, so it keeps the smallest one.
    rounded = {g: max(GRID, float(to_grid(weights[g]))) for g in used}
    if mixed:
        scale = n_teachers / n_nominal
    else:
        having = [pool[0] for pool in pools] or list(used)
        scale = sum(teachers[g] * rounded[g] * frequencies[g] for g in having) / n_nominal
    granted = relative_influence(used, "exact")
    rms = {g: duplicates[g] * rounded[g] * math.sqrt(frequencies[g]) / scale for g in used}
    limit = min(granted[g] / rms[g] for g in used)
    people = sum(sizes[g] for g in used)
    groups = {
        g: GroupPlan(
            budget=used[g],
            owners=sizes[g],
            teachers=teachers[g],
            duplicates=duplicates[g],
            weight=rounded[g],
            frequency=frequencies[g],
            utilisation=min(1.0, limit * rms[g] / granted[g]),
        )
        for g in used
    }
    efficiency = people * limit / sum(sizes[g] * granted[g] for g in used)
    return Plan(
        personalisation=personalisation.name,
        rule=personalisation.rule,
        n_nominal=n_nominal,
        n_teachers=n_teachers,
        mixed=mixed,
        groups=groups,
        efficiency=min(1.0, efficiency),
        shuffle_every=shuffle_every,
        partitions=partitions,
        pools=pools,
    )
