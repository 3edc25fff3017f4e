"""How teachers learn from the private records of a run, and vote on its public ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.data.tables import warn_of_unseen_classes
from collegium.pate.memory import Memory
from collegium.pate.recipe import Recipe
from collegium.pate.teachers.ensemble import TeacherEnsemble
from collegium.pate.voting.vote_table import VoteTable
from collegium.personalisation.plan import Plan
from collegium.runs.observer import Observer
from collegium.runs.records import Records
from collegium.runs.views import View
from collegium.workers.engines import Workers

LendWorkers = Callable[[], AbstractContextManager[Workers]]


@dataclass(frozen=True, eq=False)
class Teaching:
    """How teachers learn from records in memory; a study whose records are streamed overrides it.

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

    def votes(self, records: Records) -> VoteTable:
        """Train teachers on their shards, and let them vote. **Sensitive.**

        What the memory holds already is neither trained nor asked again.
        """
        plan, memory = self.plan, self.memory
        n_classes = len(records.classes)
        known = memory.votes(self.X_asked.shape[0], plan.n_teachers, n_classes)
        if known is not None:
            self.observer.skipped("teachers")
            return known
        table = self.votes_of(records, range(plan.n_teachers))
        votes = VoteTable.from_predictions(table, n_classes, allow_abstention=True)
        memory.keep_votes(table, n_classes)
        return votes

    def votes_of(self, records: Records, numbers: Sequence[int]) -> NDArray[np.int32]:
        """Train those of some teachers that the memory lacks, and let these vote. **Sensitive.**

        ``numbers``: whose votes are wanted; all others stay as they are.
        Returns (n_public, n_numbers): class numbers, -1 for abstentions.
        """
        recipe, plan, memory = self.recipe, self.plan, self.memory
        n_classes = len(records.classes)
        assignment = plan.assign(records.budgets, recipe.key, recipe.assignment)
        memory.keep_assignment(assignment.owner_teachers)
        warn_of_unseen_classes(records.codes, records.classes)
        teachers = memory.teachers(assignment.n_teachers)
        missing = sorted(set(teachers.missing()) & set(numbers))
        self.observer.stage("teachers", len(missing))
        with self.lend_workers() as workers:
            ensemble = teachers.ensemble(
                TeacherEnsemble,
                recipe.teacher,
                recipe.seed,
                workers,
                progress=self.observer.advanced,
                verbose=self.verbose,
                n_classes=n_classes,
                class_shares=recipe.class_shares("teacher", records.classes),
            )
            seen = self.view.of_private(records.X, memory.folder)
            teachers.take(ensemble.train(seen, records.codes, assignment, missing))
            self.observer.stage("votes", len(numbers))
            return ensemble.ask([teachers.kept[number] for number in numbers], self.X_asked)
