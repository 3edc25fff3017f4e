"""The public plan of a study: how many teachers each group gets and how much they weigh.

A plan is computed from public numbers only (budgets, group sizes, hyperparameters) before any record is
read. It becomes an :class:`Assignment` (who is taught by whom) and an
:class:`~collegium.personalisation.electorate.Electorate` (what the voting sees).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.neighbours import OWNER
from collegium.accounting.statement import large_deltas
from collegium.budgets import Budget, Budgets
from collegium.errors import InputError
from collegium.notebooks import InNotebooks
from collegium.personalisation.assignment import Assignment, check_assignment
from collegium.personalisation.electorate import Electorate, Participation
from collegium.personalisation.partition import (
    choose_teachers,
    deal_teachers,
    hashes_of_part,
    owner_hashes,
)


@dataclass(frozen=True)
class GroupPlan:
    """One group's part in a plan.

    ``budget``: what each owner of the group granted.
    ``owners``: number of owners (public).
    ``teachers``: teachers who see records of this group.
    ``duplicates``: teachers who see each owner's records.
    ``weight``: weight of one teacher's vote.
    ``frequency``: share of the queries in which these teachers take part.
    ``utilisation``: share of its budget (in μ) that the group has spent when the first group's runs
        out.
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
class Plan(InNotebooks):
    """Who teaches and who weighs how much, from public numbers only.

    ``personalisation``: name of the personalisation.
    ``n_nominal``: number of teachers k for which threshold and noise are given.
    ``n_teachers``: number of teachers trained.
    ``mixed``: whether all groups share all teachers (uniform, upsampling, bagging), or each has its own.
    ``groups``: the groups that have members.
    ``pools``: groups that share teachers, in the order of their teachers; empty: each group has its own.
    ``partitions``: into how many equal parts the teachers are cut, in each of which every owner is taught
        once (bagging); 1: an owner's teachers are any.
    ``efficiency``: share of all granted budgets that turns into votes (1: nothing is wasted): n ·
        min_g (μ_g / rms_g) / Σ_o μ_o, where rms_g is the root mean square over queries of the
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
    partitions: int = 1
    pools: tuple[tuple[str, ...], ...] = ()

    @property
    def effective_votes(self) -> float:
        """How many equal votes say as much as these, without noise: (Σ Δ)² / Σ Δ² over owners.

        At most the nominal number of teachers, and that much where all have the same influence.
        """
        people = np.array([group.owners for group in self.groups.values()], dtype=np.float64)
        says = np.array([group.sensitivity * group.frequency for group in self.groups.values()])
        return float(self.n_nominal * (people @ says) ** 2 / (people @ says**2) / people.sum())

    def large_deltas(self, unit: str = OWNER) -> str:
        """Say which δ are too large to promise much; empty if none is."""
        members = [(name, group.owners, group.budget) for name, group in self.groups.items()]
        return large_deltas(members, unit)

    def electorate(self, seed: int) -> Electorate:
        """Build what the voting sees.

        ``seed``: public randomness for participation; unused when all teachers take part always.
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
        pools = self.pools or [(name,) for name in self.groups]
        ends = np.cumsum([0, *(self.groups[pool[0]].teachers for pool in pools)]).tolist()
        of_pools = {name: (ends[i], ends[i + 1]) for i, pool in enumerate(pools) for name in pool}
        return {name: of_pools[name] for name in self.groups}

    def assign(self, budgets: Budgets, key: bytes, assignment: str = "hash") -> Assignment:
        """Decide which teachers see which owner's records.

        ``budgets``: owners and their groups. The plan need not have been made from exactly these: a
            study with one owner fewer keeps its plan.
        ``key``: public randomness.
        ``assignment``: ``hash``: an owner's teachers depend on the owner's name alone.
            ``balanced``: shards of almost equal size; protects only against replacing an owner's
            records.
        """
        check_assignment(assignment)
        hashes = owner_hashes(budgets.owners, key)
        names, groups = budgets.group_names, budgets.owner_group
        owner_teachers = self._place(hashes, names, groups, assignment)
        return Assignment(budgets, owner_teachers, self.n_teachers)

    def teachers_of(
        self, hashes: NDArray[np.uint64], group_names: Sequence[str], groups: NDArray[np.intp]
    ) -> NDArray[np.int32]:
        """Name the teachers of some owners by their hashes alone, wherever the others are.

        What :meth:`assign` does with ``assignment="hash"``, for owners who are not all in memory.

        ``hashes`` (n,): from :func:`~collegium.personalisation.partition.owner_hashes`; repeats are
            allowed.
        ``groups`` (n,): position in ``group_names`` of each owner.
        Returns (n, most duplicates): padded with -1.
        """
        return self._place(hashes, group_names, groups, "hash")

    def _place(
        self,
        hashes: NDArray[np.uint64],
        group_names: Sequence[str],
        groups: NDArray[np.intp],
        assignment: str,
    ) -> NDArray[np.int32]:
        ranges = self.teacher_ranges()
        width = max(group.duplicates for group in self.groups.values())
        owner_teachers = np.full((len(hashes), width), -1, dtype=np.int32)
        dealt: dict[int, int] = {}
        for code, name in enumerate(group_names):
            members = np.flatnonzero(groups == code)
            if not members.size:
                continue
            if name not in self.groups:
                raise InputError(
                    f"group {name!r} has owners but no place in the plan: make the plan from the "
                    "same policy"
                )
            group = self.groups[name]
            first, end = ranges[name]
            each, times = (end - first) // self.partitions, group.duplicates // self.partitions
            start = dealt.get(first, 0)  # those who share teachers are dealt one after the other
            parts = []
            for part in range(self.partitions):
                keys = hashes_of_part(hashes[members], part, self.partitions)
                if assignment == "hash":
                    chosen = choose_teachers(keys, each, times)
                else:
                    chosen = deal_teachers(keys, each, times, start)
                parts.append(chosen + part * each)
            dealt[first] = start + members.size * times
            chosen = np.hstack(parts)
            owner_teachers[members, : group.duplicates] = chosen + first
        return owner_teachers


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
