"""What keeps tables from boosting at ε = 1: direct training beside learners that know what none may know.

``python -m benchmarks.ceilings --data-dir DATA --out CSV --table bank=bank-full.csv magic=magic04.data``

Judged on private records that are held out; the test fifth of :mod:`benchmarks.tables` is not touched. Area
under the ROC curve of

- *linear*, *boosting*: without privacy, as in :mod:`benchmarks.tables`;
- *boosting of N*: without privacy, of so many private records (mean of three draws, best of three depths);
- *view*: logistic regression on the default view without privacy, of the better of two penalties;
- *view, pairs*: the same, beside columns that cross the 15 pairs which boosting of depth 2 used most;
- *now*, *labels*: by default at ε = 1, without and with 2,000 public labels;
- *now, pairs*: privately, with the same 15 pairs, which only the private labels tell;
- *now, boosted*: trees of the 2,000 labels that start from the private model's score, stopped where they are
  best on the very records that judge them.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import normalize
from sklearn.tree import DecisionTreeRegressor

from benchmarks.tables import (
    BUDGETS,
    LABELS,
    PUBLIC,
    Way,
    boosting,
    encoded,
    privately,
    read,
    without_privacy,
)
from collegium.models.preprocessing import CrossedTable

HELD = 6  # one in so many of the rows that are not for testing
SIZES = (2000, 4000, 8000, 16000)
PAIRS, BINS, RARE = 15, 8, 5e-4
ROUNDS, RATE, LEAF, RIDGE = 150, 0.05, 20, 2.0


class PairedTable(CrossedTable):
    """The default view, and a third part of columns that are 1 where two columns are in given bins."""

    def __init__(self, components: int = 300, pairs: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(components)
        self.pairs = pairs

    def fit(self, X: pd.DataFrame, y: object = None) -> Self:
        """Cut numbers at values of public records, those that are frequent apart."""
        super().fit(X)
        self._cuts = {name: _cut(X[name]) for name in X}
        crossed = self._crossed(X)
        shares = crossed.mean(axis=0)
        self._often = np.flatnonzero(shares * (1 - shares) > RARE)
        self._shares = shares[self._often]
        self._lengths = (self._shares * (1 - self._shares)) ** (self.whiten / 2)
        return self

    def _crossed(self, X: pd.DataFrame) -> Any:
        codes = {name: _codes(X[name], cut) for name, cut in self._cuts.items()}
        parts = []
        for one, other in self.pairs:
            width = len(self._cuts[other]) + 1
            both = codes[one] * width + codes[other]
            parts.append(both[:, None] == np.arange((len(self._cuts[one]) + 1) * width))
        return np.hstack(parts).astype(np.float32)

    def transform(self, X: pd.DataFrame) -> Any:
        """Describe records by three parts of equal length."""
        described = super().transform(X)
        pairs = normalize((self._crossed(X)[:, self._often] - self._shares) / self._lengths)
        parts = [described[:, : self.n_cells_], described[:, self.n_cells_ :]]
        both = [np.float32(np.sqrt(2 / 3)) * part for part in parts]
        return np.hstack([both[0], np.float32(np.sqrt(1 / 3)) * pairs, both[1]]).astype(np.float32)


def _cut(column: pd.Series) -> Any:
    """Edges of a number; the most frequent values of what is no number, or has few."""
    if not pd.api.types.is_numeric_dtype(column) or column.nunique() <= BINS:
        return list(column.astype(str).value_counts().index[: BINS - 1])
    values = column.dropna().to_numpy(float)
    found, counts = np.unique(values, return_counts=True)
    often = found[counts > 0.3 * len(values)]
    rest = values[~np.isin(values, often)]
    quantiles = np.quantile(rest, np.arange(1, BINS) / BINS)
    return np.unique(np.concatenate([often, np.nextafter(often, np.inf), quantiles]))


def _codes(column: pd.Series, cut: Any) -> Any:
    if isinstance(cut, list):
        return pd.Categorical(column.astype(str), categories=cut).codes.astype(int) % (len(cut) + 1)
    return np.searchsorted(cut, column.to_numpy(float), side="right")


def pairs_of(X: pd.DataFrame, y: Any) -> tuple[tuple[str, str], ...]:
    """Find the pairs of columns that boosting of depth 2 gains most by."""
    numbers = [name for name in X if pd.api.types.is_numeric_dtype(X[name])]
    names = [*numbers, *(name for name in X if name not in numbers)]
    trees = HistGradientBoostingClassifier(
        max_depth=2, learning_rate=0.1, max_iter=1500, early_stopping=True, random_state=0
    ).fit(encoded(X)[0], y)
    gained: Counter[tuple[str, str]] = Counter()
    for (tree,) in trees._predictors:
        root = tree.nodes[0]
        for child in tree.nodes[[root["left"], root["right"]]]:
            one, other = sorted((names[root["feature_idx"]], names[child["feature_idx"]]))
            if not child["is_leaf"] and one != other:
                gained[one, other] += child["gain"]
    return tuple(pair for pair, _ in gained.most_common(PAIRS))


def boosted(shown: Any, y: Any, start: Any, judged: Any) -> Iterator[Any]:
    """What trees that start at scores add to those of other records, round by round."""
    random = np.random.RandomState(0)
    scores, added = start.copy(), np.zeros(len(judged))
    shown, judged = (np.nan_to_num(one, nan=-1e9) for one in (shown, judged))
    for _ in range(ROUNDS):
        beliefs = expit(scores)
        left, curves = y - beliefs, beliefs * (1 - beliefs)
        some = random.rand(len(y)) < 0.5
        tree = DecisionTreeRegressor(
            max_depth=3, min_samples_leaf=LEAF, max_features=0.5, random_state=random
        ).fit(shown[some], left[some])
        leaves, theirs = tree.apply(shown), tree.apply(judged)
        for leaf in np.unique(leaves):
            here = leaves == leaf
            step = RATE * left[here].sum() / (curves[here].sum() + RIDGE)
            scores[here] += step
            added[theirs == leaf] += step
        yield added.copy()


def measured(
    name: str, folder: Path, others: dict[str, Path], split: int
) -> Iterator[tuple[str, float]]:
    """Areas of all ways on a table, in one split."""
    X, y = read(name, folder, others)
    rest = np.random.default_rng(12345).permutation(len(y))[len(y) // 5 :]
    rest = np.random.default_rng([split, 77]).permutation(rest)
    n_held = len(rest) // HELD
    parts = np.split(rest, [n_held, n_held + PUBLIC[name]])
    (X_held, truth), (X_public, known), (X_private, labels) = (
        (X.iloc[rows].reset_index(drop=True), y[rows]) for rows in parts
    )
    y_public = np.where(np.arange(len(known)) < LABELS, known, np.nan)

    def area(scores: Any) -> float:
        return float(roc_auc_score(truth, scores))

    for model, scores in without_privacy(X_private, labels, X_public, X_held):
        yield model, area(scores)
    learn, judge = encoded(X_private, X_held)
    for size in SIZES:
        if size < len(labels):
            yield f"boosting of {size}", _of(size, learn, labels, judge, area)
    pairs = pairs_of(X_private, labels)
    for model, view in (("view", CrossedTable(800)), ("view, pairs", PairedTable(800, pairs))):
        seen, held = view.fit(X_public).transform(X_private), view.transform(X_held)
        made = [LogisticRegression(C=c, max_iter=150).fit(seen, labels) for c in (1.0, 10.0)]
        yield model, max(area(one.decision_function(held)) for one in made)
    both = pd.concat([X_held, X_public[:LABELS]], ignore_index=True)
    for way in (
        Way("now", CrossedTable(800)),
        Way("labels", CrossedTable(800), labelled=True),
        Way("now, pairs", PairedTable(800, pairs)),
    ):
        found = dict(
            privately(way, X_private, labels, X_public, y_public, both, BUDGETS["1"], split)
        )
        scores, start = np.split(found[way.name], [n_held])
        yield way.name, area(scores)
        if way.name == "now":
            _, judge, shown = encoded(X_private, X_held, X_public[:LABELS])
            rounds = boosted(shown, known[:LABELS], start, judge)
            yield "now, boosted", max(area(scores + added) for added in rounds)


def _of(size: int, learn: Any, labels: Any, judge: Any, area: Any) -> float:
    areas = []
    for draw in range(3):
        some = np.random.default_rng(draw).permutation(len(labels))[:size]
        trees = [boosting(depth, 600).fit(learn[some], labels[some]) for depth in (2, 3, None)]
        areas.append(max(area(one.decision_function(judge)) for one in trees))
    return float(np.mean(areas))


def main() -> None:
    """Measure what is not in the file yet, and print means."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", nargs="+", default=[])
    parser.add_argument("--tables", nargs="*", default=["adult", "readmission"])
    parser.add_argument("--splits", type=int, default=3)
    arguments = parser.parse_args()
    others = {name: Path(path) for name, path in (one.split("=", 1) for one in arguments.table)}
    if not arguments.out.exists():
        arguments.out.write_text("table,split,model,auc\n")
    done = {tuple(row[:2]) for row in csv.reader(arguments.out.open())}
    for split in range(arguments.splits):
        for name in (*arguments.tables, *others):
            if (name, str(split)) in done:
                continue
            rows = [
                (name, split, model, f"{auc:.5f}")
                for model, auc in measured(name, arguments.data_dir, others, split)
            ]
            with arguments.out.open("a") as file:
                csv.writer(file, lineterminator="\n").writerows(rows)
    found = pd.read_csv(arguments.out)
    print(found.groupby(["model", "table"], sort=False)["auc"].mean().unstack().round(4))


if __name__ == "__main__":
    main()
