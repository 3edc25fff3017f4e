"""What every engine is asked about: tables arrive as they are, and questions of every kind can be asked."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import collegium as cg
from collegium.data.schema_column import KINDS
from collegium.statistics import query
from collegium.statistics.language import parse_question
from tests.engines.generated_tables import (
    ROW,
    Generated,
    conditions,
    generated,
    into_postgresql,
    into_spark,
    questions,
)
from tests.postgresql_server import Server


@pytest.fixture(scope="module")
def made() -> Generated:
    return generated(0)


def cells(column: pa.ChunkedArray) -> list[Any]:
    """Cells that are equal only if they are the same: bits of floats, times in one zone."""
    if pa.types.is_timestamp(column.type) and column.type.tz:
        column = column.cast(pa.timestamp("us", "UTC"))
    if pa.types.is_floating(column.type):
        return [
            struct.pack("<d", cell) if cell is not None and cell == cell else str(cell)
            for cell in column.to_pylist()
        ]
    return column.to_pylist()


def assert_same_cells(found: pa.Table, made: Generated) -> None:
    assert found.column_names == made.table.column_names
    found = found.sort_by(ROW)
    for name in made.table.column_names:
        assert cells(found.column(name)) == cells(made.table.column(name)), name


def test_a_table_has_every_kind_and_type_and_each_owner_one_level(made: Generated) -> None:
    assert {column.kind for column in made.schema.values()} == set(KINDS)
    assert {str(kind) for kind in made.table.schema.types} == {
        "bool", "int8", "int16", "int32", "int64", "float", "double", "decimal128(12, 2)", "string",
        "date32[day]", "timestamp[us]", "timestamp[us, tz=UTC]",
    }  # fmt: skip
    owned = made.table.group_by("person").aggregate([("level", "count_distinct"), ("row", "count")])
    assert set(owned["level_count_distinct"].to_pylist()) == {1}
    rows = owned["row_count"].to_pylist()
    assert min(rows) == 1 and max(rows) > 100 and len(rows) == 300
    assert set(made.table["level"].to_pylist()) == {"high", "average", "o'low", "none", "gift"}
    assert all(made.table[name].null_count for name in made.schema)
    assert_same_cells(generated(0).table, made)
    assert not generated(1).table.equals(generated(0).table)


def test_questions_are_of_every_kind_and_every_column(made: Generated) -> None:
    asked = [parse_question(text, made.schema) for text in questions(made.schema)]
    assert {one.kind for one in asked} == set(query.KINDS)
    assert {one.kind for one in asked if one.apart} == set(query.COMPARED)
    assert any(one.levels for one in asked)
    needed = {name for one in asked for name in made.schema.sources(one.needs)}
    assert needed == {name for name, column in made.schema.items() if column.kind != "text"}
    assert len({str(one) for one in asked}) > 1000 and len(conditions(made.schema)) > 300
    fewer = made.only("income", "sex")
    assert {"count by sex", "median income"} < set(questions(fewer.schema))


@pytest.mark.filterwarnings("ignore:.*granted nothing:collegium.errors.PrivacyWarning")
@pytest.mark.parametrize("owner", ["text", "whole", None])
def test_they_are_answered_in_memory(owner: str | None) -> None:
    made = generated(3, 200 if owner else 1000, owner=owner, rows_per_owner=4 if owner else 1)
    asked = questions(made.schema, 25)
    session = cg.Statistics(
        made.table,
        made.policy,
        schema=made.schema,
        privacy=made.privacy,
        owner=made.owner,
        questions=len(asked),
        noise_seed=1,
    )
    assert len([session.ask(text) for text in asked]) == len(asked)


def test_a_duckdb_file_has_the_same_cells(
    made: Generated, duckdb_file: Callable[..., Path]
) -> None:
    import duckdb

    path = duckdb_file(people=made.table, others=made.table.slice(0, 3))
    with duckdb.connect(str(path), read_only=True) as connection:
        assert_same_cells(connection.table("people").to_arrow_table(), made)
        assert connection.table("others").shape[0] == 3


def test_a_postgresql_database_has_the_same_cells(
    made: Generated, server: Server, database: str
) -> None:
    into_postgresql(made.table, database)
    assert server.run(database, "SHOW timezone") == [("America/New_York",)]
    rows = server.run(f"{database}&options=-ctimezone%3DUTC", "SELECT * FROM people")
    columns = zip(*rows, strict=True)
    found = [
        pa.array(one, kind) for one, kind in zip(columns, made.table.schema.types, strict=True)
    ]
    assert_same_cells(pa.table(found, made.table.column_names), made)


def test_spark_has_the_same_cells(made: Generated, spark: Any, tmp_path: Path) -> None:
    frame = into_spark(made.table, spark, tmp_path / "people", "people_of_a_test")
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")  # which Ibis sets to UTC
    assert dict(frame.dtypes)["seen at"] == "timestamp_ntz"
    assert_same_cells(frame.toArrow(), made)
    assert spark.table("people_of_a_test").count() == made.table.num_rows


# The server


def test_roles_rights_passwords_and_the_log(
    server: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    server.run(database, "CREATE TABLE visits (age int)")
    server.run(database, "INSERT INTO visits VALUES (%s)", [41])
    reader = server.new_role(database, "SELECT ON visits")
    assert server.run(reader, "SELECT age FROM visits") == [(41,)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        server.run(reader, "DELETE FROM visits")
    asked = server.new_role(database, "SELECT ON visits", password="a secret")
    with pytest.raises(psycopg.OperationalError, match="password"):
        server.run(asked, "SELECT 1")
    monkeypatch.setenv("PGPASSWORD", "a secret")
    assert server.run(asked, "SELECT age FROM visits -- as somebody") == [(41,)]
    log = server.logged(database)
    assert "SELECT age FROM visits -- as somebody" in log and "DELETE FROM visits" in log
    assert "41" in log  # parameters as well
    assert server.logged(server.new_database()) == ""


def test_a_server_is_killed_and_comes_back(server: Server, database: str) -> None:
    import psycopg

    server.run(database, "CREATE TABLE visits AS SELECT 7 AS age")
    with psycopg.connect(database) as cut:
        assert server.end_connections(database) == 1
        with pytest.raises(psycopg.OperationalError):
            cut.execute("SELECT 1")
    with psycopg.connect(database) as open_one:
        with server.down(), pytest.raises(psycopg.OperationalError):
            open_one.execute("SELECT 1")
        with server.down(), pytest.raises(psycopg.OperationalError):
            server.run(database, "SELECT 1")
    assert server.run(database, "SELECT age FROM visits") == [(7,)]
