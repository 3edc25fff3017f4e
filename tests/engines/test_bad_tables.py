"""Tables that are not what was said of them, and engines that cannot be asked: one line, or read as they are.

No row can stop a question: what an engine or Python has no room for is missing, or at a bound, or its column
is refused by its type, before anybody's row is looked at.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import collegium as cg
from collegium.data.engines.connections import EngineError
from collegium.errors import InputError
from collegium.weighted_sums import in_engine
from tests.engines.generated_tables import into_spark
from tests.engines.houses import House, as_table

POLICY = cg.Policy({"high": 1.0, "low": 3.0})
FRAME = pd.DataFrame(
    {
        "person": [f"p{number}" for number in range(60)],
        "level": ["high", "low", "low"] * 20,
        "age": [20, 30, 70] * 20,
        "sex": ["F", "M", "F", "x"] * 15,
    }
)
SAID: dict[str, Any] = {
    "number": {"kind": "number", "bounds": [0, 10]},
    "whole": {"kind": "whole", "bounds": [0, 10]},
    "words": {"kind": "category", "categories": ["a", "b"]},
    "codes": {"kind": "category", "categories": ["1", "2"]},
    "truths": {"kind": "category", "categories": ["True", "False"]},
    "flag": {"kind": "flag"},
    "date": {"kind": "date", "bounds": ["2000-01-01", "2020-01-01"]},
}


@pytest.fixture(autouse=True)
def known_engine(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what each session asks of its engine, which is asked elsewhere, but for a few tests."""
    if "zone" not in request.node.name:
        monkeypatch.setattr(in_engine, "refuse_other_answers", lambda engine: None)


def session(given: Any, columns: dict[str, Any], **how: Any) -> cg.Statistics:
    how = {"privacy": "level", "owner": "person", "noise_seed": 1, **how}
    return cg.Statistics(given, POLICY, schema=cg.Schema(columns), **how)


def one_line(raised: Any) -> str:
    text = str(raised.value)
    assert "\n" not in text and raised.value.__cause__ is None
    return text


# What no row can do

NOTHING_ELSE = "holds neither numbers, text, truth values nor dates there: make a view"
DUCKDB = {
    "ubigint": ["18446744073709551615"], "hugeint": ["170141183460469231731687303715884105727"],
    "uhugeint": ["340282366920938463463374607431768211455"], "uuid": ["uuid()"], "bit": ["'101'"],
    "interval": ["interval 300000 years"], "int[]": ["[1, 2]"], "date[]": ["[date 'infinity']"],
    "struct(a int)": ["{'a': 1}"], "map(varchar, int)": ["map{'a': 1}"], "time": ["'24:00:00'"],
    "union(n int, s varchar)": ["'x'"], "json": ["'{}'"], "blob": ["'\\xff'::blob"],
    "timetz": ["'12:00:00+15:59:59'"], "date": ["'infinity'", "'5877642-06-25 (BC)'"],
    "timestamp": ["'-infinity'", "'290309-12-22 (BC)'"], "timestamptz": ["'infinity'"],
    "timestamp_ns": ["'1677-09-22'"], "timestamp_s": ["'290309-12-22 (BC)'"], "float": ["'nan'", "'-inf'"],
    "double": ["'inf'", "-5e-324"], "decimal(38, 10)": ["9999999999999999999999999999.9999999999"],
    "varchar": ["'a' || chr(0) || 'b'", "'1e400'", "'\U0001f642'"],
    "tinyint": ["-128"], "enum('a', 'b')": ["'a'"],
    "boolean": ["true"],
}  # fmt: skip
POSTGRESQL = {
    "numeric": ["'NaN'", "'Infinity'", "1e400", "1e-400", "1e16000"], "numeric(10, 2)": ["'NaN'"],
    "date": ["'infinity'", "'-infinity'", "'4713-01-01 BC'", "'5874897-12-31'"],
    "timestamp": ["'infinity'", "'4713-01-01 BC'", "'294276-12-31'"], "timestamptz": ["'-infinity'"],
    "real": ["'NaN'", "'-Infinity'", "1e-45"], "double precision": ["5e-324", "'NaN'"],
    "jsonb": ["repeat('[', 3000) || repeat(']', 3000)"], "uuid": ["gen_random_uuid()"], "int[]": ["'{1,2}'"],
    "interval": ["'178000000 years'"], "time": ["'24:00'"], "bytea": ["'\\xff'"], "bit(3)": ["'101'"],
    "name": ["'a'"], "char(3)": ["'a'"], "bigint": ["-9223372036854775808"], "int4range": ["'[1,2)'"],
    "inet": ["'::1'"], "xml": ["'<a/>'"], "money": ["12.5"],
}  # fmt: skip
READ = {"number", "whole", "words", "codes", "truths", "flag", "date"}


def test_no_value_of_any_type_stops_a_question(house: House) -> None:
    """Asked of a column as all that it could be: it is refused for its type, or answered."""
    types = DUCKDB if house.server is None else POSTGRESQL
    columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(types))
    house.run(f"CREATE TABLE people (person text, level text, {columns})")
    house.run(*(f"INSERT INTO people (person, level) VALUES ('p{n}', 'low')" for n in range(9)))
    for number, (kind, values) in enumerate(types.items()):
        cast = "" if house.server is None else f"::{kind}"
        rows = ", ".join(f"('z{number} {n}', 'low', ({one}){cast})" for n, one in enumerate(values))
        house.run(f"INSERT INTO people (person, level, c{number}) VALUES {rows}")
    answered, refused = set(), {}
    for said, one in SAID.items():
        columns_of = {f"c{number}": one for number in range(len(types))}
        with session(house.place("people"), columns_of, questions=100) as ask:
            for number, kind in enumerate(types):
                by_value = said in ("number", "whole", "date")
                asked = [f"mean c{number}" if by_value else f"count by c{number}"]
                asked += [f"count by year(c{number})"] if said == "date" else []
                for question in asked:
                    try:
                        ask.ask(question)
                        answered.add(kind)
                    except EngineError as error:
                        pytest.fail(f"{kind} as {said}: {question}: {error}")
                    except InputError as error:
                        assert "\n" not in str(error)
                        refused.setdefault(kind, set()).add(NOTHING_ELSE in str(error))
            assert len(ask._charged) == len(ask.answers)
    nothing_else = {kind for kind, why in refused.items() if why == {True}} - answered
    assert {"int[]", "interval", "uuid", "time"} <= nothing_else
    assert not nothing_else & {"date", "numeric", "varchar", "name", "float", "ubigint", "money"}


def test_decimals_that_are_no_numbers_are_missing(server: Any, database: str) -> None:
    house = House(database, server)
    house.put("given", FRAME)
    house.run("CREATE TABLE people AS SELECT person, level, age::numeric(10, 2) AS age FROM given")
    house.run("UPDATE people SET age = 'NaN' WHERE person IN ('p0', 'p1', 'p2')")
    frame = FRAME.astype({"age": float})
    frame.loc[:2, "age"] = np.nan
    columns = {"age": {"kind": "number", "bounds": [0, 100]}}
    with session(house.place("people"), columns) as there:
        here = session(frame, columns)
        for question in ("mean age", "count where age is missing", "median age"):
            assert str(here.ask(question)) == str(there.ask(question))


# What was said of a table, and is not so


def test_numbers_in_text_are_read_row_by_row_and_said_to_be(house: House) -> None:
    frame = FRAME.assign(age=[["20", "31.6", "x", None, "1e400"][n % 5] for n in range(60)])
    place = house.put("people", frame)
    columns = {
        "age": {"kind": "whole", "bounds": [0, 100]},
        "sex": {"kind": "category", "categories": ["F", "M"]},
    }
    here = session(frame, columns)
    with session(place, columns) as there:
        for question in ("mean age by sex", "median age", "count where age >= 30"):
            one, other = here.ask(question), there.ask(question)
            pd.testing.assert_frame_equal(one.cells, other.cells, check_exact=True)
            assert any(
                "column 'age' holds numbers as text, so rows were read here" in n
                for n in other.notes
            )
        assert not any("read here" in note for note in there.ask("count by sex").notes)


@pytest.mark.parametrize("house", ["duckdb"], indirect=True)
@pytest.mark.parametrize(
    ("columns", "how", "said"),
    [
        ({"wage": SAID["number"]}, {}, "has no column 'wage', which is needed here: did you"),
        ({"age": {"kind": "category", "categories": ["F"]}}, {}, "holds numbers, and its categories are"),
        ({"age": SAID["date"]}, {}, "holds numbers, but dates in the schema"),
        ({"age": SAID["whole"]}, {"privacy": "levels"}, "has no column 'levels': did you mean 'level'"),
        ({"age": SAID["whole"]}, {"owner": "persons"}, "has no column 'persons': did you mean 'person'"),
        ({"age": SAID["whole"]}, {"privacy": "sex"}, "60 record(s) with a privacy level that"),
        ({"age": SAID["whole"]}, {"owner": "sex"}, "3 people with two levels"),
        ({"age": SAID["whole"]}, {"privacy": None}, "budgets must be a Policy, and privacy the column"),
    ],
    ids=str,
)  # fmt: skip
def test_a_schema_or_columns_of_another_table(
    house: House, columns: Any, how: Any, said: str
) -> None:
    place = house.put("people", FRAME)
    with pytest.raises(InputError) as refused, session(place, columns, **how) as ask:
        ask.ask(f"count where {next(iter(columns))} is missing")
    assert said in one_line(refused)


@pytest.mark.parametrize("house", ["duckdb"], indirect=True)
@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DELETE FROM people", "nobody in this table granted a budget"),
        ("UPDATE people SET person = NULL WHERE age = 70", "20 rows have no name in column 'person'"),
        ("UPDATE people SET level = 'Low' WHERE age = 70", "did you mean 'low'?"),
        ("UPDATE people SET level = NULL WHERE age = 70", "20 record(s) with a privacy level"),
        ("UPDATE people SET person = 'p1' WHERE person IN ('p0', 'p3')", "1 person with two levels"),
        ("ALTER TABLE people RENAME TO persons", "has no table 'people' that may be read: allowed"),
        ("ALTER TABLE people DROP COLUMN person", "the table has no column 'person'"),
        ("ALTER TABLE people ALTER person TYPE uuid USING NULL", "another type (uuid) than text or"),
    ],
    ids=str,
)  # fmt: skip
def test_a_table_that_cannot_be_asked(house: House, statement: str, said: str) -> None:
    place = house.put("people", FRAME)
    house.run(statement)
    with pytest.raises(InputError) as refused:
        session(place, {"age": SAID["whole"]})
    assert said in one_line(refused)


def test_a_column_disappears_between_sessions_and_under_a_view(tmp_path: Path) -> None:
    house = House.at("duckdb", None, tmp_path)
    house.put("given", FRAME)
    house.run("CREATE VIEW people AS SELECT * FROM given", "ALTER TABLE given DROP COLUMN sex")
    with session(house.place("people"), {"age": SAID["whole"], "sex": SAID["words"]}) as ask:
        ask.ask("mean age")
        with pytest.raises(
            InputError, match="has no column 'sex', which is needed here"
        ) as refused:
            ask.ask("count by sex")
        assert len(ask._charged) == 1
    one_line(refused)


def test_another_backend_of_ibis(tmp_path: Path) -> None:
    import sqlite3

    import ibis

    with sqlite3.connect(tmp_path / "people.sqlite") as made:
        FRAME.to_sql("people", made, index=False)
    connection = ibis.sqlite.connect(tmp_path / "people.sqlite")
    with pytest.raises(InputError) as refused:
        session(connection.table("people"), {"age": SAID["whole"]})
    assert "tables of sqlite cannot be asked where they lie: allowed are DuckDB" in one_line(
        refused
    )
    with pytest.raises(InputError) as refused:
        session(
            ibis.table({"person": "string", "level": "string", "age": "int64"}),
            {"age": SAID["whole"]},
        )
    one_line(refused)
    connection = ibis.duckdb.connect()
    connection.con.execute("CREATE TABLE people (person text, level text, age int)")
    column = connection.table("people").age
    with pytest.raises(InputError) as refused:
        session(column, {"age": SAID["whole"]})
    assert "must be a table with a connection" in one_line(refused)


def test_a_table_of_ibis_in_memory_is_given_as_the_frame_itself() -> None:
    ibis = pytest.importorskip("ibis")
    held = ibis.memtable(FRAME)
    for given in (held, held.filter(held.age > 20)):
        with pytest.raises(InputError) as refused:
            session(given, {"age": SAID["whole"]})
        assert "(ibis.memtable) lies in no engine: give the frame" in one_line(refused)


def test_a_frame_of_spark_is_given_as_a_table_of_ibis(spark: Any, tmp_path: Path) -> None:
    frame = into_spark(as_table(FRAME), spark, tmp_path / "framed", "people_framed")
    with pytest.raises(InputError) as refused:
        session(frame, {"age": SAID["whole"]})
    assert "give ibis.pyspark.connect(session).table('people')" in one_line(refused)


# Zones


def test_days_do_not_depend_on_the_zone_of_a_callers_connection() -> None:
    import duckdb
    import ibis

    columns = {"seen": {"kind": "date", "bounds": ["2020-01-01", "2020-12-31"]}}
    times = ["2020-03-01 02:00Z", "2020-02-29 23:00Z", None] * 20
    frame = FRAME.assign(seen=pd.to_datetime(times, utc=True))
    here = session(frame, columns)
    with duckdb.connect() as connection:
        connection.register("given", frame)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
        given = ibis.duckdb.from_connection(connection).table("people")
        connection.execute("SET TimeZone = 'America/New_York'")
        with session(given, columns) as there:
            for question in ("count where seen >= 2020-03-01", "mean seen"):
                one, other = here.ask(question), there.ask(question)
                pd.testing.assert_frame_equal(one.cells, other.cells, check_exact=True)
        ((zone,),) = connection.execute("SELECT current_setting('TimeZone')").fetchall()
        assert zone == "America/New_York"


def test_spark_tells_days_apart_in_utc(spark: Any, tmp_path: Path) -> None:
    import ibis

    setting = "spark.sql.session.timeZone"

    columns = {"seen": {"kind": "date", "bounds": ["2020-01-01", "2020-12-31"]}}
    times = ["2020-03-01 02:00Z", "2020-02-29 23:00Z", None] * 20
    frame = FRAME.assign(seen=pd.to_datetime(times, utc=True).astype("datetime64[us, UTC]"))
    into_spark(as_table(frame), spark, tmp_path / "seen", "people_seen")
    here = session(frame, columns)
    given = ibis.pyspark.connect(spark).table("people_seen")
    before = spark.conf.get(setting)
    spark.conf.set(setting, "America/New_York")
    with session(given, columns) as there:
        for question in ("count where seen >= 2020-03-01", "mean seen"):
            one, other = here.ask(question), there.ask(question)
            pd.testing.assert_frame_equal(one.cells, other.cells, check_exact=True)
    assert spark.conf.get(setting) == "America/New_York"
    spark.conf.set(setting, before)
