"""What a student is to be good at, and what follows for its answers: the one rule.

- ``accuracy``: to be right as often as possible: it names the class that it believes in most.
- ``balanced``: to be right about each class alike (balanced accuracy, the mean over the classes of the
  share of their records that it gets right). Of all answers made from the chances p(c | x), those that
  name the largest p(c | x)/π_c have the largest balanced accuracy, π_c being the share of class c: the sum
  over c of P(answer = c | c) is the integral of the p(c | x)/π_c of what is answered.
- ``auc``: to put records in order. Which class is named changes no order, so answers stay those of
  ``accuracy``.

What it takes is public or was released, and so is what comes out: nobody pays for it. The shares are those
that the student itself believes in, on average over the public records; where public shares are given, it
was matched to these before (:mod:`collegium.distillation.share_matching`). Nothing is ever counted in
private records.

With teachers, ``balanced`` and ``auc`` ask for balanced votes, too (:mod:`collegium.models.balanced`):
where 12 % are of a class, teachers name it for next to no record, and what is released says nothing about it.
What a student learns of such votes are chances among classes that are equally frequent: its answers are
balanced as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils.metaestimators import available_if

from collegium.checks import check_choice
from collegium.distillation.fitted_student import FittedStudent
from collegium.distillation.share_matching import ShareMatched
from collegium.errors import InputError

Floats = NDArray[np.float64]
MOSTLY_ONE = 0.8
"""Share of the largest class above which always naming it is hard to beat: then goal balanced is proposed."""
ACCURACY, BALANCED, AUC = GOALS = ("accuracy", "balanced", "auc")


def check_goal(goal: Any) -> None:
    """Refuse what is no goal."""
    check_choice("goal", goal, GOALS)


def wants_balanced_votes(goal: str) -> bool:
    """Tell whether teachers are to vote as if classes were equally frequent."""
    return goal != ACCURACY


def believed_shares(beliefs: Floats) -> Floats:
    """Estimate the shares of the classes by a model's own beliefs about public records: their mean.

    One record more of each class is counted, so that no class has a share of 0.

    ``beliefs`` (n_public, n_classes): rows add up to 1.
    Returns (n_classes,): adds up to 1; all positive.

    Examples
    --------
    >>> believed_shares(np.array([[0.9, 0.1]] * 98)).round(3)
    array([0.892, 0.108])
    """
    n, n_classes = beliefs.shape
    return np.asarray((beliefs.sum(axis=0) + 1) / (n + n_classes))


def _has_scores(self: BalancedAnswers) -> bool:
    return hasattr(self.student, "decision_function")


class BalancedAnswers(FittedStudent):
    """A fitted student that names the class whose probability is largest beside the class's share.

    Its probabilities, and scores, stay as they are: chances stay chances, and the order of records stays. So
    the class that it names need not be the most probable one.

    ``student``: fitted, with ``predict_proba`` and ``classes_``.
    ``shares`` (n_known_classes,): positive; in the order of ``classes_``.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.arange(20.0).reshape(-1, 1)
    >>> rare = LogisticRegression().fit(X, X[:, 0] > 15)
    >>> student = BalancedAnswers(rare, believed_shares(rare.predict_proba(X)))
    >>> int(rare.predict(X).sum()), int(student.predict(X).sum())
    (4, 5)
    """

    def __init__(self, student: Any, shares: Floats) -> None:
        self.student = student
        self.shares = shares

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes in the order of the probabilities."""
        return np.asarray(self.student.classes_)

    def predict_proba(self, X: Any) -> Floats:
        """Believe in each class, as the student does; shape (n_records, n_classes)."""
        return np.asarray(self.student.predict_proba(X), dtype=np.float64)

    def predict(self, X: Any) -> NDArray[Any]:
        """Name the class whose probability is largest beside its share; shape (n_records,)."""
        return np.asarray(self.classes_[(self.predict_proba(X) / self.shares).argmax(axis=1)])

    @available_if(_has_scores)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Floats:
        """Score classes, as the student does."""
        return np.asarray(self.student.decision_function(X))


def answering(goal: str, student: Any, X_public: Any) -> Any:
    """Let a student whose beliefs are chances answer for a goal.

    ``goal``: one of :data:`GOALS`.
    ``student``: fitted.
    ``X_public`` (n_public, ...): public records as it sees them.
    Returns: the student itself where nothing changes.
    Raises InputError if it gives no probabilities, which the goal needs.
    """
    if goal != BALANCED:
        return student
    require_beliefs_for(goal, student)
    beliefs = np.asarray(student.predict_proba(X_public), dtype=np.float64)
    return BalancedAnswers(student, believed_shares(beliefs))


def answering_as_voted(goal: str, student: Any) -> Any:
    """Let a student of balanced votes answer for a goal.

    Its answers are balanced already, but for a match to public shares: that makes chances of its beliefs, and
    is undone where it answers.

    ``goal``: one of :data:`GOALS`.
    ``student``: fitted.
    """
    if goal != BALANCED or not isinstance(student, ShareMatched):
        return student
    return BalancedAnswers(student, softmax(student.offsets))


def without_goal(student: Any) -> Any:
    """Give the student as it was before it answered for a goal."""
    return student.student if isinstance(student, BalancedAnswers) else student


def require_beliefs_for(goal: str, student: Any) -> None:
    """Refuse a student without ``predict_proba``, where a goal needs it."""
    if goal == BALANCED and not hasattr(student, "predict_proba"):
        raise InputError(
            f"{type(student).__name__} has no predict_proba, which goal {BALANCED!r} weighs with the shares "
            "of the classes: use a student that has, or another goal"
        )
