"""Answers at everybody's own ε, beside those of OpenDP and diffprivlib at the strictest.

    python -m benchmarks.beside_others --data-dir DATA --others PYTHON [--only KIND] [--out CSV] [--quick]

PYTHON: an interpreter with ``opendp`` and ``diffprivlib``, which need not be this one. Each question is asked
alone, with all that people grant, of people whose budgets are dealt out anew each time; errors are root mean
squares towards the table's own value. Theirs are pure ε with the strictest budget for everybody; ours are
within each person's (ε, 1e-5), with the noise that is chosen where nothing is said.

Neighbours: a count moves by 1 where somebody comes or goes, in all three. The mean of a table of known size
is about replacement in OpenDP; ours is shown about both relations. diffprivlib's mean has the sensitivity of
a replacement as well. Theirs have no intervals, on which ours spend a part of a median's price: *bare* is
without (``interval=False``).
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import collegium as cg
from collegium.data.datasets import load_dataset

BUDGETS = {
    "1 for all": ((1.0,), (1.0,)),
    "1-2-3": ((1.0, 2.0, 3.0), (0.54, 0.37, 0.09)),
    ".1-.2-.3": ((0.1, 0.2, 0.3), (0.54, 0.37, 0.09)),
    ".01-.2-1": ((0.01, 0.2, 1.0), (0.54, 0.37, 0.09)),
}
THEIRS = """
import json, sys
import numpy as np
import opendp.prelude as dp
from diffprivlib import tools
dp.enable_features("contrib")
given = json.load(sys.stdin)
x, lower, upper = np.array(given["values"]), given["lower"], given["upper"]
epsilon, times, kind = given["epsilon"], given["times"], given["kind"]
step = given["step"]
found = {}
if kind == "count":
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    make = lambda s: space >> dp.t.then_count() >> dp.m.then_laplace(s)
    m = dp.binary_search_chain(make, d_in=1, d_out=epsilon)
    data = x.tolist()
    found["OpenDP"] = [m(data) for _ in range(times)]
    among = np.append(np.ones(len(x)), np.zeros(len(x)))  # its noise is cut off at the number of rows
    found["diffprivlib"] = [float(tools.count_nonzero(among, epsilon=epsilon)) for _ in range(times)]
elif kind == "mean":
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(x)), dp.symmetric_distance()
    make = lambda s: space >> dp.t.then_clamp((lower, upper)) >> dp.t.then_mean() >> dp.m.then_laplace(s)
    m = dp.binary_search_chain(make, d_in=2, d_out=epsilon)
    data = x.tolist()
    found["OpenDP"] = [m(data) for _ in range(times)]
    bounds = (lower, upper)
    found["diffprivlib"] = [float(tools.mean(x, epsilon=epsilon, bounds=bounds)) for _ in range(times)]
else:
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    candidates = np.arange(lower, upper + step / 2, step).tolist()
    scores = space >> dp.t.then_quantile_score_candidates(candidates, alpha=0.5)
    make = lambda s: scores >> dp.m.then_report_noisy_max_gumbel(s, optimize="min")
    m = dp.binary_search_chain(make, d_in=1, d_out=epsilon)
    data = x.tolist()
    found["OpenDP"] = [candidates[m(data)] for _ in range(times)]
    try:
        found["diffprivlib"] = [
            float(tools.median(x, epsilon=epsilon, bounds=(lower, upper))) for _ in range(times)
        ]
    except RuntimeError:  # its probabilities are not numbers where many rows are alike
        found["diffprivlib"] = [float("nan")] * times
json.dump(found, sys.stdout)
"""


def tables(
    data_dir: Path,
) -> list[tuple[str, pd.DataFrame, cg.Schema, list[tuple[str, str, str | None]]]]:
    """Tables, their public schemas, and questions: kind, column, and the column with the groups."""
    adult = load_dataset("adult", data_dir).X
    adult = pd.DataFrame(
        {
            "age": adult["age"].astype(float),
            "hours": adult["hours-per-week"].astype(float),
            "sex": adult["sex"].astype(str).str.strip(),
            "education": adult["education"].astype(str).str.strip(),
        }
    )
    schools = sorted(adult["education"].unique())
    stays = pd.read_csv(
        data_dir / "diabetes130" / "diabetic_data.csv.gz",
        usecols=["patient_nbr", "age", "time_in_hospital"],
    ).drop_duplicates("patient_nbr")
    stays = pd.DataFrame({"stay": stays["time_in_hospital"].astype(float), "age": stays["age"]})
    ages = [f"[{low}-{low + 10})" for low in range(0, 100, 10)]
    return [
        (
            "Adult",
            adult,
            cg.Schema(
                {
                    "age": {"kind": "whole", "bounds": [17, 90], "sd": 14},
                    "hours": {"kind": "whole", "bounds": [1, 99]},
                    "sex": {"kind": "category", "categories": ["Female", "Male"]},
                    "education": {"kind": "category", "categories": schools},
                }
            ),
            [("count", "age", "sex"), ("mean", "age", None), ("mean", "age", "sex"), ("median", "age", None),
             ("median", "age", "education"), ("median", "hours", "education")],
        ),
        (
            "diabetes, first stays",
            stays,
            cg.Schema(
                {
                    "stay": {"kind": "whole", "bounds": [1, 14], "sd": 3},
                    "age": {"kind": "category", "categories": ages},
                }
            ),
            [("count", "stay", "age"), ("mean", "stay", None), ("mean", "stay", "age"),
             ("median", "stay", "age")],
        ),
    ]  # fmt: skip


def theirs(
    python: str, values: Any, column: Any, epsilon: float, times: int, kind: str
) -> dict[str, list[float]]:
    """Ask the others about one group of people."""
    asked = {
        "values": np.asarray(values).tolist(), "lower": column.lower, "upper": column.upper,
        "epsilon": epsilon, "times": times, "kind": kind, "step": column.grid or 1.0,
    }  # fmt: skip
    done = subprocess.run(
        [python, "-W", "ignore", "-c", THEIRS],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
    )
    answered: dict[str, list[float]] = json.loads(done.stdout)
    return answered


def root_mean_square(found: Any, truth: Any) -> float:
    """Over all repetitions and groups."""
    return float(np.sqrt(np.mean((np.asarray(found, dtype=float) - np.asarray(truth)) ** 2)))


def main() -> None:
    """Run all questions."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--others", help="Python with opendp and diffprivlib")
    parser.add_argument("--only", choices=["count", "mean", "median"], help="questions of one kind")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    times = 20 if given.quick else 100
    rows = []
    for name, frame, schema, questions in tables(given.data_dir):
        for kind, column, by in questions:
            if given.only not in (None, kind):
                continue
            groups = frame.groupby(by)[column] if by else [("all", frame[column])]
            parts = {str(key): own for key, own in groups}
            keys = schema[by].keys if by else ("all",)
            parts = {key: parts[key] for key in keys}
            asks = {"count": len, "mean": np.mean, "median": np.median}[kind]
            truth = np.array([float(asks(own)) for own in parts.values()])
            for label, (levels, shares) in BUDGETS.items():
                row: dict[str, Any] = {
                    "table": name,
                    "question": f"{kind} {column}" + (f" by {by}" if by else ""),
                }
                row |= {"people": len(frame), "budgets": label}
                row |= ours(frame, schema, kind, column, by, levels, shares, truth, times)
                if given.others:
                    found: dict[str, list[list[float]]] = {}
                    for own in parts.values():
                        for who, values in theirs(
                            given.others, own, schema[column], min(levels), times, kind
                        ).items():
                            found.setdefault(who, []).append(values)
                    for who, answers in found.items():
                        row[who] = root_mean_square(np.array(answers).T, truth)
                rows.append(row)
                print(
                    {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()},
                    flush=True,
                )
    if given.out:
        with given.out.open("w", newline="", encoding="utf-8") as file:
            names = list(max(rows, key=len))
            writer = csv.DictWriter(file, names, lineterminator="\n")
            writer.writeheader()
            writer.writerows(
                {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()}
                for row in rows
            )


def ours(
    frame: pd.DataFrame,
    schema: cg.Schema,
    kind: str,
    column: str,
    by: str | None,
    levels: tuple[float, ...],
    shares: tuple[float, ...],
    truth: Any,
    times: int,
) -> dict[str, float]:
    """Ask Collegium: about both relations, and at the strictest budget for everybody."""
    rng = np.random.default_rng(0)
    counts = np.round(np.array(shares) * len(frame)).astype(int)
    counts[0] += len(frame) - counts.sum()
    granted = np.repeat(levels, counts)
    found: dict[str, list[Any]] = {"ours": [], "ours, replaced": [], "ours, strictest": []}
    if kind == "median":
        found |= {"ours, bare": [], "ours, bare, strictest": []}
    for _ in range(times):
        dealt = rng.permutation(granted)
        for way, answers in found.items():
            epsilon = np.full(len(frame), min(levels)) if "strictest" in way else dealt
            how: dict[str, Any] = {"by": by} if by else {}
            if "bare" in way:
                how["interval"] = False
            session = cg.Statistics(
                frame, epsilon, schema=schema, questions=1,
                neighbours="replace-one" if way == "ours, replaced" else None,
            )  # fmt: skip
            if kind == "count":
                answer = session.histogram(by) if by else session.count()
            else:
                answer = getattr(session, kind)(column, **how)
            answers.append(np.atleast_1d(answer.value))
    # What is withheld ("too few people to say") counts as the middle of the bounds.
    withheld = float(np.mean(np.isnan(np.array(found["ours"], dtype=float))))
    middle = (schema[column].lower + schema[column].upper) / 2
    errors = {
        way: root_mean_square(np.nan_to_num(np.array(answers, dtype=float), nan=middle), truth)
        for way, answers in found.items()
    }
    return {**errors, "withheld": withheld}


if __name__ == "__main__":
    sys.exit(main())
