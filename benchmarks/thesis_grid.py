"""Labels per personalisation: Tables 6.4 (MNIST) and 6.5 (Adult) of Mühl's thesis, beside ours.

Their way: two groups, the lower budget ε = 1, data-dependent account, `mironov` conversion, orders 2…50,
Confident-GNMax with the settings of Table 6.3, sensitivities ∝ ε (vanishing: frequencies ∝ ε⁴, footnote 2
of the PoPETs paper). Only the MNIST teachers differ: support vector machines on principal components of
the public images, instead of a small CNN. Noise is seeded: these are experiments.

    python benchmarks/thesis_grid.py mnist --data-dir DATA [--quick] [--out docs/results/thesis-6.4.csv]
    python benchmarks/thesis_grid.py adult --data-dir DATA [--quick] [--out docs/results/thesis-6.5.csv]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from collegium.accounting.renyi import SEED_ORDERS
from collegium.budgets import Budgets, Policy
from collegium.datasets import load_dataset
from collegium.personalisation import Personalisation, Uniform, Upsampling, Vanishing, Weighting
from collegium.preprocessing import PixelScaler, TabularEncoder
from collegium.teachers.ensemble import TeacherEnsemble
from collegium.voting.aggregators import ConfidentGNMax
from collegium.voting.labelling import LabellingJob
from collegium.voting.noise import SeededNoise
from collegium.voting.pricing import DataDependentPricing
from collegium.voting.votes import VoteTable

HIGHER = (1.5, 2.0, 3.0, 5.0)
RATIOS = (0.25, 0.50, 0.75)
MOST_LABELS = 2000
N_TEACHERS = 250


@dataclass(frozen=True)
class Setting:
    table: str
    sizes: tuple[int, int, int]
    aggregator: ConfidentGNMax
    teacher: Any


SETTINGS = {
    "mnist": Setting("6.4", (60000, 9000, 1000), ConfidentGNMax(200, 150, 40), SVC(C=10.0)),
    "adult": Setting(
        "6.5", (37222, 7000, 1000), ConfidentGNMax(300, 200, 40), RandomForestClassifier(100)
    ),
}


@dataclass(frozen=True)
class Records:
    X: Any
    codes: Any
    X_public: Any
    codes_public: Any
    n_classes: int


def load(name: str, data_dir: Path | None, seed: int, share: float) -> Records:
    """Split as the thesis does, with preprocessing fitted on the public records only."""
    dataset = load_dataset(name, data_dir, **({"drop_missing": True} if name == "adult" else {}))
    order = np.random.default_rng([seed, 1]).permutation(len(dataset.y))
    n_private, n_public, _ = SETTINGS[name].sizes
    private = order[:n_private][: round(n_private * share)]
    public = order[n_private : n_private + n_public]
    codes = pd.Index(dataset.classes).get_indexer(pd.Index(dataset.y))
    X = dataset.X
    if name == "adult":
        encoder = TabularEncoder().fit(X.iloc[public])
        take = lambda rows: encoder.transform(X.iloc[rows])  # noqa: E731
    else:
        encoder = make_pipeline(PixelScaler(), PCA(50, random_state=seed)).fit(X[public])
        take = lambda rows: encoder.transform(X[rows]).astype(np.float32)  # noqa: E731
    return Records(take(private), codes[private], take(public), codes[public], len(dataset.classes))


def two_groups(n_records: int, higher: float, ratio: float, seed: int) -> Budgets:
    """Give the higher budget to a random share of the records."""
    levels = np.full(n_records, "lower", dtype=object)
    chosen = np.random.default_rng([seed, 2]).permutation(n_records)[: round(ratio * n_records)]
    levels[chosen] = "higher"
    return Policy({"lower": 1.0, "higher": higher}, delta=1e-5).assign(levels)


def cells(higher_budgets: tuple[float, ...]) -> Iterator[tuple[float, float, str, Personalisation]]:
    for ratio in RATIOS:
        for higher in higher_budgets:
            if higher == 5.0 and ratio == 0.75:
                continue  # more than 2,000 labels there: nothing to compare
            yield higher, ratio, "upsampling", Upsampling(rule="budget", tolerance=0.0)
            yield higher, ratio, "vanishing", Vanishing(rule="footnote2")
            yield higher, ratio, "weighting", Weighting(rule="budget")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", choices=sorted(SETTINGS))
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--reference", type=Path, help="tables.csv with the published numbers")
    parser.add_argument("--seeds", type=int, default=1, help="ensembles of each kind")
    parser.add_argument("--runs", type=int, default=15, help="votings of each ensemble")
    parser.add_argument("--quick", action="store_true", help="two budgets, a tenth of the work")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results = measure(options)
    reference = published(options.dataset, options.reference)
    show(results, reference)
    if options.out:
        results.assign(published=[reference.get(key, "") for key in keys_of(results)]).to_csv(
            options.out, index=False
        )


def measure(options: argparse.Namespace) -> pd.DataFrame:
    setting = SETTINGS[options.dataset]
    higher_budgets = (2.0,) if options.quick else HIGHER
    runs = 3 if options.quick else options.runs
    rows: list[dict[str, Any]] = []
    for seed in range(options.seeds):
        records = load(options.dataset, options.data_dir, seed, 1.0)
        everybody = two_groups(len(records.codes), 1.0, 0.5, seed).strictest()
        rows += vote(setting, records, everybody, Uniform(), seed, runs, ("", "", "none"), {})
        shared: dict[float, VoteTable] = {}
        for higher, ratio, name, personalisation in cells(higher_budgets):
            budgets = two_groups(len(records.codes), higher, ratio, seed)
            key = (f"{higher:g}", f"{ratio:.0%}", name)
            rows += vote(setting, records, budgets, personalisation, seed, runs, key, shared)
    return pd.DataFrame(rows)


def vote(
    setting: Setting,
    records: Records,
    budgets: Budgets,
    personalisation: Personalisation,
    seed: int,
    runs: int,
    key: tuple[str, str, str],
    shared: dict[float, VoteTable],
) -> list[dict[str, Any]]:
    """Train an ensemble (or take one with the same shards) and let it vote several times."""
    began = time.perf_counter()
    plan = personalisation.plan_for(budgets, N_TEACHERS)
    own_teachers = key[2] in ("weighting", "vanishing")
    if own_teachers and key[1] in shared:
        votes = shared[key[1]]
    else:
        assignment = plan.assign(budgets, str(seed).encode(), "balanced")
        ensemble = TeacherEnsemble(setting.teacher, seed, n_jobs=-1)
        teachers = ensemble.train(records.X, records.codes, assignment)
        votes = VoteTable.from_predictions(
            ensemble.ask(teachers, records.X_public), records.n_classes, allow_abstention=True
        )
        if own_teachers:
            shared[key[1]] = votes
    right = float(np.mean(votes.sensitive_table == records.codes_public[:, None]))
    rows = []
    for run in range(runs):
        order = np.random.default_rng([seed, 3, run]).permutation(votes.n_queries)
        electorate = plan.electorate(1000 * seed + run)
        pricing = DataDependentPricing(
            setting.aggregator, electorate, SEED_ORDERS, "mironov", bounds="papers"
        )
        labels = LabellingJob(
            votes,
            electorate,
            setting.aggregator,
            pricing,
            SeededNoise(1000 * seed + run),
            order,
            max_labels=MOST_LABELS,
        ).run()
        truth = records.codes_public[labels.queries]
        rows.append(
            {
                "higher_budget": key[0],
                "ratio": key[1],
                "variant": key[2],
                "seed": seed,
                "run": run,
                "labels": len(labels.labels),
                "voting_accuracy": float(np.mean(labels.labels == truth)) if len(truth) else np.nan,
                "rejected": 1 - labels.n_answered / max(labels.n_asked, 1),
                "teacher_accuracy": right,
                "teachers": plan.n_teachers,
            }
        )
    mean = np.mean([row["labels"] for row in rows])
    print(
        f"# {' '.join(key).strip():<24} {plan.n_teachers:>5} teachers, {right:.1%} right each: "
        f"{mean:7.1f} labels ({time.perf_counter() - began:.0f} s)",
        flush=True,
    )
    return rows


def published(dataset: str, path: Path | None) -> dict[tuple[str, str, str], str]:
    """Read the thesis's numbers."""
    if path is None or not path.exists():
        return {}
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    chosen = table[(table.source == "thesis") & (table.table == SETTINGS[dataset].table)]
    return {(row.higher_budget, row.ratio, row.variant): row.value for row in chosen.itertuples()}


def keys_of(results: pd.DataFrame) -> list[tuple[str, str, str]]:
    return list(zip(results["higher_budget"], results["ratio"], results["variant"], strict=True))


def show(results: pd.DataFrame, reference: dict[tuple[str, str, str], str]) -> None:
    """Print the grid, ours beside theirs, and check what the papers found."""
    grouped = results.groupby(["higher_budget", "ratio", "variant"], sort=False)["labels"]
    mean, deviation = grouped.mean().to_dict(), grouped.std().to_dict()
    print(
        f"\n{'higher ε':>8} {'ratio':>6} {'variant':<11} {'ours':>8} {'± sd':>6} {'thesis':>8} {'ratio':>6}"
    )
    for key in mean:
        theirs = reference.get(key, "")
        quotient = f"{mean[key] / float(theirs):.2f}" if theirs.isdigit() else ""
        print(
            f"{key[0]:>8} {key[1]:>6} {key[2]:<11} {mean[key]:>8.1f} {deviation[key]:>6.1f} "
            f"{theirs:>8} {quotient:>6}"
        )
    print()
    gaps = []
    for higher, ratio, variant in mean:
        if variant == "weighting":
            up = mean[higher, ratio, "upsampling"]
            gap = abs(mean[higher, ratio, "weighting"] - up) / up
            gaps.append(gap)
            worse = mean[higher, ratio, "vanishing"] < min(up, mean[higher, ratio, "weighting"])
            print(
                f"{higher:>8} {ratio:>6} weighting and upsampling differ by {gap:5.1%}; vanishing is "
                f"{'worse' if worse else 'NOT worse'}"
            )
    print(f"largest difference: {max(gaps):.1%}")
    both = [(mean[key], float(reference[key])) for key in mean if reference.get(key, "").isdigit()]
    if len(both) > 2:
        ours, theirs = zip(*both, strict=True)
        order = pd.Series(ours).corr(pd.Series(theirs), method="spearman")
        print(f"rank correlation with the thesis over {len(both)} cells: {order:.3f}")


if __name__ == "__main__":
    main()
