"""Tabular teachers against forests of 100 trees, on the same shards: accuracy, consensus and time.

Adult as the thesis splits it: 37,222 private, 7,000 public, 1,000 test records, 250 teachers. Both kinds
of teachers are trained on, and asked about, the same records, in batches of 25 that take turns, in one
process with one thread; times are of training and voting together, in seconds of one core. How the
defaults of ``TabularTeachers`` were chosen: docs/results/pate.md.

    python benchmarks/tabular_teachers.py --data-dir DATA [--quick] [--datasets adult ...] [--splits 5]
    python benchmarks/tabular_teachers.py --data-dir DATA --ceiling [--splits 3]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from collegium.data.datasets import load_dataset
from collegium.models.closed_form.tabular import TabularTeachers
from collegium.models.preprocessing import PrincipalTable, TabularEncoder
from collegium.pate.teachers.teacher import teacher_seed, train_teacher, train_teachers

DATASETS = ("adult", "diabetes130", "breast-cancer", "wine")
SIZES = {  # private, public, teachers
    "adult": (37222, 7000, 250),
    "diabetes130": (37250, 7000, 250),
    "breast-cancer": (320, 249, 8),
    "wine": (90, 88, 3),
}
BATCH = 25
CODES = ("admission_type_id", "discharge_disposition_id", "admission_source_id")


@dataclass(frozen=True)
class Split:
    """Encoded for both kinds of teachers, in order: private, public, test."""

    plain: NDArray[np.float32]
    principal: NDArray[np.float32]
    codes: NDArray[np.intp]
    n_private: int
    n_public: int
    n_teachers: int

    def shards(self, n_teachers: int | None = None) -> list[NDArray[np.intp]]:
        return np.array_split(np.arange(self.n_private), n_teachers or self.n_teachers)

    @property
    def public(self) -> slice:
        return slice(self.n_private, self.n_private + self.n_public)

    @property
    def test(self) -> slice:
        return slice(self.n_private + self.n_public, None)


def table_of(name: str, data_dir: Path | None) -> tuple[pd.DataFrame, NDArray[np.intp]]:
    """Load a table and its classes as numbers."""
    if name in ("breast-cancer", "wine"):
        X, y = (load_wine if name == "wine" else load_breast_cancer)(return_X_y=True)
        return pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])]), y
    dataset = load_dataset(name, data_dir, **({"drop_missing": True} if name == "adult" else {}))
    frame, y = dataset.X, pd.Index(dataset.classes).get_indexer(pd.Index(dataset.y))
    if name == "diabetes130":
        first = ~pd.Series(dataset.owners).duplicated().to_numpy()  # one record per patient
        frame = frame[first].replace("?", np.nan).astype(dict.fromkeys(CODES, "str"))
        y = y[first]
    return frame.reset_index(drop=True), y


def split_of(name: str, frame: pd.DataFrame, y: NDArray[np.intp], seed: int) -> Split:
    """Split as the thesis does; both encoders are fitted on the public records."""
    n_private, n_public, n_teachers = SIZES[name]
    rows = np.random.default_rng([seed, 1]).permutation(len(y))[: n_private + n_public + 1000]
    frame = frame.iloc[rows]
    public = frame.iloc[n_private : n_private + n_public]
    return Split(
        TabularEncoder().fit(public).transform(frame),
        PrincipalTable(max_categories=100).fit(public).transform(frame),
        y[rows],
        n_private,
        n_public,
        n_teachers,
    )


def forest_votes(
    split: Split, X: NDArray[Any], shards: list[NDArray[np.intp]], first: int
) -> list[NDArray[Any]]:
    """Train and ask forests of 100 trees, one by one."""
    teachers = [
        train_teacher(RandomForestClassifier(100), X[s], split.codes[s], teacher_seed(0, first + i))
        for i, s in enumerate(shards)
    ]
    return [teacher.vote(X[split.public]) for teacher in teachers]


def logistic_votes(
    split: Split, X: NDArray[Any], shards: list[NDArray[np.intp]], first: int
) -> list[NDArray[Any]]:
    """Train and ask scikit-learn's logistic regressions with default settings, one by one."""
    model = LogisticRegression(max_iter=1000)
    teachers = [train_teacher(model, X[s], split.codes[s], first + i) for i, s in enumerate(shards)]
    return [teacher.vote(X[split.public]) for teacher in teachers]


def tabular_votes(
    split: Split, X: NDArray[Any], shards: list[NDArray[np.intp]], first: int, **settings: Any
) -> list[NDArray[Any]]:
    """Train and ask tabular teachers through the dispatcher of batched estimators."""
    estimator = TabularTeachers(**settings)
    batch = [(X[s], split.codes[s]) for s in shards]
    seeds = [teacher_seed(0, first + i) for i in range(len(shards))]
    teachers = train_teachers(estimator, batch, seeds, int(split.codes.max()) + 1)
    models = [teacher.sensitive_model for teacher in teachers]
    learnt = iter(estimator.predict_shards([m for m in models if m is not None], X[split.public]))
    return [
        next(learnt) if teacher.sensitive_model is not None else teacher.vote(X[split.public])
        for teacher in teachers
    ]


Votes = Callable[[Split, NDArray[Any], list[NDArray[np.intp]], int], list[NDArray[Any]]]


def kinds_of(quick: bool) -> dict[str, tuple[str, Votes]]:
    """Name → which encoding, and how votes are made."""
    bold_one: Votes = lambda *given: tabular_votes(*given, boldness=1.0)  # noqa: E731
    by_shard: Votes = lambda *given: tabular_votes(*given, scale="shard")  # noqa: E731
    kinds: dict[str, tuple[str, Votes]] = {
        "forest, codes": ("plain", forest_votes),
        "tabular, principal": ("principal", tabular_votes),
    }
    if not quick:
        kinds |= {
            "  boldness 1": ("principal", bold_one),
            "  codes, scale shard": ("plain", by_shard),
            "logistic, principal": ("principal", logistic_votes),
        }
    return kinds


def measured(votes: NDArray[Any], truth: NDArray[np.intp]) -> dict[str, float]:
    """Describe votes, shape (n_public, n_teachers); noise and threshold as for 250 teachers."""
    n_classes = int(max(truth.max(), votes.max())) + 1
    counts = np.stack([(votes == c).sum(axis=1) for c in range(n_classes)], axis=1)
    counts = counts / votes.shape[1]
    ordered = np.sort(counts, axis=1)
    passes = ndtr((250 * ordered[:, -1] - 300) / 200)
    noisy = 250 * counts + 40 * np.random.default_rng(0).normal(size=(20, *counts.shape))
    right = (noisy.argmax(axis=2) == truth).mean(axis=0)
    return {
        "teacher": float((votes == truth[:, None]).mean()),
        "plurality": float((counts.argmax(axis=1) == truth).mean()),
        "margin": float((ordered[:, -1] - ordered[:, -2]).mean()),
        "answered": float(passes.mean()),
        "label right": float((passes * right).sum() / passes.sum()),
    }


def compare(name: str, options: argparse.Namespace) -> pd.DataFrame:
    """Measure all kinds of teachers on several splits, batches of teachers in turns."""
    frame, y = table_of(name, options.data_dir)
    rows = []
    for seed in range(options.splits):
        split = split_of(name, frame, y, seed)
        shards = split.shards()
        if options.quick or options.teachers:
            shards = shards[: options.teachers or BATCH]
        kinds = kinds_of(options.quick)
        columns: dict[str, list[NDArray[Any]]] = {kind: [] for kind in kinds}
        seconds = dict.fromkeys(kinds, 0.0)
        for first in range(0, len(shards), BATCH):
            for kind, (encoding, votes_of) in kinds.items():
                began = time.process_time()
                batch = shards[first : first + BATCH]
                columns[kind] += votes_of(split, getattr(split, encoding), batch, first)
                seconds[kind] += time.process_time() - began
        truth = split.codes[split.public]
        for kind in kinds:
            described = measured(np.stack(columns[kind], axis=1), truth)
            rows.append({"kind": kind, "split": seed, **described, "seconds": seconds[kind]})
        print(
            f"# split {seed}",
            *(f"{kind.strip()} {seconds[kind]:.1f} s;" for kind in kinds),
            flush=True,
        )
        show(pd.DataFrame(rows[-len(kinds) :]))
    return pd.DataFrame(rows)


def ceiling(options: argparse.Namespace) -> pd.DataFrame:
    """What larger shards and no privacy give on Adult: the 1,000 test records and the public ones."""
    frame, y = table_of("adult", options.data_dir)
    rows: list[dict[str, Any]] = []
    for seed in range(options.splits):
        split = split_of("adult", frame, y, seed)
        truth, n_private = split.codes[split.public], split.n_private
        for size, number in ((149, 250), (372, 100)):
            for kind, (encoding, votes_of) in kinds_of(True).items():
                shards = split.shards(number)[: options.teachers]
                votes = votes_of(split, getattr(split, encoding), shards, 0)
                described = measured(np.stack(votes, axis=1), truth)
                rows.append({"kind": f"{len(shards)} × {size}: {kind}", "split": seed, **described})
        print(f"# split {seed}", flush=True)
        show(pd.DataFrame(rows[-4:]))
        models: dict[str, tuple[NDArray[Any], Any]] = {
            "all records: forest": (split.plain, RandomForestClassifier(100, random_state=seed)),
            "all records: boosting": (
                split.plain,
                HistGradientBoostingClassifier(learning_rate=0.05, max_iter=300, random_state=seed),
            ),
        }
        for kind, (X, model) in models.items():
            model.fit(X[:n_private], split.codes[:n_private])
            right = float((model.predict(X[split.public]) == truth).mean())
            rows.append({"kind": kind, "split": seed, "teacher": right})
    return pd.DataFrame(rows)


def show(results: pd.DataFrame) -> None:
    grouped = results.drop(columns="split").groupby("kind", sort=False)
    mean, deviation = grouped.mean(), grouped.std()
    for kind in mean.index:
        parts = []
        for column in mean.columns:
            value, spread = mean.loc[kind, column], deviation.loc[kind, column]
            if np.isnan(value):
                continue
            if column == "seconds":
                parts.append(f"{value:.1f} s")
            elif column == "margin":
                parts.append(f"margin {value:.3f}")
            else:
                parts.append(f"{column} {100 * value:.2f} ± {100 * np.nan_to_num(spread):.2f} %")
        print(f"{kind:<34}" + "  ".join(parts), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS))
    parser.add_argument("--teachers", type=int, help="only the first so many; default: all")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="25 teachers, one split, two kinds")
    parser.add_argument("--ceiling", action="store_true", help="larger shards, and no privacy")
    options = parser.parse_args()
    if options.quick:
        options.splits = 1
    with threadpool_limits(1):
        if options.ceiling:
            show(ceiling(options))
            return
        for name in options.datasets:
            print(f"\n{name}: {SIZES[name]} private and public records and teachers")
            show(compare(name, options))


if __name__ == "__main__":
    main()
