"""What an estimator offers that trains many teachers at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from collegium.checks import check_whole
from collegium.errors import ModelError

Shard = tuple[Any, NDArray[np.intp]]


@runtime_checkable
class BatchedEstimator(Protocol):
    """An estimator that trains, and asks, the teachers of many shards together.

    Batching is a matter of speed alone: the teacher of a shard must be the one that the same estimator
    makes of that shard alone, with the same seed, up to floating-point rounding. Nothing may flow from
    one shard to another (no pooled statistics, no shared normalisation, no common stopping time), since
    the sensitivity of a vote rests on each teacher depending on its own shard only. Rounding may blow up to
    another vote: an estimator whose teachers have the same bits whatever others are in the call says so
    with an attribute ``exact_together = True``; about any other, statements make a proviso.

    Attributes
    ----------
    teachers_at_once : int
        How many teachers one call gets at most.

    Examples
    --------
    >>> from collegium.teachers import RidgeTeachers
    >>> isinstance(RidgeTeachers(), BatchedEstimator)
    True
    """

    teachers_at_once: int

    def fit_shards(
        self, shards: Sequence[Shard], seeds: Sequence[int], n_classes: int
    ) -> list[Any]:
        """Train one model per shard.

        Parameters
        ----------
        shards : sequence of (X, y)
            Records, shape (n_shard, n_features), and class numbers, shape (n_shard,), of each shard; the
            shards differ in size. At least two classes occur in each.
        seeds : sequence of int
            Public randomness of each teacher.
        n_classes : int
            Length of the public list of classes; class numbers lie below it.

        Returns
        -------
        list
            Picklable models with ``predict`` (class numbers), one per shard, in order.
        """
        ...

    def predict_shards(self, models: Sequence[Any], X_public: Any) -> Sequence[NDArray[Any]]:
        """Ask models of :meth:`fit_shards` about the same records.

        Parameters
        ----------
        models : sequence
            What :meth:`fit_shards` returned.
        X_public : array-like or DataFrame, shape (n_public, n_features)
            Public records.

        Returns
        -------
        sequence of ndarray, shape (n_public,)
            Class numbers, one array per model.
        """
        ...


def check_teachers_at_once(estimator: Any) -> None:
    """Refuse an estimator that would train no teachers, or half ones, at once.

    ``estimator``: one without ``teachers_at_once`` is fine: it trains one.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> check_teachers_at_once(SimpleNamespace(teachers_at_once=0))
    Traceback (most recent call last):
    collegium.errors.ModelError: teachers_at_once must be a whole number of at least 1, got 0
    """
    at_once = getattr(estimator, "teachers_at_once", 1)
    check_whole("teachers_at_once", at_once, error=ModelError)
