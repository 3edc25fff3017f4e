"""Scores of a synthetic table of cells: models that learn from it, and how far its marginals are off.

Marginals are compared with those of the *training* rows, whose distribution a synthetic table is to have;
models are judged by test rows. Where people have several rows, each person counts once in the training
rows' marginals (``weights``). Of more than 2,000 pairs or 300 triples of columns a fixed sample is
measured.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OneHotEncoder

from collegium.data.cells import Cells
from collegium.evaluation.synthetic_marginals import Measured, cell_numbers

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scores:
    """What a synthetic table is worth.

    ``logistic``, ``boosting``: areas under the ROC curve on real test rows. ``tv1``, ``tv2``, ``tv3``: mean
    total variation of marginals of one, two and three columns from the training rows', and ``tv1_max`` and
    so on the largest.
    """

    logistic: float
    boosting: float
    tv1: float
    tv1_max: float
    tv2: float
    tv2_max: float
    tv3: float
    tv3_max: float

    @property
    def overall(self) -> float:
        """Mean of both areas and of one less each mean total variation: higher is better."""
        apart = (self.tv1, self.tv2, self.tv3)
        return float(np.mean([self.logistic, self.boosting, *(1 - one for one in apart)]))

    def as_dict(self) -> dict[str, float]:
        """Collect all figures, rounded."""
        figures = asdict(self) | {"overall": self.overall}
        return {name: round(value, 5) for name, value in figures.items()}


def scores(
    synthetic: Codes,
    train: Codes,
    test: Codes,
    cells: Cells,
    target: str,
    weights: Floats | None = None,
) -> Scores:
    """Score a synthetic table.

    ``synthetic``, ``train``, ``test`` (n, d): cells of ``cells``; ``target``: a column of two; ``weights``
    (n_train,): how much each training row counts in the marginals, default alike.
    """
    place = cells.names.index(target)
    logistic, boosting = aucs(synthetic, test, cells.sizes, place)
    apart = variations(synthetic, train, cells, weights)
    figures = {
        f"tv{ways}{suffix}": float(of(found))
        for ways, found in enumerate(apart, 1)
        for suffix, of in (("", np.mean), ("_max", np.max))
    }
    return Scores(logistic=logistic, boosting=boosting, **figures)


def aucs(train: Codes, test: Codes, sizes: tuple[int, ...], target: int) -> tuple[float, float]:
    """Learn from one table and judge by another.

    ``train``, ``test`` (n, d): cells; ``target``: the place of a column whose cell 1 is told from cell 0.
    Returns the areas under the ROC curve of logistic regression on indicators and of boosting on codes; 0.5
    where ``train`` has one class alone.
    """
    others = [place for place in range(len(sizes)) if place != target]
    X, y = train[:, others], train[:, target]
    X_test, y_test = test[:, others], test[:, target]
    if len(np.unique(y)) < 2:
        return 0.5, 0.5
    encoder = OneHotEncoder(categories=[np.arange(sizes[place]) for place in others])
    linear = LogisticRegression(max_iter=2000).fit(encoder.fit_transform(X), y)
    trees = HistGradientBoostingClassifier(random_state=0).fit(X, y)
    scored = linear.predict_proba(encoder.transform(X_test)), trees.predict_proba(X_test)
    logistic, boosting = (float(roc_auc_score(y_test, one[:, 1])) for one in scored)
    return logistic, boosting


def variations(
    synthetic: Codes, train: Codes, cells: Cells, weights: Floats | None = None
) -> list[Floats]:
    """Measure the total variation of each marginal of one, two and three columns from the training rows'."""
    measured = Measured.of(cells.names, cells.sizes, np.random.default_rng(0))
    left, right = (np.ascontiguousarray(codes.T) for codes in (synthetic, train))
    heavy = np.ones(len(train)) if weights is None else weights
    found = []
    for order in measured.cliques:
        apart = []
        for clique in order:
            n_cells = math.prod(cells.sizes[place] for place in clique)
            first = np.bincount(cell_numbers(left, clique, cells.sizes), minlength=n_cells)
            other = np.bincount(cell_numbers(right, clique, cells.sizes), heavy, n_cells)
            apart.append(np.abs(first / first.sum() - other / other.sum()).sum() / 2)
        found.append(np.array(apart))
    return found
