"""How often intervals hold, of real sessions: each kind of answer, asked again and again.

    python -m benchmarks.coverage --out docs/results/coverage.csv [--repetitions 10000] [--quick]

People and their values stay; who has which budget is dealt out anew for each answer (so that budgets do not go
with values), and noise is drawn anew. *covered*: how many of the intervals (95 %) hold the table's own value;
of several values, how many of all. *narrowest*: the least of any value's. *wide*: the mean width over that of ±1.96
root mean square errors. *withheld*: "too few people to say". Moments of several columns are asked a tenth as often.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from collegium import Schema, Statistics
from collegium.accounting.gaussian import gdp_epsilon, gdp_mu

LEVELS = {"1": (1.0, 1.0, 1.0), ".1/.2/.3": (0.1, 0.2, 0.3), "1/2/3": (1.0, 2.0, 3.0),
          ".01/.2/1": (0.01, 0.2, 1.0)}  # fmt: skip
SHARES = (0.54, 0.37, 0.09)
SIZES = (300, 3_000)
QUESTIONS = (
    "count where f", "histogram g", "sum x", "sum x where f", "mean x", "mean ends", "mean x where f",
    "mean x by g", "var x", "std x", "var x by g", "median x", "quantile(0.9) x", "median x by g",
    "cov x, y", "corr x, y", "ridge y on x",
)  # fmt: skip
_CHUNK = 500


def people(n: int) -> pd.DataFrame:
    """A table: x is skewed, y goes with it, ends are at both bounds, groups have 60, 30 and 10 %."""
    rng = np.random.default_rng(n)
    x = rng.beta(2, 5, n)
    return pd.DataFrame(
        {
            "x": x,
            "y": (0.8 * x + rng.normal(0.2, 0.12, n)).clip(0, 1),
            "f": rng.random(n) < 0.3,
            "ends": rng.integers(0, 2, n).astype(float),
            "g": rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1]),
        }
    )


SCHEMA = Schema(
    {
        **{name: {"kind": "number", "bounds": [0, 1]} for name in ("x", "y", "ends")},
        "f": {"kind": "flag"},
        "g": {"kind": "category", "categories": ["a", "b", "c"]},
    }
)


def truth(question: str, frame: pd.DataFrame) -> np.ndarray:
    """What the table itself says, in the order of an answer's cells."""
    x, f = frame["x"], frame["f"]
    if question.startswith(("cov", "corr")):
        both = np.stack([x, frame["y"]])
        return (np.corrcoef(both) if "corr" in question else np.cov(both, bias=True)).ravel()
    if question.startswith(
        "ridge"
    ):  # the penalty counts for a row in which x varies as far as it can
        slope = np.cov(x, frame["y"], bias=True)[0, 1] / (x.var(ddof=0) + 0.25 / len(x))
        return np.array([frame["y"].mean() - slope * x.mean(), slope])
    of = {
        "count where f": lambda: f.sum(),
        "histogram g": lambda: frame.groupby("g").size(),
        "sum x": lambda: x.sum(),
        "sum x where f": lambda: x[f].sum(),
        "mean x": lambda: x.mean(),
        "mean ends": lambda: frame["ends"].mean(),
        "mean x where f": lambda: x[f].mean(),
        "mean x by g": lambda: frame.groupby("g")["x"].mean(),
        "var x": lambda: x.var(ddof=0),
        "std x": lambda: x.std(ddof=0),
        "var x by g": lambda: frame.groupby("g")["x"].var(ddof=0),
        "median x": lambda: x.quantile(0.5, interpolation="lower"),
        "quantile(0.9) x": lambda: x.quantile(0.9, interpolation="lower"),
        "median x by g": lambda: frame.groupby("g")["x"].quantile(0.5, interpolation="lower"),
    }
    return np.atleast_1d(np.asarray(of[question](), dtype=np.float64))


def measured(case: tuple[int, str, str, str, int]) -> dict[str, Any]:
    """Coverage of one kind of answer."""
    n, levels, noise, question, times = case
    frame, exact = people(n), truth(case[3], people(n))
    sizes = np.round(np.array(SHARES) * n).astype(int)
    sizes[0] += n - sizes.sum()
    rows = []
    for chunk in range(max(1, times // _CHUNK)):
        each = min(_CHUNK, times)
        epsilon = np.array(LEVELS[levels])
        if noise == "laplace":
            total = epsilon * each
        else:
            total = [float(gdp_epsilon(gdp_mu(one, 1e-5) * each**0.5, 1e-5)) for one in epsilon]
        ask = Statistics(
            frame,
            np.repeat(total, sizes),
            schema=SCHEMA,
            noise=noise,
            questions=each,
            noise_seed=chunk,
        )
        table: Any = ask._table
        rng = np.random.default_rng(chunk)
        for _ in range(each):
            table._group = rng.permutation(table._group)
            ask._record.clear()
            rows.append(ask.ask(question).cells[["value", "lower", "upper"]].to_numpy())
    found = np.stack(rows)
    value, lower, upper = found[..., 0], found[..., 1], found[..., 2]
    said = ~np.isnan(value)
    slack = 1e-9  # of correlations with oneself
    if question.startswith(("median", "quantile")):
        slack = 0.5 / 1024  # values are rounded to a step
    inside = (lower <= exact + slack) & (exact - slack <= upper)
    own = np.array(
        [i[s].mean() if s.any() else np.nan for i, s in zip(inside.T, said.T, strict=True)]
    )
    error = np.sqrt(np.nanmean((value - exact) ** 2))
    return {
        "n": n, "budgets": levels, "noise": noise, "question": question, "repetitions": len(rows),
        "covered": inside[said].mean(), "narrowest": np.nanmin(own),
        "wide": np.nanmean(upper - lower) / (2 * 1.96 * error) if error else np.nan,
        "withheld": 1 - said.mean(),
    }  # fmt: skip


def main() -> None:
    """Ask all of them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--repetitions", type=int, default=10_000)
    parser.add_argument("--only", help="questions that contain this")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the repetitions")
    given = parser.parse_args()
    times = given.repetitions // 20 if given.quick else given.repetitions
    cases = [
        (
            n,
            levels,
            noise,
            question,
            times // 10 if question[:3] in ("cov", "cor", "rid") else times,
        )
        for n, levels, noise, question in product(SIZES, LEVELS, ("gaussian", "laplace"), QUESTIONS)
        if given.only is None or given.only in question
    ]
    rows = []
    with ProcessPoolExecutor(initializer=warnings.simplefilter, initargs=("ignore",)) as pool:
        for row in pool.map(measured, cases):
            rows.append(row)
            print(
                f"{row['n']:>6} {row['budgets']:<9} {row['noise']:<9} {row['question']:<16} "
                f"{row['covered']:6.1%} {row['narrowest']:6.1%} {row['wide']:6.2f} {row['withheld']:5.1%}",
                flush=True,
            )
    if given.out is not None:
        text = [
            {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows
        ]
        with given.out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(text[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(text)


if __name__ == "__main__":
    main()
