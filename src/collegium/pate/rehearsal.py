"""Teachers tried on public records with synthetic classes: :mod:`collegium.distillation.rehearsal`."""

from __future__ import annotations

from typing import Any

import numpy as np

from collegium.data.tables import take_rows
from collegium.distillation.rehearsal import (
    Rows,
    all_rows,
    refuse_other_than_classes,
    telling_rows,
    try_in_turn,
    writing_nothing,
)
from collegium.models.batched import BatchedEstimator
from collegium.pate.teachers.teacher import train_teacher, train_teachers


def rehearse_teacher(
    teacher: Any, X_public: Any, n_classes: int, shard_size: int, name: str = "teacher"
) -> None:
    """Train and ask a teacher as voting will, on public records.

    ``teacher``: not changed.
    ``X_public`` (n_public, n_features): all public records as teachers see them.
    ``n_classes``: length of the public list of classes.
    ``shard_size``: records of a teacher, about.
    ``name``: what to call it in messages.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rehearse_teacher(LogisticRegression(C=-1), np.arange(20.0).reshape(-1, 1), 2, 50)
    Traceback (most recent call last):
    collegium.errors.InputError: teacher cannot be trained on public records (InvalidParameterError: ...
    """
    some = telling_rows(X_public)
    everything = all_rows(X_public, some)
    many = np.resize(everything, max(shard_size, len(some)))
    if len(some) < 2:
        return

    def attempt(rows: Rows, n_used: int) -> None:
        model = writing_nothing(teacher)
        records, codes = take_rows(X_public, rows), np.arange(len(rows)) % n_used
        if isinstance(model, BatchedEstimator):
            [trained] = train_teachers(model, [(records, codes)], [0], n_classes)
            [predicted] = model.predict_shards([trained.sensitive_model], records)
        else:
            trained = train_teacher(model, records, codes, 0)
            predicted = trained.sensitive_model.predict(records)
        refuse_other_than_classes(predicted, len(rows), np.arange(n_classes), name)

    try_in_turn(
        name,
        X_public,
        [
            lambda: attempt(some, n_classes),
            lambda: attempt(many, n_classes),
            lambda: attempt(many, 2),
        ],
    )
