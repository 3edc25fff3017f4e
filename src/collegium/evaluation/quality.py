"""How good a student is, beside one that always gives the same answer, and what may be said of it in a line.

A share of right answers says little where one class is frequent: whoever always names it is as often right.
So every result stands beside that share, and :func:`measure_quality` says which of the two it is. Three
grounds, the best there is: public records with a known class that the student never saw (a test set), public
records that it learnt from but whose class it was not told, or else the released answers, with their noise.
Made of public and released things only.

A student is beside one that always answers X (the most frequent class of the records that it is judged by)

- *better*, if it is more often right: of the records on which exactly one of the two is right, more are its
  own than a fair coin would give it (one-sided sign test at 2.5 %); or it is more often right at all, and
  tells classes apart;
- it *tells classes apart*, if it is better by that test, or if its balanced accuracy is at least a twentieth
  of the way from chance, 1/C, to 1, and it names some class on records of that class more often than if its
  answers were dealt anew among the records (one-sided Fisher test for each class, at 2.5 % for all classes
  together). That alone may be a student which is seldom right.

That is so where the goal is accuracy. A student with another goal (:mod:`collegium.distillation.goal`) is
judged by that, with its measure first, since always answering X has a balanced accuracy of 1/C, and puts
no record before another. With goal ``balanced`` it is *better* if it tells classes apart. With goal
``auc`` it is *better* if the area under the ROC curve is at least a twentieth of the way from 1/2 to 1,
and larger than if its probabilities were dealt anew among the records (one-sided Mann-Whitney test for
each class, normal approximation, at 2.5 % for all classes together).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom, hypergeom, norm

from collegium.checks import listed
from collegium.distillation.goal import ACCURACY, AUC, BALANCED
from collegium.distillation.supervised import beliefs_of
from collegium.errors import InputError

Floats = NDArray[np.float64]

TEST, PUBLIC, RELEASED = "test records", "public records", "released answers"
LEARNT, NOTHING_KNOWN = "public records it learnt from", "no known class"
HELD_OUT, PUBLIC_UNSEEN = "held-out records", "public records, cross-validated"
PUBLIC_UNUSED = "public records, whose classes it did not learn"


class Judged(StrEnum):
    """What is judged, and called so: a student of released answers, or a model that learnt by itself."""

    STUDENT = "student"
    MODEL = "model"


_PUBLIC_IN_WORDS = {
    Judged.STUDENT: "public records (which it learnt from, but not their true classes)",
    Judged.MODEL: "public records (on which its features were fitted, without their classes)",
}
_IN_WORDS = {
    TEST: "public test records",
    HELD_OUT: "records that were held out of the fit",
    LEARNT: "public records (whose true classes it learnt from, which flatters it)",
    PUBLIC_UNSEEN: "public records (each by a copy of the model that had not learnt its class)",
    PUBLIC_UNUSED: "public records (on which its features were fitted, without their classes)",
    RELEASED: "released answers (which are noisy, and which it learnt from)",
}
_LEVEL = 0.025
_APART = 0.05
"""Of the way from chance to 1: a balanced accuracy below it is taken for guessing."""
_SAME = 0.95
"""Share of one class in a student's answers from which on it is pointed out, where no truth is known."""
_ORDERED = 0.6
_BINS = 10
_AT = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
"""Probabilities from which on a class may be answered: enough to choose between, and few enough to read."""
_UNSURE = 0.1
"""Calibration error from which on (and 1/√n, which few records alone make of nothing) it is pointed out."""


class ShownCounts(Protocol):
    """Noisy vote counts that were released: :class:`~collegium.pate.voting.histograms.NoisyHistograms`."""

    @property
    def counts(self) -> Floats:
        """Of each class; NaN where there are none."""

    @property
    def totals(self) -> Floats:
        """Weight of all votes."""

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Which queries have counts."""

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which queries have a label."""

    def rows(self, chosen: NDArray[Any]) -> ShownCounts:
        """Take some queries only."""


@dataclass(frozen=True)
class Threshold:
    """What comes of answering the rarer of two classes wherever its probability is large enough.

    ``name``: the class. ``at``: the least probability.
    ``recall``: share of its records that are found. ``precision``: share of those found that are of it; None
        where none is found.
    """

    name: str
    at: float
    recall: float
    precision: float | None


@dataclass(frozen=True)
class Quality:
    """What a student is worth. Made by :func:`measure_quality`; nothing in it needs a budget.

    ``verdict``, ``reason``: for the user; a line, and a few sentences.
    ``better``: whether it is better than always answering ``majority``, by what it is to be good at (its
        goal; by default, more often right); None where that cannot be told.
    ``tells_apart``: whether it tells classes apart, however often it is right; None where that cannot be
        told.
    ``measured_on``: "test records", "public records", "released answers", "public records it learnt from",
        "public records, cross-validated", or "no known class", where figures are NaN and only what it names
        is known.
    ``n``: how many of them.
    ``accuracy``: share of its answers that are right; of released answers, the share (of histograms: of
        the votes, on average over the noise) that say the same.
    ``majority``, ``majority_share``: the class that most of these records are of, and how many are.
    ``balanced_accuracy``: mean over the classes of the share of their records that it gets right; ``chance``:
        what guessing gives.
    ``auc``: area under the ROC curve, one class against the rest, mean over the classes; None without
        probabilities.
    ``calibration_error``: how far the probability of the most probable class is from how often that is right:
        mean absolute difference over ten bins, weighted with their records; None without probabilities.
    ``named``, ``n_named``, ``n_asked``: the class that it names most often, on how many of how many records.
    ``goal``: what it is to be good at: "accuracy", "balanced" or "auc".
    ``thresholds``: of two classes whose truth is known, what other thresholds than its own would find.
    """

    verdict: str
    reason: str
    better: bool | None
    tells_apart: bool | None
    measured_on: str
    n: int
    accuracy: float
    majority: str
    majority_share: float
    balanced_accuracy: float
    chance: float
    auc: float | None
    calibration_error: float | None
    named: str
    n_named: int
    n_asked: int
    goal: str = ACCURACY
    thresholds: tuple[Threshold, ...] = ()

    @property
    def tone(self) -> str:
        """How to show the verdict: "good", "caution" or "plain"."""
        if self.better is None:
            return "caution" if self.names_one_class else "plain"
        return "good" if self.better else "caution"

    @property
    def is_calibrated(self) -> bool | None:
        """Whether its probabilities may be taken for chances; None without probabilities or true classes."""
        if self.calibration_error is None or not self.truth_is_known:
            return None
        return bool(self.calibration_error <= _UNSURE + self.n**-0.5)

    @property
    def names_one_class(self) -> bool:
        """Whether nearly all of its answers are one class."""
        return self.n_named >= _SAME * self.n_asked

    @property
    def truth_is_known(self) -> bool:
        """Whether it was compared with true classes, rather than with released answers."""
        return self.measured_on not in (RELEASED, NOTHING_KNOWN)

    def figures(self) -> str:
        """Write the figures beside the share of right answers, in a line."""
        parts: list[str] = []
        if self.measured_on == NOTHING_KNOWN:
            return ""
        if self.chance < 1:
            balanced, chance = _percent(self.balanced_accuracy), _percent(self.chance)
            parts.append(f"balanced accuracy {balanced} (chance: {chance})")
        if self.auc is not None:
            place = 0 if self.goal == AUC else len(parts)
            parts.insert(place, f"ROC AUC {self.auc:.3f} (chance: 0.5)")
        if self.calibration_error is not None:
            parts.append(f"calibration error {self.calibration_error:.3f}")
        against = "" if self.truth_is_known else "against these answers, not the truth: "
        return against + ", ".join(parts) if parts else ""

    def to_dict(self) -> dict[str, Any]:
        """Make a dictionary for JSON."""
        return asdict(self)


def measure_quality(
    classes: ArrayLike,
    truth: ArrayLike,
    predicted: ArrayLike,
    beliefs: Floats | None = None,
    measured_on: str = TEST,
    goal: str = ACCURACY,
) -> Quality | None:
    """Judge a student by records whose class is known.

    ``classes`` (n_classes,): the public class list.
    ``truth``, ``predicted`` (n,): true and predicted classes; records whose true class is missing are left
        out.
    ``beliefs`` (n, n_classes): the student's probabilities, if it gives any.
    ``measured_on``: what these records are.
    ``goal``: what it is to be good at.
    Returns: None where no class is known.

    Examples
    --------
    >>> truth = ["no"] * 88 + ["yes"] * 12
    >>> found = measure_quality(["no", "yes"], truth, ["no"] * 100)
    >>> print(found.verdict)
    The student is no better than always answering “no”
    >>> print(found.reason)
    It answers “no” for all 100 records. It is right on 88.0 % of 100 public test records; always
    answering “no” would be right on 88.0 %.
    """
    names, true, given = np.asarray(classes), np.asarray(truth), np.asarray(predicted)
    if len(true) != len(given):
        raise InputError(f"{len(given)} records, but {len(true)} labels: give one per record")
    known = ~pd.isna(true)
    if not known.any():
        return None
    true, given = true[known], given[known]
    beliefs = None if beliefs is None else beliefs[known]
    numbers = pd.Index(names)
    actual, named = numbers.get_indexer(pd.Index(true)), numbers.get_indexer(pd.Index(given))
    shares = np.zeros((len(true), len(names)))
    inside = actual >= 0
    if not inside.any():
        raise InputError(
            f"no label of the {measured_on} is among the classes {listed(names.tolist())}: write both in the "
            "same way"
        )
    shares[inside, actual[inside]] = 1.0
    apart = _tells_apart(actual, named)
    better = _is_more_often_right(actual, named) if goal == ACCURACY else apart
    if goal == AUC and apart is not None:
        better = None if beliefs is None else _orders(actual, beliefs)
    return _quality(names, shares, named, beliefs, measured_on, (better, apart), named, goal)


def beside_the_list(classes: ArrayLike, truth: ArrayLike, measured_on: str = TEST) -> str:
    """Say how many true classes are not on the list, and which; nothing where all are.

    ``classes`` (n_classes,): the public class list.
    ``truth`` (n,): true classes of public records; missing ones do not count.

    Examples
    --------
    >>> print(beside_the_list(["no", "yes"], ["no", "Yes", "maybe", "Yes"]))
    3 of 4 test records have a class that is not on the list (Yes, maybe; the list: no, yes): whatever the
    student says about them counts as wrong
    >>> beside_the_list([0, 1], [0.0, 1.0])
    ''
    """
    true = np.asarray(truth)
    true = true[~pd.isna(true)]
    strange = true[pd.Index(np.asarray(classes)).get_indexer(pd.Index(true)) < 0]
    if not len(strange):
        return ""
    return (
        f"{len(strange):,} of {len(true):,} {measured_on} have a class that is not on the list "
        f"({listed(pd.unique(strange).tolist(), 5)}; the list: {listed(np.asarray(classes).tolist(), 5)}): "
        f"whatever {'a label' if measured_on == PUBLIC else 'the student'} says about them counts as wrong"
    )


def judge_by_answers(
    classes: ArrayLike,
    queries: NDArray[np.intp],
    labels: NDArray[np.intp],
    histograms: ShownCounts | None,
    predicted: ArrayLike,
    beliefs: Floats | None = None,
    goal: str = ACCURACY,
) -> Quality:
    """Judge a student by what it learnt from: where no class of a public record is known.

    Whether it is right cannot be told so. What can be told is whether it gives one answer for everything,
    and whether it says what the teachers said. Every figure is made of sums over answers, so a histogram
    counts as the shares of the votes that it shows, and noise averages out over many.

    ``classes`` (n_classes,): the public class list.
    ``queries``, ``labels`` (n_labels,): released class numbers of public records; at least one.
    ``histograms``: what was released besides.
    ``predicted`` (n_public,): what the student says of all public records.
    ``beliefs`` (n_public, n_classes): its probabilities, if it gives any.
    ``goal``: what it is to be good at.
    """
    names = np.asarray(classes)
    named = pd.Index(names).get_indexer(pd.Index(np.asarray(predicted)))
    shares = np.eye(len(names))[labels]
    if histograms is not None and histograms.answered.any():
        shown = histograms.rows(histograms.labelled)
        shares[shown.answered] = (shown.counts / shown.totals[:, None])[shown.answered]
    believed = None if beliefs is None else beliefs[queries]
    return _quality(names, shares, named[queries], believed, RELEASED, (None, None), named, goal)


def judge_by_itself(classes: ArrayLike, predicted: ArrayLike) -> Quality:
    """Judge a model where no class of any record is known: whether it gives one answer for everything.

    ``classes`` (n_classes,): the public class list.
    ``predicted`` (n_public,): what it says of the public records.

    Examples
    --------
    >>> print(judge_by_itself(["no", "yes"], ["no"] * 20).verdict)
    The student answers “no” for all 20 public records; whether that is right is unknown
    """
    names = np.asarray(classes)
    named = pd.Index(names).get_indexer(pd.Index(np.asarray(predicted)))
    answers = np.bincount(named[named >= 0], minlength=len(names))
    most = int(answers.argmax())
    unknown = math.nan
    quality = Quality(
        verdict="",
        reason="",
        better=None,
        tells_apart=None,
        measured_on=NOTHING_KNOWN,
        n=0,
        accuracy=unknown,
        majority="",
        majority_share=unknown,
        balanced_accuracy=unknown,
        chance=unknown,
        auc=None,
        calibration_error=None,
        named=str(names[most]),
        n_named=int(answers[most]),
        n_asked=len(named),
    )
    return _worded(quality, Judged.STUDENT)


def of_a_model(quality: Quality) -> Quality:
    """Speak of a model that learnt from private records, and saw no public one but to fit its features."""
    return _worded(quality, Judged.MODEL)


def beliefs_about(student: Any, X: Any, classes: ArrayLike) -> Floats | None:
    """Ask a student for probabilities; None where it gives none that can be read.

    Returns (n, n_classes).
    """
    if not hasattr(student, "predict_proba"):
        return None
    try:
        beliefs = beliefs_of(student, X, classes)
    except Exception:  # a model of the user's own: its answers are judged all the same
        return None
    return beliefs if np.isfinite(beliefs).all() else None


def _is_more_often_right(actual: NDArray[np.intp], named: NDArray[np.intp]) -> bool | None:
    """Tell whether answers beat always the most frequent class; None where there is no other.

    ``actual``, ``named`` (n,): class numbers; -1 for what is not on the list.
    """
    codes, records = np.unique(actual[actual >= 0], return_counts=True)
    if len(codes) < 2:
        return None
    right, frequent = named == actual, actual == codes[records.argmax()]
    right &= actual >= 0
    won, lost = int((right & ~frequent).sum()), int((~right & frequent).sum())
    return bool(binom.sf(won - 1, won + lost, 0.5) <= _LEVEL)


def _tells_apart(actual: NDArray[np.intp], named: NDArray[np.intp]) -> bool | None:
    """Tell whether answers follow the classes; None where there is one only.

    ``actual``, ``named`` (n,): class numbers; -1 for what is not on the list.
    """
    codes, records = np.unique(actual[actual >= 0], return_counts=True)
    if len(codes) < 2:
        return None
    right = (named == actual) & (actual >= 0)
    hits = np.array([int((right & (actual == code)).sum()) for code in codes.tolist()])
    answers = np.array([int((named == code).sum()) for code in codes.tolist()])
    chance = 1 / len(codes)
    apart = (np.mean(hits / records) - chance) / (1 - chance)
    dealt_anew = hypergeom.sf(hits - 1, len(actual), records, answers)
    return bool(apart >= _APART and dealt_anew.min() * len(codes) <= _LEVEL)


def _orders(actual: NDArray[np.intp], beliefs: Floats) -> bool:
    """Tell whether probabilities put records of some class before others.

    Ties make the area vary less than assumed.
    """
    codes, records = np.unique(actual[actual >= 0], return_counts=True)
    areas = np.array([_auc(beliefs[:, code], 1.0 * (actual == code)) for code in codes.tolist()])
    others = len(actual) - records
    sigmas = (areas - 0.5) / np.sqrt((len(actual) + 1) / (12 * records * others))
    apart = (areas.mean() - 0.5) / 0.5
    return bool(apart >= _APART and norm.sf(sigmas).min() * len(codes) <= _LEVEL)


def _quality(
    names: NDArray[Any],
    shares: Floats,
    named: NDArray[np.intp],
    beliefs: Floats | None,
    measured_on: str,
    compared: tuple[bool | None, bool | None],
    all_named: NDArray[np.intp],
    goal: str,
) -> Quality:
    """Put figures and words together.

    ``shares`` (n, n_classes): one-hot true classes, or shares of votes, whose noise may make them negative.
    ``named`` (n,): the student's answers; ``all_named``: also those about records of which nothing is known.
    """
    n, n_classes = shares.shape
    rows, on_list = np.arange(n), named >= 0
    hits = np.where(on_list, shares[rows, named], 0.0)
    of_class = shares.sum(axis=0)
    present = np.flatnonzero(of_class > 0)
    right = np.bincount(named[on_list], weights=hits[on_list], minlength=n_classes)
    answers = np.bincount(all_named[all_named >= 0], minlength=n_classes)
    auc = error = None
    if beliefs is not None:
        # Of two classes each gives the same area.
        areas = [_auc(beliefs[:, code], shares[:, code]) for code in present.tolist()]
        told = [area for area in areas if area is not None]
        auc = _within(np.mean(told)) if told else None
        top = beliefs.argmax(axis=1)
        error = _calibration_error(beliefs[rows, top], shares[rows, top])
    majority, most = int(of_class.argmax()), int(answers.argmax())
    accuracy, majority_share = _within(hits.mean()), _within(of_class[majority] / n)
    better, apart = compared
    if goal == ACCURACY:
        better, apart = better or (apart and accuracy > majority_share), better or apart
    quality = Quality(
        verdict="",
        reason="",
        better=better,
        tells_apart=apart,
        measured_on=measured_on,
        n=n,
        accuracy=accuracy,
        majority=str(names[majority]),
        majority_share=majority_share,
        balanced_accuracy=_within(np.mean(right[present] / of_class[present])),
        chance=1 / len(present),
        auc=auc,
        calibration_error=error,
        named=str(names[most]),
        n_named=int(answers[most]),
        n_asked=len(all_named),
        goal=goal,
        thresholds=()
        if beliefs is None or measured_on == RELEASED
        else tuple(_thresholds(names, shares, beliefs)),
    )
    return _worded(quality, Judged.STUDENT)


def _thresholds(names: NDArray[Any], shares: Floats, beliefs: Floats) -> Iterator[Threshold]:
    """Try thresholds of the rarer of two classes on records whose truth is known.

    ``shares`` (n, n_classes): one-hot true classes.
    """
    of_class = shares.sum(axis=0)
    if len(names) != 2 or of_class.min() == 0:
        return
    rarer = int(of_class.argmin())
    is_of_it = shares[:, rarer] > 0
    for at in _AT:
        found = beliefs[:, rarer] >= at
        precision = float(is_of_it[found].mean()) if found.any() else None
        yield Threshold(str(names[rarer]), at, float(found[is_of_it].mean()), precision)


def _auc(scores: Floats, weights: Floats) -> float | None:
    """Area under the ROC curve: how often a record of the class scores above another one; ties count half."""
    others = 1 - weights
    total = weights.sum() * others.sum()
    if weights.sum() <= 0 or others.sum() <= 0:
        return None
    values, place = np.unique(scores, return_inverse=True)
    own = np.bincount(place, weights=weights, minlength=len(values))
    other = np.bincount(place, weights=others, minlength=len(values))
    return float(own @ (np.cumsum(other) - other / 2) / total)


def _calibration_error(confidence: Floats, right: Floats) -> float:
    place = np.minimum((confidence * _BINS).astype(np.intp), _BINS - 1)
    gaps = np.bincount(place, weights=confidence - right, minlength=_BINS)
    return float(np.abs(gaps).sum() / len(confidence))


def _within(share: Any) -> float:
    """Cut a share at 0 and 1, beyond which the noise of few histograms may put it."""
    return float(min(1.0, max(0.0, share)))


def _worded(found: Quality, judged: Judged) -> Quality:
    """Say what the figures mean, of a student or of a model."""
    reason = " ".join(_reasons(found, judged))
    return replace(found, verdict=_verdict(found, judged), reason=reason)


def _verdict(found: Quality, judged: Judged) -> str:
    majority = f"“{found.majority}”"
    if found.goal != ACCURACY and found.better is not None:
        return _verdict_by_goal(found, judged)
    if found.goal == AUC and found.auc is None and found.tells_apart is not None:
        return (
            f"Whether the {judged} puts records in order cannot be told: it gives no probabilities"
        )
    if found.better:
        return f"The {judged} is better than always answering {majority}"
    if found.tells_apart:
        return (
            f"The {judged} tells classes apart, but is not more often right than always answering "
            f"{majority}"
        )
    if found.better is not None:
        return f"The {judged} is no better than always answering {majority}"
    if found.truth_is_known:
        return f"How good the {judged} is cannot be told: all {found.measured_on} are of class {majority}"
    if found.names_one_class:
        return (
            f"The {judged} answers “{found.named}” for {_of(found.n_named, found.n_asked)} public records; "
            "whether that is right is unknown"
        )
    return f"How often the {judged} is right is unknown: no public record has a known class"


def _verdict_by_goal(found: Quality, judged: Judged) -> str:
    if found.goal == BALANCED:
        than = "better than" if found.better else "no better than"
        return f"The {judged} is {than} always answering “{found.majority}”, by balanced accuracy"
    if found.better:
        return (
            f"The {judged} puts records in order, as always answering “{found.majority}” does not"
        )
    return f"The {judged} puts records in no better order than chance"


def _reasons(found: Quality, judged: Judged) -> list[str]:
    majority, sentences = f"“{found.majority}”", []
    if found.measured_on == NOTHING_KNOWN:
        return [
            f"It answers “{found.named}” for {_of(found.n_named, found.n_asked)} public records."
        ]
    records = (
        _PUBLIC_IN_WORDS[judged] if found.measured_on == PUBLIC else _IN_WORDS[found.measured_on]
    )
    where = f"{found.n:,} {records}"
    if not found.truth_is_known:
        return [
            f"It says the same as {_percent(found.accuracy)} of the {where}; {majority} has "
            f"{_percent(found.majority_share)} of them.",
            f"It answers “{found.named}” for {_of(found.n_named, found.n_asked)} public records.",
        ]
    if not found.better and found.names_one_class:
        sentences.append(
            f"It answers “{found.named}” for {_of(found.n_named, found.n_asked)} records."
        )
    by_goal = _by_goal(found, where)
    if by_goal:
        sentences.append(by_goal)
        where = "them"
    sentences.append(
        f"It is right on {_percent(found.accuracy)} of {where}; always answering {majority} would be "
        f"right on {_percent(found.majority_share)}."
    )
    if found.goal == BALANCED and found.better and found.accuracy < found.majority_share:
        sentences.append(
            "To be right about rare classes costs some right answers about the frequent one."
        )
    if not found.tells_apart and found.accuracy > found.majority_share:
        sentences.append("So small a difference can be chance.")
    if found.tells_apart is False and found.auc is not None and found.auc >= _ORDERED:
        sentences.append(
            "Its probabilities do put the records in order (ROC AUC): a threshold of your own makes better "
            "answers of them than choosing the most probable class."
        )
    if found.is_calibrated is False:
        sentences.append(
            f"Its probabilities are off by {found.calibration_error:.2f} on average (calibration error): do "
            "not take them for chances."
        )
    return sentences


def _by_goal(found: Quality, where: str) -> str:
    """Say the measure of another goal than accuracy, where it can be told."""
    if found.goal == BALANCED and found.chance < 1:
        return (
            f"Its balanced accuracy is {_percent(found.balanced_accuracy)} on {where}; always answering "
            f"“{found.majority}” would have {_percent(found.chance)}."
        )
    if found.goal == AUC and found.auc is not None:
        return (
            f"Of two of {where}, one of a class and one of another, its probabilities put the right one "
            f"first in {_percent(found.auc)} of cases (ROC AUC); chance would in 50.0 %."
        )
    return ""


def _of(some: int, n: int) -> str:
    return f"all {n:,}" if some == n else f"{some:,} of {n:,}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
