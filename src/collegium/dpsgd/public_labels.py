"""What public labels add to a model of private records: two linear models become one, at no cost to anybody.

A model of public records alone, and the one that noisy steps made of private records, are weighed by how
right each is about public records: the private one has not learnt from these, and the public one is asked
about each record by a copy that has not (stacking; Wolpert, *Stacked generalization*, Neural Networks 5(2),
1992; weights are not negative, as in Breiman, *Stacked regressions*, Machine Learning 24, 1996). Both are
linear in what they see, so what is published is one linear model, as before. All of it is made of released
and public things alone. Weights are taken only where they are better by more than one and a half standard
errors, so that the result is as good as the better of both, as far as so many labels can tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, Ridge, RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold

from collegium.checks import listed
from collegium.distillation.goal import BALANCED, believed_shares
from collegium.dpsgd.linear_sums import CONSTANT
from collegium.dpsgd.losses import CrossEntropy
from collegium.evaluation.quality import PUBLIC_UNSEEN, Quality, measure_quality

Floats = NDArray[np.float64]
ENOUGH = 40
"""Public labels from which on they can tell which of two models is better."""
_FOLDS = 5
_GRID = np.logspace(-2, 3, 6)  # inverse strengths of the ridge of a public model
_MOST = 10_000  # labelled records that a public model learns from
_SURE = 4.0  # standard errors: beyond, what public labels and private records say differs
_SURER = 1.5  # standard errors by which what is less simple must be better
_FAR = 0.05  # of a class's share
_SEEN = 20  # labelled records of a class from which on it is compared
PRIVATE, SCALED, COMBINED, PUBLIC = "private", "scaled", "combined", "public"
_ELSEWHERE = "public records may be of another time or place, or were selected"
_TREES = "The model of the private records also sees what trees say that learnt from these labels. "
_WHICH = {
    PRIVATE: "the model of the private records, as it is",
    SCALED: "the model of the private records, calibrated on the public labels",
    COMBINED: "both, as one model",
    PUBLIC: "what public labels teach alone, since private records add nothing that they can tell: these are "
    "not needed here",
}


@dataclass(frozen=True, eq=False)
class PublicLabels:
    """What came of public labels; made of released and public things alone.

    ``n``: how many there were.
    ``chosen``: "private", "scaled", "combined" or "public": what is published.
    ``weights``: of the model of private records, and of the one of public labels.
    ``scores``: of each of these, on public records whose labels it had not seen: share of right answers, or
        R² of numbers; empty where there were too few labels.
    ``parameters`` (n_features + 1, n_outputs): what is published.
    ``predicted`` (n, n_outputs): its scores of labelled records, each by a model that had not seen its label;
        of ``rows`` (n,) of those that were given.
    ``notes``: what is strange about the labels.
    ``measure``: what ``scores`` are.
    ``trees``: whether trees that learnt from the labels are part of what the private records' model sees.
    """

    n: int
    chosen: str
    weights: tuple[float, float]
    scores: dict[str, float]
    parameters: Floats
    predicted: Floats
    rows: NDArray[np.intp]
    notes: tuple[str, ...] = ()
    measure: str = "accuracy"
    trees: bool = False

    @property
    def in_words(self) -> str:
        """One line."""
        if self.notes and not self.scores:
            return self.notes[0]
        if not self.scores and self.n >= ENOUGH:
            return (
                f"{self.n:,} public labels do not show all that is to be told apart (at least 2 records of "
                "each class): they are not used"
            )
        if not self.scores:
            return (
                f"{self.n:,} public labels are too few to learn from ({ENOUGH} would do): not used"
            )
        told = {name: f"{100 * score:.1f} %" for name, score in self.scores.items()}
        return (
            f"Worth of each part, on {self.n:,} public labels ({self.measure}, cross-validated): private "
            f"records {told[SCALED]}, public labels {told[PUBLIC]}, both {told[COMBINED]}. "
            f"{_TREES if self.trees else ''}Published: {_WHICH[self.chosen]}"
        )


def with_public_labels(
    parameters: Floats,
    rows: Floats,
    targets: NDArray[Any],
    names: NDArray[Any],
    noise: float = 0.0,
    seed: int = 0,
) -> PublicLabels:
    """Combine what private records taught with what public labels teach, if that is better.

    ``parameters`` (n_features + 1, n_outputs): learnt from private records; the last row is the constant's.
    ``rows`` (n, n_features): labelled public records, of unit length.
    ``targets`` (n,): class numbers, or numbers in [-1, 1].
    ``names`` (n_classes,): of the classes; empty where numbers are predicted.
    ``noise``: standard deviation that the steps left in each parameter, which is public.
    """
    task = _Classes(names) if len(names) else _Numbers()
    some = np.sort(np.random.default_rng([seed, 9]).permutation(len(rows))[:_MOST])
    seen, known = rows[some], targets[some]
    units = np.hstack([seen, np.full((len(seen), 1), CONSTANT)])
    mine = units @ parameters
    as_it_is = PublicLabels(
        len(rows), PRIVATE, (1.0, 0.0), {}, parameters, mine, some, measure=task.measure
    )
    if not task.is_enough(known):
        return as_it_is
    strange = task.contradictions(mine, known, noise, units)
    if strange:
        return replace(as_it_is, notes=(strange,))
    folds = list(task.folds(known, seed))
    strength = task.strength(seen, known)
    theirs = np.empty_like(mine)
    for learn, judged in folds:
        theirs[judged] = units[judged] @ task.learnt(seen[learn], known[learn], strength)
    options = {
        PRIVATE: lambda s, t, y: _Weights(1.0, 0.0, np.zeros(mine.shape[1])),
        SCALED: lambda s, t, y: task.weighed(s, None, y),
        COMBINED: lambda s, t, y: task.weighed(s, t, y),
        PUBLIC: lambda s, t, y: task.weighed(None, t, y),
    }
    judged_by = {name: _asked(make, mine, theirs, known, folds) for name, make in options.items()}
    losses = {name: task.losses(scores, known) for name, scores in judged_by.items()}
    notes = task.shifts(mine, known)
    chosen = _simplest(losses)
    if notes and chosen == SCALED:  # the shares of private records are those that count
        chosen = PRIVATE
    weights = options[chosen](mine, theirs, known)
    whole = task.learnt(seen, known, strength) if weights.public else np.zeros_like(parameters)
    made = weights.private * parameters + weights.public * whole
    made[-1] += weights.shift / CONSTANT
    scores = {name: task.score(judged_by[name], known) for name in (SCALED, COMBINED, PUBLIC)}
    return replace(
        as_it_is,
        chosen=chosen,
        weights=(weights.private, weights.public),
        scores=scores,
        parameters=made,
        predicted=judged_by[chosen],
        notes=notes,
    )


def judged_unseen(
    found: PublicLabels, targets: NDArray[Any], classes: NDArray[Any], goal: str
) -> Quality | None:
    """Judge what is published by public records, each as a model scores it that has not seen its label.

    ``targets`` (n_public,): class numbers; NaN where unknown.
    """
    known = targets[~np.isnan(targets)].astype(np.intp)
    is_public = found.rows < len(known)  # behind them stand people of public levels
    codes = known[found.rows[is_public]]
    beliefs = _Classes(classes).beliefs(found.predicted[is_public])
    shares = believed_shares(beliefs) if goal == BALANCED and len(beliefs) else 1.0
    named = classes[(beliefs / shares).argmax(axis=1)]
    return measure_quality(classes, classes[codes], named, beliefs, PUBLIC_UNSEEN, goal)


@dataclass(frozen=True, eq=False)
class _Weights:
    """Of two models' scores, and what is added to them."""

    private: float
    public: float
    shift: Floats

    def of(self, mine: Floats, theirs: Floats) -> Floats:
        return self.private * mine + self.public * theirs + self.shift


def _asked(
    make: Callable[[Floats, Floats, NDArray[Any]], _Weights],
    mine: Floats,
    theirs: Floats,
    known: NDArray[Any],
    folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]],
) -> Floats:
    """Score each record by weights that have not seen its label."""
    scores = np.empty_like(mine)
    for learn, judged in folds:
        weights = make(mine[learn], theirs[learn], known[learn])
        scores[judged] = weights.of(mine[judged], theirs[judged])
    return scores


def _simplest(losses: dict[str, Floats]) -> str:
    """Choose the first whose mean loss is within one and a half standard errors of the best one's."""
    best = min(losses, key=lambda name: float(losses[name].mean()))
    for name, each in losses.items():
        more = each - losses[best]
        if more.mean() <= _SURER * more.std() / np.sqrt(len(more)):
            return name
    return best


class _Task:
    """What classes and numbers differ in."""

    measure: str

    def weighed(self, mine: Floats | None, theirs: Floats | None, known: NDArray[Any]) -> _Weights:
        """Find weights that are not negative; as if one record had said 1, 0 and no shift before."""
        given = mine if mine is not None else theirs
        assert given is not None
        n_outputs = given.shape[1]
        nothing = np.zeros_like(given)
        first, second = (nothing if one is None else one for one in (mine, theirs))
        alone = mine is None
        start = np.concatenate([[1.0 - alone, 1.0 * alone], np.zeros(n_outputs)])

        def objective(at: Floats) -> tuple[float, Floats]:
            scores = at[0] * first + at[1] * second + at[2:]
            total, errors = self.total(scores, known)
            away = at - start
            slope = np.concatenate(
                [[np.sum(errors * first), np.sum(errors * second)], errors.sum(axis=0)]
            )
            return total + 0.5 * float(away @ away), slope + away

        bounds = [(0.0, None), (0.0, None)] + [(None, None)] * n_outputs
        found = minimize(objective, start, jac=True, bounds=bounds, method="L-BFGS-B").x
        return _Weights(float(found[0]), float(found[1]), found[2:])

    def total(self, scores: Floats, known: NDArray[Any]) -> tuple[float, Floats]:
        """Sum of losses, and its gradient with respect to scores."""
        raise NotImplementedError

    def shifts(self, mine: Floats, known: NDArray[Any]) -> tuple[str, ...]:
        """Say what public labels have otherwise than private records."""
        return ()


class _Classes(_Task):
    measure = "accuracy"

    def __init__(self, names: NDArray[Any]) -> None:
        self._names, self._n = names, len(names)

    def is_enough(self, known: NDArray[Any]) -> bool:
        counts = np.bincount(known.astype(np.intp), minlength=self._n)
        return len(known) >= ENOUGH and int(counts.min()) >= 2

    def folds(self, known: NDArray[Any], seed: int) -> Any:
        few = int(min(_FOLDS, np.bincount(known.astype(np.intp)).min()))
        dealt = StratifiedKFold(few, shuffle=True, random_state=seed % 2**32)
        return dealt.split(np.zeros((len(known), 1)), known)

    def strength(self, rows: Floats, known: NDArray[Any]) -> float:
        few = int(min(3, np.bincount(known.astype(np.intp)).min()))
        model = LogisticRegressionCV(
            Cs=_GRID,
            cv=few,
            scoring="neg_log_loss",
            max_iter=200,
            l1_ratios=(0.0,),
            use_legacy_attributes=False,
        ).fit(rows, known)
        return float(np.ravel(model.C_)[0])

    def learnt(self, rows: Floats, known: NDArray[Any], strength: float) -> Floats:
        model = LogisticRegression(C=strength, max_iter=200).fit(rows, known)
        return np.vstack([model.coef_.T, model.intercept_[None] / CONSTANT])

    def beliefs(self, scores: Floats) -> Floats:
        if scores.shape[1] == 1:
            return np.hstack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))

    def losses(self, scores: Floats, known: NDArray[Any]) -> Floats:
        codes = known.astype(np.intp)
        if scores.shape[1] == 1:
            return np.asarray(np.logaddexp(0.0, np.where(codes == 1, -1.0, 1.0) * scores[:, 0]))
        return np.asarray(-log_softmax(scores, axis=1)[np.arange(len(codes)), codes])

    def total(self, scores: Floats, known: NDArray[Any]) -> tuple[float, Floats]:
        errors = CrossEntropy(self._n).errors(scores, known.astype(np.intp))
        return float(self.losses(scores, known).sum()), errors

    def score(self, scores: Floats, known: NDArray[Any]) -> float:
        return float(np.mean(self.beliefs(scores).argmax(axis=1) == known))

    def contradictions(self, mine: Floats, known: NDArray[Any], noise: float, units: Floats) -> str:
        """A class's records must not score lower for it than all do, beyond noise and chance."""
        scores = np.hstack([-mine, mine]) if mine.shape[1] == 1 else mine
        scores, middle = scores - scores.mean(axis=0), units.mean(axis=0)
        opposite = []
        for code in range(self._n):
            is_it = known == code
            its = scores[is_it, code]
            if len(its) < _SEEN:
                continue
            by_noise = noise * np.linalg.norm(units[is_it].mean(axis=0) - middle)
            if its.mean() < -_SURE * np.hypot(by_noise, its.std() / np.sqrt(len(its))):
                opposite.append(str(self._names[code]))
        if not opposite:
            return ""
        return (
            f"public labels contradict private records: what they call {listed(opposite)} is what the model "
            "of the private records least takes for it. Check that both mean the same classes; public "
            "labels are not used"
        )

    def shifts(self, mine: Floats, known: NDArray[Any]) -> tuple[str, ...]:
        beliefs, codes = self.beliefs(mine), known.astype(np.intp)
        n, shares = len(codes), np.bincount(codes, minlength=self._n) / len(codes)
        sure, right = beliefs.max(axis=1), beliefs.argmax(axis=1) == codes
        too_sure = float(sure.mean() - right.mean())
        if too_sure > max(_FAR, _SURE * float(np.std(sure - right)) / np.sqrt(n)):
            return (
                f"the model of the private records is right about {100 * right.mean():.0f} % of the public "
                f"labels, and expects {100 * sure.mean():.0f} %: {_ELSEWHERE}",
            )
        expected = beliefs.mean(axis=0)
        error = np.sqrt((beliefs * (1 - beliefs)).sum(axis=0)) / n
        off = np.abs(shares - expected)
        code = int(np.argmax(off))
        if off[code] <= max(_FAR, _SURE * error[code]):
            return ()
        name = str(self._names[code])
        return (
            f"{100 * shares[code]:.0f} % of the public labels are {name!r}, where the model of private "
            f"records expects {100 * expected[code]:.0f} %: {_ELSEWHERE}",
        )


class _Numbers(_Task):
    measure = "R²"

    def is_enough(self, known: NDArray[Any]) -> bool:
        return len(known) >= ENOUGH and bool(np.ptp(known) > 0)

    def folds(self, known: NDArray[Any], seed: int) -> Any:
        return KFold(_FOLDS, shuffle=True, random_state=seed % 2**32).split(known[:, None])

    def strength(self, rows: Floats, known: NDArray[Any]) -> float:
        return float(RidgeCV(alphas=1 / _GRID).fit(rows, known).alpha_)

    def learnt(self, rows: Floats, known: NDArray[Any], strength: float) -> Floats:
        model = Ridge(strength).fit(rows, known)
        return np.append(model.coef_, model.intercept_ / CONSTANT)[:, None]

    def losses(self, scores: Floats, known: NDArray[Any]) -> Floats:
        return np.asarray(0.5 * (scores[:, 0] - known) ** 2)

    def total(self, scores: Floats, known: NDArray[Any]) -> tuple[float, Floats]:
        spread = max(float(known.var()), 1e-12)  # so that one record's prior weighs as one record
        return float(self.losses(scores, known).sum()) / spread, (scores - known[:, None]) / spread

    def score(self, scores: Floats, known: NDArray[Any]) -> float:
        return float(1 - np.mean((scores[:, 0] - known) ** 2) / max(float(known.var()), 1e-12))

    def contradictions(self, mine: Floats, known: NDArray[Any], noise: float, units: Floats) -> str:
        away = known - known.mean()
        together = (mine[:, 0] - mine.mean()) * away
        by_noise = noise * np.linalg.norm(away @ units) / len(away)
        if together.mean() >= -_SURE * np.hypot(by_noise, together.std() / np.sqrt(len(away))):
            return ""
        return (
            "public targets contradict private records: where the model of private records predicts large "
            "numbers they are small; do they mean the same? They are not used"
        )
