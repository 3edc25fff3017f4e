"""The records of a run, and how teachers learn from those that are in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.neighbours import Arrangement
from collegium.budgets import Budgets
from collegium.data.tables import take_rows, warn_of_unseen_classes
from collegium.extremes import PublicRecords
from collegium.pate.memory import Memory
from collegium.pate.observer import Observer
from collegium.pate.recipe import Recipe
from collegium.pate.teachers.engines import Workers
from collegium.pate.teachers.ensemble import TeacherEnsemble
from collegium.pate.views import View
from collegium.pate.voting.vote_table import VoteTable
from collegium.personalisation.plan import Plan

if TYPE_CHECKING:
    from collegium.ledger.allowance import Spending

LendWorkers = Callable[[], AbstractContextManager[Workers]]


@dataclass(frozen=True, eq=False)
class Teaching:
    """What the records of a run are given when teachers learn from them.

    ``recipe``, ``plan``: the run's.
    ``view``: what teachers see of records.
    ``X_asked``: the public records that they vote on, seen so.
    ``lend_workers``: ``with lend_workers() as workers:`` lends those who train and ask.
    ``memory``, ``observer``: the run's.
    ``verbose``: as in joblib.
    """

    recipe: Recipe
    plan: Plan
    view: View
    X_asked: Any
    lend_workers: LendWorkers
    memory: Memory
    observer: Observer
    verbose: int = 0


@dataclass(frozen=True, eq=False)
class Records:
    """Private records in memory, and the public ones.

    ``X``, ``codes``, ``budgets``: private records, their class numbers, and who granted what. **Sensitive.**
    ``classes``: public list of classes.
    ``X_public``: public records.
    ``y_public``: their true classes, where they are known: only measured with, never learnt from.
    ``given``: records whose owners let them be published: the student learns from them, no teacher does.
    ``made_public``: names of owners whose records become public in this run: those, and those of a split.
    ``arrangement``: where owners, group sizes, levels and classes come from; the run adds what the recipe
        decides.
    """

    X: Any
    codes: NDArray[np.intp]
    budgets: Budgets
    classes: NDArray[Any]
    X_public: Any
    y_public: NDArray[Any] | None = None
    arrangement: Arrangement = field(default_factory=Arrangement)
    given: PublicRecords | None = None
    made_public: NDArray[Any] | None = None

    def with_budgets(self, budgets: Budgets, rows: NDArray[np.intp]) -> Self:
        """Take some of the private records, whose owners have other budgets left than they once granted."""
        return replace(
            self,
            X=take_rows(self.X, rows),
            codes=self.codes[rows],
            budgets=budgets,
            arrangement=replace(self.arrangement, on_ledger=True, what_is_left=True),
        )

    def regrouped(self, budgets: Budgets) -> Self:
        """Put people into the groups of ``budgets``, made of how many granted which; else as they are."""
        if budgets is self.budgets:
            return self
        arrangement = replace(self.arrangement, regrouped=True)
        return replace(self, budgets=budgets, arrangement=arrangement)

    def allowed(self, spending: Spending) -> Self:
        """Take the records of those who take part, with what they have left in a ledger."""
        if spending.allowance.whole:
            return replace(self, arrangement=replace(self.arrangement, on_ledger=True))
        return self.with_budgets(spending.budgets, spending.records)

    def votes(self, teaching: Teaching) -> VoteTable:
        """Train teachers on their shards, and let them vote. **Sensitive.**

        What the memory holds already is neither trained nor asked again.
        """
        plan, memory = teaching.plan, teaching.memory
        n_classes = len(self.classes)
        known = memory.votes(teaching.X_asked.shape[0], plan.n_teachers, n_classes)
        if known is not None:
            teaching.observer.skipped("teachers")
            return known
        table = self.votes_of(teaching, range(plan.n_teachers))
        votes = VoteTable.from_predictions(table, n_classes, allow_abstention=True)
        memory.keep_votes(table, n_classes)
        return votes

    def votes_of(self, teaching: Teaching, numbers: Sequence[int]) -> NDArray[np.int32]:
        """Train those of some teachers that the memory lacks, and let these vote. **Sensitive.**

        ``numbers``: whose votes are wanted; all others stay as they are.
        Returns (n_public, n_numbers): class numbers, -1 for abstentions.
        """
        recipe, plan, memory = teaching.recipe, teaching.plan, teaching.memory
        n_classes = len(self.classes)
        assignment = plan.assign(self.budgets, recipe.key, recipe.assignment)
        memory.keep_assignment(assignment.owner_teachers)
        warn_of_unseen_classes(self.codes, self.classes)
        teachers = memory.teachers(assignment.n_teachers)
        missing = sorted(set(teachers.missing()) & set(numbers))
        teaching.observer.stage("teachers", len(missing))
        with teaching.lend_workers() as workers:
            ensemble = teachers.ensemble(
                TeacherEnsemble,
                recipe.teacher,
                recipe.seed,
                workers,
                progress=teaching.observer.advanced,
                verbose=teaching.verbose,
                n_classes=n_classes,
                class_shares=recipe.class_shares("teacher", self.classes),
            )
            seen = teaching.view.of_private(self.X, memory.folder)
            teachers.take(ensemble.train(seen, self.codes, assignment, missing))
            teaching.observer.stage("votes", len(numbers))
            return ensemble.ask([teachers.kept[number] for number in numbers], teaching.X_asked)
