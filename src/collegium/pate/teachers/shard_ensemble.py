"""Teachers that read their own shard in the worker that trains them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from collegium.data.sharding.shard_store import ShardStore
from collegium.models.batched import BatchedEstimator
from collegium.pate.teachers.ensemble import TeacherEnsemble
from collegium.pate.teachers.tasks import Keep, train_batch


class ShardEnsemble(TeacherEnsemble):
    """An ensemble whose records lie in a :class:`~collegium.data.sharding.shard_store.ShardStore`.

    Parameters are those of :class:`~collegium.pate.teachers.ensemble.TeacherEnsemble`. A teacher equals the
    one that is trained on the same shard in memory.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from collegium.personalisation import Uniform
    >>> from collegium.data.sharding import Granted, ParquetSource, Roles, build_shards, scan
    >>> people = pd.DataFrame({"age": np.arange(80.0), "sick": np.arange(80) % 2, "epsilon": 1.0})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     people.to_parquet(f"{folder}/people.parquet")
    ...     source, roles = ParquetSource(f"{folder}/people.parquet"), Roles("sick", "epsilon")
    ...     found = scan(source, roles, Granted(delta=1e-6), b"key")
    ...     plan = Uniform().plan_for(found.budgets, 4)
    ...     store = build_shards(source, roles, found, plan, b"key", f"{folder}/shards")
    ...     ensemble = ShardEnsemble(DecisionTreeClassifier(), seed=0)
    ...     teachers = ensemble.train_stored(store)
    >>> ensemble.ask(teachers, people[["age"]].head(5)).shape
    (5, 4)
    """

    def train_stored(
        self,
        store: ShardStore,
        preprocessing: Any | None = None,
        teachers: Sequence[int] | None = None,
    ) -> list[Any]:
        """Train teachers on their shards.

        A task holds the numbers of its shards and the store's path; no record passes through this process,
        unless workers do not see its files: then each shard is read here and sent.

        ``preprocessing``: fitted on public records; applied to each shard on its own.
        ``teachers``: which teachers to train; default all.
        Returns: what ``keep`` returned, in the order of ``teachers``.
        """
        numbers = list(range(store.n_teachers)) if teachers is None else list(teachers)
        share_files = self._workers.share_files
        keep_there = self._keep if share_files else None
        rest = (self._seed, keep_there, self._n_classes, self._class_shares)

        def train(batch: list[int]) -> Any:
            if share_files:
                return joblib.delayed(_train_stored)(
                    self._estimator, store, preprocessing, batch, *rest
                )
            shards = [(number, *store.prepared(number, preprocessing)) for number in batch]
            return joblib.delayed(train_batch)(self._estimator, shards, *rest)

        def keep_here(number: int, kept: Any) -> Any:
            return kept if keep_there or self._keep is None else self._keep(number, kept)

        return self._run(numbers, lambda: train, keep_here, "trained")


def _train_stored(
    estimator: Any,
    store: ShardStore,
    preprocessing: Any | None,
    batch: list[int],
    seed: int,
    keep: Keep | None,
    n_classes: int | None,
    class_shares: NDArray[np.float64] | None,
) -> list[tuple[int, Any]]:
    """Read some shards and train their teachers, in a worker."""
    at_once = len(batch) if isinstance(estimator, BatchedEstimator) else 1
    trained: list[tuple[int, Any]] = []
    for first in range(0, len(batch), at_once):
        shards = [
            (number, *store.prepared(number, preprocessing))
            for number in batch[first : first + at_once]
        ]
        trained.extend(train_batch(estimator, shards, seed, keep, n_classes, class_shares))
    return trained
