"""The stages of an experiment, each cached: teachers and their votes, votings, students."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium import GNMax, VoteTable
from collegium.pate.teachers.ensemble import TeacherEnsemble
from collegium.pate.voting.aggregators import Aggregator
from collegium.pate.voting.least_noise import least_sigma
from collegium.personalisation import Plan
from reproduction.kinds import (
    Released,
    check_student,
    check_teacher,
    student_kind,
    teacher_kind,
)
from reproduction.readings import Reading
from reproduction.records import QUICK_SCENES, SCENES, DataNotThereError, Split, load_split
from reproduction.scores import confusion
from reproduction.society import Society
from reproduction.votings import History, Voting, vote, vote_without_limits
from reproduction.work import Arrays, WorkFolder

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """How much to run, and where.

    Attributes
    ----------
    seeds : int, optional
        Splits and ensembles of each kind; default: what the source used.
    runs : int, optional
        Votings of each ensemble; default: what the source used.
    quick : bool
        Small stand-ins of data sets, one seed, two votings: the numbers mean nothing.
    teacher, student : str, optional
        Kinds of models instead of those of the reading.
    variants : tuple of str
        Only these variants; empty: all.
    n_jobs : int, optional
        As in joblib.
    data_dir, work_dir : Path, optional
        Where records are; where finished stages are kept (None: only in memory).
    """

    seeds: int | None = None
    runs: int | None = None
    quick: bool = False
    teacher: str | None = None
    student: str | None = None
    variants: tuple[str, ...] = ()
    n_jobs: int | None = -1
    data_dir: Path | None = None
    work_dir: Path | None = None


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Votes of all teachers of one ensemble. **Sensitive** outside of experiments.

    Attributes
    ----------
    votes : VoteTable
        On the public records.
    test_votes : ndarray of int8, shape (n_test, n_teachers)
        On the test records.
    identity : dict
        What it depends on.
    """

    votes: VoteTable
    test_votes: NDArray[np.int8]
    identity: dict[str, Any]


class Laboratory:
    """Runs and remembers the stages.

    Parameters
    ----------
    options : Options
        How much to run, and where.
    progress : callable, optional
        Called with a line of text when a stage begins.

    Raises
    ------
    InputError
        If a kind of teachers or students is named that there is not.
    """

    def __init__(self, options: Options, progress: Progress = lambda text: None) -> None:
        for given, find in ((options.teacher, teacher_kind), (options.student, student_kind)):
            if given is not None:
                find(given)
        self.options = options
        self._work = WorkFolder(options.work_dir)
        self._progress = progress
        self._split: Split | None = None

    def split(self, scene: str, seed: int) -> Split:
        """Load the records of a scene (its small stand-in, with ``quick``), split with a seed.

        Raises
        ------
        DataNotThereError
            If its files are not in the data folder.
        """
        if self.options.quick and scene not in QUICK_SCENES:
            raise DataNotThereError(f"not there: {scene} has no small stand-in for --quick")
        chosen = (QUICK_SCENES if self.options.quick else SCENES)[scene]
        known = self._split
        if known is None or (known.scene.name, known.seed) != (chosen.name, seed):
            work = self.options.work_dir
            features = None if work is None else work / "features"
            self._split = load_split(chosen, self.options.data_dir, seed, features)
        assert self._split is not None
        return self._split

    def seeds_and_runs(self, seeds: int, runs: int) -> tuple[int, int]:
        """How many ensembles of each kind, and votings of each, given what the source used."""
        if self.options.quick:
            return 1, min(2, self.options.runs or 2)
        return self.options.seeds or seeds, self.options.runs or runs

    def wants(self, variant: str) -> bool:
        """Whether a variant is among those that are asked for."""
        return not self.options.variants or variant in self.options.variants

    def there(self, scenes: Mapping[str, str]) -> set[str]:
        """Tell which data sets are in the data folder; say of each other one why it is not.

        Raises
        ------
        DataNotThereError
            If none is.
        """
        missing = {}
        for dataset, scene in scenes.items():
            try:
                self.split(scene, 0)
            except DataNotThereError as error:
                missing[dataset] = error
                self._progress(f"{dataset}: {error}")
        if len(missing) == len(scenes):
            raise next(iter(missing.values()))
        return set(scenes) - set(missing)

    def mechanism(
        self, reading: Reading, split: Split, metric: str, plan: Plan
    ) -> tuple[Aggregator, str]:
        """Choose the mechanism, and what it releases.

        Tables about labels keep the sources' mechanism in both readings. Students of the sound reading
        learn from noisy histograms of as many queries as suit them, with the least noise that the
        budgets of the plan pay for.
        """
        share = reading.answered_share.get(split.scene.dataset)
        if share is None or not metric.startswith("student"):
            return split.scene.aggregator, "labels"
        answers = max(1, round(share * len(split.codes_public)))
        return GNMax(sigma=least_sigma(plan.electorate(split.seed), answers)), "histogram"

    def teachers_of(self, reading: Reading, split: Split) -> str:
        """Name the kind of teachers.

        Raises
        ------
        InputError
            If the kind that the options name cannot learn from these records.
        """
        if self.options.teacher is not None:
            check_teacher(self.options.teacher, split.scene)
            return self.options.teacher
        return split.scene.model or reading.teachers[split.scene.dataset]

    def students_of(self, reading: Reading, split: Split) -> str:
        """Name the kind of students, be there any or not; whether it fits is asked where it learns."""
        return (
            self.options.student
            or (split.scene.model and split.scene.model + reading.stand_in)
            or reading.students[split.scene.dataset]
        )

    def plan(self, split: Split, society: Society, reading: Reading, variant: str) -> Plan:
        """Make the public plan of a variant."""
        budgets = society.budgets(split.codes_private, split.seed)
        return reading.personalisation(variant).plan_for(budgets, split.scene.n_teachers)

    def ensemble(self, split: Split, society: Society, plan: Plan, teacher: str) -> Ensemble:
        """Train the teachers of a plan and ask them, unless that was done before.

        The shards depend on the shares of the groups, the duplicates and the seed, not on the
        budgets: weighting and vanishing share their teachers, for all budgets.
        """
        kind = teacher_kind(teacher)
        identity = {
            "scene": dataclasses.asdict(split.scene) | {"aggregator": ""},
            "seed": split.seed,
            "shares": society.shares,
            "only_class": society.only_class,
            "mixed": plan.mixed,
            "duplicates": [group.duplicates for group in plan.groups.values()],
            "teachers": plan.n_teachers,
            "model": kind.name,
            "parameters": repr(kind.make(split)),
        }
        table = self._work.arrays(
            "votes", identity, lambda: self._train_and_ask(split, society, plan, teacher)
        )["votes"]
        n_public = len(split.codes_public)
        votes = VoteTable.from_predictions(table[:n_public], split.n_classes, allow_abstention=True)
        return Ensemble(votes, table[n_public:].astype(np.int8), identity)

    def _train_and_ask(self, split: Split, society: Society, plan: Plan, teacher: str) -> Arrays:
        self._progress(
            f"{split.scene.name} seed {split.seed}: training {plan.n_teachers} teachers ({teacher}; "
            f"{plan.personalisation})"
        )
        kind = teacher_kind(teacher)
        private, public, test = split.view(kind.view)
        budgets = society.budgets(split.codes_private, split.seed)
        assignment = plan.assign(budgets, str(split.seed).encode(), "balanced")
        ensemble = TeacherEnsemble(
            kind.make(split), split.seed, n_jobs=self.options.n_jobs, n_classes=split.n_classes
        )
        teachers = ensemble.train(private, split.codes_private, assignment)
        asked = [ensemble.ask(teachers, records).astype(np.int8) for records in (public, test)]
        return {"votes": np.concatenate(asked)}

    def votings(
        self,
        ensemble: Ensemble,
        plan: Plan,
        reading: Reading,
        aggregator: Aggregator,
        runs: int,
        max_labels: int | None,
        release: str = "labels",
    ) -> list[Voting]:
        """Let an ensemble vote several times, unless that was done before."""
        recipe = {**self._voting_recipe(ensemble, plan, reading, aggregator), "release": release}

        def voting(run: int) -> Arrays:
            seeds = (int(ensemble.identity["seed"]), run)
            made = vote(ensemble.votes, plan, reading, aggregator, seeds, max_labels, release)
            return {
                "queries": made.queries,
                "labels": made.labels,
                "asked": np.array([made.n_asked, made.n_answered]),
                "noisy_counts": made.noisy_counts,
            }

        votings = []
        for run in range(runs):
            whole = {**recipe, "run": run, "max_labels": max_labels}
            stored = self._work.arrays("votings", whole, partial(voting, run))
            asked, answered = stored["asked"].tolist()
            names = stored["queries"], stored["labels"]
            votings.append(Voting(*names, asked, answered, stored["noisy_counts"]))
        return votings

    def histories(
        self,
        ensemble: Ensemble,
        plan: Plan,
        reading: Reading,
        aggregator: Aggregator,
        runs: int,
        *,
        max_labels: int | None = None,
        max_queries: int | None = None,
    ) -> list[History]:
        """Let an ensemble vote beyond all budgets, unless that was done before."""
        recipe = self._voting_recipe(ensemble, plan, reading, aggregator)
        limits = {"max_labels": max_labels, "max_queries": max_queries}

        def history(run: int) -> Arrays:
            seeds = (int(ensemble.identity["seed"]), run)
            made = vote_without_limits(ensemble.votes, plan, reading, aggregator, seeds, **limits)
            return {"labels": made.labels, "epsilon": made.epsilon, "order": made.order}

        histories = []
        for run in range(runs):
            whole = {**recipe, **limits, "run": run}
            stored = self._work.arrays("histories", whole, partial(history, run))
            histories.append(History(stored["labels"], stored["epsilon"], stored["order"]))
        return histories

    @staticmethod
    def _voting_recipe(
        ensemble: Ensemble, plan: Plan, reading: Reading, aggregator: Aggregator
    ) -> dict[str, Any]:
        return {
            "ensemble": ensemble.identity,
            "groups": {
                name: [group.budget.epsilon, group.budget.delta, group.weight, group.frequency]
                for name, group in plan.groups.items()
            },
            "account": reading.account,
            "aggregator": aggregator.settings(),
        }

    def confusions(
        self,
        split: Split,
        votings: list[Voting],
        student: str,
        identity: dict[str, Any],
        sigma: float,
    ) -> NDArray[np.int64]:
        """Train a student on what each voting released and test it, unless that was done before.

        Parameters
        ----------
        split : Split
            The records.
        votings : list of Voting
            A student for each.
        student : str
            Kind of students.
        identity : dict
            Of the ensemble.
        sigma : float
            Standard deviation of the noise on the counts, public.

        Returns
        -------
        ndarray of int, shape (n_votings, n_classes, n_classes)
            Test records by true class and predicted class; all 0 for a student without any label.
        """
        kind = student_kind(student)
        check_student(student, split.scene)
        recipe = {
            "ensemble": identity,
            "student": kind.name,
            "released": [_fingerprint(voting) for voting in votings],
            "sigma": sigma,
        }

        def learn() -> Arrays:
            self._progress(
                f"{split.scene.name} seed {split.seed}: training {len(votings)} students ({student})"
            )
            released = [
                Released(one.queries, one.labels, one.noisy_counts, sigma) for one in votings
            ]
            seeds = [1000 * split.seed + run for run in range(len(votings))]
            predicted = kind.learn(split, released, seeds, self.options.n_jobs)
            tables = [confusion(split.codes_test, one, split.n_classes) for one in predicted]
            return {"confusions": np.array(tables)}

        return self._work.arrays("students", recipe, learn)["confusions"]


def _fingerprint(voting: Voting) -> str:
    content = hashlib.sha256()
    for array in (voting.queries, voting.labels, voting.noisy_counts):
        content.update(np.ascontiguousarray(array).tobytes())
    return content.hexdigest()[:16]
