"""The public plan of a study: how many teachers each group gets and how much they weigh.

A plan is computed from public numbers only (budgets, group sizes, hyperparameters) before any record is
read. It becomes an :class:`Assignment` (who is taught by whom) and an
:class:`~collegium.personalisation.electorate.Electorate` (what the voting sees).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from collegium.budgets import Budget, Budgets
from collegium.errors import InputError
from collegium.grid import GRID, to_grid
from collegium.personalisation.electorate import Electorate, Participation
from collegium.personalisation.partition import choose_teachers, deal_teachers, owner_hashes
from collegium.personalisation.rules import relative_influence

ADJACENCY = {
    "hash": "all records of one owner are added, removed or replaced",
    "balanced": "all records of one owner are replaced",
}


@dataclass(frozen=True)
class GroupPlan:
    """One group's part in a plan.

    Attributes
    ----------
    budget : Budget
        What each owner of the group granted.
    owners : int
        Number of owners (public).
    teachers : int
        Teachers who see records of this group.
    duplicates : int
        Teachers who see each owner's records.
    weight : float
        Weight of one teacher's vote.
    frequency : float
        Share of the queries in which these teachers take part.
    utilisation : float
        Share of its budget (in μ) that the group has spent when the first group's runs out.
    """

    budget: Budget
    owners: int
    teachers: int
    duplicates: int
    weight: float
    frequency: float
    utilisation: float

    @property
    def sensitivity(self) -> float:
        """Δ of an owner, at a query in which the owner's teachers take part."""
        return self.duplicates * self.weight


@dataclass(frozen=True)
class Plan:
    """Who teaches and who weighs how much, from public numbers only.

    Attributes
    ----------
    personalisation : str
        Name of the personalisation.
    rule : str
        How budgets became influence.
    n_nominal : int
        Number of teachers k for which threshold and noise are given.
    n_teachers : int
        Number of teachers trained.
    mixed : bool
        Whether all groups share all teachers (uniform, upsampling), or each has its own.
    groups : mapping of str to GroupPlan
        The groups that have members.
    efficiency : float
        Share of all granted budgets that turns into votes (1: nothing is wasted):
        n · min_g (μ_g / rms_g) / Σ_o μ_o, where rms_g is the root mean square over queries of the
        group's influence when the total influence is n.
    """

    personalisation: str
    rule: str
    n_nominal: int
    n_teachers: int
    mixed: bool
    groups: Mapping[str, GroupPlan]
    efficiency: float
    shuffle_every: int = 100

    def electorate(self, seed: int) -> Electorate:
        """Build what the voting sees.

        Parameters
        ----------
        seed : int
            Public randomness for participation; unused when all teachers take part always.
        """
        budgets = {name: group.budget for name, group in self.groups.items()}
        if self.mixed:
            return Electorate(
                n_nominal=self.n_nominal,
                weights=np.ones(self.n_teachers),
                groups=budgets,
                cohort_groups=tuple(self.groups),
                sensitivity=np.array([group.sensitivity for group in self.groups.values()]),
            )
        ranges = self.teacher_ranges()
        teachers_of = {name: np.arange(*ends) for name, ends in ranges.items()}
        return separate_electorate(self, teachers_of, seed)

    def teacher_ranges(self) -> dict[str, tuple[int, int]]:
        """First teacher and one past the last teacher of each group."""
        if self.mixed:
            return dict.fromkeys(self.groups, (0, self.n_teachers))
        ends = np.cumsum([0, *(group.teachers for group in self.groups.values())]).tolist()
        return {name: (ends[i], ends[i + 1]) for i, name in enumerate(self.groups)}

    def adjacency(self, assignment: str = "hash") -> str:
        """Say which neighbours the guarantee is about.

        Raises
        ------
        InputError
            If ``assignment`` is unknown.
        """
        if assignment not in ADJACENCY:
            raise InputError(
                f"unknown assignment {assignment!r}: allowed are {', '.join(ADJACENCY)}"
            )
        return ADJACENCY[assignment]

    def assign(self, budgets: Budgets, key: bytes, assignment: str = "hash") -> Assignment:
        """Decide which teachers see which owner's records.

        Parameters
        ----------
        budgets : Budgets
            Owners and their groups. The plan need not have been made from exactly these: a study
            with one owner fewer keeps its plan.
        key : bytes
            Public randomness.
        assignment : {"hash", "balanced"}
            ``hash``: an owner's teachers depend on the owner's name alone. ``balanced``: shards of
            almost equal size; protects only against replacing an owner's records.

        Raises
        ------
        InputError
            If ``assignment`` is unknown or a group with members is not in the plan.
        """
        adjacency = self.adjacency(assignment)
        ranges = self.teacher_ranges()
        width = max(group.duplicates for group in self.groups.values())
        owner_teachers = np.full((budgets.n_owners, width), -1, dtype=np.int32)
        hashes = owner_hashes(budgets.owners, key)
        dealt = 0
        for code, name in enumerate(budgets.group_names):
            members = np.flatnonzero(budgets.owner_group == code)
            if not members.size:
                continue
            if name not in self.groups:
                raise InputError(
                    f"group {name!r} has owners but no place in the plan: make the plan from the "
                    "same policy"
                )
            group = self.groups[name]
            first, end = ranges[name]
            if assignment == "hash":
                chosen = choose_teachers(hashes[members], end - first, group.duplicates)
            else:
                start = dealt if self.mixed else 0
                chosen = deal_teachers(hashes[members], end - first, group.duplicates, start)
                dealt += members.size * group.duplicates
            owner_teachers[members, : group.duplicates] = chosen + first
        return Assignment(budgets, owner_teachers, self.n_teachers, adjacency)


def separate_electorate(
    plan: Plan, teachers_of: Mapping[str, NDArray[np.intp]], seed: int
) -> Electorate:
    """Build the electorate of a plan in which each group has its own, explicitly listed teachers."""
    weights = np.zeros(plan.n_teachers)
    teacher_group = np.empty(plan.n_teachers, dtype=object)
    for name, teachers in teachers_of.items():
        weights[teachers] = plan.groups[name].weight
        teacher_group[teachers] = name
    budgets = {name: group.budget for name, group in plan.groups.items()}
    frequencies = [plan.groups[name].frequency for name in teachers_of]
    if all(frequency == 1.0 for frequency in frequencies):
        return Electorate(
            n_nominal=plan.n_nominal,
            weights=weights,
            groups=budgets,
            cohort_groups=tuple(plan.groups),
            sensitivity=np.array([group.sensitivity for group in plan.groups.values()]),
        )
    return Electorate(
        n_nominal=plan.n_nominal,
        weights=weights,
        groups=budgets,
        cohort_groups=tuple(teacher_group.tolist()),
        sensitivity=weights.copy(),
        participation=Participation(
            list(teachers_of.values()), frequencies, seed, plan.shuffle_every
        ),
    )


class Assignment:
    """Which teachers see which records.

    Attributes
    ----------
    owner_teachers : ndarray of int32, shape (n_owners, most duplicates)
        Teachers of each owner, padded with -1.
    n_teachers : int
        Number of teachers, including those without any record.
    adjacency : str
        Which neighbours the guarantee is about, in words.
    """

    def __init__(
        self,
        budgets: Budgets,
        owner_teachers: NDArray[np.int32],
        n_teachers: int,
        adjacency: str,
    ) -> None:
        self.owner_teachers = owner_teachers
        self.n_teachers = n_teachers
        self.adjacency = adjacency
        record_teachers = owner_teachers[budgets.record_owner]
        records, columns = np.nonzero(record_teachers >= 0)
        teachers = record_teachers[records, columns]
        order = np.lexsort((records, teachers))
        self._records = records[order]
        counts = np.bincount(teachers, minlength=n_teachers)
        self._offsets = np.concatenate([[0], np.cumsum(counts)])

    def records_of(self, teacher: int) -> NDArray[np.intp]:
        """Positions of the records that a teacher sees, ascending."""
        return self._records[self._offsets[teacher] : self._offsets[teacher + 1]]

    def shards(self) -> list[NDArray[np.intp]]:
        """Positions of the records of every teacher."""
        return [self.records_of(teacher) for teacher in range(self.n_teachers)]


@dataclass(frozen=True)
class Personalisation(ABC):
    """Turns public budgets and group sizes into a :class:`Plan`.

    Parameters
    ----------
    rule : str, default="exact"
        How budgets become influence: see
        :func:`~collegium.personalisation.rules.relative_influence` and the subclass.
    """

    rule: str = "exact"
    name: ClassVar[str]
    rules: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        if self.rule not in self.rules:
            raise InputError(
                f"personalisation {self.name!r} has no weight rule {self.rule!r}: allowed are "
                f"{', '.join(self.rules)}"
            )

    @abstractmethod
    def plan(self, groups: Mapping[str, Budget], sizes: Mapping[str, int], n_teachers: int) -> Plan:
        """Make the plan.

        Parameters
        ----------
        groups : mapping of str to Budget
            Every group's budget.
        sizes : mapping of str to int
            Number of owners of every group; groups of size 0 take no part.
        n_teachers : int
            Nominal number of teachers k.

        Raises
        ------
        InputError
            If there are more teachers than owners, or a group is too small for one teacher.
        """

    def plan_for(self, budgets: Budgets, n_teachers: int) -> Plan:
        """Make the plan for the owners at hand; their group sizes are treated as public."""
        return self.plan(budgets.groups, budgets.group_sizes(), n_teachers)


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
    """Share teachers among groups in proportion to their owners (largest remainders, ties by name).

    Raises
    ------
    InputError
        If a group's share is less than half a teacher.
    """
    people = sum(sizes.values())
    quotas = {name: n_teachers * size / people for name, size in sizes.items()}
    small = [name for name, quota in quotas.items() if quota < 0.5]
    if small or len(sizes) > n_teachers:
        name = min(sorted(quotas), key=lambda group: quotas[group])
        raise InputError(
            f"group {name!r} has {sizes[name]} owner(s), too few for one of {n_teachers} teachers of "
            f"about {people / n_teachers:.0f}: {personalisation} needs a teacher per group; use "
            "personalisation 'upsampling', fewer teachers, or merge the group with a stricter one"
        )
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
) -> Plan:
    """Work out utilisation and efficiency, and freeze the plan."""
    duplicates = duplicates or dict.fromkeys(used, 1)
    frequencies = frequencies or dict.fromkeys(used, 1.0)
    # A group whose weight would round to 0 would have no say at all, so it keeps the smallest one.
    rounded = {g: max(GRID, float(to_grid((weights or {}).get(g, 1.0)))) for g in used}
    if mixed:
        scale = n_teachers / n_nominal
    else:
        scale = sum(teachers[g] * rounded[g] * frequencies[g] for g in used) / n_nominal
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
    )
