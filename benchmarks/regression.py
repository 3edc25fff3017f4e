"""How well numbers are predicted by private training: California's house prices, and intervals for them.

Root mean squared error and R² on 3,640 test records, the same in every split, for each view of a table and
each ε of everybody; without privacy a linear regression and boosting. 12,000 people, 4,000 public records
without targets, δ = 1e-5, seeded noise. Intervals: 1,000 more public records whose targets are known.

The file has a column median_house_value between 0 and 500,001 and the other columns of the 1990 census.

    python benchmarks/regression.py --csv housing.csv [--splits 3] [--epsilons 1 0.1]
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score, root_mean_squared_error
from sklearn.pipeline import make_pipeline

import collegium as cg
from collegium.features import BinnedTable, CrossedTable, TabularEncoder

TARGET, BOUNDS = "median_house_value", (0, 500_001)
PRIVATE, PUBLIC, CALIBRATION = 12_000, 4_000, 1_000
COVERAGE = 0.9
VIEWS = {"bins": BinnedTable, "bins and kernel": CrossedTable}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--csv", required=True)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 0.1])
    given = parser.parse_args()
    table = pd.read_csv(given.csv)
    if table.duplicated().any():  # they would be on both sides of a split
        raise SystemExit("the file has records twice: give each once")
    y = table.pop(TARGET).to_numpy(np.float64)
    order = np.random.default_rng(0).permutation(len(y))
    learnt_from, aside = np.split(order, [PRIVATE + PUBLIC])
    calibration, test = np.split(aside, [CALIBRATION])
    found: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for split in range(given.splits):
        dealt = np.random.default_rng(split + 1).permutation(learnt_from)
        private, public = np.split(dealt, [PRIVATE])
        parts = [(table.iloc[rows], y[rows]) for rows in (private, test)]
        for name, model in without_privacy().items():
            found[name].append(errors(model.fit(*parts[0]), *parts[1]))
        for epsilon in given.epsilons:
            for name, view in VIEWS.items():
                model = cg.DPSGDRegressor(bounds=BOUNDS, preprocessing=view(), noise_seed=split)
                model.fit(*parts[0], budgets=epsilon, X_public=table.iloc[public])
                model.calibrate(table.iloc[calibration], y[calibration])
                row = (*errors(model, *parts[1]), *held(model, *parts[1]))
                found[f"{name}, ε = {epsilon:g}"].append(row)
    print(f"{'':24} {'RMSE':>15} {'R²':>15} {'in intervals':>13} {'their width':>13}")
    for name, rows in found.items():
        means, spreads = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1 if len(rows) > 1 else 0)
        line = f"{name:24} {means[0]:8,.0f} ± {spreads[0]:4,.0f} {means[1]:7.3f} ± {spreads[1]:.3f}"
        if len(means) > 2:
            line += f" {100 * means[2]:11.1f} % {means[3]:13,.0f}"
        print(line)


def without_privacy() -> dict[str, Any]:
    """Models that see the private records as they are."""
    encoder = TabularEncoder("onehot", "standard")
    boosting = HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=0)
    ordinal = TabularEncoder("ordinal", "none")
    return {
        "linear, ε = ∞": make_pipeline(encoder, LinearRegression()),
        "boosting, ε = ∞": make_pipeline(ordinal, boosting),
    }


def errors(model: Any, X: pd.DataFrame, y: NDArray[np.float64]) -> tuple[float, float]:
    """Root mean squared error and R² of predictions that are cut at the bounds."""
    predicted = np.clip(model.predict(X), *BOUNDS)
    return root_mean_squared_error(y, predicted), r2_score(y, predicted)


def held(model: cg.DPSGDRegressor, X: pd.DataFrame, y: NDArray[np.float64]) -> tuple[float, float]:
    """Share of targets in their intervals, and the mean width of these."""
    low, high = model.predict_interval(X, COVERAGE).T
    return float(np.mean((low <= y) & (y <= high))), float(np.mean(high - low))


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
