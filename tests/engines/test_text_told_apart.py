"""Two spellings are two people, levels and categories, whatever an engine's collation says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import collegium as cg
from tests.engines.houses import House

SCHEMA = cg.Schema(
    {
        "sex": {"kind": "category", "categories": ["F", "f", "M"]},
        "agreed": {"kind": "flag"},
    }
)
POLICY = cg.Policy({"High": 1.0, "high": 2.0})
QUESTIONS = ("count by sex", "count people where sex == 'F'", "count where agreed", "share of sex")
FRAME = pd.DataFrame(
    {
        "person": ["Ann", "ann", "ANN", "Bo", "bo", "bo", "Zoë", "ZOË"] * 10,
        "level": ["High", "high", "High", "high", "High", "High", "high", "high"] * 10,
        "sex": ["F", "f", "F", "M", "m", "m", "f", "F"] * 10,
        "agreed": ["Yes", "yes", "no", "NO", "perhaps", "No", None, "Perhaps"] * 10,
    }
)


pytestmark = pytest.mark.usefixtures("known_engine")


def session(given: Any, ledger: cg.Ledger | None = None) -> cg.Statistics:
    return cg.Statistics(
        given,
        POLICY,
        schema=SCHEMA,
        privacy="level",
        owner="person",
        noise_seed=None if ledger else 1,
        ledger=ledger,
    )


@pytest.mark.filterwarnings("ignore:.*are called like another one:collegium.errors.PrivacyWarning")
def assert_as_in_memory(given: Any, ledger: cg.Ledger | None = None) -> None:
    here = session(FRAME)
    with session(given) as there:
        assert dict(zip(here._table.groups, here._table.sizes.tolist(), strict=True)) == {
            "High": 3,
            "high": 4,
        }
        assert there._table.sizes.tolist() == here._table.sizes.tolist()
        for question in QUESTIONS:
            one, other = here.ask(question), there.ask(question)
            pd.testing.assert_frame_equal(one.cells, other.cells, check_exact=True)
            assert not [note for note in other.notes if "read here" in note]
    if ledger is not None:
        with session(given, ledger) as again:
            again.ask(QUESTIONS[0])
        assert sum(one.owners for one in ledger.standings()) == 7


@pytest.mark.parametrize(
    "kind", ["VARCHAR COLLATE NOCASE", "VARCHAR COLLATE NOCASE.NOACCENT", "ENUM"]
)
def test_duckdb(kind: str, tmp_path: Path) -> None:
    house = House.at("duckdb", None, tmp_path)
    house.put("given", FRAME)
    types = dict.fromkeys(FRAME.columns, kind)
    if kind == "ENUM":
        types = {
            name: f"ENUM (SELECT DISTINCT {name} FROM given WHERE {name} IS NOT NULL)"
            for name in FRAME
        }
        house.run(*(f"CREATE TYPE its_{name} AS {kind}" for name, kind in types.items()))
        types = {name: f"its_{name}" for name in FRAME}
    house.run(
        f"CREATE TABLE people ({', '.join(f'{name} {kind}' for name, kind in types.items())})",
        "INSERT INTO people SELECT * FROM given",
    )
    assert_as_in_memory(house.place("people"), cg.Ledger.create(tmp_path / "people.ledger"))


def test_a_callers_own_connection_to_duckdb_that_folds_case(tmp_path: Path) -> None:
    import duckdb
    import ibis

    with duckdb.connect() as connection:
        connection.register("given", FRAME)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
        connection.execute("PRAGMA default_collation = NOCASE")
        given = ibis.duckdb.from_connection(connection).table("people")
        assert_as_in_memory(given, cg.Ledger.create(tmp_path / "people.ledger"))


@pytest.mark.parametrize(
    "kind", ["text COLLATE folded", "varchar(9) COLLATE folded", "citext", "enum", "char(9)"]
)
def test_postgresql(kind: str, server: Any, database: str, tmp_path: Path) -> None:
    house = House(database, server)
    house.put("given", FRAME)
    types = dict.fromkeys(FRAME.columns, kind)
    if kind == "citext":
        if not server.run(database, "SELECT 1 FROM pg_available_extensions WHERE name = 'citext'"):
            pytest.skip("the server has no extension citext (Debian: postgresql-contrib)")
        house.run("CREATE EXTENSION citext")
    elif kind == "enum":
        for name in FRAME:
            words = ", ".join(f"'{word}'" for word in FRAME[name].dropna().unique())
            house.run(f"CREATE TYPE its_{name} AS ENUM ({words})")
        types = {name: f"its_{name}" for name in FRAME}
    else:
        house.run(
            "CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
        )
    columns = ", ".join(f"{name} {one}" for name, one in types.items())
    cast = ", ".join(f"{name}::{types[name].partition(' COLLATE')[0]}" for name in FRAME)
    house.run(f"CREATE TABLE people ({columns})", f"INSERT INTO people SELECT {cast} FROM given")
    assert_as_in_memory(house.place("people"), cg.Ledger.create(tmp_path / "people.ledger"))


def test_spark(spark: Any) -> None:
    import ibis

    spark.createDataFrame(FRAME.astype(object).where(FRAME.notna(), None)).createOrReplaceTempView(
        "as_given"
    )
    folded = ", ".join(f"CAST({name} AS STRING) COLLATE UTF8_LCASE AS {name}" for name in FRAME)
    spark.sql(f"SELECT {folded} FROM as_given").createOrReplaceTempView("folded_people")
    assert spark.sql("SELECT DISTINCT person FROM folded_people").count() < 7
    assert_as_in_memory(ibis.pyspark.connect(spark).table("folded_people"))
