"""Counts, means and medians by 20 groups of many rows in Parquet: seconds and memory.

python -m benchmarks.streamed_statistics [--rows 10000000]
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import collegium as cg

WARDS = [f"ward {number}" for number in range(20)]


def make(path: Path, n: int) -> None:
    """Write a table of stays, a million rows at a time."""
    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, n, 1_000_000):
        rows = min(1_000_000, n - start)
        levels = rng.choice(3, rows, p=[0.54, 0.37, 0.09]).astype(np.int8)
        wards = rng.integers(0, 20, rows).astype(np.int8)
        table = pa.table(
            {
                "age": rng.integers(0, 100, rows).astype(np.int16),
                "stay": rng.gamma(2, 3, rows).astype(np.float32),
                "ward": pa.DictionaryArray.from_arrays(wards, WARDS).cast(pa.string()),
                "level": pa.DictionaryArray.from_arrays(levels, ["high", "average", "low"]).cast(
                    pa.string()
                ),
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def main() -> None:
    """Make the table, and ask."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    given = parser.parse_args()
    schema = cg.Schema(
        {
            "age": {"kind": "whole", "bounds": [0, 120]},
            "stay": {"kind": "number", "bounds": [0, 60], "step": 0.5},
            "ward": {"kind": "category", "categories": WARDS},
        }
    )
    policy = cg.Policy({"high": 1.0, "average": 2.0, "low": 3.0})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "stays.parquet")
        make(path, given.rows)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        began = time.perf_counter()
        ask = cg.Statistics(path, policy, privacy="level", schema=schema)
        print(f"{given.rows:,} rows; read once in {time.perf_counter() - began:.1f} s")
        for question in (
            "count by ward", "mean stay by ward", "median stay by ward", "mean age"
        ):  # fmt: skip
            began = time.perf_counter()
            ask.ask(question)
            took = time.perf_counter() - began
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            print(f"{question}: {took:.1f} s, {peak:.2f} GB at most ({before:.2f} before)")


if __name__ == "__main__":
    main()
