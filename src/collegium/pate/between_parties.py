"""Votes of the teachers of several parties: what all must have in common, and whose teachers are whose.

**The plan** is that of one table, made of public numbers: how many people of each group every party has. The
k teachers are shared out among *cells*, the people of one group with one party, in proportion to their number
(largest remainders, at least one each), and no teacher learns from two cells. A teacher's weight is the same
function of its group's budget at all parties: :class:`~collegium.personalisation.Weighting` of the cells does
not ask whose a cell is. So weights are published per cohort, and never per party and query, from which the
others' votes could be read.

**The account** is that of the whole: cohorts are the groups of all parties, Δ of each is the weight of one of
its teachers, and every party holds all of it. An owner's teacher follows from a keyed hash of the name among
the teachers of the owner's own cell. How many people a teacher has seen matters to its votes, not to a cost.

**A party as the unit**: one teacher for each party, of everything that it holds, and a budget that the party
grants. Of neighbouring data sets all of it may differ, so its one vote moves, Δ is its weight, and the rest
is as above: a cohort is the parties with one budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.neighbours import PARTY
from collegium.budgets import Budgets
from collegium.checks import check_choice
from collegium.errors import InputError
from collegium.noise.sources import noise_from
from collegium.noise.sums import NoisySum
from collegium.parties.collective import people_by_party, with_everybody
from collegium.pate.queries.selection import ACTIVE
from collegium.pate.recipe import Recipe
from collegium.pate.settings import Account
from collegium.pate.voting.aggregators import Aggregator
from collegium.pate.voting.release import HISTOGRAM
from collegium.pate.voting.vote_table import ABSTAIN, VoteTable
from collegium.personalisation import Personalisation, Weighting
from collegium.personalisation.base import LEAST_QUOTA
from collegium.personalisation.plan import GroupPlan, Plan
from collegium.runs.public_digests import facts_of
from collegium.runs.records import Records

if TYPE_CHECKING:
    from collegium.parties.collective import Census, Collective, Party, PartyRelease

PERSON = "person"
UNITS = (PERSON, PARTY)


@dataclass(frozen=True, eq=False)
class JointVotes:
    """One party's part in the votes of all.

    ``plan``: of all parties' teachers; the same at all of them.
    ``own``: of this party's teachers alone, numbered from 0.
    ``columns`` (n_own_teachers,): which of all teachers these are.
    ``noise``: adds up what the parties have.
    """

    plan: Plan
    own: Plan
    columns: NDArray[np.intp]
    noise: NoisySum

    def among_all(self, votes: VoteTable) -> VoteTable:
        """Put the votes of this party's teachers beside those of others, who abstain. **Sensitive.**"""
        table = np.full((votes.n_queries, self.plan.n_teachers), ABSTAIN, dtype=np.int32)
        table[:, self.columns] = votes.sensitive_table
        return VoteTable(table, self.plan.n_teachers, votes.n_classes, has_teachers=True)

    def among_own(self, votes: VoteTable) -> VoteTable:
        """Take the votes of this party's teachers from among all. **Sensitive.**"""
        table = votes.sensitive_table[:, self.columns]
        return VoteTable(table, self.own.n_teachers, votes.n_classes, has_teachers=True)


def recipe_of_parties(recipe: Recipe, unit: str, n_parties: int, given: bool) -> Recipe:
    """Make it one of several parties: histograms are what is released.

    ``given``: whether a number of teachers was.
    Raises InputError as :func:`refuse_alone` does.
    """
    how = (recipe.aggregator, recipe.account, recipe.personalisation, recipe.queries.query_order)
    refuse_alone(*how, unit, given)
    recipe = replace(recipe, queries=replace(recipe.queries, release=HISTOGRAM))
    return recipe if unit != PARTY else replace(recipe, n_teachers=n_parties)


def refuse_alone(
    aggregator: Aggregator,
    account: Account,
    personalisation: Personalisation,
    query_order: str,
    unit: str,
    given: bool,
) -> None:
    """Refuse what one party alone would decide, or cannot be added up."""
    check_choice("unit", unit, UNITS)
    name = aggregator.name
    if aggregator.noise != "gaussian":
        raise InputError(
            f"aggregator {name!r} has {aggregator.noise} noise, of which parties cannot add shares: "
            "use gnmax or confident"
        )
    if aggregator.consults_student:
        raise InputError(
            f"aggregator {name!r} asks a student of its own at each party, and students may differ by "
            "rounding: use gnmax or confident"
        )
    if account.guarantee != "worst-case":
        raise InputError(
            f"a {account.guarantee} account looks at the votes of all parties, which nobody sees: use "
            "guarantee 'worst-case'"
        )
    if account.price not in (None, HISTOGRAM):
        raise InputError(
            f"price {account.price!r} does not pay for noisy counts, which all parties see: leave it out"
        )
    if not isinstance(personalisation, Weighting):
        raise InputError(
            f"personalisation {personalisation.name!r} lets groups share teachers, or takes turns: "
            "between parties use 'weighting'"
        )
    if query_order == ACTIVE:
        raise InputError(
            "query_order 'active' fits a student before each few questions, and parties ask many at once: "
            "use 'random', 'coverage' or 'doubtful'"
        )
    if unit != PARTY:
        return
    if aggregator.has_check:
        raise InputError(
            f"aggregator {name!r} asks whether a party's teachers agree, and with unit='party' each has one: "
            "use gnmax"
        )
    if given:
        raise InputError("with unit='party' each party has one teacher: leave n_teachers out")


def together(
    records: Records, recipe: Recipe, unit: str, party: Party, name: str, by_rule: bool
) -> tuple[Records, PartyRelease, Census]:
    """Learn how many people of the other parties granted what: then all plan the same votes.

    ``name``: of the release.
    ``by_rule``: whether public numbers choose the settings.
    """
    if records.given is not None:
        raise InputError(
            "people of a public level are this party's alone, and students would differ: leave them out"
        )
    if unit == PARTY:
        records = _of_one_owner(records, party)
    elif not records.arrangement.on_ledger:
        few = recipe.personalisation.few_budgets(records.budgets, recipe.n_teachers)
        records = records.regrouped(few)
    plan = {
        "method": "votes",
        "unit": unit,
        "settings by rule": by_rule,
        "n_teachers": recipe.n_teachers,
        "personalisation": recipe.personalisation,
        "aggregator": recipe.aggregator,
        "account": recipe.account,
        "queries": recipe.queries,
        "student": recipe.student,
        "preprocessing": recipe.preprocessing,
        "preprocessing of the student": recipe.student_preprocessing,
        "class_shares": (recipe.teacher_class_shares, recipe.student_class_shares),
        "goal": recipe.goal,
        "random_state": recipe.seed,
        **facts_of(records),
    }
    release = party.release(name)
    census = release.census(records.budgets, plan, noise_from(recipe.noise_seed))
    arrangement = release.arranged(records.arrangement)
    budgets = with_everybody(records.budgets, census)
    return replace(records, budgets=budgets, arrangement=arrangement), release, census


def joint_votes(
    recipe: Recipe,
    budgets: Budgets,
    census: Census,
    collective: Collective,
    number: int,
    noise: NoisySum,
) -> JointVotes:
    """Share the teachers out among parties and groups.

    ``budgets``: with the groups of everybody.
    ``number``: of this party, from 1.
    """
    names = [one.name for one in collective.members]
    people = people_by_party(budgets, census)
    plan, teachers = shared_plan(recipe, budgets, people, names)
    return JointVotes(plan, *part_of(plan, teachers, number - 1), noise)


def planned_alone(recipe: Recipe, budgets: Budgets, noise: NoisySum) -> JointVotes:
    """Plan before the others have told their numbers: as if all teachers learnt from people like these.

    What is refused here would be with everybody, too: a group's part of all people can only become smaller.
    """
    sizes = budgets.public_sizes()
    times = -(
        -recipe.n_teachers // max(1, sum(sizes.values()))
    )  # a small party need not have them all
    many = {name: times * size for name, size in sizes.items()}
    plan = recipe.personalisation.plan(budgets.groups, many, recipe.n_teachers)
    groups = {name: replace(one, owners=sizes[name]) for name, one in plan.groups.items()}
    plan = replace(plan, groups=groups, efficiency=plan.efficiency * budgets.kept)
    return JointVotes(plan, plan, np.arange(plan.n_teachers), noise)


def shared_plan(
    recipe: Recipe, budgets: Budgets, people: Mapping[str, tuple[int, ...]], parties: list[str]
) -> tuple[Plan, dict[str, tuple[int, ...]]]:
    """Plan for all parties, and say how many teachers of each group each of them has.

    ``people``: of each group, with each party.

    Raises InputError if a cell is too small for a teacher.
    """
    # A party's own groups keep its names, so cells are called by numbers, or ties would differ.
    cells = {
        f"{group:06}.{party:02}": (name, party)
        for group, (name, its) in enumerate(people.items())
        for party, count in enumerate(its)
        if count
    }
    sizes = {cell: people[name][party] for cell, (name, party) in cells.items()}
    _refuse_small(sizes, cells, recipe.n_teachers, parties)
    granted = {cell: budgets.groups[name] for cell, (name, _) in cells.items()}
    whole = recipe.personalisation.plan(granted, sizes, recipe.n_teachers)
    groups, teachers = {}, {}
    for name, its in people.items():
        of_group = [cell for cell, (group, _) in cells.items() if group == name]
        each = {cells[cell][1]: whole.groups[cell].teachers for cell in of_group}
        teachers[name] = tuple(each.get(party, 0) for party in range(len(its)))
        groups[name] = replace(
            whole.groups[of_group[0]], owners=sum(its), teachers=sum(teachers[name])
        )
    efficiency = whole.efficiency * budgets.kept
    return replace(whole, groups=groups, efficiency=efficiency), teachers


def part_of(
    plan: Plan, teachers: Mapping[str, tuple[int, ...]], party: int
) -> tuple[Plan, NDArray[np.intp]]:
    """Cut out one party's teachers: their plan, and which of all they are."""
    groups: dict[str, GroupPlan] = {}
    columns: list[int] = []
    for name, (first, _) in plan.teacher_ranges().items():
        count, start = teachers[name][party], first + sum(teachers[name][:party])
        if count:
            groups[name] = replace(plan.groups[name], teachers=count)
            columns += range(start, start + count)
    return replace(plan, groups=groups, n_teachers=len(columns)), np.array(columns, dtype=np.intp)


def _refuse_small(
    sizes: Mapping[str, int],
    cells: Mapping[str, tuple[str, int]],
    n_teachers: int,
    parties: list[str],
) -> None:
    everybody = sum(sizes.values())
    cell = min(sizes, key=lambda one: (sizes[one], one))
    if n_teachers >= len(sizes) and n_teachers * sizes[cell] >= LEAST_QUOTA * everybody:
        return
    name, party = cells[cell]
    least = max(len(sizes), -(-everybody // (2 * sizes[cell])))
    raise InputError(
        f"{parties[party]} has {sizes[cell]:,} people of level {name!r}, too few for one of {n_teachers:,} "
        f"teachers of about {everybody / n_teachers:,.0f} people: use at least {least:,} teachers, or merge "
        "the level with a stricter one"
    )


def _of_one_owner(records: Records, party: Party) -> Records:
    """Let all that a party holds be one owner's, who grants one budget."""
    budgets = records.budgets
    used = [name for name, size in budgets.group_sizes().items() if size]
    if records.arrangement.on_ledger:
        raise InputError("a ledger has accounts of people, not of parties: leave ledger out")
    if len(used) != 1:
        raise InputError(
            f"with unit='party' a party grants one budget for all that it holds, and {len(used)} were given: "
            "give budgets=1.0, say"
        )
    n = len(budgets)
    whole = Budgets(
        {used[0]: budgets.groups[used[0]]}, np.zeros(n, dtype=np.intp), [party.name] * n
    )
    arrangement = replace(records.arrangement, unit=PARTY, sizes_declared=False)
    return replace(records, budgets=whole, arrangement=arrangement, made_public=None)
