"""Direct training on tables beside linear models and boosting without privacy: how much of the gap is closed.

``python -m benchmarks.tables --data-dir DATA --out CSV --table bank=bank-full.csv magic=magic04.data``

The last two are files as UCI has them; without them the other three tables are measured.
A fifth of each table is for testing, the same in every split; the rest is dealt anew to private and public
records. Measured on the test records: area under the ROC curve, accuracy and log loss of

- *linear*: logistic regression on ``BinnedTable`` without privacy, its ridge chosen by cross-validation;
- *boosting*: scikit-learn's histogram boosting without privacy, its depth chosen on a tenth;
- *before*: ``DPSGDClassifier`` with ``BinnedTable`` and ``solver = "momentum"``;
- *momentum*: the same with the default view, no public label known; and *momentum, labels*: with 2,000;
- *now*, *labels*: by default, without and with these labels;
- *public*: what these labels teach alone: a linear model and the trees.

``show`` prints means and the share of the gap between *linear* and *boosting* that is closed.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.preprocessing import OrdinalEncoder

import collegium as cg
from collegium.data.datasets import load_dataset
from collegium.dpsgd.linear_model import as_rows
from collegium.dpsgd.public_solver import Columns
from collegium.dpsgd.run import DPSGDRecipe, DPSGDRun
from collegium.dpsgd.settings import MOMENTUM, DPSGDSettings
from collegium.dpsgd.taught_view import said_by_trees
from collegium.models.preprocessing import BinnedTable, CrossedTable
from collegium.planner.surrogates import public_model
from collegium.runs.records import Records

PUBLIC = {"adult": 7000, "credit": 5000, "readmission": 7000, "bank": 7000, "magic": 4000}
LABELS = 2000
MIXED = (0.54, 0.37, 0.09)
BUDGETS = {"1": (1.0,), "1-2-3": (1.0, 2.0, 3.0), "0.1": (0.1,), ".1/.2/.3": (0.1, 0.2, 0.3)}


def read(name: str, folder: Path, others: dict[str, Path]) -> tuple[pd.DataFrame, Any]:
    """Read a table and its classes, 0 or 1."""
    if name == "adult":
        data = load_dataset("adult", folder)
        return data.X, (np.asarray(data.y) == ">50K").astype(int)
    if name == "readmission":
        data = load_dataset("diabetes130", folder)
        first = ~pd.Series(np.asarray(data.owners)).duplicated().to_numpy()
        return data.X[first].reset_index(drop=True), (np.asarray(data.y) != "NO")[first].astype(int)
    if name == "credit":
        X = pd.read_csv(folder / "credit_default" / "credit_default.csv.gz")
        y = X.pop("default.payment.next.month").to_numpy()
        return X.drop(columns="ID"), y
    if name == "bank":
        X = pd.read_csv(others[name], sep=";")
        y = X.pop("y")
        return X, (y == "yes").to_numpy().astype(int)
    X = pd.read_csv(others[name], header=None, names=[f"f{i}" for i in range(11)])
    y = X.pop("f10")
    return X, (y == "g").to_numpy().astype(int)


def encoded(*tables: pd.DataFrame) -> list[Any]:
    """Show tables to trees: categories by number."""
    texts = [c for c in tables[0] if not pd.api.types.is_numeric_dtype(tables[0][c])]
    coder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    if texts:
        coder.fit(tables[0][texts].astype(str))
    made = []
    for X in tables:
        parts = [X[[c for c in X if c not in texts]].to_numpy(float)]
        if texts:
            parts.append(coder.transform(X[texts].astype(str)))
        made.append(np.hstack(parts))
    return made


def boosting(depth: int | None, rounds: int) -> HistGradientBoostingClassifier:
    """Boosting that stops early; of at most so many rounds."""
    return HistGradientBoostingClassifier(
        max_depth=depth,
        learning_rate=0.05,
        max_iter=rounds,
        early_stopping=True,
        n_iter_no_change=30,
        random_state=0,
    )


def without_privacy(X: Any, y: Any, X_public: Any, X_test: Any) -> Iterator[tuple[str, Any]]:
    """Scores of test records by both references."""
    view = BinnedTable(800).fit(X_public)
    seen, tested = (as_rows(view.transform(one), "records") for one in (X, X_test))
    linear = LogisticRegressionCV(
        Cs=[0.3, 1, 3, 10, 30, 100],
        cv=3,
        scoring="roc_auc",
        max_iter=200,
        l1_ratios=(0.0,),
        use_legacy_attributes=False,
    )
    yield "linear", linear.fit(seen, y).decision_function(tested)
    learn, test = encoded(X, X_test)
    last = len(learn) // 10
    best = None
    for depth in (1, 2, 3, None):
        trees = boosting(depth, 2000).fit(learn[last:], y[last:])
        score = roc_auc_score(y[:last], trees.decision_function(learn[:last]))
        if best is None or score > best[0]:
            best = score, trees
    assert best is not None
    yield "boosting", best[1].decision_function(test)


@dataclass(frozen=True)
class Way:
    """A way to learn privately."""

    name: str
    view: Any
    solver: str | None = None
    labelled: bool = False


WAYS = (
    Way("now", CrossedTable(800)),
    Way("labels", CrossedTable(800), labelled=True),
    Way("momentum", CrossedTable(800), MOMENTUM),
    Way("momentum, labels", CrossedTable(800), MOMENTUM, labelled=True),
    Way("before", BinnedTable(800), MOMENTUM),
)


def privately(
    way: Way,
    X: Any,
    y: Any,
    X_public: Any,
    y_public: Any,
    X_test: Any,
    epsilons: Any,
    seed: int,
) -> Iterator[tuple[str, Any]]:
    """Scores of test records by what is published; with labels also by what these teach alone."""
    names = ["a", "b", "c"][: len(epsilons)]
    levels = np.random.default_rng(seed).choice(names, len(y), p=MIXED if len(names) == 3 else None)
    policy = cg.Policy(dict(zip(names, epsilons, strict=True)), delta=1e-5)
    records = Records(
        X=X,
        codes=y.astype(np.intp),
        budgets=policy.assign(levels),
        classes=np.array([0, 1]),
        X_public=X_public,
    )
    recipe = DPSGDRecipe(
        DPSGDSettings(solver=way.solver),
        way.view,
        seed=seed,
        noise_seed=seed,
        public_targets=y_public if way.labelled else None,
    )
    run = DPSGDRun(recipe, records)
    learnt = run.learn()
    tested = as_rows(run.view.of(X_test), "records")
    yield way.name, run.model(learnt).decision_function(tested)
    if way.name == "labels":
        known = np.flatnonzero(~np.isnan(y_public))
        shown = as_rows(run.X_seen[known], "records")
        last = slice(None, -Columns.of(run.view.transformer).taught or None)
        alone = public_model(shown[:, last], y_public[known].astype(int))
        said = said_by_trees(run.view, tested)
        assert said is not None
        yield "public", (alone.decision_function(tested[:, last]) + said[:, 0]) / 2


def measure(arguments: argparse.Namespace) -> None:
    """Measure what is not in the file yet."""
    others = {name: Path(path) for name, path in (one.split("=", 1) for one in arguments.table)}
    out = Path(arguments.out)
    done = set()
    if out.exists():
        done = {tuple(row[:4]) for row in csv.reader(out.open())}
    else:
        out.write_text("table,split,budget,model,auc,accuracy,log loss,seconds\n")
    tables = [one for one in PUBLIC if one in others or one in ("adult", "credit", "readmission")]

    def write(key: tuple[str, ...], y: Any, scores: Any, begun: float) -> None:
        beliefs = np.clip(expit(scores), 1e-6, 1 - 1e-6)
        row = [
            f"{roc_auc_score(y, scores):.5f}",
            f"{np.mean((scores > 0) == y):.5f}",
            f"{log_loss(y, beliefs):.5f}",
            f"{time.perf_counter() - begun:.1f}",
        ]
        with out.open("a") as file:
            csv.writer(file, lineterminator="\n").writerow([*key, *row])
        print(*key, *row, flush=True)

    for budget in arguments.budgets:
        for split in range(arguments.splits):
            for name in tables:
                X, y = read(name, Path(arguments.data_dir), others)
                order = np.random.default_rng(12345).permutation(len(y))
                test, rest = np.split(order, [len(y) // 5])
                rest = np.random.default_rng([split, 1]).permutation(rest)
                public, private = np.split(rest, [PUBLIC[name]])
                part = {
                    role: (X.iloc[rows].reset_index(drop=True), y[rows])
                    for role, rows in (("test", test), ("public", public), ("private", private))
                }
                (X_test, y_test), (X_public, known) = part["test"], part["public"]
                y_public = np.where(np.arange(len(known)) < LABELS, known, np.nan)
                key = (name, str(split))
                if (*key, "∞", "boosting") not in done and budget == arguments.budgets[0]:
                    begun = time.perf_counter()
                    for model, scores in without_privacy(*part["private"], X_public, X_test):
                        write((*key, "∞", model), y_test, scores, begun)
                for way in WAYS:
                    if way.name not in arguments.ways or (*key, budget, way.name) in done:
                        continue
                    begun = time.perf_counter()
                    for model, scores in privately(
                        way, *part["private"], X_public, y_public, X_test, BUDGETS[budget], split
                    ):
                        write((*key, budget, model), y_test, scores, begun)


def show(arguments: argparse.Namespace) -> None:
    """Print means over splits, and the share of the gap that is closed."""
    found = pd.read_csv(arguments.out)
    mean = found.groupby(["table", "budget", "model"])["auc"].mean().unstack()
    deviation = found.groupby(["table", "budget", "model"])["auc"].std().unstack()
    for (name, budget), row in mean.iterrows():
        if budget == "∞":
            print(f"{name}: linear {row['linear']:.4f}, boosting {row['boosting']:.4f}")
            continue
        linear, boosting = mean.loc[(name, "∞"), ["linear", "boosting"]]
        told = [
            f"{model} {row[model]:.4f} ± {deviation.loc[(name, budget), model]:.4f} "
            f"({100 * (row[model] - linear) / (boosting - linear):.0f} %)"
            for model in ("before", "momentum", "momentum, labels", "now", "labels", "public")
            if model in row and np.isfinite(row[model])
        ]
        print(f"  {name}, ε = {budget}: {'; '.join(told)}")


def main() -> None:
    """Measure, or show."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir")
    parser.add_argument("--out", required=True)
    parser.add_argument("--table", nargs="+", default=[])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--budgets", nargs="+", default=list(BUDGETS))
    parser.add_argument("--ways", nargs="+", default=[way.name for way in WAYS])
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    (show if arguments.show else measure)(arguments)


if __name__ == "__main__":
    main()
