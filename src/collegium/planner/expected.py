"""What to expect of a plan: an interval for its score, from rehearsals or from our own benchmarks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from collegium.data.record_kinds import IMAGES
from collegium.planner.facts import LABELS, Facts
from collegium.planner.rehearsal import Rehearsed

MEASURES = {
    "accuracy": "accuracy",
    "balanced": "balanced accuracy",
    "auc": "ROC AUC",
    LABELS: "accuracy of a student that learns from the labels",
}
NOT_KNOWN = "cannot be predicted without public labels (a few hundred would do)"
"""The basis of an interval that holds all that is possible."""
_SAME = 0.005
"""By how much a model must beat a constant answer to be called better: public shares are no more exact."""
_WIDE = 1.645
"""Standard errors on each side: nine in ten."""
_DOUBT = 0.5
"""How far the gain of the last doubling may be mistaken, in standard errors of the score."""
_SLOW = 1 / (math.sqrt(2) - 1)
"""What is still to be gained, in units of what the last doubling gained, if errors fall as 1/√n."""
#: Accuracy of what is published by signal, blanked (docs/results/dpsgd.md): ε = 0.03, 0.1, 0.3, 1 and 3
#: for 60,000 people, 0.3 and 3 on held-out training images; CIFAR-10: 0.03, 0.1-0.2-0.3 and 1 for 50,000.
_IMAGES_OF_TEN = {
    "MNIST": ((630, 0.986), (1951, 0.987), (5380, 0.989), (16083, 0.991), (43147, 0.993)),
    "Fashion-MNIST": ((630, 0.853), (1951, 0.882), (5380, 0.902), (16083, 0.916), (43147, 0.923)),
    "CIFAR-10": ((488, 0.525), (2413, 0.65), (13402, 0.73)),
}
_LIKE = {False: ("MNIST", "Fashion-MNIST"), True: ("CIFAR-10", "Fashion-MNIST")}  # in colour or not


@dataclass(frozen=True)
class Expected:
    """A prediction.

    ``measure``: of what: accuracy, balanced accuracy or ROC AUC.
    ``low``, ``middle``, ``high``: nine in ten studies like this one are meant to end up between.
    ``basis``: where the numbers come from, in words.
    ``floor``: the same measure of a model that always names the largest class; None where shares are unknown.
    """

    measure: str
    low: float
    middle: float
    high: float
    basis: str
    floor: float | None

    @property
    def is_better(self) -> bool | None:
        """Whether it beats always naming one class; None where nobody can know."""
        return None if self.floor is None else self.middle > self.floor + _SAME

    def in_words(self) -> str:
        """One line."""
        known = self.basis != NOT_KNOWN
        words = self._interval if known else f"{self.measure} {NOT_KNOWN}"
        if self.floor is not None:
            floor = score_in_words(self.floor, self.measure)
            words += f"; always answering the largest class has {floor}"
        return words

    @property
    def _interval(self) -> str:
        middle, low, high = (
            score_in_words(value, self.measure) for value in (self.middle, self.low, self.high)
        )
        return f"{self.measure} {middle} ({low} to {high}), {self.basis}"


def floor_of(facts: Facts) -> float | None:
    """What a constant answer has, by the goal's measure."""
    if facts.goal == "auc":
        return 0.5
    if facts.goal == "balanced":
        return 1 / len(facts.classes)
    return None if facts.shares is None else float(facts.shares.max())


def share_of_more(facts: Facts, n_known: int) -> float:
    """Tell how far people outnumber known public classes: 0 if they do not, near 1 if by far."""
    return max(0.0, 1 - n_known / max(facts.n_people, 1))


def from_labels(
    facts: Facts,
    whole: Rehearsed,
    half: Rehearsed,
    cost: float,
    n_test: int | None,
    steps: tuple[Rehearsed, float] | None = None,
) -> Expected:
    """Predict from what known public classes teach, how much more records help, and what noise costs.

    ``whole``, ``half``: what all known public classes teach, and half of them, judged by others.
    ``cost``: what the noise of these budgets costs, as rehearsed.
    ``n_test``: test records that the model will be measured on, whose number blurs what is found.
    ``steps``: what noisy steps learn from the same classes, and how much of one run's score is the noise's
        doing. With private records as few as these, steps do not learn what a model does that may look at
        every record as often as it likes; with many more, they do.
    """
    more = share_of_more(facts, whole.n)
    gain = max(0.0, whole.score - half.score) * more
    short = luck = 0.0
    if steps is not None:
        short, luck = max(0.0, whole.score - cost - steps[0].score) * (1 - more), steps[1]
    wrong = 1 - whole.score
    # A doubling saves the same part of errors as the last (a power law: J. Hestness et al., Deep learning
    # scaling is predictable, empirically, arXiv:1712.00409). Tables leave much open for ever: the next one is
    # counted on. Of images all of them may, and half of them are counted on.
    doublings = math.log2(max(1.0, facts.n_people / whole.n)) if facts.kind == IMAGES else 0.0

    def after(doublings: float, last: float) -> float:
        """Tell the score after some doublings, by what the last one gained."""
        return 1 - wrong * (wrong / (wrong + last)) ** doublings if wrong > 0 else 1.0

    middle = min(1.0, after(max(1.0, doublings / 2), gain) - cost - short)
    error = math.hypot(whole.error, luck)
    if n_test:
        error = math.hypot(error, math.sqrt(max(middle * (1 - middle), 1 / n_test) / n_test))
    grown = gain + _DOUBT * error * more  # by the last doubling, at most
    most = max(whole.score + _SLOW * grown, after(doublings, grown))
    return Expected(
        MEASURES[facts.goal],
        max(0.0, whole.score - cost - short - _WIDE * error),
        middle,
        min(1.0, most - cost + _WIDE * error),
        f"rehearsed on {whole.n:,} public records with known classes",
        floor_of(facts),
    )


def of_some_classes(expected: Expected, unshown: float) -> Expected:
    """Expect less, where public labels do not show some classes: all records of these may be told wrong.

    ``unshown``: which part of the classes that is; each is taken for as frequent as the others.
    """
    if not unshown:
        return expected
    low = expected.low * (1 - unshown)
    middle = expected.middle * (1 - unshown / 2)
    return replace(
        expected, low=low, middle=middle, basis=f"{expected.basis}; they do not show all classes"
    )


def at_least(expected: Expected, alone: Rehearsed) -> Expected:
    """Expect what public labels teach alone, where that is more than private records could.

    ``alone``: all known public classes, judged by others; the private model is combined with it.
    """
    if alone.score <= expected.high:
        return expected
    reach = _WIDE * alone.error
    low, high = max(expected.low, alone.score - reach), min(1.0, alone.score + reach)
    return replace(expected, low=low, middle=alone.score, high=high)


def from_experience(facts: Facts) -> Expected:
    """Say what our own benchmarks had, where no public class is known."""
    floor = floor_of(facts)
    if facts.kind == IMAGES and facts.goal == "accuracy":
        like = _LIKE[np.ndim(facts.X_public) == 4 and np.shape(facts.X_public)[3] > 1]
        curves = [_IMAGES_OF_TEN[name] for name in like]
        found = [_at(curve, facts.signal) for curve in curves]
        # With less signal than was ever tried, anything between guessing and that.
        less = [math.sqrt(min(1.0, facts.signal / curve[0][0])) for curve in curves]
        low = min(part * (had - 0.03) for part, had in zip(less, found, strict=True))
        low = max(low, 1 / len(facts.classes))
        high = max(min(1.0, max(found) + 0.01), low)
        names = " and ".join(like)
        basis = (
            f"which is what {names} had with such budgets"
            if min(less) == 1
            else f"between guessing and what {names} had with larger budgets"
        )
        basis += (
            " (no public labels are known: how hard these images are, a few hundred would tell)"
        )
        return Expected(MEASURES[facts.goal], low, (low + high) / 2, high, basis, floor)
    low = 1 / len(facts.classes) if floor is None else floor
    return Expected(MEASURES[facts.goal], low, (low + 1) / 2, 1.0, NOT_KNOWN, floor)


def _at(curve: tuple[tuple[float, float], ...], signal: float) -> float:
    (first, low), (last, high) = curve[0], curve[-1]
    if signal <= first:
        return low
    if signal >= last:
        return high
    for (a, at_a), (b, at_b) in pairwise(curve):
        if signal <= b:
            return at_a + (at_b - at_a) * math.log(signal / a) / math.log(b / a)
    return high


def score_in_words(value: float, measure: str) -> str:
    """Write a score as everywhere: a share in per cent, an area under a curve as a number.

    Examples
    --------
    >>> score_in_words(0.6249, "accuracy"), score_in_words(0.6249, MEASURES["auc"])
    ('62.5 %', '0.625')
    """
    if not math.isfinite(value):
        return "unknown"
    return f"{value:.3f}" if measure == MEASURES["auc"] else f"{100 * value:.1f} %"
