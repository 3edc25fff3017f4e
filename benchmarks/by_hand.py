"""What the planner chose beside the best recipe that was found by hand, on the same people and budgets.

Splits, levels and files are those of ``benchmarks.ten_lines``. *Planner*: the study's file leaves open how it
is learnt; each run draws secure noise. *By hand*: the best of ``docs/results/dpsgd.md``, on the
records as they are loaded: for tables direct training on ``BinnedTable``, for digits the Gaussian-process
student of a directly trained model. Both run several times on each split, since one run's noise is luck.
The difference is paired by split; its standard error is that of the mean over splits.

    python -m benchmarks.by_hand --data-dir DATA --out CSV [--seeds 1 2 3] [--draws 3]
    python -m benchmarks.by_hand --out CSV --show

What stands in the file already is not run again.
"""

from __future__ import annotations

import argparse
import csv
import math
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

import collegium as cg
from benchmarks.ten_lines import CASES, LEVELS, Case, Records, split, write_files, write_study
from collegium.features import BinnedTable
from collegium.runs.observer import Observer
from collegium.students import GaussianProcessStudent
from collegium.study.config import read_config
from collegium.study.planned_settings import recommended, with_sections
from collegium.study.runner import run_study

COMPARED = ("adult", "credit", "readmission", "digits")
FIELDS = ("study", "seed", "draw", "by", "accuracy", "auc")
PLANNER, HAND = "planner", "hand"
Scores = tuple[float, float]


def by_planner(study: Path, draws: int) -> Iterator[Scores]:
    """Choose once, and run several times."""
    config = read_config(study)
    chosen = with_sections(config, recommended(config, Observer()).sections)
    for draw in range(draws):
        quality = run_study(chosen, study.with_name(f"run-{draw}")).quality
        assert quality is not None
        yield quality.accuracy, quality.auc or math.nan


def by_hand(
    case: Case, records: Records, seed: int, levels: np.ndarray, draws: int
) -> Iterator[Scores]:
    """Train the recipe of the benchmarks several times."""
    private, public, test = split(case, records, seed)
    is_table = isinstance(records.X, pd.DataFrame)
    X, X_public, X_test = (
        records.X.iloc[rows] if is_table else records.X[rows] for rows in (private, public, test)
    )
    owners = None if records.owners is None else records.owners[private]
    budgets = cg.Policy(LEVELS).assign(levels, owners=owners)
    names = np.unique(records.y)
    for _ in range(draws):
        model: Any = cg.DPSGDClassifier(classes=names, random_state=seed)
        if is_table:
            model.set_params(preprocessing=BinnedTable())
        model.fit(X, records.y[private], budgets=budgets, X_public=X_public)
        if not is_table:
            model, _ = model.teach(GaussianProcessStudent(random_state=seed), X_public)
        beliefs, truth = model.predict_proba(X_test), records.y[test]
        right = float((names[beliefs.argmax(axis=1)] == truth).mean())
        several = {"multi_class": "ovr"} if len(names) > 2 else {}
        believed = beliefs if several else beliefs[:, 1]
        yield right, float(roc_auc_score(truth, believed, **several))


def measured(name: str, seed: int, data_dir: Path, draws: int) -> Iterator[dict[str, Any]]:
    """Run both on one split."""
    case = CASES[name]
    records = case.load(data_dir, seed)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        files = write_files(folder, case, records, seed)
        study, _ = write_study(folder, case, files)
        beside = files.private if isinstance(records.X, pd.DataFrame) else folder / "levels.csv"
        levels = pd.read_csv(beside, usecols=["privacy"])["privacy"].to_numpy()
        runs = (
            (PLANNER, by_planner(study, draws)),
            (HAND, by_hand(case, records, seed, levels, draws)),
        )
        for by, scores in runs:
            for draw, (accuracy, auc) in enumerate(scores):
                yield dict(zip(FIELDS, (name, seed, draw, by, accuracy, auc), strict=True))


def show(rows: list[dict[str, str]]) -> None:
    """Print a row for each study and measure."""
    table = pd.DataFrame(rows).astype({"accuracy": float, "auc": float})
    print(
        "| study | measure | planner | by hand | difference | its standard error | standard error |"
    )
    print("|---|---|--:|--:|--:|--:|--:|")
    for name, study in table.groupby("study", sort=False):
        for measure, times, digits in (("accuracy", 100, 2), ("auc", 1, 4)):
            mean = study.groupby(["seed", "by"])[measure].mean().unstack() * times
            apart = mean[PLANNER] - mean[HAND]
            numbers = [mean[PLANNER].mean(), mean[HAND].mean(), apart.mean(), apart.sem()]
            cells = [f"{number:.{digits}f}" for number in (*numbers, mean[HAND].sem())]
            cells[2] = f"{apart.mean():+.{digits}f}"
            shown = "accuracy %" if measure == "accuracy" else "AUC"
            print(f"| {name} | {shown} | {' | '.join(cells)} |")


def main() -> None:
    """Run what the file does not hold yet, or show what it holds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=COMPARED, default=list(COMPARED))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--show", action="store_true")
    asked = parser.parse_args()
    rows: list[dict[str, str]] = []
    if asked.out.exists():
        with asked.out.open(newline="") as file:
            rows = list(csv.DictReader(file))
    if asked.show:
        show(rows)
        return
    if asked.data_dir is None:
        parser.error("--data-dir DATA is missing")
    there = {(row["study"], row["seed"]) for row in rows}
    for name in asked.only:
        for seed in asked.seeds:
            if (name, str(seed)) in there:
                continue
            made = list(measured(name, seed, asked.data_dir, asked.draws))
            new = not asked.out.exists()
            with asked.out.open("a", newline="") as file:
                writer = csv.DictWriter(file, FIELDS)
                if new:
                    writer.writeheader()
                for row in made:
                    writer.writerow(
                        {k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()}
                    )
            print(pd.DataFrame(made).to_string(), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
