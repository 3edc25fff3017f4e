"""Students tried on public records with synthetic classes: what cannot work is refused in time.

Teachers are tried in the same way (:mod:`collegium.pate.rehearsal`).

A rehearsal sees public records and numbers such as the length of the class list, and nothing else, so what
a model says when it fails may be shown. It changes nothing: models are cloned, and NumPy's global random
state is put back.

A model may need more records than a quick trial has, or more of each class: nearest neighbours, inner
cross-validation. One that fails on a few is therefore tried on as many as there will be, then with two
classes only, and refused if it fails then, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from collegium.data.tables import take_rows
from collegium.distillation.share_matching import match_shares
from collegium.distillation.supervised import beliefs_of, fit_released
from collegium.errors import CollegiumError, InputError, counted
from collegium.models.global_generators import kept_generators
from collegium.models.trial import one_line_about

Rows = NDArray[np.intp]

TRIED = 200
"""Public records of a quick trial, besides those that lack values."""

SOFT = 0.9
"""Belief in the synthetic class, where a student will learn from histograms."""

_NUMBERS_AT_ONCE = 2**22
_NEVER_LACKING = "biuUS"  # kinds of NumPy types
_WRITES = "checkpoint_folder"


def rehearse_student(
    student: Any,
    X_public: Any,
    classes: NDArray[Any],
    *,
    most_labels: int | None = None,
    soft: bool = False,
    tells_beliefs: bool = False,
    class_shares: NDArray[np.float64] | None = None,
    name: str = "student",
) -> Any | None:
    """Train and ask a student as it will be once labels are released, on synthetic ones.

    ``student``: not changed.
    ``X_public`` (n_public, n_features): all public records as the student sees them.
    ``classes`` (n_classes,): the public list of classes.
    ``most_labels``: how many labels can be released at most. Default: one for each public record.
    ``soft``: whether it will learn probabilities instead of labels.
    ``tells_beliefs``: whether its ``predict_proba`` will be needed.
    ``class_shares`` (n_classes,): public shares that it will be matched to.
    ``name``: what to call it in messages.
    Returns: the student that was trained; None where there was nothing to try.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.arange(20.0).reshape(-1, 1)
    >>> sorted(rehearse_student(LogisticRegression(), X, np.array(["no", "yes"])).classes_.tolist())
    ['no', 'yes']
    """
    n_classes = len(classes)
    some = telling_rows(X_public)
    everything = all_rows(X_public, some)
    most = len(everything) if most_labels is None else min(most_labels, len(everything))
    if min(len(some), most, n_classes) < 2:
        return None
    trained: list[Any] = []

    def attempt(rows: Rows, n_used: int) -> None:
        seen = take_rows(X_public, rows)
        queries, codes, targets = synthetic_labels(min(len(rows), most), n_classes, n_used, soft)
        fitted = fit_released(
            writing_nothing(student), seen, queries, codes, classes, targets, tell=_silently
        )
        if class_shares is not None:
            fitted = match_shares(fitted, seen, classes, class_shares)
        if tells_beliefs:
            beliefs_of(fitted, seen, classes)
        refuse_other_than_classes(fitted.predict(seen), len(rows), classes, name)
        trained.append(fitted)

    try_in_turn(
        name,
        X_public,
        [
            lambda: attempt(some, n_classes),
            lambda: attempt(everything, n_classes),
            lambda: attempt(everything, 2),
        ],
    )
    return trained[-1]


def synthetic_labels(
    n_labels: int, n_classes: int, n_used: int, soft: bool
) -> tuple[Rows, Rows, NDArray[np.float64]]:
    """Make synthetic labels: what a student could be taught about the first public records: classes in turn.

    ``n_labels``: records with an answer.
    ``n_classes``: length of the public list of classes.
    ``n_used``: how many of them occur.
    ``soft``: whether answers leave doubt.
    Returns ``queries, codes`` (n_labels,): row numbers, and their class numbers.
    Returns ``targets`` (n_labels, n_classes): probability of each class.

    Examples
    --------
    >>> synthetic_labels(3, 2, 2, soft=True)[2].round(2).tolist()
    [[0.9, 0.1], [0.1, 0.9], [0.9, 0.1]]
    """
    queries = np.arange(n_labels)
    codes = queries % n_used
    sure = SOFT if soft else 1.0
    targets = np.full((n_labels, n_classes), (1 - sure) / (n_classes - 1))
    targets[queries, codes] = sure
    return queries, codes, targets


def try_student(student: Any, X_public: Any, classes: NDArray[Any], name: str = "student") -> None:
    """Ask a trained student about some public records.

    ``X_public`` (n_public, n_features): public records as the student sees them.
    ``classes`` (n_classes,): the public list of classes.
    ``name``: what to call it in messages.
    Raises InputError if it predicts something else than classes; what it raises itself is not
        caught.
    """
    rows = telling_rows(X_public)
    predicted = student.predict(take_rows(X_public, rows))
    refuse_other_than_classes(predicted, len(rows), classes, name)


def telling_rows(X: Any) -> Rows:
    """Choose records for a quick trial: what lacks values in each column, and others from first to last.

    ``X`` (n, ...): public records.
    Returns: different rows, those that lack values first.

    Examples
    --------
    >>> telling_rows(np.array([[1.0], [2.0], [np.nan], [np.nan]])).tolist()
    [2, 0, 1, 3]
    """
    n = int(X.shape[0])
    spread = np.arange(n) if n <= TRIED else np.linspace(0, n - 1, TRIED).astype(np.intp)
    lacking = rows_that_lack_values(X)
    return np.concatenate([lacking, np.setdiff1d(spread, lacking)])


def rows_that_lack_values(X: Any) -> Rows:
    """Find, for each column with missing or infinite values, the first record that has one.

    ``X`` (n, ...): public records.
    Returns: different rows, in ascending order.

    Examples
    --------
    >>> rows_that_lack_values(pd.DataFrame({"a": [1, 2, 3], "b": ["x", None, None]})).tolist()
    [1]
    """
    if hasattr(X, "tocsr"):
        table = X.tocoo()
        lacking = _lacking(table.data)
        rows, columns = table.coords[0][lacking], table.coords[1][lacking]
        first: dict[int, int] = {}
        for row, column in sorted(zip(rows.tolist(), columns.tolist(), strict=True)):
            first.setdefault(column, row)
        return np.unique(np.array(list(first.values()), dtype=np.intp))
    n = int(X.shape[0])
    found: list[int] = []
    if hasattr(X, "iloc"):
        for column in range(X.shape[1]):
            found += np.flatnonzero(_lacking(X.iloc[:, column].to_numpy()))[:1].tolist()
        return np.unique(np.array(found, dtype=np.intp))
    if X.dtype.kind in _NEVER_LACKING:
        return np.array([], dtype=np.intp)
    table = X.reshape(n, -1)
    unseen = np.ones(table.shape[1], dtype=bool)
    step = max(1, _NUMBERS_AT_ONCE // table.shape[1])
    for start in range(0, n, step):
        lacking = _lacking(table[start : start + step])
        fresh = unseen & lacking.any(axis=0)
        found += (start + lacking[:, fresh].argmax(axis=0)).tolist()
        unseen &= ~fresh
    return np.unique(np.array(found, dtype=np.intp))


def _lacking(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind in _NEVER_LACKING:
        return np.zeros(values.shape, dtype=bool)
    if values.dtype.kind == "f":
        return np.asarray(~np.isfinite(values))
    return np.asarray(pd.isna(values))


def all_rows(X: Any, first: Rows) -> Rows:
    """All row numbers, some of them first."""
    return np.concatenate([first, np.setdiff1d(np.arange(int(X.shape[0])), first)])


def try_in_turn(name: str, X_public: Any, attempts: Sequence[Callable[[], None]]) -> None:
    """Make attempts until one succeeds; if none does, say in one line why the last failed."""
    failure: CollegiumError | None = None
    for attempt in attempts:
        try:
            with kept_generators(), one_line_about(name, "trained on public records"):
                return attempt()
        except CollegiumError as error:
            failure = error
    lacking = rows_that_lack_values(X_public)
    if lacking.size and any(word in str(failure) for word in ("NaN", "nan", "infinit", "finite")):
        raise InputError(
            f"public records contain NaN or infinity (as the {name} sees them; first {counted(lacking[0])}), "
            f"which this {name} cannot take: fill them in, drop these records, or give "
            "preprocessing that fills them in, such as TabularEncoder()"
        )
    assert failure is not None
    raise failure from None


def writing_nothing(model: Any) -> Any:
    """Copy a model; the copy keeps no checkpoints, from which a real training would go on."""
    copy = clone(model, safe=False)
    names = copy.get_params(deep=True) if hasattr(copy, "get_params") else ()
    folders = [name for name in names if name == _WRITES or name.endswith(f"__{_WRITES}")]
    return copy.set_params(**dict.fromkeys(folders)) if folders else copy


def refuse_other_than_classes(
    predicted: Any, n_records: int, classes: NDArray[Any], name: str
) -> None:
    """Refuse predictions that are not one of the classes for each record."""
    given = np.asarray(predicted)
    if given.shape != (n_records,) or not pd.Index(given).isin(pd.Index(classes)).all():
        raise InputError(
            f"{name} must predict one of the classes that it was taught for each record, but on public "
            "records with synthetic classes it predicted something else: give a classifier"
        )


def _silently(line: str) -> None:
    """Hear what the user need not know in a rehearsal."""
