"""Tables that are joined by person, and levels in another table: as the same join, made in memory.

A person counts as much as all pairs of their rows may, and no more, whichever of the tables is changed.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import collegium as cg
from collegium.errors import ConfigError, InputError, PrivacyWarning
from tests.engines.houses import House
from tests.engines.test_replay_in_engines import assert_within
from tests.statistics.test_replay import Tape

COLUMNS: dict[str, Any] = {
    "age": {"kind": "whole", "bounds": [17, 90]},
    "pay": {"kind": "number", "bounds": [0, 100]},
    "patients.age": {"kind": "whole", "bounds": [0, 50]},
    "patients.the sex": {"kind": "category", "categories": ["F", "M"]},
}
SCHEMA = cg.Schema(COLUMNS, 2, {"patients": {"owner": "id", "rows_per_owner": 3}})
POLICY = cg.Policy({"high": 0.5, "low": 3.0, "none": 0.0})
QUESTIONS = (
    "count",
    "mean patients.age by patients.the sex where age >= 40",
    "count people where patients.age is missing",
    "median pay by patients.the sex",
    "corr age, patients.age",
    "count where patients.the sex is missing and pay > 10",
)
QUESTIONS = tuple(one.replace("patients.the sex", "`patients.the sex`") for one in QUESTIONS)


def house_of(engine: str, request: Any, folder: Path) -> House:
    """People of several rows in either table, of one row, and of none in one of the three."""
    rng = np.random.default_rng(5)
    house = House.at(engine, request.getfixturevalue, folder)

    def some(numbers: Any) -> list[str | None]:
        return [f"p{one}" for one in numbers]

    of = [*np.arange(60), *rng.integers(0, 30, 50), *[0] * 9]
    visits = pd.DataFrame(
        {
            "person": some(of),
            "age": rng.integers(17, 91, len(of)),
            "pay": rng.uniform(0, 100, len(of)),
        }
    )
    of = [*np.arange(10, 80), *rng.integers(10, 25, 30), *[0] * 7]
    patients = pd.DataFrame(
        {
            "id": [*some(of), None, None],
            "age": [*rng.integers(0, 51, len(of)), 3, 4],
            "the sex": [*rng.choice(["F", "M"], len(of)), "F", "F"],
            "pay": -1.0,
        }
    )
    of = [*range(55), *range(70, 90)]
    consent = pd.DataFrame(
        {
            "person": [*some(of), None, None],
            "level": [*(("high", "low", "low", "none")[one % 4] for one in of), "high", "nobody's"],
        }
    )
    for name, frame in {"visits": visits, "patients": patients, "consent": consent}.items():
        house.put(name, frame)
    return house


def frames_of(house: House) -> dict[str, pd.DataFrame]:
    tables = {}
    for name in ("visits", "patients", "consent"):
        if house.server is not None:
            import psycopg

            with psycopg.connect(house.where) as connection:
                found = connection.execute(f"SELECT * FROM {name}")
                columns = [one.name for one in found.description or ()]
                tables[name] = pd.DataFrame(found.fetchall(), columns=columns)
        else:
            import duckdb

            with duckdb.connect(house.where.removeprefix("duckdb:///")) as connection:
                tables[name] = connection.table(name).df()
    return tables


def joined(tables: dict[str, pd.DataFrame], level: str = "inner") -> pd.DataFrame:
    """The same in memory."""
    named = {name: its.dropna(subset=its.columns[0]) for name, its in tables.items()}
    patients = named["patients"].rename(columns=lambda name: f"patients.{name}")
    both = named["visits"].merge(patients, how="left", left_on="person", right_on="patients.id")
    found = both.merge(named["consent"], how=level, on="person")
    return found


def session(given: Any, schema: cg.Schema = SCHEMA, **how: Any) -> cg.Statistics:
    how = {"privacy": "consent.level", "owner": "person", "noise_seed": 1, **how}
    return cg.Statistics(given, POLICY, schema=schema, questions=len(QUESTIONS), **how)


pytestmark = pytest.mark.usefixtures("known_engine")


@pytest.mark.filterwarnings("ignore:.*granted nothing:collegium.errors.PrivacyWarning")
@pytest.mark.parametrize("engine", ["duckdb", "postgresql"])
def test_answers_are_those_of_the_same_join_in_memory(
    engine: str, request: Any, tmp_path: Path
) -> None:
    house = house_of(engine, request, tmp_path)
    frame = joined(frames_of(house))
    assert frame["person"].nunique() < 60 and frame["patients.age"].isna().any()
    assert frame.groupby("person").size().max() == 12 * 7
    here = session(frame, cg.Schema(COLUMNS, 6), privacy="level")
    with session(house.place("visits")) as there:
        assert list(here._table.groups) == list(there._table.groups)
        assert here._table.sizes.tolist() == there._table.sizes.tolist()
        for question in QUESTIONS:
            one, other = here.ask(question), there.ask(question)
            pd.testing.assert_frame_equal(one.cells, other.cells, check_exact=True)
            assert str(one).splitlines()[0] == str(other).splitlines()[0]
    # Levels in the table itself, and as many rows of a person as that makes.
    house.put("with_levels", frames_of(house)["visits"].assign(level="high"))
    with session(house.place("with_levels"), privacy="level") as own:
        assert own._table.sizes.tolist() == [60]


@pytest.mark.filterwarnings("ignore:.*granted nothing:collegium.errors.PrivacyWarning")
@pytest.mark.parametrize(("engine", "noise"), [("duckdb", "gaussian"), ("postgresql", "laplace")])
def test_nobody_moves_an_answer_further_than_was_charged(
    engine: str, noise: str, request: Any, tmp_path: Path
) -> None:
    house = house_of(engine, request, tmp_path)
    changes = {
        "p0": ("DELETE FROM patients WHERE id = 'p0'",),  # of 10 rows and 7: no pairs any more
        "p1": (
            *(["INSERT INTO visits VALUES ('p1', 90, 100)"] * 3),
            *(["INSERT INTO patients VALUES ('p1', 50, 'F', 0)"] * 4),
        ),
        "p12": ("UPDATE visits SET age = 90, pay = 100 WHERE person = 'p12'",
                "UPDATE patients SET age = 50, \"the sex\" = 'M' WHERE id = 'p12'"),
    }  # fmt: skip
    tapes: list[Tape] = []
    sessions: list[cg.Statistics] = []
    costs: dict[str, np.ndarray] = {}
    for statements in ((), *changes.values()):
        house.run(*statements)
        tape = Tape(tapes[0].outcomes if tapes else None)
        with pytest.MonkeyPatch.context() as patch:
            tape.install(patch)
            with session(house.place("visits"), noise=noise, neighbours="replace-one") as ask:
                for question in QUESTIONS:
                    tape.question = question
                    before = len(ask._charged)
                    ask.ask(question)
                    found = [
                        one.pure_epsilon if noise == "laplace" else one.mu_squared
                        for one in ask._charged[before:]
                    ]
                    costs[question] = np.sum(found, axis=0)
        tapes.append(tape)
        sessions.append(ask)
    assert all(one._charged == sessions[0]._charged for one in sessions)
    levels = frames_of(house)["consent"].set_index("person")["level"]
    for person, (one, other) in zip(changes, pairwise(tapes), strict=True):
        group = list(ask._table.groups).index(levels[person])
        assert max(assert_within(one, other, costs, group, noise).values()) > 0


# What cannot be joined


@pytest.fixture
def house(request: Any, tmp_path: Path) -> House:
    return house_of("duckdb", request, tmp_path)


@pytest.mark.parametrize(
    ("statements", "how", "said"),
    [
        (["INSERT INTO consent VALUES ('p3', 'high')"], {}, "table 'consent' has several rows of 1 person"),
        (["INSERT INTO consent VALUES ('p3', 'high'), ('p4', 'low')"], {}, "several rows of 2 people"),
        (["UPDATE consent SET level = 'lo' WHERE person = 'p3'"], {}, "allowed are high, low, none"),
        (["UPDATE consent SET level = NULL WHERE person = 'p3'"], {}, "or without one: allowed are high"),
        (["DROP TABLE consent"], {}, "has no table 'consent' that may be read"),
        (["DROP TABLE patients"], {}, "has no table 'patients' that may be read"),
        (["ALTER TABLE consent DROP COLUMN level"], {}, "table 'consent' has no column 'level'"),
        (["ALTER TABLE consent DROP COLUMN person"], {}, "table 'consent' has no column 'person'"),
        (["ALTER TABLE patients DROP COLUMN id"], {}, "table 'patients' has no column 'id'"),
        (['ALTER TABLE patients DROP COLUMN "the sex"'], {}, "patients has no column 'the sex'"),
        (["ALTER TABLE patients ALTER id TYPE INTEGER USING 1"], {}, "'id' holds names as numbers"),
        (["ALTER TABLE consent ALTER person TYPE INTEGER USING 1"], {}, "'person' holds names as numbers"),
        (['ALTER TABLE visits ADD COLUMN "patients.age" INTEGER'], {}, "has a column 'patients.age'"),
        (["ALTER TABLE visits ADD COLUMN collegium_rows INTEGER"], {}, "has a column 'collegium_rows'"),
        ([], {"owner": None}, "no column says whose a row is"),
        ([], {"owner": None, "schema": cg.Schema({"age": COLUMNS["age"]})}, "no column says whose"),
        ([], {"privacy": "consents.level"}, "'consents' that may be read: did you mean 'consent'"),
        ([], {"privacy": "consent."}, "table 'consent' has no column ''"),
        ([], {"privacy": "level"}, "the table has no column 'level'"),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_joined(house: House, statements: list[str], how: Any, said: str) -> None:
    house.run(*statements)
    with pytest.raises(InputError) as refused:
        session(house.place("visits"), **how)
    assert said in str(refused.value) and "\n" not in str(refused.value)
    assert "first" not in str(refused.value) and "collegium_p" not in str(refused.value)


def test_who_is_in_no_table_of_levels_is_not_asked_and_that_is_told(
    request: Any, tmp_path: Path
) -> None:
    house = house_of("duckdb", request, tmp_path)
    with pytest.warns(PrivacyWarning, match=r"^5 owner\(s\) granted nothing"):
        session(house.place("visits")).close()


def test_tables_are_found_where_the_table_lies(tmp_path: Path) -> None:
    house = House.at("duckdb", None, tmp_path)
    house.put("visits", pd.DataFrame({"person": ["a"], "age": [20]}))
    house.run(
        "CREATE SCHEMA ward",
        "CREATE TABLE ward.visits AS SELECT 'b' AS person, 20 AS age UNION ALL SELECT 'c', 30",
        "CREATE TABLE ward.consent AS SELECT 'b' AS person, 'low' AS level UNION ALL SELECT 'c', 'low'",
        "CREATE TABLE consent AS SELECT 'a' AS person, 'high' AS level",
    )
    schema = cg.Schema({"age": COLUMNS["age"]})
    with session(house.place("ward.visits"), schema) as ask:
        assert dict(zip(ask._table.groups, ask._table.sizes.tolist(), strict=True)) == {"low": 2}


# In a schema


def test_tables_in_a_schema_are_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    SCHEMA.write(path)
    assert '[tables.patients]\nowner = "id"\nrows_per_owner = 3' in path.read_text("utf-8")
    again = cg.Schema.read(path)
    assert again == SCHEMA and again.tables == SCHEMA.tables and again.rows_per_owner == 6
    others = ({}, {"owner": "id"}, {"owner": "id", "rows_per_owner": 2})
    digests = {cg.Schema(COLUMNS, 2, {"patients": one}).digest for one in others}
    assert len(digests | {SCHEMA.digest, cg.Schema(COLUMNS, 2).digest}) == 5
    odd = cg.Schema({'my "table".x y': {"kind": "flag"}}, 1, {'my "table"': {}})
    odd.write(path)
    assert cg.Schema.read(path) == odd


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ('tables = 3', "tables must be sections with a table's name"),
        ('tables.patients = 3', "tables.patients must be a section"),
        ("[tables.patients]\nrows = 3", "unknown key tables.patients.rows: allowed are owner, rows_per"),
        ("[tables.patients]\nrows_per_owner = 0", "tables.patients.rows_per_owner"),
        ("[tables.patients]\nrows_per_owner = 2000000", "tables.patients.rows_per_owner"),
        ("[tables.patients]\nowner = 3", "tables.patients.owner"),
        ("[tables.patients]\nrows_per_owner = 1000000", "rows_per_owner of all tables together"),
        ("[tables.drugs]", "tables.drugs is joined, but no column of it is described"),
        ("[tables.patients]\n[tables.'patients.a']", "one of two tables, patients and patients.a"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_tables_in_a_schema(tmp_path: Path, tables: str, said: str) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(
        f"rows_per_owner = 2\n{tables}\n[columns.'patients.a.b']\nkind = 'flag'\n", "utf-8"
    )
    with pytest.raises(ConfigError) as refused:
        cg.Schema.read(path)
    assert said in str(refused.value) and "\n" not in str(refused.value)
