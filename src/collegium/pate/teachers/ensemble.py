"""Teachers: one model per shard, trained and asked in parallel with joblib, one by one or many at once.

A teacher depends on its own shard, the public list of classes and its public seed, and on nothing else:
that is what the sensitivity of a vote rests on. Who runs the tasks (an
:class:`engine <collegium.workers.engines.Engine>`) and how often
(:mod:`~collegium.workers.rounds`) changes nothing about it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from collegium.data.tables import take_rows
from collegium.errors import InputError
from collegium.models.batched import BatchedEstimator, check_teachers_at_once
from collegium.pate.teachers.tasks import Keep, ask_batch, train_batch
from collegium.pate.teachers.teacher import Teacher, teacher_seed, train_teacher, train_teachers
from collegium.pate.voting.vote_table import ABSTAIN
from collegium.personalisation.assignment import Assignment
from collegium.workers.engines import Workers
from collegium.workers.rounds import Task, run_in_rounds

__all__ = [
    "Progress",
    "Teacher",
    "TeacherEnsemble",
    "teacher_seed",
    "train_teacher",
    "train_teachers",
]

Progress = Callable[[int, int], None]
_BATCHES_PER_WORKER = 8


class TeacherEnsemble:
    """Trains teachers and asks them, in parallel.

    ``estimator``: the model of every teacher, usually a scikit-learn classifier or pipeline. A
        :class:`~collegium.models.batched.BatchedEstimator` trains many teachers in one call.
    ``seed``: public randomness of training.
    ``n_jobs``: as in joblib: None means 1, -1 means all cores.
    ``keep``: ``keep(number, teacher)`` runs after training; what it returns stands for the teacher
        from then on (a path, say). It runs in the worker if workers see the files of this process,
        else here, as teachers come in. Default: the teacher itself.
    ``fetch``: turns what ``keep`` returned into the teacher again; runs where ``keep`` ran.
    ``progress``: called with (teachers done, teachers in all).
    ``verbose``: as in joblib: progress messages.
    ``n_classes``: length of the public list of classes; a batched estimator needs it.
    ``workers``: from :meth:`Engine.running <collegium.workers.engines.Engine.running>`.
        Default: ``n_jobs`` of the joblib backend that is active (``joblib.parallel_config``).
    ``class_shares`` (n_classes,): public shares of the classes. Each teacher sees its own shard in
        these shares; see :mod:`~collegium.pate.teachers.class_balance`. Default: shards as they
        are.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from collegium.budgets import Budgets
    >>> from collegium.personalisation import Uniform
    >>> X, y = np.arange(40.0).reshape(-1, 1), np.arange(40) % 2
    >>> budgets = Budgets.from_epsilons(np.ones(40), 1e-5)
    >>> assignment = Uniform().plan_for(budgets, 4).assign(budgets, b"public key")
    >>> ensemble = TeacherEnsemble(DecisionTreeClassifier(), seed=0)
    >>> teachers = ensemble.train(X, y, assignment)
    >>> ensemble.ask(teachers, X[:5]).shape
    (5, 4)
    """

    def __init__(
        self,
        estimator: Any,
        seed: int,
        n_jobs: int | None = None,
        keep: Keep | None = None,
        fetch: Callable[[Any], Teacher] | None = None,
        progress: Progress | None = None,
        verbose: int = 0,
        n_classes: int | None = None,
        workers: Workers | None = None,
        class_shares: NDArray[np.float64] | None = None,
    ) -> None:
        if isinstance(estimator, BatchedEstimator) and n_classes is None:
            raise InputError(
                f"{type(estimator).__name__} trains many teachers at once: give n_classes, the length of "
                "the public list of classes"
            )
        check_teachers_at_once(estimator)
        for method in ("fit", "predict"):
            if not callable(getattr(estimator, method, None)):
                raise InputError(
                    f"a teacher needs a method {method!r}, {type(estimator).__name__} has none: give a "
                    "scikit-learn classifier, or any object with fit and predict"
                )
        self._estimator = estimator
        self._seed = seed
        self._workers = Workers(n_jobs=n_jobs) if workers is None else workers
        self._keep = keep
        self._fetch = fetch
        self._progress = progress
        self._verbose = verbose
        self._n_classes = n_classes
        self._class_shares = class_shares

    def train(
        self,
        X: Any,
        y: NDArray[np.intp],
        assignment: Assignment,
        teachers: Sequence[int] | None = None,
    ) -> list[Any]:
        """Train teachers on their shards.

        ``X`` (n_records, n_features): all private records.
        ``y`` (n_records,): their class numbers.
        ``assignment``: who sees what.
        ``teachers``: which teachers to train; default all.
        Returns: what ``keep`` returned, in the order of ``teachers``.
        """
        numbers = list(range(assignment.n_teachers)) if teachers is None else list(teachers)
        keep_there = self._keep if self._workers.share_files else None

        def train(batch: list[int]) -> Any:
            shards = [assignment.records_of(number) for number in batch]
            return joblib.delayed(train_batch)(
                self._estimator,
                [
                    (number, take_rows(X, shard), y[shard])
                    for number, shard in zip(batch, shards, strict=True)
                ],
                self._seed,
                keep_there,
                self._n_classes,
                self._class_shares,
            )

        def keep_here(number: int, kept: Any) -> Any:
            return kept if keep_there or self._keep is None else self._keep(number, kept)

        return self._run(numbers, lambda: train, keep_here, "trained")

    def ask(self, teachers: Sequence[Any], X_public: Any) -> NDArray[np.int32]:
        """Let every teacher vote on every public record.

        ``teachers``: what :meth:`train` returned.
        ``X_public`` (n_public, n_features): public records.
        Returns (n_public, n_teachers): class numbers, -1 for abstentions. **Sensitive.**
        """
        fetch_there = self._fetch if self._workers.share_files else None

        def begin() -> Task:
            lent = self._workers.lend(X_public)

            def ask(batch: list[int]) -> Any:
                kept = [(number, teachers[number]) for number in batch]
                if not fetch_there and self._fetch:
                    kept = [(number, self._fetch(one)) for number, one in kept]
                return joblib.delayed(ask_batch)(self._estimator, kept, lent, fetch_there)

            return ask

        try:
            columns = self._run(range(len(teachers)), begin, lambda _, votes: votes, "asked")
        finally:
            self._workers.take_back()
        table = np.stack(columns, axis=1)
        n_classes = self._n_classes
        if n_classes is not None and (table.min() < ABSTAIN or table.max() >= n_classes):
            raise InputError(  # without telling how many did: that would be a count of raw votes
                f"a teacher voted for something else than the classes 0 … {n_classes - 1} that it was "
                "taught: give a classifier"
            )
        return table

    def _batches(self, numbers: list[int]) -> list[list[int]]:
        workers = self._workers.count
        if isinstance(self._estimator, BatchedEstimator):
            n_batches = max(workers, -(-len(numbers) // self._estimator.teachers_at_once))
            n_batches = -(-n_batches // workers) * workers
        else:
            n_batches = max(workers * _BATCHES_PER_WORKER, len(numbers) // 16)
        n_batches = min(len(numbers), n_batches)
        return [part.tolist() for part in np.array_split(numbers, n_batches)] if numbers else []

    def _run(
        self,
        numbers: Sequence[int],
        begin: Callable[[], Task],
        finish: Callable[[int, Any], Any],
        doing: str,
    ) -> list[Any]:
        results: dict[int, Any] = {}

        def receive(number: int, result: Any) -> None:
            results[number] = finish(number, result)
            if self._progress is not None:
                self._progress(len(results), len(numbers))

        batches = self._batches(list(numbers))
        run_in_rounds(batches, begin, self._workers, receive, doing, self._verbose)
        return [results[number] for number in numbers]
