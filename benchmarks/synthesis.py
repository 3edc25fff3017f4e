"""What synthetic tables of Collegium are worth, case by case: the figures of ``docs/results/synthesis.md``.

Adult, readmission and credit default with public schemas (:mod:`benchmarks.synthetic_data`). Settings were
chosen on held-out training rows of Adult; test rows are looked at here. Levels are dealt out at random,
anew for each seed. Seconds are of one fit and of as many rows as there are people.

    python -m benchmarks.synthesis                    # all cases, 5 seeds
    python -m benchmarks.synthesis --quick            # Adult at ε = 1, one seed
    python -m benchmarks.synthesis --size 1000000     # how long so many rows of 15 columns take
    python -m benchmarks.synthesis --size 10000000 --parquet large.parquet
"""

from __future__ import annotations

import argparse
import csv
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import collegium as cg
from benchmarks.synthetic_data import Tables, tables
from benchmarks.synthetic_scores import scores
from collegium.data.cells import Cells

FIGURES = ("logistic", "boosting", "tv1", "tv2", "tv3", "seconds")
_SHARES = (0.54, 0.37, 0.09)


@dataclass(frozen=True)
class Case:
    """One line of the table: a data set, what people grant, and how it is made.

    ``epsilons``: of everybody, or of 54, 37 and 9 % of the people. ``n``: so many people only.
    """

    data: str
    epsilons: tuple[float, ...]
    goal: str = "auto"
    n: int | None = None
    public: int = 0

    @property
    def name(self) -> str:
        """As it is printed."""
        said = "/".join(f"{one:g}" for one in self.epsilons)
        people = "" if self.n is None else f", {self.n:,} people"
        public = f", {self.public:,} public rows beside" if self.public else ""
        return f"{self.data}, ε = {said}{people}{public}, goal {self.goal}"


CASES = (
    Case("adult", (1.0,)),
    Case("adult", (1.0, 2.0, 3.0)),
    Case("adult", (0.1, 0.2, 0.3)),
    Case("adult", (0.1,)),
    Case("adult", (0.1,), "both"),
    Case("adult", (3.0,)),
    Case("adult", (1.0,), n=2000),
    Case("adult", (1.0,), "both", n=2000),
    Case("adult", (1.0, 2.0, 3.0), n=2000),
    Case("adult", (1.0,), n=2000, public=500),
    Case("readmission", (1.0,)),
    Case("readmission", (0.1, 0.2, 0.3)),
    Case("readmission", (0.1,)),
    Case("credit", (1.0,)),
    Case("credit", (0.1, 0.2, 0.3)),
    Case("credit", (0.1,)),
)


def granted(epsilons: tuple[float, ...], owners: Any, n: int, seed: int) -> Any:
    """Deal budgets out to people at random."""
    people = np.arange(n) if owners is None else pd.factorize(owners)[0]
    count = int(people.max()) + 1
    sizes = [round(share * count) for share in _SHARES[: len(epsilons)]]
    if len(epsilons) == 1:
        sizes = [count]
    sizes[-1] = count - sum(sizes[:-1])
    each = np.random.default_rng(seed).permutation(np.repeat(epsilons, sizes))
    if owners is None:
        return each
    return cg.Budgets.from_epsilons(each[people], 1e-5, owners)


def run(case: Case, known: Tables, seed: int) -> dict[str, float]:
    """Make one table, and judge it."""
    train, owners = known.train, None if known.owner is None else known.train[known.owner]
    public = None
    if case.n is not None:
        order = np.random.default_rng(1000 + seed).permutation(len(train))
        if case.public:
            public = train.iloc[order[case.n : case.n + case.public]]
        train = train.iloc[order[: case.n]]
        owners = None if owners is None else owners.iloc[order[: case.n]]
    budgets = granted(case.epsilons, owners, len(train), seed)
    made = cg.Synthesizer(
        known.schema, target=known.target, goal=case.goal, noise_seed=seed, random_state=seed
    )
    start = time.perf_counter()
    made.fit(train, budgets, public=public)
    rows = made.sample(len(train))
    seconds = time.perf_counter() - start
    cells = Cells(known.schema)
    weights = None
    if owners is not None:  # each person counts once
        weights = 1 / owners.map(owners.value_counts()).to_numpy(dtype=np.float64)
    found = scores(
        cells.codes(rows), cells.codes(train), cells.codes(known.test), cells, known.target, weights
    )
    return {**found.as_dict(), "seconds": seconds}


def table_of(cases: tuple[Case, ...], seeds: int) -> Iterator[dict[str, Any]]:
    """Run all cases, and print each as it comes."""
    known: dict[str, Tables] = {}
    for case in cases:
        if case.data not in known:
            known[case.data] = tables(case.data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = pd.DataFrame([run(case, known[case.data], seed) for seed in range(seeds)])
        mean, sd = found[list(FIGURES)].mean(), found[list(FIGURES)].std(ddof=0)
        told = "  ".join(f"{one} {mean[one]:.4f} ± {sd[one]:.4f}" for one in FIGURES[:-1])
        print(f"{case.name}\n    {told}  {mean['seconds']:.1f} s", flush=True)
        yield {"case": case.name, "seeds": seeds} | {
            f"{one}{kind}": round(float(value[one]), 5)
            for one in FIGURES
            for kind, value in (("", mean), (" sd", sd))
        }


def large(rows: int, columns: int, parquet: Path | None) -> None:
    """Time a made-up table of so many rows; ``parquet``: of this file, in batches, instead of from memory."""
    policy = cg.Policy({"high": 1.0, "low": 3.0}, delta=1e-5)
    schema, table = made_up(1 if parquet else rows, columns)
    made = cg.Synthesizer(schema, target="y", random_state=0)
    if (
        parquet is not None and not parquet.exists()
    ):  # by another process, whose memory is not counted
        parts = [sys.executable, "-m", "benchmarks.synthesis", "--make", str(parquet)]
        subprocess.run([*parts, "--size", str(rows), "--columns", str(columns)], check=True)
    begun = time.perf_counter()
    made.fit(table if parquet is None else parquet, policy, privacy="level")
    fitted = time.perf_counter()
    made.sample(rows, to=None if parquet is None else parquet.with_name("synthetic.parquet"))
    done = time.perf_counter()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{rows:,} rows × {columns} columns: fit {fitted - begun:.1f} s, sample {done - fitted:.1f} s, "
        f"{len(made.measured_)} marginals, {memory:.2f} GB at most"
    )


def make(rows: int, columns: int, parquet: Path) -> None:
    """Write a made-up table, a million rows at a time."""
    writer = None
    for start in range(0, rows, 1_000_000):
        _, frame = made_up(min(1_000_000, rows - start), columns, seed=start)
        table = pa.Table.from_pandas(frame.astype(str), preserve_index=False)
        writer = writer or pq.ParquetWriter(parquet, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def made_up(rows: int, columns: int, seed: int = 0) -> tuple[cg.Schema, pd.DataFrame]:
    """Make a table whose columns go together by a hidden one."""
    sizes = np.random.default_rng(0).integers(2, 14, columns - 1).tolist()
    rng = np.random.default_rng([1, seed])
    hidden = rng.integers(0, 6, rows)
    told: dict[str, Any] = {}
    frame: dict[str, Any] = {}
    for place, size in enumerate(sizes):
        names = [f"v{one}" for one in range(size)]
        drawn = (hidden * (place % 3 + 1) * (place % 2) + rng.integers(0, size, rows)) % size
        frame[f"c{place}"] = pd.Categorical.from_codes(drawn, names)
        told[f"c{place}"] = {"kind": "category", "categories": names, "missing": False}
    frame["y"] = pd.Categorical.from_codes(
        (hidden + rng.integers(0, 3, rows) > 3).astype(int), ["a", "b"]
    )
    told["y"] = {"kind": "category", "categories": ["a", "b"], "missing": False}
    frame["level"] = pd.Categorical.from_codes(np.arange(rows) % 2, ["high", "low"])
    return cg.Schema(told), pd.DataFrame(frame)


def main(arguments: list[str]) -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", help="cases whose name contains this")
    parser.add_argument("--out", type=Path, help="CSV file to write")
    parser.add_argument("--size", type=int, help="time so many rows of a made-up table instead")
    parser.add_argument("--columns", type=int, default=15)
    parser.add_argument("--parquet", type=Path, help="with --size: a file to stream from")
    parser.add_argument("--make", type=Path, help="with --size: write that file, and nothing else")
    given = parser.parse_args(arguments)
    if given.make:
        return make(given.size, given.columns, given.make)
    if given.size:
        return large(given.size, given.columns, given.parquet)
    cases = CASES[:1] if given.quick else CASES
    if given.only:
        cases = tuple(one for one in cases if given.only in one.name)
    lines = list(table_of(cases, 1 if given.quick else given.seeds))
    if given.out:
        with given.out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, lines[0])
            writer.writeheader()
            writer.writerows(lines)


if __name__ == "__main__":
    main(sys.argv[1:])
