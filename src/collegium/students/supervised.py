"""Students: trained on public records and released labels, on nothing else."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from collegium.errors import InputError, NothingReleasedError, PrivacyWarning
from collegium.tables import take_rows


def fit_student(estimator: Any, X: Any, labels: NDArray[np.intp]) -> Any:
    """Fit a student on released labels.

    Parameters
    ----------
    estimator : scikit-learn classifier
        Cloned before fitting.
    X : array-like or DataFrame, shape (n_labels, n_features)
        The public records that got a label.
    labels : ndarray of int, shape (n_labels,)
        Released class numbers.

    Returns
    -------
    object
        The fitted classifier; one that always predicts the same class if all labels are equal.

    Raises
    ------
    NothingReleasedError
        If there is no label.

    Notes
    -----
    Post-processing of what was released: fitting a student costs nobody anything.
    """
    present = np.unique(labels)
    if present.size == 0:
        raise NothingReleasedError(
            "no label was released, so there is nothing to train a student on: lower the aggregator's "
            "threshold, add noise (a larger sigma buys more answers), or ask for larger budgets"
        )
    if present.size == 1:
        warnings.warn(
            f"all {labels.size} released label(s) are of one class: the student always predicts it",
            PrivacyWarning,
            stacklevel=2,
        )
        return DummyClassifier(strategy="constant", constant=present[0]).fit(X, labels)
    return clone(estimator, safe=False).fit(X, labels)


class RefittedStudent:
    """The student that Interactive-GNMax compares its teachers with.

    Parameters
    ----------
    estimator : scikit-learn classifier with ``predict_proba``
        Refitted from scratch on all labels each time.
    X_public : array-like or DataFrame, shape (n_public, n_features)
        Public records.
    n_classes : int
        Number of classes.

    Raises
    ------
    InputError
        If the estimator has no ``predict_proba``.
    """

    def __init__(self, estimator: Any, X_public: Any, n_classes: int) -> None:
        if not hasattr(estimator, "predict_proba"):
            raise InputError(
                "aggregator 'interactive' compares votes with the student's probabilities, and "
                f"{type(estimator).__name__} has no predict_proba: use a student that has"
            )
        self._estimator = estimator
        self._X_public = X_public
        self._n_classes = n_classes
        self._probabilities: NDArray[np.float64] | None = None

    def refit(self, queries: list[int], labels: list[int]) -> None:
        """Learn from all labels released so far, and predict all public records."""
        if len(set(labels)) < 2:
            return
        rows = np.asarray(queries, dtype=np.intp)
        X = self._X_public
        known = take_rows(X, rows)
        student = fit_student(self._estimator, known, np.asarray(labels, dtype=np.intp))
        predicted = np.asarray(student.predict_proba(X), dtype=np.float64)
        self._probabilities = np.zeros((len(predicted), self._n_classes))
        self._probabilities[:, np.asarray(student.classes_, dtype=np.intp)] = predicted

    def probabilities(self, query: int) -> NDArray[np.float64] | None:
        """Probability of each class for one public record; None before the first fit."""
        return None if self._probabilities is None else self._probabilities[query]
