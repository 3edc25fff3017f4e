"""Teachers: one model per shard, trained and asked in parallel with joblib, one by one or many at once.

A teacher depends on its own shard, the public list of classes and its public seed, and on nothing else:
that is what the sensitivity of a vote rests on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from collegium.errors import InputError, ModelError
from collegium.personalisation.assignment import Assignment
from collegium.tables import take_rows
from collegium.teachers.batched import BatchedEstimator, Shard
from collegium.voting.votes import ABSTAIN

Progress = Callable[[int, int], None]
_Trained = TypeVar("_Trained")
_BATCHES_PER_WORKER = 8


@dataclass(frozen=True)
class Teacher:
    """A trained teacher.

    Attributes
    ----------
    sensitive_model : object or None
        Something with ``predict``; None for a teacher that cannot learn.
    constant : int
        What a teacher without a model votes: the only class of its shard, or an abstention.
    """

    sensitive_model: Any
    constant: int = ABSTAIN

    def vote(self, X_public: Any) -> NDArray[np.int32]:
        """Predict the class number of every public record, shape (n_public,). **Sensitive.**"""
        if self.sensitive_model is None:
            n_records = X_public.shape[0] if hasattr(X_public, "shape") else len(X_public)
            return np.full(n_records, self.constant, dtype=np.int32)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _as_votes(self.sensitive_model.predict(X_public))


def _as_votes(predicted: Any) -> NDArray[np.int32]:
    votes = np.asarray(predicted)
    if votes.dtype.kind not in "biuf" or (votes != np.rint(votes)).any():
        raise InputError("a teacher voted for something that is no class number")
    return votes.astype(np.int32)


def train_teacher(estimator: Any, X: Any, y: NDArray[np.intp], seed: int) -> Teacher:
    """Train one teacher on its shard.

    Parameters
    ----------
    estimator : object with ``fit`` and ``predict``
        Cloned (or, if it is not a scikit-learn estimator, deep-copied) before training. Every
        ``random_state`` among its parameters is set from ``seed``.
    X : array-like or DataFrame, shape (n_shard, n_features)
        Records of the shard.
    y : ndarray of int, shape (n_shard,)
        Class numbers.
    seed : int
        Public.

    Returns
    -------
    Teacher
        One that abstains for an empty shard, and one that always votes the same for a shard with
        one class only.
    """
    constant = _without_learning(y)
    if constant is not None:
        return constant
    model = clone(estimator, safe=False)
    _seed_all(model, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning about a shard would tell something about it
        model.fit(X, y)
    return Teacher(model)


def train_teachers(
    estimator: BatchedEstimator, shards: Sequence[Shard], seeds: Sequence[int], n_classes: int
) -> list[Teacher]:
    """Train the teachers of many shards in one call of the estimator.

    Parameters
    ----------
    estimator : BatchedEstimator
        Not changed.
    shards : sequence of (X, y)
        Records and class numbers of each.
    seeds : sequence of int
        Public, one per shard.
    n_classes : int
        Length of the public list of classes.

    Returns
    -------
    list of Teacher
        As :func:`train_teacher` for each shard alone, up to floating-point rounding.
    """
    teachers = [_without_learning(y) for _, y in shards]
    learners = [number for number, teacher in enumerate(teachers) if teacher is None]
    if learners:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            models = estimator.fit_shards(
                [shards[number] for number in learners],
                [seeds[number] for number in learners],
                n_classes,
            )
        for number, model in zip(learners, models, strict=True):
            teachers[number] = Teacher(model)
    return [teacher for teacher in teachers if teacher is not None]


def _without_learning(y: NDArray[np.intp]) -> Teacher | None:
    """Return the teacher of a shard from which nothing can be learnt, None for any other shard."""
    present = np.unique(y)
    if present.size == 0:
        return Teacher(None)
    return Teacher(None, int(present[0])) if present.size == 1 else None


def _seed_all(model: Any, seed: int) -> None:
    if not hasattr(model, "get_params"):
        return
    generator = np.random.default_rng(seed)
    names = [
        name
        for name in sorted(model.get_params(deep=True))
        if name == "random_state" or name.endswith("__random_state")
    ]
    if names:
        model.set_params(**{name: int(generator.integers(2**31 - 1)) for name in names})


def teacher_seed(seed: int, teacher: int) -> int:
    """Derive the public seed of one teacher."""
    return int(np.random.SeedSequence([seed, teacher]).generate_state(1)[0])


class TeacherEnsemble:
    """Trains teachers and asks them, in parallel.

    Parameters
    ----------
    estimator : object with ``fit`` and ``predict``
        The model of every teacher, usually a scikit-learn classifier or pipeline. A
        :class:`~collegium.teachers.batched.BatchedEstimator` trains many teachers in one call.
    seed : int
        Public randomness of training.
    n_jobs : int, optional
        As in joblib: None means 1, -1 means all cores.
    keep : callable, optional
        ``keep(number, teacher)`` runs in the worker after training; what it returns stands for the
        teacher from then on (a path, say). Default: the teacher itself.
    fetch : callable, optional
        Turns what ``keep`` returned into the teacher again.
    progress : callable, optional
        Called with (teachers done, teachers in all).
    verbose : int, default=0
        As in joblib: progress messages.
    n_classes : int, optional
        Length of the public list of classes; a batched estimator needs it.

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
        keep: Callable[[int, Teacher], Any] | None = None,
        fetch: Callable[[Any], Teacher] | None = None,
        progress: Progress | None = None,
        verbose: int = 0,
        n_classes: int | None = None,
    ) -> None:
        if isinstance(estimator, BatchedEstimator) and n_classes is None:
            raise InputError(
                f"{type(estimator).__name__} trains many teachers at once: give n_classes, the length of "
                "the public list of classes"
            )
        for method in ("fit", "predict"):
            if not callable(getattr(estimator, method, None)):
                raise InputError(
                    f"a teacher needs a method {method!r}, {type(estimator).__name__} has none: give a "
                    "scikit-learn classifier, or any object with fit and predict"
                )
        self._estimator = estimator
        self._seed = seed
        self._n_jobs = n_jobs
        self._keep = keep or _keep_teacher
        self._fetch = fetch or _fetch_teacher
        self._progress = progress
        self._verbose = verbose
        self._n_classes = n_classes

    def train(
        self,
        X: Any,
        y: NDArray[np.intp],
        assignment: Assignment,
        teachers: Sequence[int] | None = None,
    ) -> list[Any]:
        """Train teachers on their shards.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_records, n_features)
            All private records.
        y : ndarray of int, shape (n_records,)
            Their class numbers.
        assignment : Assignment
            Who sees what.
        teachers : sequence of int, optional
            Which teachers to train; default all.

        Returns
        -------
        list
            What ``keep`` returned, in the order of ``teachers``.
        """
        numbers = list(range(assignment.n_teachers)) if teachers is None else list(teachers)
        batches = self._batches(numbers)

        def tasks() -> Iterator[Any]:
            for batch in batches:
                shards = [assignment.records_of(number) for number in batch]
                yield joblib.delayed(_train_batch)(
                    self._estimator,
                    [
                        (number, take_rows(X, shard), y[shard])
                        for number, shard in zip(batch, shards, strict=True)
                    ],
                    self._seed,
                    self._keep,
                    self._n_classes,
                )

        return self._run(tasks(), batches, len(numbers))

    def ask(self, teachers: Sequence[Any], X_public: Any) -> NDArray[np.int32]:
        """Let every teacher vote on every public record.

        Parameters
        ----------
        teachers : sequence
            What :meth:`train` returned.
        X_public : array-like or DataFrame, shape (n_public, n_features)
            Public records.

        Returns
        -------
        ndarray of int32, shape (n_public, n_teachers)
            Class numbers, -1 for abstentions. **Sensitive.**
        """
        batches = self._batches(list(range(len(teachers))))
        tasks = (
            joblib.delayed(_ask_batch)(
                self._estimator, [teachers[number] for number in batch], X_public, self._fetch
            )
            for batch in batches
        )
        columns = self._run(tasks, batches, len(teachers))
        return np.stack(columns, axis=1)

    def _batches(self, numbers: list[int]) -> list[list[int]]:
        workers = joblib.effective_n_jobs(self._n_jobs)
        if isinstance(self._estimator, BatchedEstimator):
            n_batches = max(workers, -(-len(numbers) // self._estimator.teachers_at_once))
            n_batches = min(len(numbers), -(-n_batches // workers) * workers)
            return [part.tolist() for part in np.array_split(numbers, n_batches)] if numbers else []
        n_batches = min(len(numbers), max(workers * _BATCHES_PER_WORKER, len(numbers) // 16))
        return [part.tolist() for part in np.array_split(numbers, n_batches)] if numbers else []

    def _run(self, tasks: Iterator[Any], batches: list[list[int]], total: int) -> list[Any]:
        results: list[Any] = []
        parallel = joblib.Parallel(
            n_jobs=self._n_jobs, return_as="generator", verbose=self._verbose
        )
        for batch, done in zip(batches, parallel(tasks), strict=True):
            results.extend(done)
            if self._progress is not None:
                self._progress(len(results), total)
            assert len(done) == len(batch)
        return results


def _train_batch(
    estimator: Any,
    shards: list[tuple[int, Any, NDArray[np.intp]]],
    seed: int,
    keep: Callable[[int, Teacher], Any],
    n_classes: int | None,
) -> list[Any]:
    seeds = [teacher_seed(seed, number) for number, _, _ in shards]
    if isinstance(estimator, BatchedEstimator):
        assert n_classes is not None
        together: list[Shard] = [(X, y) for _, X, y in shards]
        teachers = _shielded(
            estimator, together, lambda: train_teachers(estimator, together, seeds, n_classes)
        )
        return [keep(shard[0], teacher) for shard, teacher in zip(shards, teachers, strict=True)]
    kept = []
    for (number, X, y), own_seed in zip(shards, seeds, strict=True):
        train = partial(train_teacher, estimator, X, y, own_seed)
        kept.append(keep(number, _shielded(estimator, [(X, y)], train)))
    return kept


def _shielded(estimator: Any, shards: list[Shard], train: Callable[[], _Trained]) -> _Trained:
    """Train, and let no message of a failing teacher out: it may quote private records."""
    try:
        return train()
    except ModelError:
        raise
    except Exception as error:
        reasons = (_likely_reason(X) for X, _ in shards)
        failure = type(error).__name__ + next(filter(None, reasons), "")
    raise InputError(
        f"a teacher ({type(estimator).__name__}) could not be trained: {failure}, whose message is "
        "not shown because it may quote private records; try the teacher's pipeline on public ones"
    )


def _likely_reason(X: Any) -> str:
    """Name a usual reason for a failure, without quoting any value."""
    if hasattr(X, "tocsr"):
        return " (the records are sparse, which not every model supports)"
    if hasattr(X, "iloc"):
        missing = bool(X.isna().to_numpy().any())
    else:
        missing = X.dtype.kind == "f" and not np.isfinite(X).all()
    return " (the records contain NaN or infinity)" if missing else ""


def _ask_batch(
    estimator: Any, kept: list[Any], X_public: Any, fetch: Callable[[Any], Teacher]
) -> list[NDArray[np.int32]]:
    votes: list[NDArray[np.int32]] = []
    at_once = len(kept) if isinstance(estimator, BatchedEstimator) else 1
    for first in range(0, len(kept), at_once):
        failure = ""
        teachers = [fetch(one) for one in kept[first : first + at_once]]
        try:
            votes.extend(_votes_of(estimator, teachers, X_public))
        except Exception as error:
            failure = type(error).__name__
        if failure:
            raise InputError(
                f"a teacher could not vote on the public records: {failure}, whose message is not shown "
                "because it may quote private records; a teacher needs a method 'predict' that returns "
                "the numbers of classes it was taught"
            )
    return votes


def _votes_of(
    estimator: Any, teachers: list[Teacher], X_public: Any
) -> Iterator[NDArray[np.int32]]:
    models = [
        teacher.sensitive_model for teacher in teachers if teacher.sensitive_model is not None
    ]
    together: Iterator[Any] | None = None
    if isinstance(estimator, BatchedEstimator) and models:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            together = iter(estimator.predict_shards(models, X_public))
    for teacher in teachers:
        if together is None or teacher.sensitive_model is None:
            yield teacher.vote(X_public)
        else:
            yield _as_votes(next(together))


def _keep_teacher(number: int, teacher: Teacher) -> Any:
    return teacher


def _fetch_teacher(kept: Any) -> Teacher:
    assert isinstance(kept, Teacher)
    return kept
