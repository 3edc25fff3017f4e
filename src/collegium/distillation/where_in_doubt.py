"""A model, and a student where the model's noise leaves doubt: each answers what it knows better."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from collegium.distillation.fitted_student import FittedStudent
from collegium.distillation.goal import without_goal
from collegium.distillation.supervised import believed_by, last_step

Floats = NDArray[np.float64]


class WhereInDoubt(FittedStudent):
    """Answer as a model does, or as a student where both disagree and the model's noise may be why.

    A model's scores hold noise of a known size. Where it and the student name different classes, and the
    model's two scores differ by less than ``reach`` standard deviations of that noise, the student's
    probabilities are given; elsewhere the model's.

    Parameters
    ----------
    model : classifier
        Fitted, with ``decision_function``.
    student : classifier
        Fitted, for the same records.
    noise : float
        Standard deviation of the noise in each of the model's scores.
    reach : float
        How far the student is heard, in standard deviations of the difference of two scores.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> model = LogisticRegression(C=100).fit(X, X[:, 0] > 0.2)  # its border should be at 0
    >>> both = WhereInDoubt(model, LogisticRegression(C=100).fit(X, X[:, 0] > 0), noise=2.0, reach=1.0)
    >>> model.predict([[0.1], [0.9]]), both.predict([[0.1], [0.9]])
    (array([False,  True]), array([ True,  True]))
    """

    def __init__(self, model: Any, student: Any, noise: float, reach: float) -> None:
        self.model = model
        self.student = student
        self.noise = noise
        self.reach = reach

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes in the order of the probabilities."""
        return np.asarray(self.model.classes_)

    def predict_proba(self, X: Any) -> Floats:
        """Believe in each class, as the model or the student does; shape (n_records, n_classes)."""
        scores = np.asarray(self.model.decision_function(X), dtype=np.float64)
        theirs = believed_by(self.student, X, self.classes_)
        if scores.ndim == 1:
            scores = np.stack([np.zeros_like(scores), scores], axis=1)
        named, others = scores.argmax(axis=1), theirs.argmax(axis=1)
        every = np.arange(len(scores))
        apart = scores[every, named] - scores[every, others]
        heard = (named != others) & (apart < self.reach * self.deviation)
        return np.asarray(np.where(heard[:, None], theirs, softmax(scores, axis=1)))

    @property
    def deviation(self) -> float:
        """Standard deviation of the difference of two scores; of two classes one score holds it."""
        return self.noise * (1.0 if len(self.classes_) == 2 else float(np.sqrt(2.0)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Name the most probable class; shape (n_records,)."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


def is_in_doubt(published: Any) -> bool:
    """Tell whether what is published, also behind what records go through first, is a model and a student."""
    return isinstance(without_goal(last_step(published)), WhereInDoubt)
