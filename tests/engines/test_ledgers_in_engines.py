"""Ledgers keep account of people whose rows stay in a database: as of the same people in memory.

Names leave the engine for the ledger, and go back as rows of a table of the connection's own: they stand in
no statement, and in no log of a server.
"""

from __future__ import annotations

import logging
import re
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import collegium as cg
from collegium.data.engines import connections
from collegium.errors import BudgetExceededError, InputError
from collegium.noise.grid import GRID
from collegium.statistics import quantile_intervals, quantiles
from collegium.weighted_sums import in_engine, sums
from tests.engines.generated_tables import into_spark
from tests.engines.houses import House, as_table

ODD = (
    "O'Hara {}",
    ' "{}" ',
    "{}\\",
    "Åsa \N{SLIGHTLY SMILING FACE} {}",
    "{}",
    "00{}",
    "a{}",
    "A{}",
    "{},\t{}",
)
SCHEMA = cg.Schema(
    {
        "age": {"kind": "whole", "bounds": [17, 90]},
        "pay": {"kind": "number", "bounds": [0, 100]},
        "sex": {"kind": "category", "categories": ["F", "M"]},
    },
    rows_per_owner=2,
)
POLICY = cg.Policy({"high": 0.5, "low": 3.0, "none": 0.0, "gift": np.inf}, public=["gift"])
QUESTIONS = ("mean pay by sex", "count people where age >= 40", "median age", "histogram sex")
PEOPLE = 120


def without_drawn_names(said: str) -> str:
    """Without names of temporary tables and columns, whose digits are drawn and may be anybody's."""
    return re.sub(r"[0-9a-f]{16,}|#\d+L?", "", said)


def people(kind: str, only: int = PEOPLE) -> pd.DataFrame:
    """People of several rows, some of whom granted nothing or all."""
    rng = np.random.default_rng(7)
    rows = rng.integers(1, 5, PEOPLE)
    of = rng.permutation(np.repeat(np.arange(PEOPLE), rows))
    names = [
        4_711_000 + one
        if kind == "whole"
        else ODD[one % len(ODD)].format(4_711_000 + one // 2, one)
        for one in range(PEOPLE)
    ]
    levels = [
        ("high", "low", "low", "none", "gift")[one % 5 if one > 9 else one % 2]
        for one in range(PEOPLE)
    ]
    frame = pd.DataFrame(
        {
            "person": [names[one] for one in of],
            "level": [levels[one] for one in of],
            "age": rng.integers(17, 91, len(of)),
            "pay": np.round(rng.uniform(0, 100, len(of)), 3) + 0.000_471,
            "sex": rng.choice(["F", "M"], len(of)),
        }
    )
    return frame[of < only].reset_index(drop=True)


class Forced:
    """What is noised, and outcomes that depend on nothing but the purpose."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    def install(self, patch: pytest.MonkeyPatch) -> None:
        def noised(steps: Any, weighing: Any, noise: Any, query: int, purpose: str) -> Any:
            self.seen.append((purpose, np.array(steps)))
            rng = np.random.default_rng(zlib.crc32(f"{query} {purpose}".encode()))
            return np.array(steps) * GRID + rng.normal(0, weighing.scale, np.shape(steps))

        def chosen(scores: Any, **_: Any) -> Any:
            self.seen.append(("choice", np.array(scores)))
            return np.full(len(np.atleast_2d(scores)), 3)

        for module in (sums, quantile_intervals):
            patch.setattr(module, "noised", noised)
        for name in ("choose", "choose_by_coins"):
            patch.setattr(quantiles, name, chosen)


pytestmark = pytest.mark.usefixtures("known_engine")


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Every statement that Ibis wrote."""
    sent: list[str] = []
    for kind in (connections._DuckDB, connections._PostgreSQL):
        explain = kind._explain

        def explained(self: Any, sql: str, explain: Any = explain) -> None:
            sent.append(sql)
            explain(self, sql)

        monkeypatch.setattr(kind, "_explain", explained)
    yield sent


def session(table: Any, ledger: cg.Ledger | None, **how: Any) -> cg.Statistics:
    return cg.Statistics(
        table,
        POLICY,
        schema=SCHEMA,
        privacy="level",
        owner="person",
        ledger=ledger,
        **{"questions": 4, **how},
    )


def history(tables: list[Any], ledger: cg.Ledger) -> list[Any]:
    """Have sessions one after another: of everybody, of a few people, and again; all that can be seen."""
    found: list[Any] = []
    shares = ({"spend": 0.2}, {"spend": 1.0, "weights": "uniform", "questions": 3}, {"spend": 0.9})
    for number, (table, how) in enumerate(zip(tables, shares, strict=True)):
        forced = Forced()
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            forced.install(patch)
            with session(table, ledger, name=f"session {number}", **how) as ask:
                asked = [str(ask.ask(question)) for question in QUESTIONS[: number + 2]]
                groups = {
                    name: int(n)
                    for name, n in zip(ask._table.groups, ask._table.sizes, strict=True)
                }
                held = [(one.level, float(one.epsilon_spent)) for one in ledger.standings()]
        after = [(one.level, one.owners, float(one.epsilon_spent)) for one in ledger.standings()]
        ours = sorted(
            str(one.message) for one in told if issubclass(one.category, cg.PrivacyWarning)
        )
        found.append((asked, groups, dict(ask._silent), held, after, ours))
        found += [(purpose, steps.tolist()) for purpose, steps in forced.seen]
    return found


@pytest.mark.parametrize("kind", ["text", "whole"])
def test_sums_accounts_and_words_are_those_of_the_table_in_memory(
    house: House, kind: str, tmp_path: Path, statements: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    for library in ("collegium", "ibis", "duckdb", "psycopg"):
        caplog.set_level(logging.DEBUG, library)
    frames = [people(kind), people(kind, 30), people(kind)]
    places = [house.put(f"people_{number}", frame) for number, frame in enumerate(frames)]
    here = history(frames, cg.Ledger.create(tmp_path / "here.ledger"))
    there = history(places, cg.Ledger.create(tmp_path / "there.ledger"))
    assert here[0][1] != here[0][2]
    for one, other in zip(here, there, strict=True):
        assert one == other
    # Some have nothing left by now, and others less than they granted.
    last = next(one for one in reversed(there) if len(one) == 6)
    assert sum(last[2].values()) > 0 and len(last[1]) > 2
    said = "\n".join([*statements, caplog.text])
    if house.server is not None:
        said += house.server.logged(house.where)
        assert "COPY" in said and "CREATE TEMPORARY TABLE" in said
    private = {str(name) for name in frames[0]["person"]} | {str(pay) for pay in frames[0]["pay"]}
    assert "collegium_people" in said
    said = without_drawn_names(said)
    assert not [word for word in private if word in said] and "4711" not in said


def test_nothing_asked_is_nothing_paid_and_nothing_of_it_stays(
    house: House, tmp_path: Path
) -> None:
    ledger = cg.Ledger.create(tmp_path / "people.ledger")
    place = house.put("people", people("text"))
    with session(place, ledger):
        assert max(float(one.epsilon_spent) for one in ledger.standings()) > 0
    assert [float(one.epsilon_spent) for one in ledger.standings()] == [0.0] * len(
        ledger.standings()
    )
    if house.server is not None:
        left = house.server.run(
            house.where, "SELECT 1 FROM pg_class WHERE relname LIKE 'collegium%'"
        )
        assert left == []
    with pytest.raises(ZeroDivisionError), session(place, ledger) as ask:
        ask.mean("age")
        raise ZeroDivisionError
    paid = ask.answers[0].paid["epsilon"].max()
    assert max(float(one.epsilon_spent) for one in ledger.standings()) == pytest.approx(
        paid, rel=1e-6
    )


def test_a_session_that_cannot_begin_leaves_no_connection_open(
    house: House, tmp_path: Path
) -> None:
    ledger = cg.Ledger.create(tmp_path / "pure.ledger", promise="pure")
    place = house.put("people", people("text"))
    closed: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        close = in_engine.InEngine.close
        patch.setattr(in_engine.InEngine, "close", lambda own: (closed.append(own), close(own)))
        with pytest.raises(InputError, match="promises pure"):
            session(place, ledger, noise="gaussian")
    assert len(closed) == 1
    assert (
        ledger.standings() == [] or max(float(one.epsilon_spent) for one in ledger.standings()) == 0
    )


def test_names_that_are_neither_text_nor_whole_are_refused(house: House) -> None:
    frame = people("whole").assign(person=lambda one: one["person"] + 0.5)
    place = house.put("people", frame)
    with pytest.raises(
        InputError, match=r"'person' says whose a row is, in another type \(float64\) than text"
    ):
        session(place, None)


def test_people_of_a_callers_own_connection_are_gone_when_it_is_closed(tmp_path: Path) -> None:
    import duckdb
    import ibis

    frame = people("text")
    ledger = cg.Ledger.create(tmp_path / "people.ledger")
    with duckdb.connect() as connection:
        connection.register("given", frame)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
        connection.unregister("given")
        with session(ibis.duckdb.from_connection(connection).table("people"), ledger) as ask:
            ask.count("age > 40")
        left = connection.execute(
            "SELECT view_name FROM duckdb_views() WHERE NOT internal"
        ).fetchall()
        assert left == []


# Rights


def test_a_role_that_may_only_read(server: Any, database: str, tmp_path: Path) -> None:
    import psycopg
    from sqlalchemy import make_url

    house = House(database, server)
    house.put("people", people("text"))
    name = make_url(database).database
    house.run(f"REVOKE TEMPORARY ON DATABASE {name} FROM PUBLIC")
    role = server.new_role(database, "SELECT ON people")
    ledger = cg.Ledger.create(tmp_path / "people.ledger")
    with (
        session(f"{role}#people", None, noise_seed=1) as ask,
        session(house.place("people"), None, noise_seed=1) as own,
    ):
        assert str(ask.mean("pay")) == str(own.mean("pay"))
    with pytest.raises(InputError) as refused:
        session(f"{role}#people", ledger)
    assert "this role may not make: GRANT TEMPORARY ON DATABASE to it" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert ledger.standings() == []
    house.run(f"GRANT TEMPORARY ON DATABASE {name} TO {make_url(role).username}")
    with session(f"{role}#people", ledger) as ask:
        ask.count("age > 40")
    # Where transactions only read, unless somebody says otherwise.
    house.run(f"ALTER ROLE {make_url(role).username} SET default_transaction_read_only = on")
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        server.run(role, "CREATE TEMPORARY TABLE t (a int)")
    with session(f"{role}#people", None) as ask:
        ask.count("age > 40")
    before = [float(one.epsilon_spent) for one in ledger.standings()]
    with pytest.raises(InputError, match="this connection may not make: set PGOPTIONS='-c default"):
        session(f"{role}#people", ledger, name="later")
    assert [float(one.epsilon_spent) for one in ledger.standings()] == before
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGOPTIONS", "-c default_transaction_read_only=off")
        with session(f"{role}#people", ledger, name="last") as ask:
            ask.count("age > 40")


def test_who_has_nothing_left_ends_it_before_anything_is_asked(
    house: House, tmp_path: Path
) -> None:
    ledger = cg.Ledger.create(tmp_path / "people.ledger")
    frame = people("text").query("level == 'high'")
    place = house.put("people", frame)
    with session(place, ledger, spend=1.0, questions=1) as ask:
        ask.count("age > 40")
    before = [float(one.epsilon_spent) for one in ledger.standings()]
    with pytest.raises(BudgetExceededError, match="no budget is left in the ledger"):
        session(place, ledger, name="later")
    assert [float(one.epsilon_spent) for one in ledger.standings()] == before


def test_spark_asks_the_same_people(spark: Any, tmp_path: Path) -> None:
    import ibis

    frame = people("text")
    into_spark(as_table(frame), spark, tmp_path / "people", "people_of_a_ledger")
    given = ibis.pyspark.connect(spark).table("people_of_a_ledger")
    seen = []
    for name, table in {"here": frame, "there": given}.items():
        forced, ledger = Forced(), cg.Ledger.create(tmp_path / f"{name}.ledger")
        with pytest.MonkeyPatch.context() as patch:
            forced.install(patch)
            with session(table, ledger, questions=2) as ask:
                asked = [str(ask.ask(question)) for question in QUESTIONS[:2]]
                if name == "there":
                    sql = str(given.get_backend().compile(ask._table._base))
                    plan = spark.sql(sql)._jdf.queryExecution().toString()
                    assert "collegium_name" in plan
                    assert "4711" not in without_drawn_names(sql + plan)
        spent = [(one.level, float(one.epsilon_spent)) for one in ledger.standings()]
        seen.append((asked, spent, [(purpose, found.tolist()) for purpose, found in forced.seen]))
    assert seen[0] == seen[1]


def test_names_at_the_ends_of_what_an_engine_allows(tmp_path: Path) -> None:
    house = House.at("duckdb", None, tmp_path)
    rows = "FROM range(5) AS t(n)"
    house.run(
        f"CREATE TABLE large AS SELECT 18446744073709551615 - n AS person, 'low' AS level, 40 AS age {rows}",
        f"CREATE TABLE small AS SELECT (n - 128)::TINYINT AS person, 'low' AS level, 40 AS age {rows}",
        f"CREATE TABLE odd AS SELECT 'a' || chr(0) || n AS person, 'low' AS level, 40 AS age {rows}",
        "CREATE TABLE huge AS SELECT 170141183460469231731687303715884105727 AS person, 'low' AS level",
        "ALTER TABLE large ALTER person TYPE UBIGINT",
    )
    for name in ("small", "odd"):
        ledger = cg.Ledger.create(tmp_path / f"{name}.ledger")
        with session(house.place(name), ledger) as ask:
            ask.count("age > 30")
            assert ask._table._rows_of.tolist() == [5]
        assert sum(one.owners for one in ledger.standings()) == 5
    for name in ("large", "huge"):
        with pytest.raises(InputError, match="in another type"):
            session(house.place(name), None)
