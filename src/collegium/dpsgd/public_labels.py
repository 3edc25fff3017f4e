"""What public labels add to a model of private records: two linear models become one, at no cost to anybody.

A model of public records alone, and the one that noisy steps made of private records, are weighed by how
right each is about public records: the private one has not learnt from these, and the public one is asked
about each record by a copy that has not (stacking; Wolpert, *Stacked generalization*, Neural Networks 5(2),
1992; weights are not negative, as in Breiman, *Stacked regressions*, Machine Learning 24, 1996). Both are
linear in what they see, so what is published is one linear model, as before. Where trees of the labels are
part of what is seen (:mod:`collegium.dpsgd.taught_view`), they are a third model, and the public linear one
does without them: were it to learn how far to believe what trees say of its records, trees that have seen the
labels of other records would tell it of these. All of it is made of released and public things alone. Weights
are taken only where they are better by more than one and a half standard errors, so that the result is as
good as the better of both, as far as so many labels can tell.
"""

from __future__ import annotations

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
from collegium.evaluation.quality import PUBLIC_UNSEEN, PUBLIC_UNUSED, Quality, measure_quality

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
OF_EACH = 2
"""Labels of each class, without which they do not show what is to be told apart."""
_ACCURACY = "accuracy"
_ELSEWHERE = "public records may be of another time or place, or were selected"
_TREES = "The model of the private records also sees what trees say that learnt from these labels. "
_UNUSED = "public labels are not used"
_TREES_STAY = (
    "public labels are not combined with it, but trees that learnt from them are part of it"
)
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
    ``weights``: of the model of private records, of the linear one of public labels, and of trees of these.
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
    weights: tuple[float, float, float]
    scores: dict[str, float]
    parameters: Floats
    predicted: Floats
    rows: NDArray[np.intp]
    notes: tuple[str, ...] = ()
    measure: str = _ACCURACY
    trees: bool = False

    @property
    def is_used(self) -> bool:
        """Whether there was enough to learn from, and nothing spoke against it."""
        return bool(self.scores)

    @property
    def to_tell(self) -> tuple[str, ...]:
        """What nobody should have to look for: that labels are not used, and what is strange about them."""
        return self.notes or (() if self.is_used else (self.in_words,))

    @property
    def in_words(self) -> str:
        """One line."""
        if self.notes and not self.scores:
            return self.notes[0]
        if not self.scores and self.n >= ENOUGH:
            least = (
                f"{OF_EACH} records of each class"
                if self.measure == _ACCURACY
                else "targets that differ"
            )
            return (
                f"{self.n:,} public labels do not show all that is to be told apart (at least {least}): "
                "they are not used"
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
    trees: Floats | None = None,
) -> PublicLabels:
    """Combine what private records taught with what public labels teach, if that is better.

    ``parameters`` (n_features + 1, n_outputs): learnt from private records; the last row is the constant's.
    ``rows`` (n, n_features): labelled public records, of unit length.
    ``targets`` (n,): class numbers, or numbers in [-1, 1].
    ``names`` (n_classes,): of the classes; empty where numbers are predicted.
    ``noise``: standard deviation that the steps left in each parameter, which is public.
    ``trees`` (n_taught + 1, n_outputs): parameters of the last features, and of the constant, that say what
        trees say; rows are told by trees that have not seen their label. None: there are none.
    """
    task = _Classes(names) if len(names) else _Numbers()
    some = np.sort(np.random.default_rng([seed, 9]).permutation(len(rows))[:_MOST])
    seen, known = rows[some].copy(), targets[some]
    units = np.hstack([seen, np.full((len(seen), 1), CONSTANT)])
    mine = units @ parameters
    as_it_is = PublicLabels(
        len(rows),
        PRIVATE,
        (1.0, 0.0, 0.0),
        {},
        parameters,
        mine,
        some,
        measure=task.measure,
        trees=trees is not None,
    )
    if not task.is_enough(known):
        return as_it_is
    strange = task.contradictions(mine, known, noise, units)
    if strange:
        return replace(as_it_is, notes=(strange + (_TREES_STAY if as_it_is.trees else _UNUSED),))
    parts = [parameters, np.zeros_like(parameters), np.zeros_like(parameters)]
    said = None
    if trees is not None:
        parts[2][-len(trees) :] = trees
        said = units @ parts[2]
        seen[:, -len(trees) + 1 :] = 0.0
    folds = list(task.folds(known, seed))
    strength = task.strength(seen, known)
    theirs = np.empty_like(mine)
    for learn, judged in folds:
        learnt = task.learnt(seen[learn], known[learn], strength)
        theirs[judged] = seen[judged] @ learnt[:-1] + CONSTANT * learnt[-1]
    given = {
        PRIVATE: (mine, None, None),
        SCALED: (mine, None, None),
        COMBINED: (mine, theirs, said),
        PUBLIC: (None, theirs, said),
    }

    def weighed(name: str, rows: Any = slice(None)) -> _Weights:
        if name == PRIVATE:
            return _Weights((1.0, 0.0, 0.0), np.zeros(mine.shape[1]))
        return task.weighed(
            [None if one is None else one[rows] for one in given[name]], known[rows]
        )

    judged_by = {name: np.empty_like(mine) for name in given}
    for name, scores in judged_by.items():
        for learn, judged in folds:  # by weights that have not seen their label
            scores[judged] = weighed(name, learn).of(
                [None if one is None else one[judged] for one in given[name]]
            )
    losses = {name: task.losses(scores, known) for name, scores in judged_by.items()}
    notes = task.shifts(mine, known)
    chosen = _simplest(losses)
    if notes and chosen == SCALED:
        chosen = PRIVATE  # it is private records that count, and these labels are of others
    weights = weighed(chosen)
    if weights.each[1]:
        parts[1] = task.learnt(seen, known, strength)
    made = np.tensordot(weights.each, parts, 1)
    made[-1] += weights.shift / CONSTANT
    worth = {name: task.score(judged_by[name], known) for name in (SCALED, COMBINED, PUBLIC)}
    return replace(
        as_it_is,
        chosen=chosen,
        weights=weights.each,
        scores=worth,
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
    heard = found.is_used or found.trees
    measured_on = PUBLIC_UNSEEN if heard else PUBLIC_UNUSED
    return measure_quality(classes, classes[codes], named, beliefs, measured_on, goal)


@dataclass(frozen=True, eq=False)
class _Weights:
    """Of the scores of three models, and what is added to them."""

    each: tuple[float, float, float]
    shift: Floats

    def of(self, scores: list[Floats | None]) -> Floats:
        """Add them up; None: without this one."""
        there = zip(self.each, scores, strict=True)
        total = sum(weight * one for weight, one in there if one is not None)
        return np.asarray(total + self.shift)


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

    def weighed(self, scores: list[Floats | None], known: NDArray[Any]) -> _Weights:
        """Find weights that are not negative; as if one record had said 1, 0, … and no shift before.

        ``scores``: of three models; None: without this one. The first is the private records' model.
        """
        places = [place for place, one in enumerate(scores) if one is not None]
        there = np.array([scores[place] for place in places])
        k, n_outputs = len(places), there.shape[2]
        before = np.full(k, 1.0 / k) if scores[0] is None else np.eye(k)[0]
        start = np.concatenate([before, np.zeros(n_outputs)])

        def objective(at: Floats) -> tuple[float, Floats]:
            total, errors = self.total(np.tensordot(at[:k], there, 1) + at[k:], known)
            away = at - start
            slope = np.concatenate([np.einsum("kno,no->k", there, errors), errors.sum(axis=0)])
            return total + 0.5 * float(away @ away), slope + away

        bounds = [(0.0, None)] * k + [(None, None)] * n_outputs
        found = minimize(objective, start, jac=True, bounds=bounds, method="L-BFGS-B").x
        each = np.zeros(3)
        each[places] = found[:k]
        return _Weights((float(each[0]), float(each[1]), float(each[2])), found[k:])

    def total(self, scores: Floats, known: NDArray[Any]) -> tuple[float, Floats]:
        """Sum of losses, and its gradient with respect to scores."""
        raise NotImplementedError

    def shifts(self, mine: Floats, known: NDArray[Any]) -> tuple[str, ...]:
        """Say what public labels have otherwise than private records."""
        return ()


class _Classes(_Task):
    measure = _ACCURACY

    def __init__(self, names: NDArray[Any]) -> None:
        self._names, self._n = names, len(names)

    def is_enough(self, known: NDArray[Any]) -> bool:
        counts = np.bincount(known.astype(np.intp), minlength=self._n)
        return len(known) >= ENOUGH and int(counts.min()) >= OF_EACH

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
        """A class's records must not score lower for it than all do, beyond noise and chance.

        Nor may labels agree with the model, where it is sure beyond its noise, less often than labels drawn
        at random do.
        """
        scores = np.hstack([-mine, mine]) if mine.shape[1] == 1 else mine
        loud = noise * np.linalg.norm(units, axis=1)
        centred, middle = scores - scores.mean(axis=0), units.mean(axis=0)
        opposite = []
        for code in range(self._n):
            is_it = known == code
            its = centred[is_it, code]
            if len(its) < _SEEN:
                continue
            by_noise = noise * np.linalg.norm(units[is_it].mean(axis=0) - middle)
            if its.mean() < -_SURE * np.hypot(by_noise, its.std() / np.sqrt(len(its))):
                opposite.append(str(self._names[code]))
        if opposite:
            how = (
                f"what they call {listed(opposite)} is what the model of the private records least takes "
                "for it"
            )
        else:
            how = self._disagreement(scores, known.astype(np.intp), loud)
        if not how:
            return ""
        return f"public labels contradict private records: {how}. Check that both mean the same classes; "

    def _disagreement(self, scores: Floats, codes: NDArray[np.intp], loud: Floats) -> str:
        runner_up, best = np.sort(scores, axis=1)[:, -2:].T
        sure = best - runner_up > _SURE * 2 * loud
        named, labels = scores[sure].argmax(axis=1), codes[sure]
        n = len(labels)
        if n < _SEEN:
            return ""
        right = float(np.mean(named == labels))
        counts = [np.bincount(codes, minlength=self._n) / n for codes in (named, labels)]
        by_chance = float(counts[0] @ counts[1])
        if right >= by_chance - _SURE * np.sqrt(by_chance * (1 - by_chance) / n):
            return ""
        return (
            f"where the model of the private records is sure, {100 * right:.0f} % of the labels agree with "
            f"it, and of labels drawn at random {100 * by_chance:.0f} % would"
        )

    def shifts(self, mine: Floats, known: NDArray[Any]) -> tuple[str, ...]:
        beliefs, codes = self.beliefs(mine), known.astype(np.intp)
        n, shares = len(codes), np.bincount(codes, minlength=self._n) / len(codes)
        sure, right = beliefs.max(axis=1), beliefs.argmax(axis=1) == codes
        too_sure = float(sure.mean() - right.mean())
        if too_sure > max(_FAR, _SURE * float(np.std(sure - right)) / np.sqrt(n)):
            return (
                f"the model of the private records is right about {100 * right.mean():.0f} % of the public "
                f"labels, and expects {100 * sure.mean():.0f} %: it is too sure of itself, or {_ELSEWHERE}",
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
            "numbers they are small. Check that both mean the same; "
        )
