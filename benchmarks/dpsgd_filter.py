"""Whether a filter is worth having: full-batch DP-SGD with and without, at equal budgets.

Softmax regression on whitened scattering features (MNIST) or principal coordinates (Adult), everybody the
same ε, δ = 1e-5, records blanked. Private, public and two held-out parts are cut from the training records
alone; settings of each method (steps, step size beside the rule's) are chosen on the first held-out part with
one seed of noise, and accuracies are on the second, means over others. Used: share of what all accounts held
that was paid, and share of people with next to nothing left (both sensitive: looked at here, where nothing is
private).

    python benchmarks/dpsgd_filter.py --data-dir DATA [--dataset mnist] [--seeds 3]
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline

from collegium.budgets import Budgets
from collegium.data.datasets import load_dataset
from collegium.dpsgd.filtered import Filtered, allowances_of
from collegium.dpsgd.run import DPSGDRecipe, DPSGDRun
from collegium.dpsgd.settings import DPSGDSettings
from collegium.models.features import PublicComponents, ScatteringTransform
from collegium.models.preprocessing.principal_table import PrincipalTable
from collegium.runs.records import Records

TRAINING = {"mnist": 60_000, "adult": 32_000}
PUBLIC, HELD_OUT = 5_000, 5_000
EPSILONS = (0.1, 1.0, 4.0)
STEPS, FACTORS, FILTERS = (30, 60, 90), (0.5, 1.0, 2.0), (None, 1.25, 1.5, 2.0, 3.0)


def parts_of(dataset: str, folder: str, n_private: int) -> list[tuple[Any, np.ndarray]]:
    """Cut features and labels: private, public, and two held-out parts."""
    given = load_dataset(dataset, folder)
    rows = np.random.default_rng(0).permutation(TRAINING[dataset])
    codes = np.searchsorted(given.classes, given.y)
    ends = np.cumsum([0, n_private, PUBLIC, HELD_OUT, HELD_OUT])
    parts = [rows[first:end] for first, end in pairwise(ends)]
    if dataset == "adult":
        return [(given.X.iloc[some].reset_index(drop=True), codes[some]) for some in parts]
    scattered = [ScatteringTransform().fit_transform(given.X[some]) for some in parts]
    rotation = PublicComponents(400).fit(
        scattered[1]
    )  # once; runs choose how many of these they see
    return [(rotation.transform(X), codes[some]) for X, some in zip(scattered, parts, strict=True)]


def main() -> None:
    """Print a line for each ε and factor of the filter."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--dataset", choices=TRAINING, default="mnist")
    parser.add_argument("--private", type=int, default=17_000)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    (X, y), (X_public, _), *held_out = parts_of(given.dataset, given.data_dir, given.private)
    images = given.dataset == "mnist"
    view = PublicComponents(400, whiten=1.0) if images else PrincipalTable(100)
    classes = np.unique(y)
    print("epsilon  filter  as by default  chosen: steps  × step size  accuracy  used  used up")
    for epsilon in EPSILONS:
        budgets = Budgets.from_epsilons(np.full(len(y), epsilon), delta=1e-5)
        measured = partial(
            measure, Records(X, y, budgets, classes, X_public), make_pipeline(view), held_out
        )
        for factor in FILTERS:
            default = [
                measured(DPSGDSettings(individual_filter=factor), 1.0, seed)[1]
                for seed in range(given.seeds)
            ]
            tried = {
                (steps, size): measured(
                    DPSGDSettings(individual_filter=factor, steps=steps), size, 99
                )[0]
                for steps, size in product(STEPS, FACTORS)
            }
            steps, size = max(tried, key=lambda way: tried[way])
            settings = DPSGDSettings(individual_filter=factor, steps=steps)
            best = [measured(settings, size, seed) for seed in range(given.seeds)]
            _, right, used, used_up = np.mean(best, axis=0)
            print(
                f"{epsilon:7g}  {factor or 'none'!s:>6}  {np.mean(default):13.4f}  {steps:13d}  {size:11g}  "
                f"{right:8.4f}  {used:4.2f}  {used_up:7.2f}",
                flush=True,
            )


def measure(
    records: Records,
    view: Any,
    held_out: list[tuple[Any, np.ndarray]],
    dpsgd: DPSGDSettings,
    size: float,
    seed: int,
) -> tuple[float, float, float, float]:
    """Accuracy on both held-out parts, share of all accounts that was paid, and of people used up."""
    run = DPSGDRun(DPSGDRecipe(dpsgd, view, noise_seed=seed), records)
    run.recipe = replace(run.recipe, dpsgd=replace(dpsgd, learning_rate=size * run.learning_rate))
    run.learning_rate *= size
    summands = run.summands()
    learnt = run.descend(summands, run.X_seen.shape[1] + 1)
    model = run.model(learnt)
    right = [
        float((model.predict(run.view.of(X)) == run.records.classes[y]).mean()) for X, y in held_out
    ]
    if not isinstance(summands, Filtered):
        return right[0], right[1], 1.0, 0.0
    left = np.concatenate(list(summands.sensitive_left.values()))
    share = left / allowances_of(run.terms, run.plan.steps)[0]
    return right[0], right[1], 1 - float(share.mean()), float((share < 1e-3).mean())


if __name__ == "__main__":
    main()
