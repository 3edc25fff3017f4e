"""Studies of tables in databases: the same people and refusals, and no release says where they lie."""

import contextlib
import json
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from collegium import Ledger
from collegium.errors import ConfigError, InputError, StudyMismatchError
from collegium.runs.observer import Observer
from collegium.study.config import read_config
from collegium.study.forgetting import forget
from collegium.study.runner import plan_study, run_study
from collegium.study.streaming import load_streamed_data
from collegium.study.study_data import load_study_data
from tests.engines.generated_tables import into_duckdb, into_postgresql

SCHEMA = """
[columns.age]
kind = "whole"
bounds = [18, 90]
bins = [18, 40, 65, 90]
[columns.income]
kind = "number"
bounds = [0, 1000]
bins = [0, 250, 500, 1000]
[columns.sex]
kind = "category"
categories = ["F", "M"]
"""
ASKING = """
[method]
kind = "statistics"
[statistics]
schema = "schema.toml"
questions = ["count", "mean income by sex where age >= 40", "count by sex"]
noise_seed = 3
"""
MAKING = """
[method]
kind = "synthesis"
[synthesis]
schema = "schema.toml"
noise_seed = 3
"""
LEARNING = """
[method]
kind = "dpsgd"
[dpsgd]
noise_seed = 3
steps = 3
[preprocessing]
kind = "tabular"
"""
VOTING = """
[preprocessing]
kind = "tabular"
[teachers]
model = "sklearn.tree.DecisionTreeClassifier"
n_teachers = 12
[aggregation]
aggregator = "gnmax"
sigma = 6
noise = "seeded"
[student]
model = "sklearn.naive_bayes.GaussianNB"
"""
FIRST_DAY = date(2024, 1, 1)
pytestmark = [
    pytest.mark.filterwarnings("ignore:δ is large"),
    pytest.mark.filterwarnings("ignore::collegium.errors.PrivacyWarning"),
]


def people(n, seed):
    random = np.random.default_rng(seed)
    age, income = random.integers(18, 90, n), random.integers(0, 1000, n).astype(float)
    return pa.table(
        {
            "person": [f"p{number // 2}" for number in range(n)],
            "age": pa.array(age, pa.int64()),
            "income": pa.array(income, pa.float64()),
            "sex": random.choice(["F", "M"], n).tolist(),
            "sick": pa.array(np.where(age + income / 20 > 80, "yes", "no").tolist()),
            "level": np.where(np.arange(n) // 2 % 3 == 0, "high", "low").tolist(),
        }
    )


@pytest.fixture(params=["duckdb", "postgresql"])
def database(request, tmp_path):
    """A database with people, others who have nothing to protect, and what runs a statement there."""
    tables = {"people": people(400, 1), "others": people(90, 2).drop(["person", "level"])}
    if request.param == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        for name, table in tables.items():
            into_duckdb(table, tmp_path / "house.duckdb", name)

        def run(statement):
            with duckdb.connect(str(tmp_path / "house.duckdb")) as connection:
                connection.execute(statement)

        return "duckdb:///house.duckdb", run
    server = request.getfixturevalue("server")
    url = server.new_database()
    for name, table in tables.items():
        into_postgresql(table, url, name)
    return url, lambda statement: server.run(url, statement)


@pytest.fixture
def study(database, tmp_path):
    """Write a study of the people in the database."""
    (tmp_path / "schema.toml").write_text(SCHEMA)

    def write(
        method, streamed=False, name="study", owner='owner = "person"', data="", table="people"
    ):
        learns = method in (LEARNING, VOTING)
        public = f'public = "{database[0]}#others"\ntarget = "sick"\n' if learns else ""
        path = tmp_path / f"{name}.toml"
        path.write_text(
            f'[data]\nprivate = "{database[0]}#{table}"\n{owner}\n{public}{data}\n'
            '[privacy]\nlevels = { high = 6.0, low = 18.0 }\ncolumn = "level"\n'
            f'[ledger]\nurl = "none"\n[run]\nn_jobs = 1\n{"streaming = true" * streamed}\n{method}'
        )
        return read_config(path)

    return write


@pytest.fixture(autouse=True)
def _quiet(monkeypatch):
    monkeypatch.setattr(
        "collegium.study.pages.render_page", lambda page: "a page, which is not the subject here"
    )


class Notes(Observer):
    """Keeps what the user is told."""

    def __init__(self):
        self.lines = []

    def note(self, line):
        self.lines.append(line)


ALL = [
    (ASKING, False),
    (MAKING, False),
    (LEARNING, False),
    (LEARNING, True),
    (VOTING, False),
    (VOTING, True),
]
NAMES = ["asking", "making", "learning", "learning streamed", "voting", "voting streamed"]


@pytest.mark.parametrize(("method", "streamed"), ALL, ids=NAMES)
def test_a_study_is_run_and_known_again_until_a_row_changes(
    study, database, tmp_path, method, streamed
):
    config, notes = study(method, streamed), Notes()
    run_study(config, tmp_path / "out", notes)
    told = [line for line in notes.lines if "leave the database" in line]
    assert len(told) == (method in (LEARNING, VOTING))
    assert all(("shards in the study's vault" in line) == streamed for line in told)
    assert not list((tmp_path / "out").rglob("*.arrow"))
    assert not list((tmp_path / "out").rglob("*.records"))
    release = {
        path.name: path.read_text(errors="replace")
        for path in (tmp_path / "out/release").rglob("*")
        if path.is_file()
    }
    assert not any("postgresql://" in text or "host=" in text for text in release.values())
    run = database[1]
    run("CREATE TABLE copy AS SELECT * FROM people ORDER BY income")
    run("DROP TABLE people")
    run("ALTER TABLE copy RENAME TO people")  # the same rows in another order
    run_study(config, tmp_path / "out")
    run("UPDATE people SET income = income + 1 WHERE person = 'p7'")
    with pytest.raises(StudyMismatchError, match="private"):
        run_study(config, tmp_path / "out")


def test_answers_and_rows_are_those_of_the_same_table_in_parquet(study, tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(people(400, 1), tmp_path / "people.parquet")
    for method, name in ((ASKING, "answers.json"), (MAKING, "marginals.csv")):
        config = study(method)
        run_study(config, tmp_path / f"{name}-database")
        text = (tmp_path / "study.toml").read_text()
        start, _, rest = text.partition('private = "')
        (tmp_path / "study.toml").write_text(
            f'{start}private = "people.parquet{rest[rest.index(chr(34)) :]}'
        )
        run_study(read_config(tmp_path / "study.toml"), tmp_path / f"{name}-parquet")
        found = [
            (tmp_path / f"{name}-{where}" / "release" / name).read_bytes()
            for where in ("database", "parquet")
        ]
        assert found[0] == found[1]


def test_days_are_dates_wherever_they_lie(study, database, tmp_path):
    """In memory and streamed, from a database and from Parquet, and beside days in a CSV file."""
    import pyarrow.parquet as pq

    for table in ("people", "others"):
        database[1](f"ALTER TABLE {table} ADD COLUMN visit DATE")
        database[1](
            f"UPDATE {table} SET visit = DATE '2024-01-01' + CAST(age AS INTEGER) WHERE age > 20"
        )
    found = {
        "database": load_study_data(study(LEARNING)),
        "database, streamed": load_streamed_data(study(LEARNING, streamed=True)),
    }
    base = f'"{database[0]}#'
    text = (tmp_path / "study.toml").read_text()
    for name, seed in (("people", 1), ("others", 2)):
        table = people(400 if name == "people" else 90, seed)
        days = [
            None if age <= 20 else FIRST_DAY + timedelta(age) for age in table["age"].to_pylist()
        ]
        table = table.append_column("visit", pa.array(days, pa.date32()))
        table = table if name == "people" else table.drop(["person", "level"])
        pq.write_table(table, tmp_path / f"{name}.parquet")
        text = text.replace(f'{base}{name}"', f'"{name}.parquet"')
    table.to_pandas().to_csv(tmp_path / "others.csv", index=False)
    for streamed in (True, False):
        written = text if streamed else text.replace("streaming = true", "")
        (tmp_path / "study.toml").write_text(written)
        load = load_streamed_data if streamed else load_study_data
        found[f"Parquet, {streamed}"] = load(read_config(tmp_path / "study.toml"))
    for where, data in found.items():
        assert data.X_public["visit"].dtype.kind == "M", where
        assert data.inputs["columns"][-1] == ["visit", "dates"], where
    whole = [data.X["visit"] for data in found.values() if hasattr(data.X, "columns")]
    assert whole[0].notna().sum() == whole[1].notna().sum() < 400
    assert sorted(whole[0].dropna()) == sorted(whole[1].dropna())
    types = [data.X.types.kinds for data in found.values() if not hasattr(data.X, "columns")]
    assert types[0] == types[1] and types[0]["visit"] == "date"
    for streamed in (False, True):
        study(LEARNING, streamed)
        mixed = (tmp_path / "study.toml").read_text().replace(f'{base}others"', '"others.csv"')
        (tmp_path / "study.toml").write_text(mixed)
        load = load_streamed_data if streamed else load_study_data
        data = load(read_config(tmp_path / "study.toml"))
        assert data.inputs["columns"][-1] == ["visit", "numbers"]  # of days
        run_study(study(LEARNING, streamed), tmp_path / f"out-{streamed}")


@pytest.mark.parametrize("streamed", [False, True], ids=["in memory", "streamed"])
@pytest.mark.parametrize("blank", ["others", "people"])
def test_truth_values_are_the_same_classes_where_some_are_missing(
    study, database, tmp_path, streamed, blank
):
    for table in ("people", "others"):
        database[1](f"ALTER TABLE {table} ALTER COLUMN sick TYPE BOOLEAN USING sick = 'yes'")
        database[1](f"ALTER TABLE {table} ADD COLUMN smokes BOOLEAN")
        database[1](f"UPDATE {table} SET smokes = age > 40")
    database[1](f"UPDATE {blank} SET smokes = NULL WHERE age < 30")
    database[1]("UPDATE others SET sick = NULL WHERE age < 25")
    config = study(LEARNING, streamed)
    data = (load_streamed_data if streamed else load_study_data)(config)
    assert data.classes.tolist() == [False, True]
    assert 0 < pd.isna(data.y_public).sum() < 90
    assert data.inputs["columns"][-1] == ["smokes", "numbers"]
    run_study(config, tmp_path / "out")


def test_a_study_on_a_ledger_reads_who_they_are(study, tmp_path):
    text_of = Path(tmp_path / "study.toml")
    study(ASKING.replace("noise_seed = 3", "spend = 0.5"))
    text_of.write_text(text_of.read_text().replace('url = "none"', 'url = "house.ledger"'))
    Ledger.create(tmp_path / "house.ledger")
    text = text_of.read_text().replace("[run]", "allow_new_people = true\n[run]")
    text_of.write_text(text)
    run_study(read_config(text_of), tmp_path / "out")
    assert Ledger(tmp_path / "house.ledger").contents().n_owners == 200


def test_a_table_on_a_server_needs_a_named_ledger(study, database, tmp_path, monkeypatch):
    monkeypatch.delenv("COLLEGIUM_LEDGER", raising=False)
    study(ASKING.replace("noise_seed = 3", "spend = 0.5"))
    text = (tmp_path / "study.toml").read_text()
    (tmp_path / "study.toml").write_text(text.replace('[ledger]\nurl = "none"\n', ""))
    config = read_config(tmp_path / "study.toml")
    if database[0].startswith("duckdb"):
        run_study(config, tmp_path / "out")
        assert (tmp_path / "house.ledger").exists()
        return
    with pytest.raises(InputError, match="lies on a server, beside which there is no folder"):
        plan_study(config)


@pytest.mark.parametrize("method", [LEARNING, VOTING], ids=["learning", "voting"])
def test_what_is_known_by_its_position_is_refused(study, tmp_path, method):
    with pytest.raises(
        ConfigError, match="no order that stays, and a record without a named owner"
    ):
        study(method, owner="")
    with pytest.raises(ConfigError, match=r"is tied to it by position: give data\.target"):
        study(method, data='public_labels = "labels.npy"')
    study(method)
    text = (tmp_path / "study.toml").read_text()
    (tmp_path / "study.toml").write_text(text.replace('column = "level"', 'file = "levels.csv"'))
    with pytest.raises(ConfigError, match=r"privacy\.file is tied to it by position"):
        read_config(tmp_path / "study.toml")


def test_questions_about_rows_without_an_owner_need_no_order(study, tmp_path):
    run_study(study(ASKING, owner=""), tmp_path / "out")
    answers = json.loads((tmp_path / "out/release/answers.json").read_text())
    assert len(answers["answers"]) == 3


def test_columns_that_cannot_be_read_are_left_out_by_name(study, database):
    kind = "BLOB" if database[0].startswith("duckdb") else "BYTEA"
    database[1](f"ALTER TABLE people ADD COLUMN photo {kind}")
    for streamed in (False, True):
        with pytest.raises(InputError, match=r"column photo of .* holds lists, records, bytes"):
            plan_study(study(LEARNING, streamed))
        plan_study(study(LEARNING, streamed, data='exclude = ["photo"]'))
        with pytest.raises(InputError, match="'phto'"):
            plan_study(study(LEARNING, streamed, data='exclude = ["photo", "phto"]'))
    plan_study(study(ASKING))


def test_no_position_is_told_where_there_is_none(study, database):
    database[1]("UPDATE people SET level = 'hihg' WHERE person = 'p7'")
    for method, streamed in ((LEARNING, False), (LEARNING, True), (ASKING, False)):
        with pytest.raises(InputError) as refused:
            plan_study(study(method, streamed))
        assert "record 1" not in str(refused.value) and "row" not in str(refused.value)
        assert "'high'" in str(refused.value) or "high" in str(refused.value)


def test_nobody_is_taken_out_of_a_database(study, tmp_path):
    config = study(LEARNING)
    run_study(config, tmp_path / "study")
    with pytest.raises(InputError, match="they lie in a database or workbook"):
        forget("p7", [(config, tmp_path / "study")], remove_records=True)


def test_a_half_published_study_is_not_ended_with_other_rows(
    study, database, tmp_path, monkeypatch
):
    class Killed(BaseException):
        """A power failure: nothing after it is run."""

    def kill(*_args, **_more):
        raise Killed

    config = study(ASKING)
    monkeypatch.setattr("collegium.study.methods.statistics.method.write_pages", kill)
    with contextlib.suppress(Killed):
        run_study(config, tmp_path / "out")
    monkeypatch.undo()
    database[1]("DELETE FROM people WHERE person = 'p9'")
    with pytest.raises(StudyMismatchError, match="private"):
        run_study(config, tmp_path / "out")


def test_a_table_lies_where_the_study_says(study, tmp_path, monkeypatch):
    """Relative files are relative to the study's file, from wherever it is run."""
    config = study(ASKING)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    plan_study(read_config(tmp_path / "study.toml"))
    assert config.published()["data"]["private"].endswith("#people")
    assert "/" not in config.published()["data"]["private"]
    assert "#people" in config.title()


def test_workbooks_and_sqlite_are_read_as_text(tmp_path):
    import sqlite3

    frame, others = people(400, 1).to_pandas(), people(90, 2).drop(["person", "level"]).to_pandas()
    with sqlite3.connect(tmp_path / "house.sqlite") as connection:
        frame.to_sql("people", connection, index=False)
        others.to_sql("others", connection, index=False)
    with pd.ExcelWriter(tmp_path / "house.xlsx") as book:
        frame.to_excel(book, sheet_name="people", index=False)
        others.to_excel(book, sheet_name="others", index=False)
    frame.to_csv(tmp_path / "people.csv", index=False)
    others.to_csv(tmp_path / "others.csv", index=False)
    plans = []
    for where in ("{}.csv", "sqlite:///house.sqlite#{}", "house.xlsx#{}"):
        path = tmp_path / "study.toml"
        path.write_text(
            f'[data]\nprivate = "{where.format("people")}"\npublic = "{where.format("others")}"\n'
            'owner = "person"\ntarget = "sick"\n[privacy]\nlevels = { high = 6.0, low = 18.0 }\n'
            f'column = "level"\n[ledger]\nurl = "none"\n{VOTING}'
        )
        name = where[:5].strip(":{}./#")
        out = tmp_path / name
        run_study(read_config(path), out)
        plans.append((out / "release/labels.csv").read_bytes())
    assert plans[0] == plans[1] == plans[2]
