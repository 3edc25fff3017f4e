"""What bagging gains: votes of several partitions, at one price; and what the personalised account says.

Handwritten digits of scikit-learn (ten classes, or whether a digit is at least 5): 1,200 private, 500 public;
25 naive Bayes teachers in each partition. Worst case, δ = 1e-5: GNMax, 200 labels. Personalised: LNMax,
γ = 0.05, 100 labels. Means over splits.

    python -m reproduction.benchmarks.bagging [--seeds 10]
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

from collegium import Bagging, Budgets, Uniform
from collegium.accounting import gdp_mu
from reproduction.personal_moments import sensitive_epsilon, sensitive_reach

TEACHERS, LABELS, DELTA = 25, 200, 1e-5
PARTITIONS = (1, 2, 5, 10, 20)
EPSILONS = (2.0, 4.0, 8.0)
GAMMA, QUERIES = 0.05, 100


def votes_of(
    partitions: int, seed: int, n_classes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Train all teachers and ask them: votes, teachers of each owner, true labels of the public records."""
    X, y = load_digits(return_X_y=True)
    y = y if n_classes == 10 else (y >= 5).astype(int)
    order = np.random.default_rng(seed).permutation(len(X))
    private, public = order[:1200], order[1200:1700]
    budgets = Budgets.from_epsilons(np.full(1200, 1.0), delta=DELTA)
    how = Uniform() if partitions == 1 else Bagging(partitions=partitions)
    assignment = how.plan_for(budgets, TEACHERS).assign(budgets, str(seed).encode())
    votes = np.stack(
        [
            GaussianNB(var_smoothing=1e-2)
            .fit(X[private[shard]], y[private[shard]])
            .predict(X[public])
            for shard in assignment.shards()
        ],
        axis=1,
    )
    return votes, assignment.owner_teachers, y[public]


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=10, help="splits of the records")
    seeds = parser.parse_args().seeds
    for n_classes in (10, 2):
        print(f"{n_classes} classes")
        table(seeds, n_classes)


def table(seeds: int, n_classes: int) -> None:
    """Print a line for each number of partitions."""
    names = "  ".join(f"right at ε = {epsilon:g}" for epsilon in EPSILONS)
    print(f"partitions  majority right  {names}  personal ε: median  largest  (worst case)")
    for partitions in PARTITIONS:
        majority, right, personal = [], [], []
        for seed in range(seeds):
            votes, owner_teachers, truth = votes_of(partitions, seed, n_classes)
            shares = np.stack(
                [(votes == c).sum(axis=1) / partitions for c in range(n_classes)], axis=1
            )
            majority.append((shares.argmax(axis=1) == truth).mean())
            noise = np.random.default_rng([seed, 1]).normal(size=(LABELS, n_classes))
            row = []
            for epsilon in EPSILONS:
                sigma = np.sqrt(2 * LABELS) / gdp_mu(epsilon, DELTA)
                row.append(
                    ((shares[:LABELS] + sigma * noise).argmax(axis=1) == truth[:LABELS]).mean()
                )
            right.append(row)
            reach = sensitive_reach(votes[:QUERIES], owner_teachers, n_classes)
            personal.append(sensitive_epsilon(reach, GAMMA, DELTA))
        worst = sensitive_epsilon(np.ones((1, QUERIES)), GAMMA, DELTA)[0]
        accuracy = "  ".join(f"{value:16.3f}" for value in np.mean(right, axis=0))
        print(
            f"{partitions:10d}  {np.mean(majority):14.3f}  {accuracy}  {np.median(personal):18.3f}  "
            f"{np.max(personal):7.3f}  ({worst:.3f})"
        )


if __name__ == "__main__":
    main()
