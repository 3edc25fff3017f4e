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

from collegium.data.tables import stack_rows, take_rows
from collegium.distillation.gaussian_process import GaussianProcessStudent
from collegium.distillation.supervised import beliefs_of, believed_by, fit_released, last_step
from collegium.distillation.where_in_doubt import WhereInDoubt

_DRAWS = 5
_REACH, _LESS, _LEAST = 0.75, 3, 0.25
_CONTRADICTS, _BEYOND = 0.5, 1e6
_EVERYWHERE = 2.0  # standard deviations, beyond which noise brought next to nothing
_FEWEST = 20  # public records, of which shares say something


def _as_it_is(student: Any) -> Any:
    return student


def _silent(line: str) -> None:
    pass


@dataclass(frozen=True)
class Choice:
    """Which of both to publish, and why; made of released and public things alone.

    ``differ``: share of public records of which student and model name different classes.
    ``by_noise``: share whose class changes if the noise of the steps is added to the scores once more.
    ``n``: how many public records these are.
    """

    differ: float
    by_noise: float
    n: int = _FEWEST

    @property
    def reach(self) -> float:
        """How far from the model's borders the student is heard, in standard deviations of the noise."""
        if self.n < _FEWEST:
            return 0.0
        if self.differ == 0:
            return math.inf
        ratio = min(self.by_noise / self.differ, _BEYOND)
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
        if self.n < _FEWEST:
            return (
                f"Published: the model, and not the student: {self.n} public records are too few to compare "
                f"both ({_FEWEST} would do)"
            )
        if self.alone:
            which = "the student, a smoothed copy of the model"
        elif self.student:
            which = (
                "the model; where a student that smooths it answers differently, and the model is unsure "
                f"(two scores within {self.reach:.2f} standard deviations of their noise), the student "
                "answers"
            )
        else:
            which = "the model, and not the student that smooths it"
        return (
            f"Published: {which}. The student answers differently for {100 * self.differ:.1f} % of the "
            f"public records; noise like the model's changes {100 * self.by_noise:.1f} % of its answers"
        )


def learnt_from(
    model: Any,
    estimator: Any,
    noise: float,
    X_model: Any,
    X_student: Any,
    classes: NDArray[Any],
    *,
    certain: tuple[Any, NDArray[np.float64]] | None = None,
    refine: Callable[[Any], Any] = _as_it_is,
    seed: int = 0,
    tell: Callable[[str], None] = _silent,
) -> tuple[Any, Choice]:
    """Train a copy of a student on a model's beliefs about public records, and tell which to publish.

    What merely remembers beliefs repeats them on the records that it learnt from. So any student but a
    Gaussian process, whose own account of noise leaves nothing to remember, is compared with the model by two
    copies of it, each of which learnt from one half of the records and is asked about the other.

    ``model``, ``noise``: as :func:`choose` takes them.
    ``X_model``, ``X_student``: the public records, as each of both sees records.
    ``certain``: records as the student sees them, and their probabilities (n, n_classes), to learn from, too.
    ``refine``: given a trained student, returns what is published of it.
    Returns: the student, and the choice.
    """
    beliefs = beliefs_of(model, X_model, classes)
    beliefs = beliefs / beliefs.sum(axis=1, keepdims=True)

    def learn(seen: Any, targets: NDArray[np.float64], tell: Callable[[str], None]) -> Any:
        if certain is not None:
            seen, targets = stack_rows(seen, certain[0]), np.concatenate([targets, certain[1]])
        every = np.arange(len(targets), dtype=np.intp)
        named = targets.argmax(axis=1)
        return refine(fit_released(estimator, seen, every, named, classes, targets, tell=tell))

    student = learn(X_student, beliefs, tell)
    if isinstance(last_step(estimator), GaussianProcessStudent):
        answers = believed_by(student, X_student, classes)
    else:
        answers = np.empty_like(beliefs)
        order = np.random.default_rng([seed, 6]).permutation(len(beliefs))
        halves = np.sort(order[::2]), np.sort(order[1::2])
        for learns, asked in (halves, halves[::-1]) if len(order) > 1 else ():
            copy = learn(take_rows(X_student, learns), beliefs[learns], _silent)
            answers[asked] = believed_by(copy, take_rows(X_student, asked), classes)
    return student, choose(noise, model, classes[answers.argmax(axis=1)], X_model, seed)


def choose(noise: float, model: Any, named: NDArray[Any], X_model: Any, seed: int = 0) -> Choice:
    """Compare a model with a student that learnt from its beliefs about public records.

    ``noise``: standard deviation that the steps left in a score of a row of unit length
        (:func:`~collegium.dpsgd.by_rule.noise_of`).
    ``model``: with ``decision_function``, as :meth:`~collegium.dpsgd.run.DPSGDRun.model` makes it.
    ``named`` (n_public,): the student's classes of the public records.
    ``X_model``: the public records, as the model sees records.
    """
    scores = np.asarray(model.decision_function(X_model))
    random, own = np.random.default_rng([seed, 5]), _named(scores)
    changed = [
        np.mean(_named(scores + random.normal(0, noise, scores.shape)) != own)
        for _ in range(_DRAWS)
    ]
    differ = np.mean(named != np.asarray(model.predict(X_model)))
    return Choice(float(differ), float(np.mean(changed)), len(scores))


def _named(scores: NDArray[np.float64]) -> NDArray[Any]:
    return scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
