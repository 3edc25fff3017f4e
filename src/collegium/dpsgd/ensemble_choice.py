"""The model, a student that learnt from its beliefs, or each where it knows better; told by what is public.

A directly trained model's beliefs on public records are post-processing, and so is whatever learns from them.
A student that sees how public records lie to each other mends what noise did to the model: near its borders,
where noise in the weights decides. How many public records would change their class if as much noise were
added once more is known, since the noise is. A student that changes far fewer mends noise, and is published.
The more it changes beside that, the more it contradicts what was learnt from everybody: then it is heard only
where the model's scores for both answers are closer to each other than noise may have brought them; one that
changes twice as many is not heard at all.

How close is 3/4 · (D₀ / D)³ standard deviations, but at least 1/4; D is the share of public records of which
both name different classes, D₀ what noise explains. Found on held-out training images of MNIST and
Fashion-MNIST at ε from 0.01 to 3 (docs/results/dpsgd.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.distillation.supervised import fit_released
from collegium.distillation.where_in_doubt import WhereInDoubt

_DRAWS = 5
_REACH, _LESS, _LEAST = 0.75, 3, 0.25
_CONTRADICTS = 0.5
_EVERYWHERE = 2.0  # standard deviations, beyond which noise brought next to nothing


@dataclass(frozen=True)
class Choice:
    """Which of both to publish, and why; made of released and public things alone.

    ``differ``: share of public records of which student and model name different classes.
    ``by_noise``: share whose class changes if the noise of all steps is added to the scores once more.
    """

    differ: float
    by_noise: float

    @property
    def reach(self) -> float:
        """How far from the model's borders the student is heard, in standard deviations of the noise."""
        if self.differ == 0:
            return math.inf
        ratio = self.by_noise / self.differ
        return max(_REACH * ratio**_LESS, _LEAST) if ratio >= _CONTRADICTS else 0.0

    @property
    def student(self) -> bool:
        """Whether the student is published, be it only where noise leaves doubt about the model."""
        return self.reach > 0

    @property
    def alone(self) -> bool:
        """Whether the student is published, and not the model."""
        return self.reach >= _EVERYWHERE

    def of(self, model: Any, student: Any, noise: float) -> Any:
        """Give what is to be published.

        ``model``, ``student``: fitted, for the same records.
        ``noise``: as :func:`choose` takes it.
        """
        if not self.student:
            return model
        return student if self.alone else WhereInDoubt(model, student, float(noise), self.reach)

    @property
    def in_words(self) -> str:
        """One line."""
        if self.alone:
            which = "the student, a smoothed copy of the model"
        elif self.student:
            which = (
                "the model, and the student, a smoothed copy of it, where the two disagree and the model's "
                f"scores are within {self.reach:.2f} standard deviations of their noise"
            )
        else:
            which = "the model, and not the student, a smoothed copy of it"
        return (
            f"Published: {which}. The copy answers differently for {100 * self.differ:.1f} % of the public "
            f"records; noise explains {100 * self.by_noise:.1f} %"
        )


def taught_by_beliefs(
    student: Any,
    X: Any,
    beliefs: NDArray[np.float64],
    classes: NDArray[Any],
    tell: Callable[[str], None],
) -> Any:
    """Train a copy of a student on what is believed of every public record.

    ``X``: public records, as the student sees them.
    ``beliefs`` (n_public, n_classes): of each class; rows add up to 1 but for rounding.
    """
    rows = np.arange(len(beliefs), dtype=np.intp)
    targets = beliefs / beliefs.sum(axis=1, keepdims=True)
    return fit_released(student, X, rows, beliefs.argmax(axis=1), classes, targets, tell=tell)


def choose(
    noise: float, model: Any, student: Any, X_model: Any, X_student: Any, seed: int = 0
) -> Choice:
    """Compare a model with a student that learnt from its beliefs about public records.

    ``noise``: standard deviation that all steps left in a score of a row of unit length
        (:func:`~collegium.dpsgd.by_rule.noise_of`).
    ``model``: with ``decision_function``, as :meth:`~collegium.dpsgd.run.DPSGDRun.model` makes it.
    ``X_model``, ``X_student``: the public records, as each of them sees records.
    """
    scores = np.asarray(model.decision_function(X_model))
    random = np.random.default_rng([seed, 5])
    changed = [
        np.mean(_named(scores + random.normal(0, noise, scores.shape)) != _named(scores))
        for _ in range(_DRAWS)
    ]
    differ = np.mean(np.asarray(student.predict(X_student)) != np.asarray(model.predict(X_model)))
    return Choice(float(differ), float(np.mean(changed)))


def _named(scores: NDArray[np.float64]) -> NDArray[Any]:
    return scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
