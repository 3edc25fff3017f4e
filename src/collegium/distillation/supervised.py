"""Students: trained on public records and what was released, on nothing else.

Three kinds of students are served. One with a method ``fit_released(X_public, queries, targets)`` gets
everything: all public records, which of them were answered, and a distribution over classes for each.
One whose ``fit`` takes ``sample_weight`` learns soft targets as weighted copies of each record, one for each
class that it may be of: a loss that is linear in the weights then is the expected loss. Any other
learns the released labels, and says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn import config_context
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from collegium.data.tables import encode_classes, one_hot, take_rows
from collegium.distillation.fitted_student import FittedStudent
from collegium.errors import InputError, NothingReleasedError, PrivacyWarning

Tell = Callable[[str], None]
TINY = 1e-3  # probability of a class below which a record gets no copy of that class


def _warn(line: str) -> None:
    warnings.warn(line, PrivacyWarning, stacklevel=4)


def fit_released(
    estimator: Any,
    X_public: Any,
    queries: NDArray[np.intp],
    labels: NDArray[np.intp],
    classes: ArrayLike,
    targets: NDArray[np.float64] | None = None,
    tell: Tell = _warn,
) -> Any:
    """Fit a student on everything that is public or was released.

    ``estimator``: cloned before fitting. With ``fit_released(X_public, queries, targets)``, it is
        given all public records, the row numbers that got a label, and for each of these a
        distribution over class numbers; otherwise it is fitted as by :func:`fit_student`.
    ``X_public`` (n_public, n_features): all public records.
    ``queries`` (n_labels,): rows that got a label.
    ``labels`` (n_labels,): their class numbers.
    ``classes`` (n_classes,): what the student is to predict, by class number.
    ``targets`` (n_labels, n_classes): probability of each class; rows add up to 1. Default: one-hot
        labels.
    ``tell``: told, in one line each, what the user should know. Default: a warning.
    Returns: the fitted student; it predicts values of ``classes``.
    """
    named = np.asarray(classes)
    _refuse_no_labels(labels)
    if targets is None:
        targets = one_hot(labels, len(named))
    _refuse_misfit(targets, len(labels), len(named))
    _tell_of_missing_classes(targets, named, tell)
    if not _reads_all(estimator) or (targets > 0).any(axis=0).sum() == 1:
        known = take_rows(X_public, queries)
        return fit_student(
            estimator, known, named[labels], targets=targets, classes=named, tell=tell
        )
    student = _fit_on_all(clone(estimator, safe=False), X_public, queries, targets)
    if named.dtype.kind in "iu" and np.array_equal(named, np.arange(len(named))):
        return student
    return NamedClasses(student, named)


def _reads_all(estimator: Any) -> bool:
    return hasattr(last_step(estimator), "fit_released")


def _fit_on_all(
    student: Any, X_public: Any, queries: NDArray[np.intp], targets: NDArray[np.float64]
) -> Any:
    """Fit a student on all public records; of a pipeline, all earlier steps, too, which get no labels."""
    if not isinstance(student, Pipeline):
        fitted = student.fit_released(X_public, queries, targets)
        return student if fitted is None else fitted
    name, last = student.steps[-1]
    head = student[:-1]
    prepared = head.fit_transform(X_public) if head.steps else X_public
    return Pipeline([*head.steps, (name, _fit_on_all(last, prepared, queries, targets))])


def seeded(student: Any, seed: int) -> Any:
    """Copy a student that has a ``random_state`` of None, with the seed in its place."""
    parameters = student.get_params() if hasattr(student, "get_params") else {}
    if "random_state" not in parameters or parameters["random_state"] is not None:
        return student
    return clone(student, safe=False).set_params(random_state=seed)


def fit_student(
    estimator: Any,
    X: Any,
    labels: NDArray[Any],
    *,
    targets: NDArray[np.float64] | None = None,
    classes: ArrayLike | None = None,
    tell: Tell = _warn,
) -> Any:
    """Fit a student on released labels, or on what histograms say about them.

    ``estimator``: cloned before fitting. Soft targets need a ``fit`` (of a pipeline: of its last
        step) that takes ``sample_weight``.
    ``X`` (n_labels, n_features): the public records that got a label.
    ``labels`` (n_labels,): released classes.
    ``targets`` (n_labels, n_classes): probability of each class; rows add up to 1.
    ``classes`` (n_classes,): class of each column of ``targets``. Default: 0, 1, …
    ``tell``: told if soft targets cannot be used, or all labels are equal. Default: a warning.
    Returns: the fitted classifier; one that always predicts the same class if there is no other.

    Notes
    -----
    Post-processing of what was released: fitting a student costs nobody anything. Earlier steps of a
    pipeline are fitted on each record once, whatever copies the last step gets.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> believed = np.array([[1.0, 0.0], [0.6, 0.4], [0.4, 0.6], [0.0, 1.0]])
    >>> student = fit_student(LogisticRegression(), X, np.array([0, 1, 0, 1]), targets=believed)
    >>> student.predict(X).tolist()
    [0, 0, 1, 1]
    """
    _refuse_no_labels(labels)
    if targets is not None:
        named = np.arange(targets.shape[1]) if classes is None else np.asarray(classes)
        _refuse_misfit(targets, len(labels), len(named))
        if (targets.max(axis=1) < 1).any():
            if _takes_weights(estimator):
                return _fit_soft(estimator, X, targets, named, tell)
            tell(
                f"{_name_of(estimator)} cannot take soft targets (its fit has no sample_weight): it learns "
                "the released labels only"
            )
    present = np.unique(labels)
    if present.size == 1:
        return _constant(X, present[0], labels.size, tell)
    return clone(estimator, safe=False).fit(X, labels)


def _fit_soft(
    estimator: Any,
    X: Any,
    targets: NDArray[np.float64],
    classes: NDArray[Any],
    tell: Tell,
) -> Any:
    """Give each record once for each class that it may be of, weighted by the probability."""
    kept = np.where(targets >= min(TINY, 1 / targets.shape[1]), targets, 0.0)
    kept /= kept.sum(axis=1, keepdims=True)
    rows, columns = np.nonzero(kept)
    copies, weights = classes[columns], kept[rows, columns]
    if np.unique(columns).size == 1:
        return _constant(X, copies[0], len(targets), tell)
    student = clone(estimator, safe=False)
    if not isinstance(student, Pipeline):
        return student.fit(take_rows(X, rows), copies, sample_weight=weights)
    name, last = student.steps[-1]
    head = student[:-1]
    with config_context(enable_metadata_routing=False):  # nothing is passed to these steps
        prepared = head.fit_transform(X, classes[targets.argmax(axis=1)]) if head.steps else X
    last.fit(take_rows(prepared, rows), copies, sample_weight=weights)
    return Pipeline([*head.steps, (name, last)])


def _takes_weights(estimator: Any) -> bool:
    last = last_step(estimator)
    return hasattr(last, "fit") and bool(has_fit_parameter(last, "sample_weight"))


def _name_of(estimator: Any) -> str:
    return type(last_step(estimator)).__name__


def last_step(estimator: Any) -> Any:
    """Give what learns: of a pipeline its last step."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def _constant(X: Any, label: Any, n_labels: int, tell: Tell) -> Any:
    tell(f"all {n_labels} released label(s) are of one class: the student always predicts it")
    is_plain = isinstance(label, str | np.integer)
    constant = label if is_plain else np.array([label]).tolist()  # of True, or 1.0, it takes a list
    return DummyClassifier(strategy="constant", constant=constant).fit(X, np.full(n_labels, label))


def _refuse_no_labels(labels: NDArray[Any]) -> None:
    if len(labels) == 0:
        raise NothingReleasedError(
            "no label was released, so there is nothing to train a student on: lower the aggregator's "
            "threshold, add noise (a larger sigma buys more answers), or ask for larger budgets"
        )


def _refuse_misfit(targets: NDArray[np.float64], n_labels: int, n_classes: int) -> None:
    if targets.shape != (n_labels, n_classes):
        raise InputError(
            f"targets must have one row per label and one column per class, {(n_labels, n_classes)}, got "
            f"shape {targets.shape}"
        )
    sums_to_one = np.abs(targets.sum(axis=1) - 1) <= 1e-6
    if not ((targets >= 0).all() and sums_to_one.all()):
        raise InputError("targets must hold probabilities: rows of numbers ≥ 0 that add up to 1")


def _tell_of_missing_classes(
    targets: NDArray[np.float64], classes: NDArray[Any], tell: Tell
) -> None:
    """Say which classes the released labels say nothing about."""
    missing = classes[targets.sum(axis=0) < 0.5]
    if not 0 < missing.size < len(classes) - 1:
        return  # nothing is missing, or there is one class only, which is said when it is fitted
    names = ", ".join(str(name) for name in missing[:10]) + (", …" if missing.size > 10 else "")
    tell(
        f"{len(targets)} label(s) were released for {len(classes)} classes, none of class {names}: the "
        "student learns from what is there"
    )


def _wrapped_has_proba(self: NamedClasses) -> bool:
    return hasattr(self.student, "predict_proba")


class NamedClasses(FittedStudent):
    """A fitted student that predicts class numbers, made to predict the classes themselves.

    ``student``: fitted; predicts class numbers.
    ``classes`` (n_classes,): the classes by number.
    ``classes_``: the classes that the student knows.
    """

    def __init__(self, student: Any, classes: NDArray[Any]) -> None:
        self.student = student
        self.classes = classes

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes that the student knows, in the order of its probabilities."""
        known = getattr(self.student, "classes_", np.arange(len(self.classes)))
        return np.asarray(self.classes[np.asarray(known, dtype=np.intp)])

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict classes, shape (n_records,)."""
        return np.asarray(self.classes[np.asarray(self.student.predict(X), dtype=np.intp)])

    @available_if(_wrapped_has_proba)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict probabilities, one column for each of ``classes_``."""
        return np.asarray(self.student.predict_proba(X), dtype=np.float64)


def released_beliefs(
    estimator: Any,
    X_public: Any,
    queries: NDArray[np.intp],
    labels: NDArray[np.intp],
    n_classes: int,
    targets: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Fit a student on what was released so far, and ask it about all public records.

    ``estimator``: cloned before fitting.
    ``X_public`` (n_public, n_features): all public records.
    ``queries``, ``labels`` (n_labels,): rows that got a label, and their class numbers.
    ``targets`` (n_labels, n_classes): as for :func:`fit_released`.
    Returns (n_public, n_classes): probabilities; 0 for classes that the student has not seen.
    """
    student = fit_released(
        estimator, X_public, queries, labels, np.arange(n_classes), targets, tell=lambda line: None
    )
    return beliefs_of(student, X_public, np.arange(n_classes))


def beliefs_of(student: Any, X: Any, classes: ArrayLike) -> NDArray[np.float64]:
    """Ask a student about records, with a column for every class.

    ``student``: fitted; its ``classes_`` are some of the classes.
    ``X`` (n, n_features): any records.
    ``classes`` (n_classes,): the public list of classes.
    Returns (n, n_classes): probabilities; 0 for classes that the student has not seen.
    """
    predicted = np.asarray(student.predict_proba(X), dtype=np.float64)
    known = pd.Index(np.asarray(classes))
    beliefs = np.zeros((len(predicted), len(known)))
    beliefs[:, known.get_indexer(pd.Index(student.classes_))] = predicted
    return beliefs


def believed_by(student: Any, X: Any, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Ask a student for its beliefs, as :func:`beliefs_of`; one without them is sure of what it names."""
    if hasattr(student, "predict_proba"):
        return beliefs_of(student, X, classes)
    return one_hot(encode_classes(student.predict(X), classes)[1], len(classes))


def require_comparable(student: Any) -> None:
    """Refuse a student that votes cannot be compared with."""
    if not hasattr(student, "predict_proba"):
        raise InputError(
            "aggregator 'interactive' compares votes with the student's probabilities, and "
            f"{type(student).__name__} has no predict_proba: use a student that has"
        )


@contextmanager
def failure_is_told(tell: Tell, n_labels: int, consequence: str) -> Iterator[None]:
    """Fit a student without its warnings; if it fails, say so in one line and go on."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        tell(
            f"the student could not be fitted to {n_labels} labels, {consequence} "
            f"({type(error).__name__}: {reason})"
        )


class RefittedStudent:
    """The student that Interactive-GNMax compares its teachers with.

    ``estimator``: refitted from scratch on all labels each time.
    ``X_public`` (n_public, n_features): public records.
    ``tell``: told, in one line, if the student cannot be fitted to what was released so far: votes
        are then compared with what it believed before. Default: a warning.
    """

    def __init__(self, estimator: Any, X_public: Any, n_classes: int, tell: Tell = _warn) -> None:
        require_comparable(estimator)
        self._estimator = estimator
        self._X_public = X_public
        self._n_classes = n_classes
        self._tell = tell
        self._probabilities: NDArray[np.float64] | None = None

    def refit(self, queries: list[int], labels: list[int]) -> None:
        """Learn from all labels released so far, and predict all public records."""
        if len(set(labels)) < 2:
            return
        # Labels have been paid for: a student that needs more of them must not end the voting.
        consequence = "so votes are compared with what it believed before"
        with failure_is_told(self._tell, len(labels), consequence):
            self._probabilities = released_beliefs(
                self._estimator,
                self._X_public,
                np.asarray(queries, dtype=np.intp),
                np.asarray(labels, dtype=np.intp),
                self._n_classes,
            )

    def probabilities(self, query: int) -> NDArray[np.float64] | None:
        """Probability of each class for one public record; None before the first fit."""
        return None if self._probabilities is None else self._probabilities[query]
