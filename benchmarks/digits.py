"""How well 1,200 people's digits are told apart at ε = 1, 2, 3 for 54, 37 and 9 %, with nothing set by hand.

Directly, with a student on top, from votes, and with everybody at the strictest budget: right answers in
percent on 200 test records, mean and standard deviation over the splits. Noise is seeded. The splits were
looked at when features were chosen (8 × 8 pixels are enlarged to 16).

    python benchmarks/digits.py [--splits 6]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.datasets import load_digits

import collegium as cg

POLICY = cg.Policy({"high": 1.0, "average": 2.0, "low": 3.0})
LEVELS = np.repeat(["high", "average", "low"], [648, 444, 108])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--splits", type=int, default=6)
    splits = parser.parse_args().splits
    X, y = load_digits(return_X_y=True)
    right: dict[str, list[float]] = {}
    for split in range(splits):
        random = np.random.default_rng(split)
        private, public, test = np.split(random.permutation(len(X)), [1200, 1597])
        individual = POLICY.assign(random.permutation(LEVELS))
        settings = {"classes": range(10), "noise_seed": split, "random_state": split}
        for name, budgets in (("individual", individual), ("uniform", individual.strictest())):
            model = cg.DPSGDClassifier(**settings)
            model.fit(X[private], y[private], budgets=budgets, X_public=X[public])
            right.setdefault(f"directly, {name}", []).append(model.score(X[test], y[test]))
            taught = cg.DPSGDClassifier(student="auto", **settings)
            taught.fit(X[private], y[private], budgets=budgets, X_public=X[public])
            right.setdefault(f"with a student, {name}", []).append(taught.score(X[test], y[test]))
            voted = cg.PATEClassifier(**settings)
            voted.fit(X[private], y[private], budgets=budgets, X_public=X[public])
            right.setdefault(f"votes, {name}", []).append(voted.score(X[test], y[test]))
    for name, found in sorted(right.items()):
        print(f"{name:28} {100 * np.mean(found):5.1f} ± {100 * np.std(found, ddof=1):.1f}")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
