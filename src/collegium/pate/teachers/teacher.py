"""One teacher: a model of one shard, and what it votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from collegium.errors import InputError
from collegium.models.batched import BatchedEstimator, Shard
from collegium.models.global_generators import kept_generators, seed_generators
from collegium.pate.teachers.no_warnings import NO_WARNINGS
from collegium.pate.voting.vote_table import ABSTAIN


@dataclass(frozen=True)
class Teacher:
    """A trained teacher.

    ``sensitive_model``: something with ``predict``; None for a teacher that cannot learn.
    ``constant``: what a teacher without a model votes: the only class of its shard, or an
        abstention.
    """

    sensitive_model: Any
    constant: int = ABSTAIN

    def vote(self, X_public: Any) -> NDArray[np.int32]:
        """Predict the class number of every public record, shape (n_public,). **Sensitive.**"""
        if self.sensitive_model is None:
            n_records = X_public.shape[0] if hasattr(X_public, "shape") else len(X_public)
            return np.full(n_records, self.constant, dtype=np.int32)
        with NO_WARNINGS, kept_generators():
            seed_generators(0)
            return as_votes(self.sensitive_model.predict(X_public))


def as_votes(predicted: Any) -> NDArray[np.int32]:
    """Check that predictions are class numbers."""
    votes = np.asarray(predicted)
    if votes.dtype.kind not in "biuf" or (votes != np.rint(votes)).any():
        raise InputError("a teacher voted for something that is no class number")
    return votes.astype(np.int32)


def train_teacher(estimator: Any, X: Any, y: NDArray[np.intp], seed: int) -> Teacher:
    """Train one teacher on its shard.

    ``estimator``: cloned (or, if it is not a scikit-learn estimator, deep-copied) before training.
        Every ``random_state`` among its parameters is set from ``seed``, and so are the global generators:
        what one shard draws from them must change no other teacher.
    ``X`` (n_shard, n_features): records of the shard.
    ``y`` (n_shard,): class numbers.
    ``seed``: public.
    Returns: one that abstains for an empty shard, and one that always votes the same for a shard
        with one class only.
    """
    constant = _without_learning(y)
    if constant is not None:
        return constant
    model = clone(estimator, safe=False)
    _seed_all(model, seed)
    with NO_WARNINGS, kept_generators():
        seed_generators(seed)
        model.fit(X, y)
    return Teacher(model)


def train_teachers(
    estimator: BatchedEstimator, shards: Sequence[Shard], seeds: Sequence[int], n_classes: int
) -> list[Teacher]:
    """Train the teachers of many shards in one call of the estimator.

    ``estimator``: not changed.
    ``shards`` (X, y): records and class numbers of each.
    ``seeds``: public, one per shard.
    ``n_classes``: length of the public list of classes.
    Returns: as :func:`train_teacher` for each shard alone, up to floating-point rounding.
    """
    teachers = [_without_learning(y) for _, y in shards]
    learners = [number for number, teacher in enumerate(teachers) if teacher is None]
    if learners:
        with NO_WARNINGS:
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
