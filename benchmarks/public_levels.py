"""What records of public levels gain: people who let them be published, as records for the student alone.

Digits: 1,200 private records, 300 public and 297 test ones, each seed another split; everybody is an owner
of one record. Some of the owners gave everything, all others granted ε. *nothing*: those few granted ε = 0
instead; *unmarked*: ε = ∞, and their records teach, as everybody's; *public*: the student learns from them
as they are; *alone*: a student of these few records and no release (of public records and these). Worst case,
δ = 1e-5, seeded noise, 40 teachers, noisy histograms of 60 answers.

    python benchmarks/public_levels.py [--seeds 5] [--share 0.05]
"""

from __future__ import annotations

import argparse
import math
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from collegium import GNMax, PATEClassifier, Policy, Queries
from collegium.distillation.gaussian_process import GaussianProcessStudent
from collegium.distillation.supervised import fit_released

PRIVATE, PUBLIC, TEACHERS, ANSWERS, DELTA = 1200, 300, 40, 60, 1e-5
WAYS = ("nothing", "unmarked", "public", "alone")
STUDENTS = {
    "logistic regression": LogisticRegression(max_iter=1000),
    "Gaussian process": GaussianProcessStudent(),
}


def taught(way: str, student: Any, epsilon: float, share: float, seed: int) -> float:
    """Share of the test records that a student is right about."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    X, y = X[order] / 16, y[order]
    few = round(share * PRIVATE)
    public = slice(PRIVATE, PRIVATE + PUBLIC)
    test = slice(PRIVATE + PUBLIC, None)
    if way == "alone":
        records = np.concatenate([X[public], X[:few]])
        rows = np.arange(PUBLIC, PUBLIC + few)
        model = fit_released(student, records, rows, y[:few], range(10))
        return float(np.mean(model.predict(X[test]) == y[test]))
    policy = Policy(
        {"some": epsilon, "all": 0.0 if way == "nothing" else math.inf},
        DELTA,
        public=["all"] if way == "public" else [],
    )
    model = PATEClassifier(
        LogisticRegression(max_iter=200),
        n_teachers=TEACHERS,
        aggregator=GNMax(answers=ANSWERS),
        queries=Queries(release="histogram"),
        student=student,
        classes=range(10),
        noise_seed=seed,
        random_state=seed,
    )
    levels = np.where(np.arange(PRIVATE) < few, "all", "some")
    model.fit(X[:PRIVATE], y[:PRIVATE], budgets=policy.assign(levels), X_public=X[public])
    return float(np.mean(model.predict(X[test]) == y[test]))


def main() -> None:
    """Print one row for each ε and student."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--share", type=float, default=0.05)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| ε | student | " + " | ".join(f"{way} %" for way in WAYS) + " |")
    for epsilon in (1.0, 4.0, 8.0):
        for name, student in STUDENTS.items():
            cells = []
            for way in WAYS:
                found = [
                    100 * taught(way, student, epsilon, asked.share, seed)
                    for seed in range(asked.seeds)
                ]
                cells.append(f"{np.mean(found):.1f} ± {np.std(found, ddof=1):.1f}")
            print(f"| {epsilon:g} | {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
