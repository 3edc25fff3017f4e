"""Records and budgets as they are given to ``fit``, checked once for every method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from collegium.accounting.neighbours import OWNER, ROW, Arrangement
from collegium.budgets import NOTHING, Budget, Budgets, as_budgets
from collegium.data.column_types import ColumnTypes
from collegium.data.frames import as_pandas
from collegium.data.overlap_checks import (
    refuse_other_scale,
    refuse_overlap,
    tell_of_private_scale,
)
from collegium.data.people import ask_about_people
from collegium.data.tables import (
    PRIVATE_CLASSES,
    as_records,
    like_private,
    of_public_types,
    take_given,
    take_rows,
)
from collegium.errors import InputError, frames_to_user
from collegium.index_alignment import refuse_other_order
from collegium.runs.callers import refuse_learners_before
from collegium.runs.records import Records
from collegium.runs.user_warnings import Warner
from collegium.zero_and_public_budgets import PublicRecords, has_budget, split_by_level, subset

Encode = Callable[[Any], tuple[NDArray[Any], NDArray[Any]]]
NO_LIST = (
    "classes are missing: a list read off the private labels is no cost that a ledger could count; give "
    "classes=[…], a public list"
)


@dataclass(frozen=True, eq=False)
class FitInputs:
    """What was given to ``fit``: records of a run, and what later records must look like.

    ``types``: of the columns of a table, as public records show them.
    ``feature_names``: None for arrays.
    """

    records: Records
    types: ColumnTypes | None
    n_features: int
    feature_names: NDArray[Any] | None


def given_records(
    X: Any,
    y: Any,
    budgets: Budgets | Budget | ArrayLike,
    X_public: Any,
    *,
    encode: Encode,
    delta: float,
    private_classes: bool,
    public_may_overlap: bool,
    scales_may_differ: bool,
    learner: str = "the student",
) -> FitInputs:
    """Check what was given, and make it the records of a run; nothing is spent.

    ``encode``: makes the public list of classes, and class numbers, of labels; or no list, and numbers.
    ``X_public``: None where a method does without.
    ``delta``: of budgets that are numbers.
    ``private_classes``: whether the list is read off the private labels.
    ``learner``: what learns from public records, in words.
    """
    refuse_learners_before()
    X = as_pandas(X)
    refuse_other_order(private_records=X, labels=y, budgets=budgets)
    granted = as_budgets(budgets, delta, count_records(X))
    X, y, granted = _granting(X, y, granted)
    private, public, types = as_records(X, "private"), None, None
    if X_public is not None:
        public = like_private(as_records(X_public, "public"), private)
        private, public, types = of_public_types(private, public)
    classes, codes = encode(y)
    for what, length in (("labels", len(codes)), ("budgets", len(granted))):
        if length != private.shape[0]:
            raise InputError(
                f"{private.shape[0]} private records, but {length} {what}: give one per record"
            )
    names = np.asarray(X.columns, dtype=object) if hasattr(X, "columns") else None
    parts, given = split_by_level(granted, Warner().note, learner), None
    made_public = granted.owners[np.unique(granted.record_owner[parts.public])]
    if parts.public.size:
        given = PublicRecords(take_rows(private, parts.public), codes[parts.public])
        private, codes = take_rows(private, parts.private), codes[parts.private]
        X, granted = private, parts.budgets
    if public is not None and not scales_may_differ:
        refuse_other_scale(private, public)
    if public is None and not scales_may_differ:
        tell_of_private_scale(private)
    if public is not None and not public_may_overlap:
        refuse_overlap(private, public, key="public_may_overlap=True in fit")
    if isinstance(X, pd.DataFrame) and not granted.named:
        ask_about_people(X, (), _about_people, stacklevel=frames_to_user() + 1)
    if private_classes:
        Warner().note(PRIVATE_CLASSES.format("classes=[…], a public list"))
    arrangement = Arrangement(
        unit=OWNER if granted.named else ROW,
        sizes_declared=granted.declared_sizes is not None,
        private_classes=private_classes,
        public_may_overlap=bool(public_may_overlap),
        public_levels=granted.public_levels,
    )
    records = Records(
        private,
        codes,
        granted,
        classes,
        public,
        arrangement=arrangement,
        given=given,
        made_public=made_public if granted.named else None,
    )
    return FitInputs(records, types, int(private.shape[1]), names)


def count_records(X: Any) -> int:
    """Count records before they are an array; what is no table counts as one, and is refused as records."""
    shape = getattr(X, "shape", None)
    if shape is None:
        shape = (len(X),) if hasattr(X, "__len__") else np.asarray(X).shape
    return int(shape[0]) if shape else 1


def _granting(X: Any, y: Any, granted: Budgets) -> tuple[Any, Any, Budgets]:
    """Leave out who granted nothing, before anything else is looked at."""
    if not (granted.owner_group == NOTHING).any() or {count_records(X), count_records(y)} != {
        len(granted)
    }:
        return X, y, granted  # or lengths differ, which is refused
    rows = has_budget(granted, Warner().note)
    return take_given(X, rows), take_given(y, rows), subset(granted, rows)


def _about_people(asked: list[str]) -> str:
    return (
        f"Then give budgets=policy.assign(levels, owners=table[{asked[0]!r}]), so that one budget covers all "
        "records of a person, and leave the column out of X; if not, ignore this"
    )
