"""The electorate of a label job: teachers that somebody else has trained."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from collegium.errors import InputError
from collegium.pate.voting.vote_table import VoteTable
from collegium.personalisation import Bagging, Hybrid, Upsampling
from collegium.personalisation.base import Personalisation, finish_plan
from collegium.personalisation.electorate import Electorate
from collegium.personalisation.plan import Plan, separate_electorate
from collegium.study.methods.votes.vote_files import TeacherBudgets


def electorate_of(
    budgets: TeacherBudgets, table: VoteTable, personalisation: Personalisation, seed: int
) -> tuple[Plan, Electorate]:
    """Plan who of a given ensemble's teachers has how much influence."""
    if personalisation.name == Bagging.name:
        raise InputError(
            "bagging trains teachers of its own, and here they are somebody else's: use upsampling, and say "
            "in a column teachers_per_owner how many of them saw each owner's records"
        )
    if personalisation.name == Hybrid.name:
        raise InputError(
            "hybrid decides who learns from whom, and here teachers are somebody else's: use weighting, with "
            "the group of each teacher, or upsampling, with teachers_per_owner"
        )
    if budgets.duplicates is not None or personalisation.name == Upsampling.name:
        return _upsampled(budgets, table, personalisation)
    group_of_teacher = budgets.group_of_teacher
    if group_of_teacher is None:
        group_of_teacher = np.full(table.n_teachers, next(iter(budgets.groups)), dtype=object)
        owners = {name: max(n, table.n_teachers) for name, n in budgets.owners.items()}
    elif len(group_of_teacher) != table.n_teachers:
        raise InputError(
            f"there are votes of {table.n_teachers} teachers, but budgets of {len(group_of_teacher)}: give "
            "one row per teacher, in the order of the columns"
        )
    else:
        owners = budgets.owners
    teachers_of = {
        name: np.flatnonzero(group_of_teacher == name).astype(np.intp) for name in budgets.groups
    }
    sizes = {name: len(teachers) for name, teachers in teachers_of.items()}
    plan = personalisation.plan(budgets.groups, sizes, table.n_teachers)
    groups = {name: replace(group, owners=owners[name]) for name, group in plan.groups.items()}
    plan = replace(plan, groups=groups)
    if plan.mixed:
        return plan, plan.electorate(seed)
    return plan, separate_electorate(plan, teachers_of, seed)


def refuse_fewer_people(budgets: TeacherBudgets, table: VoteTable) -> None:
    """Refuse a table of people that leaves somebody out: each teacher has learnt from at least one person."""
    if budgets.duplicates is not None:
        return
    teachers = dict.fromkeys(budgets.groups, table.n_teachers)
    if budgets.group_of_teacher is not None:
        teachers = {name: int((budgets.group_of_teacher == name).sum()) for name in budgets.groups}
    for name, count in teachers.items():
        if budgets.owners[name] < count:
            raise InputError(
                f"group {name!r} has {count:,} teachers, and {budgets.owners[name]:,} people are named: name "
                "everybody whose records they learnt from"
            )


def _upsampled(
    budgets: TeacherBudgets, table: VoteTable, personalisation: Personalisation
) -> tuple[Plan, Electorate]:
    """Take the duplicates as they were made: teachers are shared by all groups."""
    if personalisation.name != Upsampling.name or budgets.duplicates is None:
        raise InputError(
            "upsampling needs a column teachers_per_owner (one row per group) in the budgets, and only "
            "upsampling does: it says how many teachers saw each owner's records"
        )
    if personalisation != Upsampling():
        raise InputError(
            f"a rule of upsampling would have no effect: duplicates are taken as they were made; leave "
            f"{personalisation.rule!r} out"
        )
    people = sum(budgets.owners.values())
    copies = sum(budgets.owners[name] * d for name, d in budgets.duplicates.items())
    plan = finish_plan(
        personalisation,
        n_nominal=max(1, round(table.n_teachers * people / copies)),
        n_teachers=table.n_teachers,
        mixed=True,
        used=budgets.groups,
        sizes=budgets.owners,
        teachers=dict.fromkeys(budgets.groups, table.n_teachers),
        duplicates=budgets.duplicates,
    )
    return plan, plan.electorate(0)
