"""DP-SGD with many classes: right answers, seconds and memory, for 100 classes that are made up, and letters.

Made up: 100 classes around random centres in 30 dimensions, 20,000 people, 2,000 public records without
labels. Letters: the file letter-recognition of the UCI repository (26 classes in the first column, 16
numbers), 15,000 people, 2,000 public records, 3,000 test records. ε of everybody, δ = 1e-5, seeded noise.

    python benchmarks/many_classes.py [--letters letter.data] [--splits 3] [--epsilons 1 3]
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import collegium as cg

CLASSES, PUBLIC, TEST = 100, 2_000, 3_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--letters", help="a file of records, the class first")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 3.0])
    given = parser.parse_args()
    tables = {"made up": made_up()}
    if given.letters:
        letters = pd.read_csv(given.letters)
        tables["letters"] = (letters.iloc[:, 1:], letters.iloc[:, 0].to_numpy(str))
    for name, (X, y) in tables.items():
        for epsilon in given.epsilons:
            right, seconds = [], []
            for split in range(given.splits):
                order = np.random.default_rng(split).permutation(len(y))
                public, test, private = np.split(order, [PUBLIC, PUBLIC + TEST])
                began = time.perf_counter()
                model = cg.DPSGDClassifier(classes=np.unique(y), noise_seed=split)
                model.fit(
                    *(_of(part, private) for part in (X, y)),
                    budgets=epsilon,
                    X_public=_of(X, public),
                )
                seconds.append(time.perf_counter() - began)
                right.append(model.score(_of(X, test), y[test]))
            spread = np.std(right, ddof=1) if len(right) > 1 else 0.0
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            print(
                f"{name}, {len(np.unique(y))} classes, ε = {epsilon:g}: {100 * np.mean(right):.1f} ± "
                f"{100 * spread:.1f} % right, {np.mean(seconds):.1f} s, at most {peak:.2f} GB"
            )


def made_up() -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Draw records around one centre for each class."""
    random = np.random.default_rng(0)
    centres = 1.2 * random.normal(size=(CLASSES, 30))
    y = random.integers(CLASSES, size=20_000 + PUBLIC + TEST)
    return centres[y] + random.normal(size=(len(y), 30)), y


def _of(records: Any, rows: NDArray[np.intp]) -> Any:
    return records.iloc[rows] if isinstance(records, pd.DataFrame) else records[rows]


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
