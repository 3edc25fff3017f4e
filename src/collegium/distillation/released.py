"""What was released, checked, and read as evidence: the common ground of semi-supervised students.

A target says how well each class explains what was released of one query, r: it is P(r | c), scaled to add up
to 1, which is the posterior under equal shares of the classes. (One-hot rows say that the label is believed.)
It must not hold the true, unequal shares: where answers are noisy, such a posterior names the largest class
everywhere, and a student that hears it from a record, its neighbours and theirs counts it many times.
Students work with the *evidence* log P(r | c)/P(r), P(r) = Σ_c π_c·P(r | c), and find the shares π
themselves, as those under which everything that was released is most likely.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.utils.multiclass import check_classification_targets

from collegium.data.tables import float_type, one_hot
from collegium.errors import InputError, NothingReleasedError

Floats = NDArray[np.float64]
#: Pseudo-observations when shares are estimated, relative to the answers: an unseen class stays possible.
SHARE_COUNT = 0.01
_SHARE_STEPS, _SHARE_TOLERANCE = 500, 1e-6
#: Share of each model's beliefs that is spread evenly before it is judged, so that no answer is impossible.
CAUTION = 0.01
#: Largest error of a row's sum: float32 targets are fine, percentages are not.
_SUM_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class ReleasedAnswers:
    """Public records and what was released about some of them.

    ``X`` (n_public, ...): all public records.
    ``queries`` (n_labels,): rows that got an answer; each at most once.
    ``targets`` (n_labels, n_classes): P(r | c), scaled to rows that add up to 1.
    """

    X: NDArray[Any]
    queries: NDArray[np.intp]
    targets: Floats

    @property
    def n_classes(self) -> int:
        """Length of the public list of classes."""
        return int(self.targets.shape[1])

    def shares(self) -> Floats:
        """Estimate the shares of the classes from the targets, shape (n_classes,)."""
        return class_shares(self.targets)

    def evidence(self, mistrust: float = 0.0) -> Floats:
        """Log-likelihood ratio of each class for *every* public record.

        Returns (n_public, n_classes): 0 for records without an answer.
        """
        table = np.zeros((len(self.X), self.n_classes))
        table[self.queries] = log_evidence(self.targets, mistrust)
        return table


def check_released(X_public: Any, queries: ArrayLike, targets: ArrayLike) -> ReleasedAnswers:
    """Check what a student is given.

    ``X_public`` (n_public, n_features): all public records, as finite numbers.
    ``queries`` (n_labels,): row numbers that got an answer.
    ``targets`` (n_labels, n_classes): how well each class explains the answer; rows add up to 1.

    Examples
    --------
    >>> check_released([[0.0], [1.0]], [1], [[0.2, 0.8]]).n_classes
    2
    """
    X = as_numbers(X_public, "public records")
    rows = np.asarray(queries)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise InputError(
            f"queries must be row numbers in one dimension, got shape {rows.shape} of {rows.dtype}"
        )
    if not rows.size:
        raise NothingReleasedError(
            "no label was released, so there is nothing to train a student on: ask for larger budgets, or "
            "add noise (a larger sigma buys more answers)"
        )
    if rows.min() < 0 or rows.max() >= len(X):
        raise InputError(
            f"queries must be rows of the {len(X)} public records, 0 to {len(X) - 1}: give the public "
            "records that were voted on"
        )
    if np.unique(rows).size != rows.size:
        raise InputError("queries must differ: no public record is asked about twice")
    table = np.asarray(targets, dtype=np.float64)
    if table.ndim != 2 or len(table) != len(rows) or table.shape[1] < 2:
        raise InputError(
            f"targets must have one row for each of the {len(rows)} queries and one column per class (at "
            f"least 2), got shape {table.shape}"
        )
    if not np.isfinite(table).all() or (table < 0).any():
        raise InputError(
            "targets must be probabilities: finite, and at least 0 (NaN is not allowed)"
        )
    sums = table.sum(axis=1)
    if np.abs(sums - 1).max() > _SUM_TOLERANCE:
        raise InputError(
            f"each row of targets must add up to 1, got sums from {sums.min():.4g} to {sums.max():.4g}: "
            "divide each row by its sum"
        )
    return ReleasedAnswers(X, rows.astype(np.intp), table / sums[:, None])


def as_numbers(X: Any, what: str) -> NDArray[Any]:
    """Take records as an array of finite floats, at least one row and two dimensions.

    ``what``: what the message calls them.
    """
    if hasattr(X, "tocsr"):
        raise InputError(f"the {what} are sparse; give a dense array: X.toarray()")
    array = np.asarray(X)
    if array.dtype.kind not in "buif":
        raise InputError(f"the {what} are of type {array.dtype}; give numbers: encode them first")
    if array.ndim < 2 or 0 in array.shape:
        raise InputError(
            f"the {what} have shape {array.shape}; at least one record with one feature is needed"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(f"the {what} must be finite: fill in what is missing first")
    return array.astype(float_type(array.dtype), copy=False)


def as_supervised(X: Any, y: ArrayLike) -> tuple[Any, NDArray[np.intp], Floats, NDArray[Any]]:
    """Turn plain labels into what :func:`check_released` takes: every record was answered.

    ``X`` (n, ...): records.
    ``y`` (n,): labels of any kind.
    Returns: ``classes`` has the label of each column of ``targets``.
    """
    labels = np.asarray(y)
    check_classification_targets(labels)
    if labels.shape != (len(X),):
        raise InputError(
            f"{len(X)} records, but labels of shape {labels.shape}: give one label per record"
        )
    classes, codes = np.unique(labels, return_inverse=True)
    if classes.size < 2:
        raise InputError("labels of one class only: a student needs at least 2 classes")
    return X, np.arange(len(labels)), one_hot(codes, classes.size), classes


def class_shares(targets: Floats) -> Floats:
    """Estimate the shares of the classes: those under which what was released is most likely.

    Maximises Σ_i log Σ_c π_c t_ic, plus 1 % of as many pseudo-observations spread evenly, by expectation
    maximisation; the problem is concave.

    ``targets`` (n_labels, n_classes): P(r | c), each row up to a factor.
    Returns (n_classes,): adds up to 1; all positive.

    Examples
    --------
    >>> class_shares(np.eye(2)[[0] * 900 + [1] * 100]).round(3)
    array([0.896, 0.104])
    """
    n, n_classes = targets.shape
    pseudo = SHARE_COUNT * n / n_classes
    shares = np.full(n_classes, 1 / n_classes)
    for _ in range(_SHARE_STEPS):
        explained = targets @ shares
        fresh = (shares * (targets.T @ (1 / explained)) + pseudo) / (n * (1 + SHARE_COUNT))
        moved = float(np.abs(fresh - shares).max())
        shares = fresh
        if moved < _SHARE_TOLERANCE:
            break
    return np.asarray(shares / shares.sum())


def log_evidence(targets: Floats, mistrust: float = 0.0) -> Floats:
    """Log-likelihood ratio log P(r | c)/P(r) of each class: what the answers alone say.

    ``targets`` (n_labels, n_classes): P(r | c), each row up to a factor.
    ``mistrust``: chance that an answer says nothing (a teacher's majority that is wrong, a label
        that noise made): it bounds what one answer can do, so that its neighbours can overrule it.
    Returns (n_labels, n_classes): an answer that says nothing gives zeros. Where records share a
        class, their rows add up.

    Examples
    --------
    >>> log_evidence(np.array([[0.9, 0.1], [0.1, 0.9]])).round(2)
    array([[ 0.59, -1.61],
           [-1.61,  0.59]])
    >>> log_evidence(np.eye(2), mistrust=0.1).round(2)
    array([[ 0.64, -2.3 ],
           [-2.3 ,  0.64]])
    """
    ratio = targets / (targets @ class_shares(targets))[:, None]
    # Ratios below this come from rounding, not from what was released.
    return np.asarray(np.log(np.maximum((1 - mistrust) * ratio + mistrust, 1e-300)))


def even_evidence(targets: Floats, mistrust: float = 0.0) -> Floats:
    """Log-likelihood ratio of each class to the mean of all: log P(r | c)/((1/m)·Σ_j P(r | j)).

    For students that average what answers say. An answer that is believed, but for ``mistrust``, raises
    its class by the same amount whichever class it is, so that the mean evidence over answers at the same
    x is largest for the class that is most often right there. :func:`log_evidence`, whose mistrust is
    relative to P(r), raises rare classes more; it is for adding up what is known of one class.

    ``targets`` (n_labels, n_classes): P(r | c), each row up to a factor.
    ``mistrust``: chance that an answer says nothing.
    Returns (n_labels, n_classes).

    Examples
    --------
    >>> even_evidence(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]), mistrust=0.1).round(2)
    array([[-2.3 ,  0.64],
           [ 0.64, -2.3 ],
           [ 0.64, -2.3 ]])
    """
    ratio = targets / targets.mean(axis=1, keepdims=True)
    return np.asarray(np.log(np.maximum((1 - mistrust) * ratio + mistrust, 1e-300)))


def score_released(probabilities: Floats, targets: Floats, mistrust: float = 0.01) -> float:
    """Mean log-likelihood ratio of released answers, given a model's beliefs about the same records.

    log Σ_c p(c | x) · P(r | c) / P(r), in nats: 0 for a model that knows the shares of the classes and
    nothing else. An unbiased judge of models however noisy the answers are, since it is a
    proper score of the answers themselves.

    ``probabilities`` (n, n_classes): of a model that has not seen these answers.
    ``targets`` (n, n_classes): P(r | c) of what was released.
    ``mistrust``: chance that an answer says nothing: see :func:`log_evidence`. What scores better
        under another mistrust explains the answers better.
    Returns: higher is better.

    Examples
    --------
    >>> targets = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> right, wrong = np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([[0.1, 0.9], [0.9, 0.1]])
    >>> score_released(right, targets) > score_released(wrong, targets)
    True
    """
    n_classes = targets.shape[1]
    cautious = (1 - CAUTION) * probabilities + CAUTION / n_classes
    return float(logsumexp(np.log(cautious) + log_evidence(targets, mistrust), axis=1).mean())
