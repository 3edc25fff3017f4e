"""What others do to a table while it is asked, and engines that stop: one line, and the account as it must.

What stops before a row is looked at costs nothing; what stops later is charged once, at its price, and the
session asks nothing more. The ledger holds what was charged. No message quotes a row.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import collegium as cg
from collegium.data.engines import connections
from collegium.data.engines.connections import EngineError, StatementError
from collegium.data.engines.places import place_of
from collegium.errors import InputError
from collegium.weighted_sums import in_engine
from collegium.weighted_sums.reading import Reading
from collegium.weighted_sums.weighing import Weighing
from tests.engines.houses import House, as_table

SCHEMA = cg.Schema(
    {
        "age": {"kind": "whole", "bounds": [17, 90]},
        "pay": {"kind": "number", "bounds": [0, 100]},
        "sex": {"kind": "category", "categories": ["F", "M"]},
    }
)
POLICY = cg.Policy({"high": 0.5, "low": 3.0})
PEOPLE = 400
SECRET = "4711 words"


def people(n: int = PEOPLE) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "person": [f"p{number}" for number in range(n)],
            "level": np.where(np.arange(n) % 3 == 0, "high", "low"),
            "age": rng.integers(17, 91, n),
            "pay": rng.uniform(0, 100, n),
            "sex": rng.choice(["F", "M"], n),
        }
    )


pytestmark = pytest.mark.usefixtures("known_engine")


@pytest.fixture
def ledger(tmp_path: Path) -> cg.Ledger:
    return cg.Ledger.create(tmp_path / "people.ledger")


def session(table: Any, ledger: cg.Ledger | None = None, **how: Any) -> cg.Statistics:
    return cg.Statistics(
        table,
        POLICY,
        schema=SCHEMA,
        privacy="level",
        owner="person",
        ledger=ledger,
        **{"questions": 5, "noise_seed": None if ledger else 1, **how},
    )


def spent(ledger: cg.Ledger) -> dict[str, float]:
    return {one.level: float(one.epsilon_spent) for one in ledger.standings()}


def one_line(raised: Any) -> str:
    """The message, which says nothing of a row, and comes from nowhere that could."""
    text = str(raised.value)
    assert "\n" not in text and SECRET not in text and "4711" not in text
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None
    return text


def assert_ends(
    ask: cg.Statistics, ledger: cg.Ledger, question: str, raised: Any, charged: bool
) -> None:
    """Whether the last question was charged, once and at its price; nothing more is asked or charged."""
    assert len(ask._charged) == (1 if charged else 0)
    assert ("stays charged" in one_line(raised)) == charged
    left = ask._left
    assert left == pytest.approx(0.8 if charged else 1.0)
    paid = {row.group: row.epsilon_spent for row in ask.privacy_.groups}
    with pytest.raises(InputError, match="stopped with an error before") as again:
        ask.ask("count where sex == 'F'")
    assert "this question cost nothing" in one_line(again)
    assert ask._left == left and len(ask._charged) == (1 if charged else 0)
    ask.close()
    assert spent(ledger) == pytest.approx(paid if charged else dict.fromkeys(paid, 0.0), rel=1e-6)
    ask.close()  # and once more
    assert spent(ledger) == pytest.approx(paid if charged else dict.fromkeys(paid, 0.0), rel=1e-6)


# A second writer


def test_a_session_sees_what_was_there_when_it_was_opened(server: Any, database: str) -> None:
    import psycopg

    house = House(database, server)
    place = house.put("people", people())
    questions = ["mean pay", "median age by sex", "count where age >= 40", "histogram sex"]
    with session(place) as ask:
        before = [str(ask.ask(question)) for question in questions]
    with session(place) as ask:
        found = [str(ask.ask(questions[0]))]
        house.run("UPDATE people SET pay = 100, sex = 'F', level = 'low', person = 'p7'")
        found.append(str(ask.ask(questions[1])))
        house.run("INSERT INTO people VALUES ('new', 'high', 90, 100, 'F')")
        found.append(str(ask.ask(questions[2])))
        house.run("DELETE FROM people")
        for change in (
            "DROP TABLE people",
            "ALTER TABLE people DROP COLUMN sex",
            "TRUNCATE people",
        ):
            with psycopg.connect(database) as other, pytest.raises(psycopg.errors.LockNotAvailable):
                other.execute("SET lock_timeout = '10ms'")
                other.execute(change)
        found.append(str(ask.ask(questions[3])))
    assert found == before
    with pytest.raises(InputError, match="nobody in this table granted a budget"):
        session(place)


def test_nobody_writes_into_a_duckdb_file_that_is_asked(tmp_path: Path) -> None:
    house = House.at("duckdb", None, tmp_path)
    place = house.put("people", people())
    write = f"import duckdb; duckdb.connect({house.where.removeprefix('duckdb:///')!r})"
    with session(place) as ask:
        found = subprocess.run([sys.executable, "-c", write], capture_output=True, check=False)
        assert found.returncode and b"lock" in found.stderr
        ask.ask("mean pay")
    subprocess.run([sys.executable, "-c", write], check=True)


def test_a_callers_own_connection_to_duckdb(tmp_path: Path) -> None:
    import duckdb
    import ibis

    house = House.at("duckdb", None, tmp_path)
    house.put("people", people())
    with duckdb.connect(house.where.removeprefix("duckdb:///")) as own:
        given = ibis.duckdb.from_connection(own).table("people")
        with session(given) as ask:
            before = [str(ask.ask("mean pay")), str(ask.ask("count by sex"))]
        with session(given) as ask:
            found = [str(ask.ask("mean pay"))]
            own.cursor().execute("UPDATE people SET pay = 100, sex = 'F'")
            found.append(str(ask.ask("count by sex")))
        assert found == before
        # Whoever ends the snapshot on that connection is told where another number of rows is there.
        with session(given) as ask:
            own.execute("COMMIT")
            own.cursor().execute("INSERT INTO people SELECT 'new', 'high', 90, 100.0, 'F'")
            with pytest.raises(
                EngineError, match="has changed since the session was opened"
            ) as raised:
                ask.ask("mean pay")
            one_line(raised)


def test_a_callers_own_connection_to_postgresql(server: Any, database: str) -> None:
    import ibis
    import psycopg

    house = House(database, server)
    house.put("people", people())
    with psycopg.connect(database) as own:
        given = ibis.postgres.from_connection(own).table("people")
        own.rollback()
        before = own.isolation_level, own.autocommit
        with session(given) as ask, session(house.place("people")) as other:
            house.run("UPDATE people SET pay = 100")
            assert str(ask.ask("mean pay")) == str(other.ask("mean pay"))
        assert (own.isolation_level, own.autocommit) == before
        assert own.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        # Whoever ends the transaction ends the snapshot, and is told where others are there by now.
        with session(given) as ask:
            own.commit()
            house.run("INSERT INTO people VALUES ('new', 'high', 90, 100, 'F')")
            with pytest.raises(EngineError, match="has changed since the session was opened"):
                ask.ask("mean age")
        own.execute("SELECT 1")  # a transaction of another kind
        with pytest.raises(InputError, match=r"within a transaction \(read committed\) in which"):
            session(given)


def test_what_may_change_under_a_snapshot_is_not_taken_for_one(server: Any, database: str) -> None:
    house = House(database, server)
    house.put("people", people(9))
    house.run(
        "CREATE VIEW seen AS SELECT * FROM people",
        "CREATE MATERIALIZED VIEW kept AS SELECT * FROM people",
        "CREATE TABLE parts (LIKE people) PARTITION BY LIST (level)",
        "CREATE TABLE part PARTITION OF parts DEFAULT",
        "INSERT INTO parts SELECT * FROM people",
        "CREATE TABLE parent (LIKE people)",
        "CREATE TABLE child () INHERITS (parent)",
        "CREATE SCHEMA ward CREATE TABLE people (person text)",
        "CREATE VIEW ward.kept AS SELECT * FROM people",
    )
    frozen = {}
    for name in ("people", "seen", "kept", "parts", "part", "parent", "ward.people", "ward.kept"):
        connection = connections.opened(place_of(house.place(name)))
        frozen[name] = connection.frozen
        connection.other("kept" if "ward" in name else "people")
        assert connection.frozen == (frozen[name] and name != "ward.people")
        connection.close()
    assert frozen == {
        "people": True, "seen": False, "kept": True, "parts": False, "part": True, "parent": False,
        "ward.people": True, "ward.kept": False,
    }  # fmt: skip


# The server ends, or the connection, or the right


def when_it_has_agreed(
    monkeypatch: pytest.MonkeyPatch, then: Callable[[], Any], times: int = 1
) -> None:
    """Do something between an engine's word that it takes a statement and the statement itself."""
    agreed = connections._PostgreSQL._sql
    left = [times]

    def after(own: Any, expression: Any) -> str:
        sql = agreed(own, expression)
        if left[0]:
            left[0] -= 1
            then()
        return sql

    monkeypatch.setattr(connections._PostgreSQL, "_sql", after)


@pytest.mark.parametrize("when", ["before", "within", "between"])
def test_the_server_is_killed(
    server: Any, database: str, ledger: cg.Ledger, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    house = House(database, server)
    place = house.put("people", people())
    ask = session(place, ledger)
    if when == "between":
        ask.ask("count where age >= 40")
        paid = spent(ledger)
    if when == "within":
        when_it_has_agreed(monkeypatch, server.stop)
    else:
        server.stop()
    try:
        with pytest.raises(EngineError if when == "within" else StatementError) as raised:
            ask.ask("mean pay")
        assert "there is no connection to the server" in one_line(raised)
    finally:
        server.start()
    if when == "between":
        assert len(ask._charged) == 1
        ask.close()
        assert 0 < spent(ledger)["high"] < paid["high"]
    else:
        assert_ends(ask, ledger, "mean pay", raised, charged=when == "within")
    with session(place, ledger, name="later") as ask:
        ask.ask("mean pay")


def test_the_connection_is_ended_within_each_kind_of_question(
    server: Any, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(database, server)
    place = house.put("people", people())
    asked = (("count by sex", {}), ("median age", {}), ("mean pay", {"calibrated": True}))
    for number, (question, how) in enumerate(asked):
        ledger = cg.Ledger.create(tmp_path / f"{number}.ledger")
        ask = session(place, ledger)
        price = ask.plan(question, **how)
        with monkeypatch.context() as patch, pytest.raises(EngineError) as raised:
            when_it_has_agreed(patch, lambda: server.end_connections(database))
            ask.ask(question, **how)
        assert price.epsilon == pytest.approx(
            {row.group: row.epsilon_spent for row in ask.privacy_.groups}
        )
        assert_ends(ask, ledger, question, raised, charged=True)


@pytest.mark.parametrize("last", [0, 1])
def test_an_answer_in_two_rounds_that_stops_in_either(
    house: House, ledger: cg.Ledger, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    rows = people(6000)
    place = house.put("people", rows)
    ask = session(place, ledger, noise="gaussian")
    question = "mean pay"
    price = ask.plan(question).epsilon
    kind = connections._DuckDB if house.server is None else connections._PostgreSQL
    fetch, seen = kind.fetch, []

    def failing(own: Any, expression: Any) -> Any:
        seen.append(expression)
        if len(seen) > last:
            raise EngineError("it stopped")
        return fetch(own, expression)

    monkeypatch.setattr(kind, "fetch", failing)
    with pytest.raises(EngineError, match="it stopped") as raised:
        ask.ask(question)
    assert len(seen) == last + 1 and "stays charged" in one_line(raised)
    paid = {row.group: row.epsilon_spent for row in ask.privacy_.groups}
    for group, most in price.items():
        assert 0 < paid[group] <= most * (1 + 1e-9)
    if last == 0:  # nothing was drawn: what it may cost at most
        assert paid == pytest.approx(price)
    ask.close()
    assert spent(ledger) == pytest.approx(paid, rel=1e-6)


def test_an_interrupt_while_it_is_added_up_costs_nothing(
    house: House, ledger: cg.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = house.put("people", people())
    kind = connections._DuckDB if house.server is None else connections._PostgreSQL

    def interrupted(own: Any, expression: Any) -> Any:
        raise KeyboardInterrupt

    with session(place, ledger) as ask:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(kind, "fetch", interrupted)
            ask.ask("mean pay")
        assert not ask._charged and ask._left == 1
        ask.ask("mean pay")  # which nobody knows anything of
        assert len(ask._charged) == 1


def test_rights_are_taken_while_it_is_open_and_between_sessions(
    server: Any, database: str, ledger: cg.Ledger
) -> None:
    house = House(database, server)
    house.put("people", people())
    role = server.new_role(database, "SELECT ON people")
    name = role.partition("://")[2].partition("@")[0]
    ask = session(f"{role}#people", ledger)
    house.run(f"REVOKE SELECT ON people FROM {name}")
    with pytest.raises(
        StatementError, match="this role may not read it: GRANT SELECT to it"
    ) as raised:
        ask.ask("mean pay")
    assert_ends(ask, ledger, "mean pay", raised, charged=False)
    before = spent(ledger)
    with pytest.raises(InputError, match="this role may not read it: GRANT SELECT") as refused:
        session(f"{role}#people", ledger, name="later")
    one_line(refused)
    house.run(f"GRANT SELECT (person, level, pay) ON people TO {name}")
    with session(f"{role}#people", ledger, name="in part") as ask:
        ask.ask("count where pay > 50")
        with pytest.raises(InputError, match="has no column 'age', which is needed here"):
            ask.ask("mean age")
    assert spent(ledger)["high"] > before["high"]


# Rows at which an engine stumbles


def with_a_secret(house: House) -> str:
    """Put a view there whose column of ages cannot be read of one person."""
    frame = people().assign(age=lambda one: one["age"].astype(str))
    frame.loc[123, "age"] = SECRET
    house.put("raw", frame)
    house.run(
        "CREATE VIEW people AS SELECT person, level, CAST(age AS integer) AS age, pay, sex FROM raw"
    )
    return house.place("people")


@pytest.mark.parametrize(
    "question", ["mean age", "median age by sex", "count where age >= 40", "corr age, pay"]
)
def test_a_cast_that_fails_in_one_row_is_charged_and_says_nothing(
    house: House, ledger: cg.Ledger, question: str, caplog: pytest.LogCaptureFixture
) -> None:
    ask = session(with_a_secret(house), ledger)
    with pytest.raises(EngineError) as raised:
        ask.ask(question)
    assert SECRET not in caplog.text
    assert_ends(ask, ledger, question, raised, charged=True)


def test_a_question_about_other_columns_is_answered(house: House) -> None:
    with session(with_a_secret(house)) as ask:
        ask.ask("mean pay by sex")


def test_a_cast_that_fails_ends_the_opening_of_spark(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    """All of a table is kept as it is then; no name is known yet, and nothing is charged."""
    import ibis

    frame = people(30).assign(age=lambda one: one["age"].astype(str))
    frame.loc[12, "age"] = SECRET
    pq.write_table(as_table(frame), tmp_path / "raw.parquet")
    spark.read.parquet(str(tmp_path / "raw.parquet")).createOrReplaceTempView("raw_people")
    made = "SELECT person, level, CAST(age AS int) AS age, pay, sex FROM raw_people"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW failing_people AS {made}")
    with pytest.raises(EngineError, match="Spark stopped with an error") as raised:
        session(ibis.pyspark.connect(spark).table("failing_people"))
    one_line(raised)
    assert SECRET not in caplog.text + "".join(capfd.readouterr())


def test_what_python_has_no_room_for_is_charged_as_well(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row may break a driver, or our own reading: whatever is raised, and wherever."""
    frame = people().assign(age=lambda one: one["age"].astype(str))
    place = house.put("people", pd.concat([frame, frame[:3]]))
    for owner, name in ((cg.Schema, "arrays"), (in_engine, "_numbered")):
        one = cg.Ledger.create(tmp_path / f"{name}.ledger")
        ask = session(place, one)

        def broken(*given: Any, **named: Any) -> Any:
            raise OverflowError(SECRET)

        with monkeypatch.context() as patch, pytest.raises(EngineError) as raised:
            patch.setattr(owner, name, broken)
            ask.ask("mean age")
        assert_ends(ask, one, "mean age", raised, charged=True)


# Files that change under a view


def of_files(house: House, folder: Path, frame: pd.DataFrame) -> str:
    pq.write_table(as_table(frame), folder / "people.parquet")
    house.run(f"CREATE VIEW people AS SELECT * FROM read_parquet('{folder / 'people.parquet'}')")
    return house.place("people")


def test_files_that_are_replaced(tmp_path: Path) -> None:
    house = House.at("duckdb", None, tmp_path)
    frame = people()
    place, file = of_files(house, tmp_path, frame), tmp_path / "people.parquet"
    for number, other in enumerate((people(PEOPLE + 1), frame.assign(level="low"), None)):
        ledger = cg.Ledger.create(tmp_path / f"{number}.ledger")
        pq.write_table(as_table(frame), file)
        ask = session(place, ledger if other is None else None)
        if other is None:
            file.unlink()
        else:
            pq.write_table(as_table(other), file)
        with pytest.raises(EngineError) as raised:
            ask.ask("mean pay")
        assert ("has changed" in one_line(raised)) == (other is not None)
        assert "stays charged" in str(raised.value) and len(ask._charged) == 1
        ask.close()


@pytest.mark.parametrize("on_ledger", [False, True])
def test_files_that_are_replaced_by_as_many_rows_move_nobody_further(
    tmp_path: Path, ledger: cg.Ledger, on_ledger: bool
) -> None:
    """Somebody has others' rows by now: all of them together count as much as the one before, at most.

    Answers are those of the rows that are there when something is asked; on a ledger, levels stay.
    """
    house = House.at("duckdb", None, tmp_path)
    frame = people(30)
    place, file = of_files(house, tmp_path, frame), tmp_path / "people.parquet"
    ask = session(place, ledger if on_ledger else None)
    weighing = Weighing(np.array([1000, 3000]), 1.0, False, 1)

    def steps(now: pd.DataFrame) -> int:
        pq.write_table(as_table(now), file)
        (found,) = ask._table.summed(Reading(), [weighing])
        return int(found[0, 0])

    assert steps(frame) == 10 * 1000 + 20 * 3000
    low, high = (np.flatnonzero(frame["level"] == level) for level in ("low", "high"))
    its = frame.loc[low[0], "person"]
    more = frame.copy()
    more.loc[low[1:6], "person"] = its
    others = 10 * 1000 + 14 * 3000
    assert 0 <= steps(more) - others <= 3000
    torn = frame.copy()
    torn.loc[high[0], "person"] = its  # of two levels by now
    if on_ledger:
        with pytest.raises(EngineError, match="has changed"):
            steps(torn)
    else:
        assert 0 < steps(torn) - (9 * 1000 + 19 * 3000) <= 3000
    ask.close()


def test_a_view_of_a_text_file_whose_columns_change_their_type_is_charged(
    tmp_path: Path, ledger: cg.Ledger
) -> None:
    """What a column of a text file holds is found out from its rows: a line that one row decides on."""
    house = House.at("duckdb", None, tmp_path)
    file = tmp_path / "people.csv"
    people().to_csv(file, index=False)
    house.run(f"CREATE VIEW people AS SELECT * FROM read_csv('{file}')")
    ask = session(house.place("people"), ledger)
    frame = people().assign(age=lambda one: one["age"].astype(object))
    frame.loc[5, "age"] = SECRET
    frame.to_csv(file, index=False)
    with pytest.raises(EngineError) as raised:
        ask.ask("mean age")
    assert re.search("charged", one_line(raised))
    assert_ends(ask, ledger, "mean age", raised, charged=True)
