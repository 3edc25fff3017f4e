"""What a linear model is fitted to: the error of a score, and what scores mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

Floats = NDArray[np.float64]
MOST_ERROR = math.sqrt(2.0)
"""Norm of the error of one record's scores, at most, in every loss."""


class Loss(Protocol):
    """Of one record: the gradient with respect to its scores, and nothing of any other record."""

    @property
    def n_outputs(self) -> int:
        """Scores per record."""
        ...

    @property
    def n_sides(self) -> int:
        """How many answers are told apart: classes, or high and low."""
        ...

    @property
    def bend(self) -> float:
        """Largest eigenvalue of a record's second derivative with respect to its scores, at most."""
        ...

    @property
    def unit(self) -> float:
        """A difference of scores that matters: noise is measured in it."""
        ...

    @property
    def heeds_width(self) -> bool:
        """Whether steps are shorter where there are more features than signal."""
        ...

    def errors(self, scores: Floats, targets: NDArray[Any]) -> Floats:
        """Gradient of each record's loss with respect to its scores, shape (n_records, n_outputs)."""
        ...


@dataclass(frozen=True)
class CrossEntropy:
    """Of softmax regression; two classes have one score, as in logistic regression.

    ``n_classes``: length of the public list of classes.
    """

    n_classes: int
    bend = 0.5
    unit = 1.0  # a logit
    heeds_width = True

    @property
    def n_sides(self) -> int:
        """The classes."""
        return self.n_classes

    @property
    def n_outputs(self) -> int:
        """One for each class; one for two classes."""
        return 1 if self.n_classes == 2 else self.n_classes

    def errors(self, scores: Floats, targets: NDArray[Any]) -> Floats:
        """Belief less truth; ``targets`` are class numbers."""
        if self.n_outputs == 1:
            return np.asarray(expit(scores) - targets[:, None])
        beliefs = np.asarray(softmax(scores, axis=1))
        beliefs[np.arange(len(targets)), targets] -= 1.0
        return beliefs


@dataclass(frozen=True)
class SquaredError:
    """Half the squared error of a score, and linear beyond an error of 1 (Huber); targets lie in [-1, 1]."""

    n_outputs: int = 1
    n_sides = 2
    bend = 1.0
    unit = 1 / 9  # an eighteenth of what lies between the bounds
    heeds_width = False  # each step that is not taken is missing from the size of predictions

    def errors(self, scores: Floats, targets: NDArray[Any]) -> Floats:
        """Score less target, within [-1, 1]."""
        return np.asarray(np.clip(scores - targets.reshape(len(scores), -1), -1.0, 1.0))
