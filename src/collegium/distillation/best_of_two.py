"""The better of two students of all public records, told by released answers that neither was shown."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from collegium.distillation.gaussian_process import GaussianProcessStudent
from collegium.distillation.held_out import choose_held_out
from collegium.distillation.regression import RegressionStudent
from collegium.distillation.released import ReleasedAnswers
from collegium.distillation.semi_supervised import SemiSupervisedStudent

_FOLDS = 3


class EitherStudent(SemiSupervisedStudent):
    """A Gaussian process where public records lie in clusters, or least squares where classes overlap.

    The first stands, unless released answers that it was not shown contradict it beyond chance
    (:func:`~collegium.distillation.held_out.choose_held_out`): post-processing, which costs nobody anything.

    Parameters
    ----------
    first, second : student, optional
        With ``fit_released``. Default: :class:`~collegium.students.GaussianProcessStudent`, and
        :class:`~collegium.students.RegressionStudent` that is linear in what it sees.
    random_state : int, optional
        Deals answers to folds; and for students without one of their own.

    Attributes
    ----------
    student_ : student
        The better one, fitted to everything.
    why_ : str
        One line.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> targets = np.where(X[:, :1] > 0, [[0.9, 0.1]], [[0.1, 0.9]])
    >>> student = EitherStudent(random_state=0).fit_released(X, np.arange(60), targets)
    >>> student.predict([[2.0, 0.0], [-2.0, 0.0]])
    array([0, 1])
    """

    def __init__(
        self, first: Any = None, second: Any = None, *, random_state: int | None = None
    ) -> None:
        self.first = first
        self.second = second
        self.random_state = random_state

    def _learn(self, released: ReleasedAnswers) -> None:
        X, queries, targets = released.X, released.queries, released.targets
        first, second = self._students()
        self.why_, better = "too few answers to hold any out", first
        if len(queries) >= 2 * _FOLDS:
            choice = choose_held_out(
                (first, X),
                (second, X),
                queries,
                targets,
                folds=_FOLDS,
                random_state=self.random_state or 0,
            )
            self.why_, better = choice.in_words, second if choice.second else first
        self.student_ = better.fit_released(X, queries, targets)
        self.beliefs_: NDArray[np.float64] = self.student_.beliefs_

    def _believe(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(self.student_.predict_proba(X))

    def _students(self) -> tuple[Any, Any]:
        seed = self.random_state
        first, second = self.first, self.second
        first = GaussianProcessStudent(random_state=seed) if first is None else clone(first)
        second = (
            RegressionStudent(powers=(1.0,), widths=(), random_state=seed)
            if second is None
            else clone(second)
        )
        return first, second
