"""Records as scikit-learn takes them (arrays or DataFrames): checks that public fits private."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import DataConversionWarning

from collegium.checks import listed
from collegium.errors import InputError, PrivacyWarning

MOST_CLASSES = 10_000
"""More are a slip: a column of numbers or names taken for one of classes."""


def as_records(X: Any, name: str) -> Any:
    """Take a DataFrame as it is, and anything else as an array of at least two dimensions."""
    if X is None:
        raise InputError(f"{name} records are missing: pass an array or a DataFrame")
    records = X if isinstance(X, pd.DataFrame) or hasattr(X, "tocsr") else np.asarray(X)
    if getattr(getattr(records, "dtype", None), "kind", "") == "c":
        raise InputError(f"Complex data not supported: {name} records must be real numbers")
    if len(records.shape) < 2:
        raise InputError(
            f"{name} records must be a table (records × features), got shape {records.shape}. "
            "Reshape your data: one row per record"
        )
    if records.shape[0] == 0 or 0 in records.shape[1:]:
        have = f"{records.shape[0]} sample(s)" if not records.shape[0] else "0 feature(s)"
        raise InputError(
            f"{name} records are empty: {have} (shape={records.shape}) while a minimum of 1 is required: "
            "pass a table with at least one row and one column"
        )
    if isinstance(records, pd.DataFrame) and not records.columns.is_unique:
        raise InputError(f"{name} records have two columns of the same name: rename one")
    if hasattr(records, "tocsr"):
        return records.tocsr()
    return records


def like_private(X_public: Any, X: Any, name: str = "public") -> Any:
    """Check that public records have the private ones' columns and kinds; put columns in order.

    ``X_public``, ``X``: from :func:`as_records`.
    ``name``: what to call ``X_public`` in messages.
    Returns: ``X_public``, with its columns in the order of ``X``.
    """
    if isinstance(X, pd.DataFrame) != isinstance(X_public, pd.DataFrame):
        kinds = {True: "a table with named columns", False: "an array without column names"}
        raise InputError(
            f"{name} records are {kinds[isinstance(X_public, pd.DataFrame)]}, private ones are "
            f"{kinds[isinstance(X, pd.DataFrame)]}: give both in the same form"
        )
    if isinstance(X, pd.DataFrame):
        missing = [str(column) for column in X.columns if column not in X_public.columns]
        extra = [str(column) for column in X_public.columns if column not in X.columns]
        if missing or extra:
            what = [f"lack {listed(missing)}"] * bool(missing)
            what += [f"have in addition {listed(extra)}"] * bool(extra)
            raise InputError(
                f"{name} records have other columns than private ones: they {' and '.join(what)}; "
                "both need the same features"
            )
        ordered = X_public[list(X.columns)]
        for column in X.columns:
            if _kind(X[column].dtype) != _kind(ordered[column].dtype):
                raise InputError(
                    f"column {column!r} holds {_kind(ordered[column].dtype)} in the {name} records, but "
                    f"{_kind(X[column].dtype)} in the private ones: convert one of them"
                )
        return ordered
    if X_public.shape[1:] != X.shape[1:]:
        raise InputError(
            f"{name} records have shape {X_public.shape[1:]} each, private ones {X.shape[1:]}: both need "
            "the same features"
        )
    if _kind(X_public.dtype) != _kind(X.dtype):
        raise InputError(
            f"{name} records hold {_kind(X_public.dtype)}, private ones {_kind(X.dtype)}: convert one of "
            "them"
        )
    return X_public


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Take some records of a DataFrame or array."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def float_type(numbers: Any) -> type[np.float32] | type[np.float64]:
    """Choose the shorter float that holds numbers of a type without loss, or else the longer.

    Examples
    --------
    >>> float_type(np.uint8).__name__, float_type(np.float32).__name__, float_type(np.int64).__name__
    ('float32', 'float32', 'float64')
    """
    return np.float32 if np.can_cast(numbers, np.float32) else np.float64


def _kind(dtype: Any) -> str:
    if pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype):
        return "numbers"
    if pd.api.types.is_datetime64_any_dtype(dtype):
        return "dates"
    return "text"


def encode_classes(
    y: ArrayLike, classes: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Number the classes.

    ``y`` (n_records,): labels of private records.
    ``classes`` (n_classes,): the public list of classes. Default: the classes that occur in ``y``,
        which are thereby treated as public.
    Returns ``classes`` (n_classes,).
    Returns ``codes`` (n_records,).
    """
    if y is None:
        raise InputError("labels are missing: requires y to be passed, but the target y is None")
    try:
        labels = np.asarray(y)
    except ValueError:
        raise InputError("labels must be one column, got lists of different lengths") from None
    if labels.ndim == 2 and labels.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: its one column is taken",
            DataConversionWarning,
            stacklevel=3,
        )
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InputError(f"labels must be one column, got shape {labels.shape}")
    missing = np.flatnonzero(pd.isna(labels))
    if missing.size:
        raise InputError(
            f"{missing.size} record(s) without a label, first in row {missing[0]} (counted from 0): "
            "label or drop them"
        )
    if classes is None:
        if labels.dtype.kind == "f" and (labels != np.rint(labels)).any():
            raise InputError(
                "Unknown label type: labels are continuous numbers, but Collegium classifies: give "
                "class names or whole numbers"
            )
        try:
            known: NDArray[Any] = np.asarray(np.unique(labels))
        except TypeError:
            raise InputError(
                "labels of several kinds (numbers beside text) have no order: write all in the same way, or "
                "give the public list of classes"
            ) from None
    else:
        known = _class_list(classes)
    if len(known) > MOST_CLASSES:
        raise InputError(
            f"{len(known):,} classes are too many: at most {MOST_CLASSES:,} are allowed; Collegium "
            "classifies: give a column of classes"
        )
    if len(known) < 2:
        raise InputError(
            f"a classifier needs at least 2 classes, got {len(known)} class: give the public list of "
            "classes"
        )
    try:
        codes = pd.Index(known).get_indexer(pd.Index(labels))
    except TypeError:
        raise InputError(
            "labels must be numbers or text, got something else: name classes"
        ) from None
    outside = np.flatnonzero(codes < 0)
    if outside.size:
        raise outside_the_classes(labels, known, outside.size, outside[0])
    return known, np.asarray(codes, dtype=np.intp)


def one_hot(codes: NDArray[np.intp], n_classes: int) -> NDArray[np.float64]:
    """Turn class numbers into rows with a single 1.

    Examples
    --------
    >>> one_hot(np.array([1, 0]), 2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    rows = np.zeros((len(codes), n_classes))
    rows[np.arange(len(codes)), codes] = 1.0
    return rows


def _class_list(classes: ArrayLike) -> NDArray[Any]:
    try:
        known = np.asarray(classes)
        if known.ndim == 1 and len(pd.unique(known)) == len(known):
            return known
    except (TypeError, ValueError):  # something in it is itself a list or table
        pass
    raise InputError("classes must be one list of different names")


def outside_the_classes(
    labels: NDArray[Any], classes: NDArray[Any], n_outside: int, first_row: int
) -> InputError:
    """Make the error about labels that are not among the classes; it quotes none of them.

    ``labels``: labels of private records.
    ``classes``: the public list of classes.
    ``n_outside``, ``first_row``: how many labels are not among the classes, and the row of the
        first.
    """
    return InputError(
        f"{n_outside} record(s) with a label that is not among the classes, first in row {first_row} "
        f"(counted from 0): allowed are {listed(classes.tolist())}"
        f"{other_spelling(labels, classes)}"
    )


def other_spelling(labels: NDArray[Any], classes: NDArray[Any]) -> str:
    """Say, as the end of a message, if labels are numbers and classes text, or the other way round.

    Examples
    --------
    >>> other_spelling(np.array([0, 1]), np.array(["0", "1"]))
    ', but the labels are numbers and the classes text: write both in the same way (0 is a number, "0" text)'
    >>> other_spelling(np.array([0, 1]), np.array([1, 2]))
    ''
    """
    here, there = _spelling(labels), _spelling(classes)
    if not here or not there or here == there:
        return ""
    return (
        f", but the labels are {here} and the classes {there}: write both in the same way (0 is a number, "
        '"0" text)'
    )


def _spelling(values: NDArray[Any]) -> str:
    kinds = {
        "numbers": ("integer", "floating", "mixed-integer-float", "decimal"),
        "text": ("string",),
        "true or false": ("boolean",),
    }
    found = pd.api.types.infer_dtype(values, skipna=True)
    return next((words for words, names in kinds.items() if found in names), "")


def warn_of_unseen_classes(codes: NDArray[np.intp], classes: NDArray[Any]) -> None:
    """Warn, on the steward's screen only, of classes in the public list that no record has."""
    unseen = np.setdiff1d(np.arange(len(classes)), codes)
    if unseen.size:
        names = listed(classes[unseen].tolist())
        warnings.warn(
            f"no teacher saw class {names}: it cannot get a vote; shorten the class list, or add records",
            PrivacyWarning,
            stacklevel=3,
        )
