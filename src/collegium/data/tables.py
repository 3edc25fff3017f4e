"""Records as scikit-learn takes them (arrays or DataFrames): checks that public fits private."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from collegium.checks import listed
from collegium.data.column_types import ColumnTypes, in_words
from collegium.data.frames import as_pandas, refuse_objects, with_dates
from collegium.data.headers import has_header
from collegium.errors import WHERE, InputError, PrivacyWarning, RecordError

_UNNAMED = re.compile(r"Unnamed: \d+")  # as pandas calls a column whose header is blank
MOST_CLASSES = 10_000
"""More are a slip: a column of numbers or names taken for one of classes."""


def as_records(X: Any, name: str) -> Any:
    """Take a table as a DataFrame, and anything else as an array of at least two dimensions."""
    if X is None:
        raise InputError(f"{name} records are missing: pass an array or a DataFrame")
    X = as_pandas(X)
    try:
        records = X if isinstance(X, pd.DataFrame) or hasattr(X, "tocsr") else np.asarray(X)
    except ValueError:
        raise InputError(
            f"{name} records have rows of different lengths: give each the same number of features"
        ) from None
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
    if isinstance(records, pd.DataFrame):
        refuse_objects(records)
        records = with_dates(records)
        unnamed = [column for column in records.columns if _UNNAMED.fullmatch(str(column))]
        if unnamed:
            raise InputError(
                f"{name} records have a column without a name ({unnamed[0]!r}), such as to_csv makes of row "
                "numbers: save the table with index=False, or leave the column out (in a study: data.exclude "
                f"= [{str(unnamed[0])!r}])"
            )
    if sparse.issparse(records):
        if len(records.shape) != 2:
            raise InputError(
                f"{name} records are a sparse array of shape {records.shape}: give a table"
            )
        return sparse.csr_matrix(records)  # one interface, whether a matrix or an array was given
    return records


def like_private(X_public: Any, X: Any, name: str = "public") -> Any:
    """Check that public records have the private ones' columns; put columns in order.

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
        missing = [_with_blanks(column) for column in X.columns if column not in X_public.columns]
        extra = [_with_blanks(column) for column in X_public.columns if column not in X.columns]
        if missing or extra:
            lacking = (
                listed(missing)
                if has_header(map(str, X.columns), map(str, X_public.columns))
                else f"{len(missing):,} of their {X.shape[1]:,} columns (if the private table has no header, "
                "write one)"
            )
            what = [f"lack {lacking}"] * bool(missing)
            what += [f"also have {listed(extra)}"] * bool(extra)
            blanks = any(column.startswith("'") for column in (*missing, *extra))
            raise InputError(
                f"{name} records have other columns than the private ones: they {' and '.join(what)}; "
                f"give both the same features{', without blanks around their names' * blanks}"
            )
        return X_public[list(X.columns)]
    if X_public.shape[1:] != X.shape[1:]:
        raise InputError(
            f"{name} records have shape {X_public.shape[1:]} each, private ones {X.shape[1:]}: give "
            "both the same features"
        )
    here, private = in_words(X_public.dtype), in_words(X.dtype)
    if here != private and (here, private) != ("numbers", "text"):
        raise InputError(f"{name} records hold {here}, private ones {private}: convert one of them")
    return X_public


def _with_blanks(column: Any) -> str:
    """Show a column's name, in quotes if there are blanks around it."""
    name = str(column)
    return name if name == name.strip() else repr(name)


def of_public_types(X: Any, X_public: Any) -> tuple[Any, Any, ColumnTypes | None]:
    """Bring private records to the types of the public ones, never the other way round.

    ``X``, ``X_public``: from :func:`as_records` and :func:`like_private`.
    Returns ``X``, ``X_public``: the same types in both.
    Returns ``types``: of the columns; None for arrays.
    """
    if isinstance(X, pd.DataFrame):
        types = ColumnTypes.of(X_public)
        return types.applied(X), types.applied(X_public, "public"), types
    if in_words(X_public.dtype) == "numbers" and in_words(X.dtype) == "text":
        cells = pd.DataFrame(X.reshape(len(X), -1))
        types = ColumnTypes.of(pd.DataFrame(X_public.reshape(len(X_public), -1)))
        return types.applied(cells).to_numpy().reshape(X.shape), X_public, None
    return X, X_public, None


def take_rows(X: Any, rows: NDArray[np.intp] | slice) -> Any:
    """Take some records of a DataFrame or array."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def take_given(given: Any, rows: NDArray[np.intp]) -> Any:
    """Take some records of something before it is made an array of: what is left out decides on no type.

    ``given``: a list, or what :func:`take_rows` takes.

    Examples
    --------
    >>> np.asarray(take_given([[1, 2], ["x"], [3, 4]], np.array([0, 2]))).tolist()
    [[1, 2], [3, 4]]
    """
    if isinstance(given, (list, tuple)):
        return [given[row] for row in rows.tolist()]
    if hasattr(given, "iloc"):
        taken = given.iloc[rows]
        for name in taken if isinstance(taken, pd.DataFrame) and taken.columns.is_unique else ():
            if isinstance(taken[name].dtype, pd.CategoricalDtype):
                taken = taken.assign(**{name: taken[name].cat.remove_unused_categories()})
        return taken
    return (given.tocsr() if hasattr(given, "tocsr") else np.asarray(given))[rows]


def stack_rows(above: Any, below: Any) -> Any:
    """Put records of one kind below others."""
    if isinstance(above, pd.DataFrame):
        return pd.concat([above, below], ignore_index=True)
    if hasattr(above, "tocsr"):
        return sparse.vstack([above, below], format="csr")
    return np.concatenate([above, below])


def float_type(numbers: Any) -> type[np.float32] | type[np.float64]:
    """Choose the shorter float that holds numbers of a type without loss, or else the longer.

    Examples
    --------
    >>> float_type(np.uint8).__name__, float_type(np.float32).__name__, float_type(np.int64).__name__
    ('float32', 'float32', 'float64')
    """
    return np.float32 if np.can_cast(numbers, np.float32) else np.float64


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
        raise RecordError(
            f"{missing.size:,} record(s) without a label, first {WHERE}: label or drop them",
            missing[0],
        )
    if classes is None:
        if labels.dtype.kind == "f" and (labels != np.rint(labels)).any():
            raise InputError(CONTINUOUS.format("labels"))
        try:
            known: NDArray[Any] = np.asarray(np.unique(labels))
        except TypeError:
            raise InputError(
                "some labels are numbers and some text, so they have no order: write all in the same way, or "
                "give the public list of classes"
            ) from None
    else:
        known = _class_list(classes)
    if len(known) > MOST_CLASSES:
        raise InputError(
            f"there are {len(known):,} classes, and at most {MOST_CLASSES:,} are allowed: give a column of "
            "classes"
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
            "labels must be numbers or text, got something else: give names of classes"
        ) from None
    outside = np.flatnonzero(codes < 0)
    if outside.size:
        raise outside_the_classes(labels, known, outside.size, outside[0])
    return known, np.asarray(codes, dtype=np.intp)


def classes_of_public(*labels: NDArray[Any] | None) -> NDArray[Any] | None:
    """List the classes that occur in labels of public records; None where no public label is known.

    ``labels``: of the public records, and of the test records; None where a file has none.
    Raises InputError if they are numbers to be predicted, and no classes.

    Examples
    --------
    >>> classes_of_public(np.array([2.0, np.nan, 1.0]), None).tolist()
    [1, 2]
    >>> print(classes_of_public(None))
    None
    """
    found: set[Any] = set()
    for column in labels:
        if column is None:
            continue
        known = column[~pd.isna(column)]
        if known.dtype.kind == "f" and (known != known.round()).any():
            raise InputError(CONTINUOUS.format("public labels"))
        if len(known) < len(column) and known.dtype.kind == "f" and (known == known.round()).all():
            known = known.astype(
                np.int64
            )  # whole numbers, before a gap among them made floats of them
        found.update(known.tolist())
    if not found:
        return None
    try:
        return np.array(sorted(found))
    except TypeError:
        raise InputError(
            "some labels of the public records are numbers and some text: write all in the same way, or give "
            "the list of classes"
        ) from None


CONTINUOUS = (
    "Unknown label type: {} are continuous numbers, but Collegium classifies: give class names or whole "
    "numbers (numbers are predicted in Python, by DPSGDRegressor), or the public list of classes if they are "
    "classes"
)
PRIVATE_CLASSES = (
    "the list of classes was taken from the private labels, which no budget pays for: a class that only one "
    "person has will show in what is released; give {}"
)


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


OUTSIDE = "not among the classes"
"""Said of labels that are not on the public list."""


def outside_the_classes(
    labels: NDArray[Any], classes: NDArray[Any], n_outside: int, first_row: int
) -> RecordError:
    """Make the error about labels that are not among the classes; it quotes none of them.

    ``labels``: labels of private records.
    ``classes``: the public list of classes.
    ``n_outside``, ``first_row``: how many labels are not among the classes, and the row of the
        first, from 0.
    """
    return RecordError(
        f"{n_outside:,} record(s) have a label that is {OUTSIDE}, first {WHERE}: allowed are "
        f"{listed(classes.tolist())}{other_spelling(labels, classes)}",
        first_row,
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
            f"no teacher has a record of class {names}, so none will vote for it: shorten the class list, or "
            "add records",
            PrivacyWarning,
            stacklevel=3,
        )


def described(X: Any) -> dict[str, Any]:
    """Say what records are, so that others can be made like them: for JSON.

    ``X``: from :func:`as_records`.
    Returns: names and kinds of the columns of a table, or shape and kind of a record of an array.

    Examples
    --------
    >>> described(pd.DataFrame({"age": [3, 4], "work": ["sea", "field"]}))
    {'columns': [['age', 'numbers'], ['work', 'text']]}
    >>> described(np.zeros((5, 28, 28)))
    {'shape': [28, 28], 'kind': 'numbers'}
    """
    if isinstance(X, pd.DataFrame):
        return {"columns": [[str(name), in_words(X[name].dtype)] for name in X.columns]}
    return {"shape": [int(size) for size in X.shape[1:]], "kind": in_words(X.dtype)}


def like_described(X: Any, inputs: dict[str, Any], name: str) -> Any:
    """Take of some records what was described, columns in that order; others are left out.

    ``X``: a table or an array.
    ``inputs``: from :func:`described`.
    ``name``: what to call ``X`` in messages.

    Examples
    --------
    >>> table = pd.DataFrame({"name": ["Ada"], "age": [3]})
    >>> like_described(table, {"columns": [["age", "numbers"]]}, "table.csv").columns.tolist()
    ['age']
    """
    columns = dict(inputs.get("columns", []))
    if isinstance(X, pd.DataFrame) != bool(columns):
        kinds = {True: "a table with named columns", False: "an array without column names"}
        raise InputError(
            f"{name} holds {kinds[isinstance(X, pd.DataFrame)]}, but the student takes "
            f"{kinds[bool(columns)]}: give records in the same form as the public ones"
        )
    if not columns:
        if list(X.shape[1:]) != inputs.get("shape"):
            raise InputError(
                f"{name} holds records of shape {X.shape[1:]}, but the student takes shape "
                f"{tuple(inputs.get('shape', ()))}: prepare them as the public ones were"
            )
        return X
    missing = [column for column in columns if column not in X.columns]
    if missing:
        raise InputError(
            f"{name} lacks {', '.join(missing)}: the student needs the columns {', '.join(columns)}"
        )
    X = with_dates(X[list(columns)])
    for column, kind in columns.items():
        if in_words(X[column].dtype) != kind and not X[column].isna().all():
            raise InputError(
                f"column {column!r} holds {in_words(X[column].dtype)} in {name}, but the student learnt "
                f"{kind} there: convert it"
            )
    return X
