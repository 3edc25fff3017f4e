"""Public records that stand in for private ones in a rehearsal, with known, guessed or made-up classes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV

from collegium.data.tables import take_rows
from collegium.planner.facts import Facts

Floats = NDArray[np.float64]
MOST = 3000
"""Public records that are rehearsed with, at most: more make a plan slow, and tell little more."""
ENOUGH = 40
"""Public labels from which on a rehearsal with them says more than one with clusters."""
_FOLDS = 4


@dataclass(frozen=True, eq=False)
class StandIns:
    """Some public records, each with a class.

    ``X``: the records, as they are.
    ``codes`` (n,): class numbers; -1 where nobody knows.
    ``most``: to learn from at once: no more than there are people.
    ``synthetic``: whether too few classes are known to learn from, so that clusters must do.
    """

    X: Any
    codes: NDArray[np.intp]
    synthetic: bool
    seed: int
    most: int

    @cached_property
    def labelled(self) -> NDArray[np.intp]:
        """Rows with a class."""
        return np.flatnonzero(self.codes >= 0)

    def folds(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Deal the labelled rows out: to learn from, and to judge by; every one is judged by once."""
        dealt = np.random.default_rng([self.seed, 6]).permutation(self.labelled)
        for fold in range(_FOLDS):
            judged = dealt[fold::_FOLDS]
            learn = dealt[~np.isin(dealt, judged)]
            yield np.sort(learn[: self.most]), judged


def stand_ins(facts: Facts) -> StandIns:
    """Choose public records at random; those with known classes first, if there are enough of them."""
    random = np.random.default_rng([facts.seed, 7])
    order = random.permutation(facts.n_public)
    enough = facts.labelled.size >= ENOUGH and np.unique(facts.known[facts.labelled]).size > 1
    if enough:
        is_known = facts.known[order] >= 0
        order = np.concatenate([order[is_known][: 2 * MOST // 3], order[~is_known]])
    rows = np.sort(order[:MOST])
    codes = facts.known[rows] if enough else np.full(len(rows), -1, dtype=np.intp)
    return StandIns(
        take_rows(facts.X_public, rows), codes, not enough, facts.seed, max(2, facts.n_people)
    )


def public_model(seen: Floats, codes: NDArray[np.intp]) -> Any:
    """Learn from public labels alone, as well as few of them allow."""
    counts = np.unique(codes, return_counts=True)[1]
    folds = int(min(3, counts.min()))
    if folds < 2:
        return LogisticRegression(C=10.0, max_iter=300).fit(seen, codes)
    grid = np.logspace(-1, 4, 6)
    model = LogisticRegressionCV(
        Cs=grid,
        cv=folds,
        scoring="neg_log_loss",
        max_iter=300,
        l1_ratios=(0.0,),
        use_legacy_attributes=False,
    )
    with warnings.catch_warnings():  # one that needs more iterations is good enough to compare with
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(seen, codes)


def completed(found: StandIns, seen: Floats, n_classes: int) -> StandIns:
    """Give every stand-in a class: the known one, one drawn from what known ones teach, or its cluster.

    ``seen`` (n, d): the records as a linear model sees them.
    """
    if found.synthetic:
        few = min(n_classes, len(seen))
        codes = KMeans(few, n_init=3, random_state=found.seed).fit_predict(seen).astype(np.intp)
        return replace(found, codes=codes)
    model = public_model(seen[found.labelled], found.codes[found.labelled])
    draws = np.random.default_rng([found.seed, 8]).random((len(seen), 1))
    places = (model.predict_proba(seen).cumsum(axis=1) < draws).sum(axis=1)
    guessed = model.classes_[np.minimum(places, len(model.classes_) - 1)]
    return replace(found, codes=np.where(found.codes >= 0, found.codes, guessed).astype(np.intp))
