"""Scores of a synthetic table of cells: models that learn from it, and how far its marginals are off."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OneHotEncoder

Codes = NDArray[np.int64]


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
