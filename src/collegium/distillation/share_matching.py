"""A student whose predictions follow public shares of the classes.

Labels that came from bent votes bend the student: where people with large budgets are more often of one
class, that class is named too often. If its true share is public knowledge, the student can be
corrected afterwards. That is post-processing, and costs nobody anything.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from collegium.distillation.fitted_student import FittedStudent
from collegium.errors import InputError

Floats = NDArray[np.float64]
_STEPS, _TOLERANCE = 50, 1e-8
_LONGEST = 4.0  # step, in log-probability
LEAST = 1e-9  # a probability below this comes from rounding


def share_offsets(probabilities: Floats, shares: Floats) -> Floats:
    """Find offsets of log-probabilities with which the mean belief in each class is its share.

    Under *label shift* (classes have other shares, but records within a class look the same) adding
    log π_c/π′_c to log p(c | x) is Bayes' rule. Here the ratio is not known, but what it must lead to is: the
    offsets b minimise the convex function F(b) = mean_i log Σ_c p_ic·exp(b_c) − Σ_c π_c·b_c, whose gradient
    is the mean corrected belief less π. Newton's method, with steps halved until F falls.

    ``probabilities`` (n, n_classes): beliefs about public records.
    ``shares`` (n_classes,): π: positive, adds up to 1.
    Returns (n_classes,): adds up to 0.

    References
    ----------
    Saerens, Latinne & Decaestecker, *Adjusting the outputs of a classifier to new a priori probabilities*,
    Neural Computation 14(1), 2002, Eq. 2.4 (the correction for known ratios).

    Examples
    --------
    >>> believed = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    >>> shifted = softmax(np.log(believed) + share_offsets(believed, np.array([0.8, 0.2])), axis=1)
    >>> shifted.mean(axis=0).round(6)
    array([0.8, 0.2])
    """
    logs = np.log(np.maximum(probabilities, LEAST))
    offsets = np.zeros(len(shares))

    def value(b: Floats) -> float:
        return float(logsumexp(logs + b, axis=1).mean() - shares @ b)

    for _ in range(_STEPS):
        believed = softmax(logs + offsets, axis=1)
        gradient = believed.mean(axis=0) - shares
        if np.abs(gradient).max() < _TOLERANCE:
            break
        hessian = np.diag(believed.mean(axis=0)) - believed.T @ believed / len(believed)
        # F does not change along 1: the pseudo-inverse leaves that direction alone.
        step = np.linalg.pinv(hessian, rcond=1e-12, hermitian=True) @ gradient
        # Where beliefs are all but certain F is almost flat, and Newton's step far too long.
        step *= min(1.0, _LONGEST / max(float(np.abs(step).max()), LEAST))
        start, length = value(offsets), 1.0
        while value(offsets - length * step) > start and length > 1e-8:
            length /= 2
        offsets = offsets - length * step
    return np.asarray(offsets - offsets.mean())


class ShareMatched(FittedStudent):
    """A fitted student, corrected such that its mean belief in each class is the class's public share.

    ``student``: fitted, with ``predict_proba`` and ``classes_``.
    ``offsets`` (n_known_classes,): from :func:`share_offsets`.
    """

    def __init__(self, student: Any, offsets: Floats) -> None:
        self.student = student
        self.offsets = offsets

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes in the order of the probabilities."""
        return np.asarray(self.student.classes_)

    def predict_proba(self, X: Any) -> Floats:
        """Believe in each class, corrected; shape (n_records, n_classes)."""
        believed = np.asarray(self.student.predict_proba(X), dtype=np.float64)
        return np.asarray(softmax(np.log(np.maximum(believed, LEAST)) + self.offsets, axis=1))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most likely class, corrected; shape (n_records,)."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


def match_shares(
    student: Any, X_public: Any, classes: NDArray[Any], shares: Floats
) -> ShareMatched:
    """Correct a student for public shares of the classes.

    ``student``: fitted, with ``predict_proba`` and ``classes_``.
    ``X_public`` (n_public, n_features): public records, drawn from the people that the shares are
        of.
    ``classes`` (n_classes,): the public class list, in the values of ``student.classes_``.
    ``shares`` (n_classes,): their public shares. Those of classes that the student does not know
        are left out.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.arange(20.0).reshape(-1, 1)
    >>> bent = LogisticRegression().fit(X, X[:, 0] > 5)
    >>> student = match_shares(bent, X, np.array([False, True]), np.array([0.5, 0.5]))
    >>> int(bent.predict(X).sum()), int(student.predict(X).sum())
    (14, 10)
    """
    require_probabilities(student)
    known = np.asarray(student.classes_)
    by_class = dict(zip(classes.tolist(), shares.tolist(), strict=True))
    own = np.array([by_class[label] for label in known.tolist()])
    believed = np.asarray(student.predict_proba(X_public), dtype=np.float64)
    return ShareMatched(student, share_offsets(believed, own / own.sum()))


def require_probabilities(student: Any) -> None:
    """Refuse a student without ``predict_proba``."""
    if not hasattr(student, "predict_proba"):
        raise InputError(
            f"{type(student).__name__} has no predict_proba, which public shares of the classes "
            "correct: use a student that has, or give the student no class shares"
        )
