"""Tables of many columns: what training and predicting take, and how many bins numbers need.

    python benchmarks/wide_tables.py            # 100 to 10,000 columns, each in a process of its own
    python benchmarks/wide_tables.py --quick    # 300 and 3,000 columns
    python benchmarks/wide_tables.py --bins     # AUC by bins

4,000 records: 2,500 private ones, 1,000 public ones and 500 to be judged by; ε = 1 and δ = 1e-5 for
everybody. Columns share 15 factors, a third of them has long tails, and the class follows from some of them,
along lines and curves. Memory is the largest that the process held, with everything (``VmHWM``).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from collegium import DPSGDClassifier, PATEClassifier
from collegium.dpsgd.footprint import GIGABYTE, peak_bytes
from collegium.models.preprocessing import wide_table

PRIVATE, PUBLIC, TEST = 2500, 1000, 500
N = PRIVATE + PUBLIC + TEST
COLUMNS = (100, 300, 1000, 3000, 10_000)
FACTORS = 15
AT_ONCE = 500


def columns(n_columns: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Make records and their classes."""
    random = np.random.default_rng(seed)
    loadings = random.normal(size=(FACTORS, n_columns)) / np.sqrt(FACTORS)
    factors = random.normal(size=(N, FACTORS))
    shown = factors @ loadings[:, :10]
    score = (
        shown[:, 0] + shown[:, 1] - shown[:, 2] + 1.5 * (shown[:, 3] ** 2 + shown[:, 4] ** 2 - 2)
    )
    score += 2 * ((shown[:, 5] > 0) & (shown[:, 6] > 0)) + random.logistic(size=N)
    X = np.empty((N, n_columns), dtype=np.float32)
    for first in range(0, N, AT_ONCE):
        some = slice(first, first + AT_ONCE)
        X[some] = factors[some] @ loadings + 0.7 * random.normal(size=(AT_ONCE, n_columns))
    np.exp(1.5 * X[:, ::3], out=X[:, ::3])
    return X, (score > np.median(score)).astype(int)


def table(n_columns: int, kind: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Make a table of numbers, or of categories (each of 200)."""
    X, y = columns(n_columns)
    names = [f"c{i}" for i in range(n_columns)]
    if kind == "numbers":
        return pd.DataFrame(X, columns=names), y
    codes = np.floor(100 + 33 * np.arctan(X)).astype(np.int16)
    words = np.array([f"kind {i}" for i in range(200)])
    return pd.DataFrame({name: words[of] for name, of in zip(names, codes.T, strict=True)}), y


def trained(n_columns: int, kind: str, method: str) -> float:
    """Train and predict; the AUC."""
    X, y = table(n_columns, kind)
    private, public, test = np.split(np.arange(N), [PRIVATE, PRIVATE + PUBLIC])
    made = {"direct": DPSGDClassifier, "votes": PATEClassifier}[method]
    model = made(classes=[0, 1], noise_seed=1, random_state=0)
    model.fit(X.iloc[private], y[private], budgets=1.0, X_public=X.iloc[public])
    return float(roc_auc_score(y[test], model.predict_proba(X.iloc[test])[:, 1]))


def study(n_columns: int) -> float:
    """Run a study of direct training on CSV files; the AUC on its test records."""
    from collegium.study.config import read_config
    from collegium.study.runner import run_study

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        X, y = columns(n_columns)
        private, public, test = np.split(np.arange(N), [PRIVATE, PRIVATE + PUBLIC])
        header = ",".join([*(f"c{i}" for i in range(n_columns)), "ill"])
        for role, rows in (("private", private), ("public", public), ("test", test)):
            with (folder / f"{role}.csv").open("w") as file:
                file.write(header + "\n")
                for row in rows:
                    cells = [f"{value:.5g}" for value in X[row].tolist()]
                    file.write(",".join([*cells, ["no", "yes"][y[row]]]) + "\n")
        del X
        (folder / "study.toml").write_text(
            '[study]\nname = "Wide"\n[data]\nprivate = "private.csv"\npublic = "public.csv"\n'
            'test = "test.csv"\ntarget = "ill"\nclasses = ["no", "yes"]\n'
            '[privacy]\nlevels = { all = 1.0 }\nshares = { all = 1.0 }\n[method]\nkind = "dpsgd"\n'
        )
        result = run_study(read_config(folder / "study.toml"), folder / "out")
        return float(result.quality.auc)


def by_bins(n_columns: int, n_seeds: int = 3) -> None:
    """Print the AUC with other numbers of bins than the rule's, means over tables."""
    for edges in (0, 1, 3, 9):
        wide_table.edges_of_each = lambda _, n=edges: n
        found = []
        for seed in range(n_seeds):
            X, y = columns(n_columns, seed)
            X = pd.DataFrame(X, columns=[f"c{i}" for i in range(n_columns)])
            private, public, test = np.split(np.arange(N), [PRIVATE, PRIVATE + PUBLIC])
            model = DPSGDClassifier(classes=[0, 1], noise_seed=seed)
            model.fit(X.iloc[private], y[private], budgets=1.0, X_public=X.iloc[public])
            scores = model.decision_function(X.iloc[test])
            found.append(roc_auc_score(y[test], scores))
        shown = f"{edges + 1} bins" if edges else "numbers alone"
        print(f"{n_columns:,} columns, {shown}: AUC {np.mean(found):.3f}", flush=True)


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--bins", action="store_true")
    parser.add_argument("--one", nargs=3, metavar=("COLUMNS", "KIND", "METHOD"))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.bins:
        for n_columns in (150, 300, 1000):
            by_bins(n_columns)
        return
    if given.one:
        n_columns, kind, method = int(given.one[0]), given.one[1], given.one[2]
        begun = time.perf_counter()
        auc = study(n_columns) if method == "study" else trained(n_columns, kind, method)
        print(
            f"{n_columns:,} columns of {kind}, {method}: {time.perf_counter() - begun:.0f} s, "
            f"{peak_bytes() / GIGABYTE:.2f} GB at most, AUC {auc:.3f}",
            flush=True,
        )
        return
    sizes = (300, 3000) if given.quick else COLUMNS
    wanted: list[tuple[int, str, str]] = [
        (n, "numbers", method) for n in sizes for method in ("direct", "votes")
    ]
    if not given.quick:
        wanted += [(10_000, "numbers", "study"), (1000, "categories", "direct")]
        wanted += [(3000, "categories", "direct")]
    for n_columns, kind, method in wanted:
        subprocess.run(
            [sys.executable, __file__, "--one", str(n_columns), kind, method],
            check=True,
        )


if __name__ == "__main__":
    main()
