"""How often intervals of quantiles hold the table's own, how wide they are, and how far off values are.

    python -m benchmarks.quantile_coverage [--data-dir DATA] [--times 4000] [--out CSV]

Budgets are dealt out anew each time. Widths are shares of the rows: those between the ends, or at them. The
error is a root mean square, in the column's unit, of a value that has an interval.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import collegium as cg
from collegium.data.datasets import load_dataset
from collegium.noise.sources import SeededNoise
from collegium.statistics import quantiles
from collegium.statistics.answering import Question
from collegium.statistics.estimates import Heard
from collegium.statistics.language import parse_question

Floats = NDArray[np.float64]
BUDGETS = {"1-2-3": (1.0, 2.0, 3.0), ".1-.2-.3": (0.1, 0.2, 0.3), ".01-.2-1": (0.01, 0.2, 1.0)}
SHARES = (0.54, 0.37, 0.09)


def synthetic() -> list[tuple[str, Floats, dict[str, Any]]]:
    """Name, values of one cell, and the column's schema."""
    rng = np.random.default_rng(0)
    fine = {"kind": "number", "bounds": [0, 1]}
    whole = {"kind": "whole", "bounds": [0, 100]}
    return [
        ("even, 1,000", rng.random(1000), fine),
        ("even, 100", rng.random(100), fine),
        ("even, 20,000", rng.random(20_000), fine),
        ("skewed, 1,000", (rng.lognormal(0, 2, 1000) / 1000).clip(0, 1), fine),
        ("two lumps, 51 % at 20", np.repeat([20.0, 40.0], [510, 490]), whole),
        ("gap in the middle", np.r_[rng.integers(0, 10, 505), rng.integers(90, 100, 495)], whole),
        ("dense below, thin above", np.r_[rng.random(505) * 0.02, rng.random(495)], fine),
        ("few values", rng.choice([0.0, 1, 2, 5, 100], 1000, p=[0.3, 0.3, 0.2, 0.15, 0.05]), whole),
    ]


def real(data_dir: Path) -> list[tuple[str, Floats, dict[str, Any]]]:
    """Ages and hours of some of Adult's people, and stays of patients."""
    adult = load_dataset("adult", data_dir).X.sample(2000, random_state=0)
    stays = pd.read_csv(
        data_dir / "diabetes130" / "diabetic_data.csv.gz",
        usecols=["patient_nbr", "age", "time_in_hospital"],
    ).drop_duplicates("patient_nbr")
    young = stays.loc[stays["age"] == "[10-20)", "time_in_hospital"]
    return [
        ("Adult, age", adult["age"].to_numpy(float), {"kind": "whole", "bounds": [17, 90]}),
        ("Adult, hours", adult["hours-per-week"].to_numpy(float), {"kind": "whole", "bounds": [1, 99]}),
        ("diabetes, stay of those of 10 to 20", young.to_numpy(float), {"kind": "whole", "bounds": [1, 14]}),
    ]  # fmt: skip


def repeated(
    values: Floats,
    column: dict[str, Any],
    level: float,
    budgets: tuple[float, ...],
    questions: int,
    people: int,
    times: int,
    noise: str = "auto",
) -> dict[str, Any]:
    """Ask for a quantile of the values of some of these people, many times over."""
    counts = np.round(np.array(SHARES) * people).astype(int)
    counts[0] += people - counts.sum()
    schema = cg.Schema({"x": column})
    some = np.resize(values, people)
    granted = np.repeat(budgets, counts)
    frame = pd.DataFrame({"x": some})
    ask = cg.Statistics(frame, granted, schema=schema, questions=questions, noise=noise)
    question = Question(parse_question(f"quantile({level}) x", schema), "saturating")
    features = ask._features(question.asked)
    priced, _ = ask._priced(question, 1 / questions, features)
    heard = Heard.of(priced.weighing, ask._table.sizes, 0.95)
    about = schema["x"]
    candidates = quantiles.candidates_of(about, "x")
    place = np.rint((values - about.lower) / (candidates[1] - candidates[0])).astype(int)
    dealt = np.repeat(priced.weighing.steps, ask._table.sizes)
    rng = np.random.default_rng(1)
    steps = np.zeros((times, len(candidates)), dtype=np.int64)
    for one in range(times):
        own = rng.choice(dealt, len(values), replace=False)
        steps[one] = np.bincount(place, weights=own, minlength=len(candidates)).astype(np.int64)
    truth = float(np.quantile(values, level))
    ranks = quantiles.Ranks(steps, candidates)
    found = quantiles.estimate(ranks, priced, about, heard, SeededNoise(0), 0)
    low, high = np.array([one.lower for one in found]), np.array([one.upper for one in found])
    ordered = np.sort(values)
    width = np.searchsorted(ordered, high, "right") - np.searchsorted(ordered, low, "left")
    error = np.array([one.value for one in found]) - truth
    return {
        "noise": ask.noise,
        "covered": float(np.mean((low <= truth + 1e-12) & (truth - 1e-12 <= high))),
        "width": float(np.mean(width)) / len(values),
        "length": float(np.mean(high - low)),
        "error": float(np.sqrt(np.mean(error**2))),
    }


def main() -> None:
    """Run all of them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--times", type=int, default=4000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = []
    for name, values, column in synthetic() + (real(given.data_dir) if given.data_dir else []):
        for level in (0.1, 0.5, 0.9):
            for label, budgets in BUDGETS.items():
                for of_all, questions in ((1, 1), (1, 10), (5, 10)):
                    row: dict[str, Any] = {"values": name, "level": level, "budgets": label}
                    row |= {"of": of_all * len(values), "questions": questions}
                    row |= repeated(
                        values, column, level, budgets, questions, row["of"], given.times
                    )
                    rows.append(row)
                    print({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})
    covered = [row["covered"] for row in rows]
    print(f"{len(rows)} cases: least {min(covered):.3f}, median {np.median(covered):.3f}")
    if given.out:
        with given.out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(
                {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()}
                for row in rows
            )


if __name__ == "__main__":
    main()
