"""Questions about many rows where they lie: in Parquet, DuckDB, PostgreSQL or Spark; seconds and memory.

The table has 20 towns and three levels (54, 37 and 9 %), and no owners: each row is somebody else's. Its
Parquet file and what engines make of it stay in the folder, if one is named.

    python -m benchmarks.databases [--rows 10000000] [--engine duckdb] [--folder FOLDER] [--turns 3]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

import collegium as cg

TOWNS = [f"town {number}" for number in range(20)]
LEVELS = {"high": 1.0, "average": 2.0, "low": 3.0}
SCHEMA = cg.Schema(
    {
        "age": {"kind": "whole", "bounds": [0, 110]},
        "income": {"kind": "number", "bounds": [0, 200_000], "step": 100},
        "town": {"kind": "category", "categories": TOWNS},
        "smokes": {"kind": "flag"},
    }
)
QUESTIONS = (
    "count by town",
    "mean income by town",
    "median age",
    "median income",
    "median income by town",
    "mean income by town where age >= 40 and smokes",
)
CHUNK = 1_000_000


def make(path: Path, n: int) -> None:
    """Write people into a Parquet file, a million rows at a time."""
    rng = np.random.default_rng(0)

    def words(names: list[str], codes: np.ndarray) -> pa.Array:
        return pa.DictionaryArray.from_arrays(codes.astype(np.int8), names).cast(pa.string())

    writer = None
    for start in range(0, n, CHUNK):
        rows = min(CHUNK, n - start)
        table = pa.table(
            {
                "age": rng.binomial(110, 0.4, rows).astype(np.int16),
                "income": rng.gamma(2, 20_000, rows).round(2),
                "town": words(TOWNS, rng.integers(0, 20, rows)),
                "smokes": rng.random(rows) < 0.2,
                "level": words(list(LEVELS), rng.choice(3, rows, p=[0.54, 0.37, 0.09])),
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


class Memory(threading.Thread):
    """Looks ten times a second at the memory of this process, and of others."""

    def __init__(self, others: list[psutil.Process]) -> None:
        super().__init__(daemon=True)
        self.here = self.elsewhere = 0
        self._others, self._over = others, threading.Event()

    def run(self) -> None:
        """Look until it is over."""
        own = psutil.Process()
        while not self._over.wait(0.1):
            self.here = max(self.here, own.memory_info().rss)
            self.elsewhere = max(self.elsewhere, sum(map(self._of, self._others)))

    def _of(self, process: psutil.Process) -> int:
        total = 0
        with contextlib.suppress(psutil.Error):
            for one in [process, *process.children(recursive=True)]:
                with contextlib.suppress(psutil.Error):
                    total += one.memory_full_info().pss  # what several share counts once
        return total

    def __enter__(self) -> Memory:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


Opened = tuple[Any, list[psutil.Process]]
"""What is asked, and the processes that work for it elsewhere."""


@contextlib.contextmanager
def parquet(file: Path) -> Iterator[Opened]:
    """Be read in batches, as it is."""
    yield str(file), []


@contextlib.contextmanager
def duckdb(file: Path) -> Iterator[Opened]:
    """Have DuckDB make a table of it, in a file beside it."""
    import duckdb as engine

    database = file.with_suffix(".duckdb")
    if not database.exists():
        with engine.connect(str(database)) as connection:
            connection.execute("CREATE TABLE people AS SELECT * FROM read_parquet(?)", [str(file)])
    yield f"duckdb:///{database}#people", []


@contextlib.contextmanager
def postgresql(file: Path) -> Iterator[Opened]:
    """Have a PostgreSQL server of one's own make a table of it."""
    import psycopg

    from tests.postgresql_server import running

    types = "age smallint, income double precision, town text, smokes boolean, level text"
    with running() as server:
        url = server.new_database()
        with psycopg.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE people ({types})")
            with cursor.copy("COPY people FROM STDIN (FORMAT csv)") as copy:
                for batch in pq.ParquetFile(file).iter_batches(CHUNK):
                    text = io.BytesIO()
                    pc.write_csv(batch, text, pc.WriteOptions(include_header=False))
                    copy.write(text.getvalue())
        server.run(url, "VACUUM (ANALYZE) people")
        number = int((server.folder / "data/postmaster.pid").read_text("utf-8").split()[0])
        yield f"{url}#people", [psutil.Process(number)]


@contextlib.contextmanager
def spark(file: Path) -> Iterator[Opened]:
    """Have Spark read it, on all cores of this machine."""
    import ibis
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[*]").appName("benchmark")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.warehouse.dir": str(file.parent / "warehouse"),
        "spark.local.dir": str(file.parent / "local"),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield ibis.pyspark.connect(session).read_parquet(str(file)), [psutil.Process()]
    finally:
        session.stop()


ENGINES = {one.__name__: one for one in (parquet, duckdb, postgresql, spark)}


def main() -> None:
    """Make the table, and ask."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--engine", choices=ENGINES, default="parquet")
    parser.add_argument("--folder", type=Path, help="where the tables are kept")
    parser.add_argument("--turns", type=int, default=1, help="sessions, each with all questions")
    given = parser.parse_args()
    policy = cg.Policy(LEVELS)
    with contextlib.ExitStack() as stack:
        folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"people-{given.rows}.parquet"
        if not file.exists():
            make(file, given.rows)
        began = time.perf_counter()
        place, others = stack.enter_context(ENGINES[given.engine](file))
        print(
            f"{given.rows:,} rows, {given.engine}: ready after {time.perf_counter() - began:.1f} s"
        )
        for _ in range(given.turns):
            began = time.perf_counter()
            with Memory(others) as memory:
                ask = cg.Statistics(place, policy, privacy="level", schema=SCHEMA)
            tell("a session is opened", began, memory)
            for question in QUESTIONS:
                began = time.perf_counter()
                with Memory(others) as memory:
                    ask.ask(question)
                tell(question, began, memory)


def tell(what: str, began: float, memory: Memory) -> None:
    """Say how long it took, and how much memory was used at most."""
    took = time.perf_counter() - began
    elsewhere = f", {memory.elsewhere / 1e9:.2f} GB elsewhere" if memory.elsewhere else ""
    print(f"{what}: {took:.2f} s, {memory.here / 1e9:.2f} GB{elsewhere}", flush=True)


if __name__ == "__main__":
    main()
