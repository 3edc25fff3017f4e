"""Synthetic tables of a table where it lies: seconds and memory of a fit beside those of its Parquet file.

The table has 15 columns (five each of categories, whole numbers and numbers), three levels (54, 37 and 9 %),
and no owners, or some with two rows each on average. Places take turns, each in a process of its own. Noise
is seeded, and the same model must come out, to the bit.

    python -m benchmarks.synthesis_in_engine [--rows 10000000] [--engine duckdb] [--owners] [--turns 1]
        [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import collegium as cg
from benchmarks import databases
from benchmarks.databases import CHUNK, LEVELS, Memory, Opened

COLUMNS = 15
TARGET = "category0"


def schema(rows_per_owner: int) -> cg.Schema:
    """What is public of the table."""
    said: dict[str, dict[str, object]] = {}
    for n in range(COLUMNS // 3):
        said[f"category{n}"] = {"kind": "category", "categories": _names(n)}
        said[f"whole{n}"] = {"kind": "whole", "bounds": [0, 59 + 10 * n]}
        said[f"number{n}"] = {"kind": "number", "bounds": [0, 400 * (n + 1)]}
    return cg.Schema(said, rows_per_owner)


def _names(n: int) -> list[str]:
    return [f"group {one}" for one in range(4 + 3 * n)]


def make(path: Path, rows: int, owners: bool) -> None:
    """Write the table, in which columns go together, a million rows at a time."""
    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, rows, CHUNK):
        n = min(CHUNK, rows - start)
        hidden = rng.normal(0, 1, n)
        table: dict[str, pa.Array] = {}
        for one in range(COLUMNS // 3):
            names = _names(one)
            place = np.clip((hidden + rng.normal(0, 1, n) + 3) / 6 * len(names), 0, len(names) - 1)
            codes = pa.array(place.astype(np.int8), mask=rng.random(n) < 0.02)
            table[f"category{one}"] = pa.DictionaryArray.from_arrays(codes, names).cast(pa.string())
            whole = np.clip(30 + 5 * one + 9 * (hidden + rng.normal(0, 1, n)), 0, 200)
            table[f"whole{one}"] = pa.array(whole.astype(np.int16))
            pay = np.exp(hidden / 2 + rng.normal(0, 0.5, n)) * 60 * (one + 1)
            table[f"number{one}"] = pa.array(pay, mask=rng.random(n) < 0.05)
        whose = rng.integers(0, rows // 2 + 1, n) if owners else np.arange(n)
        # An owner's level follows from the name, so that all rows of one say the same.
        share = (whose * 2654435761 % 100) / 100
        levels = np.searchsorted([0.54, 0.91], share, side="right").astype(np.int8)
        table["level"] = pa.DictionaryArray.from_arrays(levels, list(LEVELS)).cast(pa.string())
        if owners:
            table["owner"] = pa.array(whose)
        batch = pa.table(table)
        writer = writer or pq.ParquetWriter(path, batch.schema)
        writer.write_table(batch)
    assert writer is not None
    writer.close()


@contextlib.contextmanager
def postgresql(file: Path) -> Iterator[Opened]:
    """Have a PostgreSQL server of one's own make a table of it."""
    from tests.engines.generated_tables import into_postgresql
    from tests.postgresql_server import running

    with running() as server:
        url = server.new_database()
        into_postgresql(pq.read_table(file), url)
        server.run(url, "VACUUM (ANALYZE) people")
        number = int((server.folder / "data/postmaster.pid").read_text("utf-8").split()[0])
        yield f"{url}#people", [psutil.Process(number)]


ENGINES = {**databases.ENGINES, "postgresql": postgresql}


def fit(file: Path, engine: str, owners: bool) -> None:
    """Fit once, and print what it took, and a digest of what came out."""
    policy = cg.Policy(LEVELS)
    with ENGINES[engine](file) as (place, others), tempfile.TemporaryDirectory() as folder:
        made = cg.Synthesizer(schema(2 if owners else 1), TARGET, noise_seed=1)
        began = time.perf_counter()
        with Memory(others) as memory:
            made.fit(place, policy, privacy="level", owner="owner" if owners else None)
        took = time.perf_counter() - began
        model = Path(folder) / "model.json"
        made.save(model)
        found = {
            "seconds": took,
            "here": memory.here,
            "elsewhere": memory.elsewhere,
            "marginals": len(made.measured_),
            "model": sha256(model.read_bytes()).hexdigest(),
        }
    print(json.dumps(found))


def main() -> None:
    """Make the table, and fit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--engine", choices=ENGINES, default="duckdb")
    parser.add_argument("--owners", action="store_true", help="people with several rows")
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where the tables are kept")
    parser.add_argument("--only", choices=ENGINES, help="fit once, in this process")
    given = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"records-{given.rows}{'-owners' if given.owners else ''}.parquet"
        if not file.exists():
            make(file, given.rows, given.owners)
        if given.only:
            return fit(file, given.only, given.owners)
        command = [sys.executable, "-m", "benchmarks.synthesis_in_engine", "--rows"]
        command += [str(given.rows), "--folder", str(folder)] + ["--owners"] * given.owners
        for _ in range(given.turns):
            seconds, models = [], set()
            for engine in ("parquet", given.engine):
                told = subprocess.run(
                    [*command, "--only", engine], check=True, stdout=subprocess.PIPE, text=True
                )
                its = json.loads(told.stdout.splitlines()[-1])
                seconds.append(its["seconds"])
                models.add(its["model"])
                elsewhere = its["elsewhere"]
                more = f", {elsewhere / 1e9:.2f} GB elsewhere" if elsewhere else ""
                print(
                    f"{given.rows:,} rows × {COLUMNS} columns, {engine}: {its['seconds']:.1f} s, "
                    f"{its['here'] / 1e9:.2f} GB here{more}, {its['marginals']} marginals",
                    flush=True,
                )
            same = "the same model" if len(models) == 1 else "ANOTHER MODEL"
            print(f"{given.engine} / parquet: {seconds[1] / seconds[0]:.2f}; {same}", flush=True)


if __name__ == "__main__":
    main()
