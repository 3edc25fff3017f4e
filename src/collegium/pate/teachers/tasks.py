"""What a worker does: train the teachers of some shards, ask some teachers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from collegium.data.tables import take_rows
from collegium.errors import InputError, ModelError
from collegium.models.batched import BatchedEstimator, Shard
from collegium.pate.teachers.class_balance import rows_in_shares
from collegium.pate.teachers.no_warnings import NO_WARNINGS
from collegium.pate.teachers.teacher import (
    Teacher,
    as_votes,
    teacher_seed,
    train_teacher,
    train_teachers,
)
from collegium.workers.opaque_payload import LentPayload

Keep = Callable[[int, Teacher], Any]
Fetch = Callable[[Any], Teacher]
_Trained = TypeVar("_Trained")


def train_batch(
    estimator: Any,
    shards: list[tuple[int, Any, NDArray[np.intp]]],
    seed: int,
    keep: Keep | None,
    n_classes: int | None,
    class_shares: NDArray[np.float64] | None = None,
) -> list[tuple[int, Any]]:
    """Train teachers, in a worker.

    ``estimator``: not changed.
    ``shards`` (number, X, y): teachers and their shards.
    ``keep``: ``keep(number, teacher)`` is called here, and returned instead of the teacher.
    ``class_shares`` (n_classes,): public: each shard is seen in these shares of the classes.
    Returns (number, teacher or what was kept).
    """
    seeds = [teacher_seed(seed, number) for number, _, _ in shards]
    if class_shares is not None:
        shards = [
            (number, *_in_shares(X, y, class_shares, own))
            for (number, X, y), own in zip(shards, seeds, strict=True)
        ]
    if isinstance(estimator, BatchedEstimator):
        assert n_classes is not None
        together: list[Shard] = [(X, y) for _, X, y in shards]
        teachers = _shielded(
            estimator, together, lambda: train_teachers(estimator, together, seeds, n_classes)
        )
        numbers = [number for number, _, _ in shards]
        return [_kept(keep, n, teacher) for n, teacher in zip(numbers, teachers, strict=True)]
    kept = []
    for (number, X, y), own_seed in zip(shards, seeds, strict=True):
        train = partial(train_teacher, estimator, X, y, own_seed)
        kept.append(_kept(keep, number, _shielded(estimator, [(X, y)], train)))
    return kept


def _in_shares(
    X: Any, y: NDArray[np.intp], shares: NDArray[np.float64], seed: int
) -> tuple[Any, NDArray[np.intp]]:
    rows = rows_in_shares(y, shares, seed)
    return take_rows(X, rows), y[rows]


def _kept(keep: Keep | None, number: int, teacher: Teacher) -> tuple[int, Any]:
    return number, teacher if keep is None else keep(number, teacher)


def _shielded(estimator: Any, shards: list[Shard], train: Callable[[], _Trained]) -> _Trained:
    """Train, and let no message of a failing teacher out: it may quote private records."""
    try:
        return train()
    except ModelError:
        raise
    except Exception as error:
        failure = type(error).__name__
        reason = next(filter(None, (_likely_reason(X) for X, _ in shards)), "")
    advice = "try the teacher's pipeline on public ones"
    if "NaN" in reason:
        advice = (
            "drop these records, or give preprocessing that fills missing values in, such as TabularEncoder "
            "(in a study's file: data.missing, preprocessing.kind)"
        )
    raise InputError(
        f"a teacher ({type(estimator).__name__}) could not be trained: {failure}{reason}, whose message is "
        f"not shown because it may quote private records; {advice}"
    )


def _likely_reason(X: Any) -> str:
    """Name a usual reason for a failure, without quoting any value."""
    if hasattr(X, "tocsr"):
        return " (the records are sparse, which not every model supports)"
    if hasattr(X, "iloc"):
        missing = bool(X.isna().to_numpy().any())
    else:
        table = np.asarray(X)
        missing = table.dtype.kind == "f" and not np.isfinite(table).all()
    return " (the records contain NaN or infinity)" if missing else ""


def ask_batch(
    estimator: Any, kept: list[tuple[int, Any]], X_public: LentPayload, fetch: Fetch | None
) -> list[tuple[int, NDArray[np.int32]]]:
    """Ask teachers about public records, in a worker.

    ``estimator``: the one that trained them.
    ``kept`` (number, teacher or what was kept): whom to ask.
    ``X_public``: public records, shape (n_public, n_features).
    ``fetch``: turns what was kept into the teacher again.
    Returns (number, votes): votes have the shape (n_public,). **Sensitive.**
    """
    records = X_public.get()
    votes: list[NDArray[np.int32]] = []
    at_once = len(kept) if isinstance(estimator, BatchedEstimator) else 1
    for first in range(0, len(kept), at_once):
        failure = ""
        some = [one for _, one in kept[first : first + at_once]]
        teachers = some if fetch is None else [fetch(one) for one in some]
        try:
            votes.extend(_votes_of(estimator, teachers, records))
        except Exception as error:
            failure = type(error).__name__
        if failure:
            reason = _likely_reason(records)
            advice = "a teacher needs a method 'predict' that returns the numbers of classes it was taught"
            if "NaN" in reason:
                advice = (
                    "fill in what public records lack, drop these records, or give preprocessing that fills "
                    "them in, such as TabularEncoder"
                )
            raise InputError(
                f"a teacher could not vote on the public records: {failure}{reason}, whose message is not "
                f"shown because it may quote private records; {advice}"
            )
    return [(number, column) for (number, _), column in zip(kept, votes, strict=True)]


def _votes_of(
    estimator: Any, teachers: list[Teacher], X_public: Any
) -> Iterator[NDArray[np.int32]]:
    models = [
        teacher.sensitive_model for teacher in teachers if teacher.sensitive_model is not None
    ]
    together: Iterator[Any] | None = None
    if isinstance(estimator, BatchedEstimator) and models:
        with NO_WARNINGS:
            together = iter(estimator.predict_shards(models, X_public))
    for teacher in teachers:
        if together is None or teacher.sensitive_model is None:
            yield teacher.vote(X_public)
        else:
            yield as_votes(next(together))
