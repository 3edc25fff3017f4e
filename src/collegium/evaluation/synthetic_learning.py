"""Train on one table, test on held-out records: what a table is worth to whoever learns from it.

Two models, since one may hide what the other shows: logistic regression on one cell each, which reads every
column by itself, and boosted trees, which read columns together. Both see cells of the public schema and
nothing else. Their settings are fixed: nothing is chosen on held-out records.

Intervals are of the held-out records alone, the table and the model being what they are: another synthetic
table, of other noise, may lie outside.

References
----------
.. [1] E. DeLong, D. DeLong, D. Clarke-Pearson, "Comparing the areas under two or more correlated receiver
   operating characteristic curves: a nonparametric approach", Biometrics 44(3), 1988: the variance of an
   area, and of the difference of two on the same records, from placement values.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from collegium.data.cells import Cells
from collegium.data.schema_column import CATEGORY, FLAG

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

LOGISTIC, BOOSTING = "logistic regression", "boosting"
MODELS = (LOGISTIC, BOOSTING)
MOST_TRAINING = 100_000
"""Of larger tables a seeded sample is learnt from."""
_MOST_CATEGORIES = 255  # that boosting takes for categories; more are read in their order
_FEW_PARAMETERS = 600  # for which second-order steps are faster
_LEAST_BELIEF = 1e-4
_Z = float(ndtri(0.975))


@dataclass(frozen=True)
class Estimate:
    """A measure of held-out records, with a 95 % interval: these records being a sample of all."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model said of held-out records.

    ``beliefs`` (n, n_classes): probabilities; or (n, 1), a number, where the target is one.
    """

    beliefs: Floats

    def rows(self, chosen: NDArray[Any]) -> Answers:
        """Those of some records."""
        return Answers(self.beliefs[chosen])


@dataclass(frozen=True, eq=False)
class Task:
    """What is learnt, of which columns.

    ``target``: its place among the columns. ``n_classes``: 0 where it is a number.
    ``numbers``: of a target that is one, the middle of each cell; of classes nothing.
    """

    cells: Cells
    target: int
    n_classes: int
    seed: int

    @property
    def features(self) -> list[int]:
        """Places of the other columns."""
        return [place for place in range(len(self.cells.names)) if place != self.target]

    def answers(self, model: str, codes: Codes, truth: Floats, asked: Codes) -> Answers:
        """Train on a table, and answer about held-out records.

        ``codes`` (n, d), ``truth`` (n,): the table; class numbers, or values. ``asked`` (m, d).
        """
        if len(codes) > MOST_TRAINING:
            rows = np.random.default_rng(self.seed).choice(len(codes), MOST_TRAINING, replace=False)
            codes, truth = codes[rows], truth[rows]
        if len(np.unique(truth)) == 1:  # nothing to learn, so that it always says the same
            return Answers(self._constant(float(truth[0]), len(asked)))
        fitted = self._model(model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of convergence: steps are limited on purpose
            fitted.fit(self._inputs(model, codes), truth)
        inputs = self._inputs(model, asked)
        if not self.n_classes:
            return Answers(np.asarray(fitted.predict(inputs), dtype=np.float64).reshape(-1, 1))
        beliefs = np.zeros((len(asked), self.n_classes))
        beliefs[:, fitted.classes_.astype(np.intp)] = fitted.predict_proba(inputs)
        return Answers(beliefs)

    def _constant(self, answer: float, n: int) -> Floats:
        if not self.n_classes:
            return np.full((n, 1), answer)
        beliefs = np.zeros((n, self.n_classes))
        beliefs[:, int(answer)] = 1.0
        return beliefs

    def _inputs(self, model: str, codes: Codes) -> Any:
        if model == BOOSTING:
            return codes[:, self.features].astype(np.float64)
        from scipy.sparse import csr_matrix

        sizes = [self.cells.sizes[place] for place in self.features]
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        n, d = len(codes), len(sizes)
        places = (codes[:, self.features] + starts).ravel()
        shape = (n, int(sum(sizes)))
        sparse = csr_matrix((np.ones(n * d), places, np.arange(0, n * d + 1, d)), shape=shape)
        return sparse.toarray() if shape[1] <= _FEW_PARAMETERS else sparse

    def _model(self, model: str) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier as BoostedClassifier
        from sklearn.ensemble import HistGradientBoostingRegressor as BoostedRegressor
        from sklearn.linear_model import LogisticRegression, Ridge

        if model == BOOSTING:
            named = [self._is_named(place) for place in self.features]
            boosted = BoostedClassifier if self.n_classes else BoostedRegressor
            return boosted(categorical_features=named, random_state=self.seed, early_stopping=False)
        if not self.n_classes:
            return Ridge(alpha=1.0)
        n_inputs = sum(self.cells.sizes[place] for place in self.features)
        solver = "newton-cholesky" if n_inputs <= _FEW_PARAMETERS else "lbfgs"
        return LogisticRegression(C=1.0, solver=solver, max_iter=100)

    def _is_named(self, place: int) -> bool:
        column = self.cells.columns[place]
        return column.column.kind in (CATEGORY, FLAG) and column.size <= _MOST_CATEGORIES


def area(truth: Codes, beliefs: Floats) -> tuple[Estimate, Floats] | None:
    """Area under the ROC curve, of several classes one against the rest, mean over the classes.

    ``truth`` (n,), ``beliefs`` (n, n_classes). Returns the area with DeLong's interval [1]_, and what each
    record has to do with it: its influence, whose mean is 0 and from which the variance of a difference of
    two areas on the same records follows. None where fewer than two classes occur.
    """
    present = [label for label in range(beliefs.shape[1]) if (truth == label).any()]
    if len(present) < 2:
        return None
    if len(present) == 2 and beliefs.shape[1] == 2:
        present = present[1:]  # the other one is the same
    found = [_one_area(truth == label, beliefs[:, label]) for label in present]
    value = float(np.mean([one for one, _ in found]))
    influence = np.mean([of for _, of in found], axis=0)
    half = _Z * spread_of(influence, truth)
    low, high = value - half, value + half
    if value in (
        0.0,
        1.0,
    ):  # no variance is left to see: the smaller class's records being all alike
        fewest = min(int((truth == label).sum()) for label in np.unique(truth).tolist())
        margin = 1 - 0.025 ** (1 / fewest)
        low, high = (1 - margin, 1.0) if value else (0.0, margin)
    return Estimate(value, max(0.0, low), min(1.0, high)), influence


def _one_area(is_of: NDArray[np.bool_], belief: Floats) -> tuple[float, Floats]:
    """Area of one class against the rest, and each record's influence on it."""
    n_of, n_rest = int(is_of.sum()), int((~is_of).sum())
    ranks = rankdata(belief)
    below = np.empty(len(belief))  # share of the other side that a record is on the right side of
    below[is_of] = (ranks[is_of] - rankdata(belief[is_of])) / n_rest
    below[~is_of] = 1 - (ranks[~is_of] - rankdata(belief[~is_of])) / n_of
    value = float(below[is_of].mean())
    n = len(belief)
    return value, (below - value) * np.where(is_of, n / n_of, n / n_rest)


def spread_of(influence: Floats, truth: Codes) -> float:
    """Standard error of a mean of influences; classes have the sizes that they have."""
    n, total = len(influence), 0.0
    for label in np.unique(truth).tolist():
        of = influence[truth == label]
        if len(of) > 1:
            total += len(of) * float(of.var(ddof=1))
    return math.sqrt(total) / n


def difference(one: Floats, other: Floats, gain: float, truth: Codes) -> Estimate:
    """How much larger an area is than another one on the same records, with its interval [1]_.

    ``one``, ``other`` (n,): influences. ``gain``: the difference itself.
    """
    half = _Z * spread_of(one - other, truth)
    return Estimate(gain, gain - half, gain + half)


def accuracy(truth: Codes, beliefs: Floats) -> Estimate:
    """Share of right answers, with Wilson's 95 % interval."""
    right = beliefs.argmax(axis=1) == truth
    return share_estimate(int(right.sum()), len(truth))


def share_estimate(right: int, n: int) -> Estimate:
    """A share of ``n`` records, with Wilson's 95 % interval."""
    rate, z = right / n, _Z
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return Estimate(rate, min(rate, max(0.0, centre - half)), max(rate, min(1.0, centre + half)))


def explained(truth: Floats, answers: Floats) -> tuple[Estimate, Floats] | None:
    """R²: the share of a number's variance that answers explain; with an interval, and influences.

    The interval is the delta method's: R² is one minus the ratio of two means. None where the number does
    not vary.
    """
    spread = (truth - truth.mean()) ** 2
    if not spread.any():
        return None
    missed = (truth - answers) ** 2
    ratio = float(missed.mean() / spread.mean())
    influence = -(missed - ratio * spread) / spread.mean()
    half = _Z * float(influence.std(ddof=1)) / math.sqrt(len(truth))
    return Estimate(1 - ratio, 1 - ratio - half, min(1.0, 1 - ratio + half)), influence


def loss_saved(truth: Codes, beliefs: Floats) -> Estimate:
    """Share of a constant's log loss that probabilities save; below 0 where they mislead.

    The constant knows the held-out frequencies. Probabilities below 1e-4 count as that. With the delta
    method's interval.
    """
    n = len(truth)
    frequencies = np.bincount(truth, minlength=beliefs.shape[1]) / n
    constant = -np.log(frequencies[truth])
    loss = -np.log(np.maximum(beliefs[np.arange(n), truth], _LEAST_BELIEF))
    ratio = float(loss.mean() / constant.mean())
    influence = (loss - ratio * constant) / constant.mean()
    half = _Z * float(influence.std(ddof=1)) / math.sqrt(n)
    return Estimate(1 - ratio, 1 - ratio - half, 1 - ratio + half)


def calibration_gap(is_of: NDArray[np.bool_], belief: Floats) -> float:
    """How far the mean probability of a class is above (or below) how often it is the case."""
    return float(belief.mean() - is_of.mean())


def majority(truth: Codes, n_classes: int) -> int:
    """The most frequent class."""
    return int(np.bincount(truth, minlength=n_classes).argmax())
