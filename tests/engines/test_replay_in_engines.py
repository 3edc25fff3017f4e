"""Record and replay, and a distinguishing game, of tables that engines add up.

One person's rows are blanked or replaced where they lie, and the same is asked with the outcomes of before:
no noised value moves further than was charged, and nothing else changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from collegium import Policy, Statistics
from collegium.statistics import quantiles
from tests.engines.generated_tables import into_spark
from tests.engines.houses import House, as_table
from tests.statistics import test_replay as replay
from tests.statistics import test_statistics_game as game

AWKWARD = ("NULL", "'NaN'::float8", "'-Infinity'::float8", "1e308", "-1e-320", "9007199254740993")
WORDS = ("NULL", "'F'", "'f'", "'M '", "''", "'x'")


pytestmark = pytest.mark.usefixtures("known_engine")


def asked(
    place: Any, tape: replay.Tape, noise: str, neighbours: str, questions: tuple[str, ...]
) -> tuple[Statistics, dict[str, np.ndarray]]:
    """Ask a table where it lies; a session, and what each question cost the groups."""
    costs: dict[str, np.ndarray] = {}
    with pytest.MonkeyPatch.context() as patch:
        tape.install(patch)
        ask = Statistics(
            place,
            replay.POLICY,
            schema=replay.SCHEMA,
            privacy="level",
            owner="owner",
            questions=len(questions),
            noise=noise,
            neighbours=neighbours,
            noise_seed=1,
        )
        with ask:
            for question in questions:
                tape.question = question
                before = len(ask._charged)
                ask.ask(question)
                found = [
                    one.pure_epsilon if noise == "laplace" else one.mu_squared
                    for one in ask._charged[before:]
                ]
                costs[question] = np.sum(found, axis=0)
    return ask, costs


def assert_within(
    first: replay.Tape, second: replay.Tape, costs: dict[str, np.ndarray], group: int, noise: str
) -> dict[str, float]:
    """No more moved than was charged; returns which part of it did."""
    assert [(kind, scale) for kind, _, scale in first.seen] == [
        (kind, scale) for kind, _, scale in second.seen
    ]
    lost = dict.fromkeys(first.during, 0.0)
    for question, (kind, value, scale), (_, other, _) in zip(
        first.during, first.seen, second.seen, strict=True
    ):
        moved = value - other
        if kind == "gaussian":
            lost[question] += float(np.sum(moved**2)) / scale**2
        elif kind == "laplace":
            lost[question] += float(np.abs(moved).sum()) / scale
        else:  # the log-odds of two candidates, over all cells
            event = quantiles.BoundedRange(np.array([sum(np.ptp(row) for row in moved)]))
            lost[question] += float(
                (event.pure_epsilon if noise == "laplace" else event.mu_squared)[0]
            )
    for question, amount in lost.items():
        assert amount <= costs[question][group] * (1 + 1e-9), question
    return {question: amount / costs[question][group] for question, amount in lost.items()}


def changed(house: House, owner: str, neighbours: str, level: str) -> None:
    """Change one person where they lie: blank, or other rows and another number of them."""
    blank = f"UPDATE people SET age = NULL, income = NULL, sex = NULL WHERE owner = '{owner}'"
    if neighbours == "zero-out":
        house.run(blank)
        return
    rows = [("17.0", "-5.0", "'M'")] * 3
    rows += [
        (age, income, sex) for age, income, sex in zip(AWKWARD, AWKWARD[::-1], WORDS, strict=True)
    ]
    cells = ", ".join(f"('{owner}', '{level}', {', '.join(row)})" for row in rows)
    house.run(f"DELETE FROM people WHERE owner = '{owner}'", f"INSERT INTO people VALUES {cells}")


@pytest.mark.parametrize(
    ("engine", "noise", "neighbours", "people", "questions"),
    [
        ("duckdb", "gaussian", "zero-out", replay.N, replay.QUESTIONS),
        ("duckdb", "laplace", "replace-one", replay.N, replay.QUESTIONS),
        ("duckdb", "gaussian", "replace-one", 2000, replay.QUESTIONS[:4]),  # in two rounds
        ("duckdb", "laplace", "zero-out", replay.N, replay.MORE),
        ("postgresql", "gaussian", "replace-one", replay.N, (*replay.QUESTIONS, *replay.MORE)),
    ],
)
def test_no_noised_value_moves_further_than_was_charged(
    request: Any,
    tmp_path: Any,
    engine: str,
    noise: str,
    neighbours: str,
    people: int,
    questions: Any,
) -> None:
    house = House.at(engine, request.getfixturevalue, tmp_path)
    frame = replay.with_extremes(replay.table(people))
    place = house.put("people", frame)
    first = replay.Tape()
    one, costs = asked(place, first, noise, neighbours, questions)
    in_two_rounds = [question for question in questions if first.during.count(question) == 2]
    assert people == replay.N or len(in_two_rounds) >= 2
    reached: dict[str, float] = {}
    for owner in ("p0", "p35"):  # of three rows, and of one
        level = str(frame.loc[frame["owner"] == owner, "level"].iloc[0])
        house.run("CREATE TABLE before AS SELECT * FROM people")
        changed(house, owner, neighbours, level)
        second = replay.Tape(first.outcomes)
        two, _ = asked(place, second, noise, neighbours, questions)
        house.run(
            "DELETE FROM people", "INSERT INTO people SELECT * FROM before", "DROP TABLE before"
        )
        assert one._charged == two._charged
        assert [str(answer) for answer in one.answers] == [str(answer) for answer in two.answers]
        group = list(one._table.groups).index(level)
        for question, part in assert_within(first, second, costs, group, noise).items():
            reached[question] = max(reached.get(question, 0.0), part)
    # One person can move as much as is charged, and does.
    assert max(reached.values()) > 0.999 or neighbours == "replace-one"
    assert max(reached.values()) > 0.4


def test_spark_moves_no_further_either(spark: Any, tmp_path: Any) -> None:
    import ibis

    frame = replay.with_extremes(replay.table())
    questions = ("count where age >= 40", "mean income by sex", "median income")
    tapes, costs = [], {}
    for name, its in {"whole": frame, "blank": replay.without(frame, "p0")}.items():
        into_spark(as_table(its), spark, tmp_path / name, f"replayed_{name}")
        tape = replay.Tape(tapes[0].outcomes if tapes else None)
        ask, costs = asked(
            ibis.pyspark.connect(spark).table(f"replayed_{name}"),
            tape,
            "gaussian",
            "zero-out",
            questions,
        )
        tapes.append(tape)
    group = list(ask._table.groups).index("strict")
    assert max(assert_within(*tapes, costs, group, "gaussian").values()) > 0.999


def test_no_threshold_tells_more_of_a_person_in_duckdb_than_is_charged(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of 100 runs a side choose a threshold, and the others judge it: false alarms 2e-4."""
    monkeypatch.setattr(game, "RUNS", 100)
    house = House.at("duckdb", None, tmp_path)
    outcomes, most = [], 0.0
    for side in (1, 0):
        rows = [[1.0 if side else np.nan, "a" if side else None], [0.0, "b"], [1.0, "b"]]
        frame = pd.DataFrame(rows, columns=["x", "g"]).assign(level="some")
        ask = Statistics(
            house.put(f"side_{side}", frame),
            Policy({"some": game.EACH * game.RUNS}),
            schema=game.SCHEMA,
            privacy="level",
            noise="laplace",
            questions=game.RUNS,
            noise_seed=0,
        )
        found = []
        with ask:
            for run in range(game.RUNS):
                ask._noise = game.SeededNoise(2 * run + side)
                found.append(float(ask.count("x > 0.4").value))
                ask._record.clear()
        outcomes.append(np.array(found))
        most = max(most, *(float(event.pure_epsilon[0]) for event in ask._charged))
    told = max(game.lost(*outcomes, pure=True), game.lost(*outcomes[::-1], pure=True))
    assert 0.05 * most < told <= most
