"""The model, or a student that learnt from its beliefs: which is better, told without a private record.

A directly trained model's beliefs on public records are post-processing, and so is whatever learns from them.
A student that sees how public records lie to each other mends what noise did to the model: near its borders,
where noise in the weights decides. How many public records would change their class if as much noise were
added once more is known, since the noise is. A student that changes more than that does not mend noise, but
contradicts what was learnt from everybody, and is not believed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.distillation.supervised import fit_released

_DRAWS = 5


@dataclass(frozen=True)
class Choice:
    """Which of both to publish, and why; made of released and public things alone.

    ``differ``: share of public records of which student and model name different classes.
    ``by_noise``: share whose class changes if the noise of all steps is added to the scores once more.
    """

    differ: float
    by_noise: float

    @property
    def student(self) -> bool:
        """Whether the student is to be published."""
        return self.differ <= self.by_noise

    @property
    def in_words(self) -> str:
        """One line."""
        which, beside = (
            ("the student, a smoothed copy of the model", "no more than")
            if self.student
            else ("the model, and not the student, a smoothed copy of it", "more than")
        )
        return (
            f"Published: {which}. The copy answers differently for {100 * self.differ:.1f} % of the public "
            f"records, {beside} the {100 * self.by_noise:.1f} % that noise explains"
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
