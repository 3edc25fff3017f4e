"""Choose among students with what was released, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from collegium.checks import check_whole
from collegium.errors import CollegiumError, InputError
from collegium.pate.students.released import check_released, score_released
from collegium.pate.students.supervised import fit_released

MIN_LABELS = 10


@dataclass(frozen=True)
class Selection:
    """Result of :func:`select_student`.

    Attributes
    ----------
    name : str
        The winner.
    student : classifier
        The winner, fitted on everything that was released.
    scores : dict of str to float
        Mean log-likelihood ratio of held-out answers, in nats per answer; −∞ for a candidate that failed,
        NaN for a single candidate with too few answers to hold some out.
    """

    name: str
    student: Any
    scores: dict[str, float]


def select_student(
    candidates: Mapping[str, Any],
    X_public: Any,
    queries: ArrayLike,
    targets: ArrayLike,
    *,
    cv: int = 3,
    random_state: int = 0,
) -> Selection:
    """Choose the student under which held-out answers are most likely.

    Parameters
    ----------
    candidates : mapping of str to classifier
        With ``predict_proba``; cloned. Those with ``fit_released`` also learn from the public records
        without an answer.
    X_public : array-like, shape (n_public, ...)
        Public records.
    queries : array-like of int, shape (n_labels,)
        Rows that got an answer.
    targets : array-like, shape (n_labels, n_classes)
        How well each class explains each answer; rows add up to 1.
    cv : int, default=3
        Folds of the answers.
    random_state : int, default=0
        Folds.

    Returns
    -------
    Selection

    Raises
    ------
    InputError
        If there are no candidates, or one has no ``predict_proba``, fewer than 10 answers, or none of
        them can be fitted.

    Notes
    -----
    Released answers may be used as often as one likes, so this costs nobody anything. The score is proper
    for noisy answers (:func:`~collegium.pate.students.released.score_released`); the accuracy on noisy labels
    would need far more of them to tell good students apart.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> targets = np.stack([1 / (1 + np.exp(3 * X[:, 0])), 1 / (1 + np.exp(-3 * X[:, 0]))], axis=1)
    >>> candidates = {"dummy": DummyClassifier(), "logistic": LogisticRegression()}
    >>> select_student(candidates, X, np.arange(60), targets).name
    'logistic'
    """
    released = check_released(X_public, queries, targets)
    if not candidates:
        raise InputError("there are no candidates: give at least one student")
    for name, candidate in candidates.items():
        if not hasattr(candidate, "predict_proba"):
            raise InputError(
                f"candidate {name!r} has no predict_proba, so nothing can be said about its beliefs: "
                "leave it out, or wrap it (CalibratedClassifierCV)"
            )
    enough = len(released.queries) >= max(MIN_LABELS, cv)
    if len(candidates) > 1 and not enough:
        raise InputError(
            f"{len(released.queries)} answers are too few to choose a student by: at least "
            f"{max(MIN_LABELS, cv)} are needed; name the student yourself"
        )
    check_whole("cv", cv, least=2)
    classes = np.arange(released.n_classes)

    def fitted(candidate: Any, kept: Any) -> Any:
        rows, beliefs = released.queries[kept], released.targets[kept]
        return fit_released(
            clone(candidate, safe=False),
            released.X,
            rows,
            beliefs.argmax(axis=1),
            classes,
            beliefs,
            tell=lambda line: None,
        )

    shuffled = np.random.default_rng(random_state).permutation(len(released.queries))
    fold = np.empty(len(shuffled), dtype=np.intp)
    fold[shuffled] = np.arange(len(shuffled)) % cv
    scores: dict[str, float] = {}
    for name, candidate in candidates.items():
        believed = np.zeros_like(released.targets)
        try:
            for number in range(cv if enough else 0):
                out = fold == number
                student = fitted(candidate, ~out)
                known = np.asarray(student.classes_, dtype=np.intp)
                held_out = student.predict_proba(released.X[released.queries[out]])
                believed[np.ix_(out, known)] = held_out
        except CollegiumError:
            scores[name] = -np.inf
            continue
        scores[name] = score_released(believed, released.targets) if enough else np.nan
    winner = max(scores, key=lambda name: scores[name])
    if scores[winner] == -np.inf:
        raise InputError("no candidate could be fitted to what was released: fit one to see why")
    return Selection(winner, fitted(candidates[winner], slice(None)), scores)
