"""Every kind of question of generated tables, in memory and in engines: the same steps, or which differ.

The suite asks some of them (``tests/engines/test_same_sums.py``). A table has some 1,000 rows of all kinds of
columns and awkward values; it is asked some 1,600 questions.

    python -m benchmarks.every_question [--tables 3] [--seed 11]
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from collegium.data.engines.places import place_of
from collegium.weighted_sums.in_engine import InEngine
from tests.engines.generated_tables import (
    Generated,
    generated,
    into_duckdb,
    into_postgresql,
    questions,
)
from tests.engines.test_same_sums import in_memory, reading_of, weighings
from tests.postgresql_server import running

SHAPES = (("text", 1), ("whole", 3), (None, 1), ("text", 500))


def asked(name: str, its: Generated, address: str) -> None:
    """Ask everything, and print what differs."""
    here = in_memory(its)
    there = InEngine(place_of(address), its.policy, its.privacy, its.owner, its.schema)
    start, wrong, stayed = time.perf_counter(), [], 0
    all_questions = questions(its.schema)
    for number, question in enumerate(all_questions):
        reading = reading_of(question, its, number % 2 == 1)
        weights = weighings(its, len(here.groups), reading, number)
        pairs = zip(here.summed(reading, weights), there.summed(reading, weights), strict=True)
        if not all(np.array_equal(one, other) for one, other in pairs):
            wrong.append(question)
        stayed += there.why_here(reading.needs) == ""
    there.close()
    print(
        f"{name}: {len(all_questions):,} questions, {stayed:,} added up there, {len(wrong):,} differ "
        f"{wrong[:5]} ({time.perf_counter() - start:.0f} s)",
        flush=True,
    )


def main() -> None:
    """Make the tables, and ask."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=4)
    parser.add_argument("--seed", type=int, default=11)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder, running() as server:
        for number in range(options.tables):
            owner, rows = SHAPES[number % len(SHAPES)]
            its = generated(options.seed + number, 150, owner=owner, rows_per_owner=rows)
            file = Path(folder) / f"{number}.duckdb"
            into_duckdb(its.table, file)
            asked(f"DuckDB, table {number}", its, f"duckdb:///{file}#people")
            url = server.new_database()
            into_postgresql(its.table, url)
            asked(f"PostgreSQL, table {number}", its, f"{url}#people")


if __name__ == "__main__":
    main()
