"""Engines add up the very steps that are added up in memory: of every kind of question, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collegium.data.engines.places import place_of
from collegium.statistics.features import features_of
from collegium.statistics.language import parse_question
from collegium.statistics.quantiles import candidates_of
from collegium.weighted_sums.in_engine import InEngine
from collegium.weighted_sums.reading import Grid, Reading
from collegium.weighted_sums.tables import InMemory, Table
from collegium.weighted_sums.weighing import Weighing
from tests.engines.generated_tables import (
    Generated,
    generated,
    into_duckdb,
    into_postgresql,
    into_spark,
    questions,
)

ENGINES = ("duckdb", "postgresql", "spark")
SHAPES = {  # seed: owners' names, rows that count of one
    1: ("text", 1), 2: ("whole", 3), 3: (None, 1), 4: ("text", 500),
}  # fmt: skip


def in_memory(its: Generated) -> InMemory:
    owners = None if its.owner is None else its.table[its.owner].to_pandas()
    budgets = its.policy.assign(its.table[its.privacy].to_pandas(), owners)
    from collegium.zero_and_public_budgets import has_budget, subset

    rows = has_budget(budgets)
    return InMemory(its.table.take(rows), subset(budgets, rows), its.schema)


def reading_of(question: str, its: Generated, laplace: bool) -> Reading:
    asked = parse_question(question, its.schema)
    once = its.owner is None or its.schema.rows_per_owner == 1
    features = features_of(asked, its.schema, laplace, 0.05, once, named=its.owner is not None)
    if asked.kind != "quantile":
        return features
    about = its.schema[asked.columns[0]]
    n = len(candidates_of(about))
    return replace(features, grid=Grid(about.lower, about.grid or about.width / (n - 1), n))


def weighings(its: Generated, groups: int, reading: Reading, seed: int) -> list[Weighing]:
    rng = np.random.default_rng(seed)
    most = 1 if reading.distinct or its.owner is None else its.schema.rows_per_owner
    return [
        Weighing.of(rng.uniform(0.01, 1, groups), seed % 2 == 1, most, 1.0)
        for _ in range(1 + seed % 2)
    ]


@pytest.fixture(scope="module")
def lying(
    request: Any, tmp_path_factory: Any
) -> Callable[[str, int], tuple[Generated, Table, Table]]:
    """A generated table in memory and in an engine, each made once."""
    made: dict[Any, Any] = {}

    def get(engine: str, seed: int) -> tuple[Generated, Table, Table]:
        if (engine, seed) not in made:
            owner, k = SHAPES[seed]
            its = generated(seed, 120, owner=owner, rows_per_owner=k)
            folder: Path = tmp_path_factory.mktemp(f"{engine}{seed}")
            if engine == "duckdb":
                into_duckdb(its.table, folder / "house.duckdb")
                given = place_of(f"duckdb:///{folder}/house.duckdb#people")
            elif engine == "postgresql":
                url = request.getfixturevalue("server").new_database()
                into_postgresql(its.table, url)
                given = place_of(f"{url}#people")
            else:
                import ibis

                session = request.getfixturevalue("spark")
                into_spark(its.table, session, folder, f"people{seed}")
                given = ibis.pyspark.connect(session).table(f"people{seed}")
            lies = InEngine(given, its.policy, its.privacy, its.owner, its.schema)
            made[engine, seed] = its, in_memory(its), lies
        return made[engine, seed]

    yield get
    for _, _, lies in made.values():
        lies.close()


@pytest.mark.parametrize("seed", SHAPES)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_kind_of_question_adds_up_to_the_same_steps(lying, engine, seed):
    its, here, there = lying(engine, seed)
    assert list(here.groups) == list(there.groups) and here.sizes.tolist() == there.sizes.tolist()
    wrong, in_engine = [], 0
    every = {"duckdb": 37, "postgresql": 41, "spark": 151}[engine]
    asked = questions(its.schema)[seed % every :: every]  # all: benchmarks/every_question.py
    for number, question in enumerate(asked):
        reading = reading_of(question, its, number % 2 == 1)
        weights = weighings(its, len(here.groups), reading, number)
        for one, other in zip(
            here.summed(reading, weights), there.summed(reading, weights), strict=True
        ):
            if not np.array_equal(one, other):
                wrong.append(question)
        in_engine += there.why_here(reading.needs) == ""
    assert not wrong
    assert in_engine > len(asked) / 3
