"""Commands on tables in databases and workbooks: the answers of the same table in a file, or one line."""

import json
import sqlite3
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from collegium import Ledger
from tests.engines.generated_tables import into_duckdb, into_postgresql

SCHEMA = """
[columns.age]
kind = "whole"
bounds = [18, 90]
bins = [18, 40, 65, 90]
[columns.income]
kind = "number"
bounds = [0, 100]
[columns.region]
kind = "category"
categories = ["north", "south"]
[columns.sick]
kind = "flag"
[columns.seen]
kind = "date"
bounds = ["2024-01-01", "2024-12-31"]
"""
LEVELS = ["--privacy", "level", "--levels", "high=1,low=3"]
QUESTIONS = [
    "mean income by region where age >= 40",
    "count where sick",
    "count people by month(seen)",
]
SECRET = "hunter2"
PAGE = Path(__file__).parents[2] / "docs/databases.md"


@pytest.fixture
def people():
    random = np.random.default_rng(1)
    n = 600
    return pd.DataFrame(
        {
            "person": [f"p{number // 2}" for number in range(n)],
            "age": random.integers(10, 95, n),
            "income": random.normal(40, 10, n).round(2),
            "region": random.choice(["north", "south", "secret-word"], n, p=[0.5, 0.4, 0.1]),
            "sick": random.random(n) < 0.3,
            "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 366, n), "D"),
            "level": np.where(np.arange(n) // 2 % 3 == 0, "high", "low"),
        }
    )


@pytest.fixture
def folder(tmp_path, monkeypatch, people):
    """A folder with the same table in a CSV file, DuckDB, SQLite and a workbook."""
    monkeypatch.chdir(tmp_path)
    Path("schema.toml").write_text(SCHEMA)
    people.to_csv("people.csv", index=False)
    into_duckdb(_arrow(people), tmp_path / "house.duckdb", "people")
    with sqlite3.connect("house.sqlite") as connection:
        days = people.assign(seen=people["seen"].dt.strftime("%Y-%m-%d"))
        days.to_sql("people", connection, index=False)
    people.to_excel("people.xlsx", sheet_name="people", index=False)
    return tmp_path


def _arrow(people):
    import pyarrow as pa

    table = pa.Table.from_pandas(people, preserve_index=False)
    text = [pa.string() if pa.types.is_large_string(kind) else kind for kind in table.schema.types]
    return table.cast(pa.schema(zip(table.column_names, text, strict=True)))


@pytest.fixture
def server_table(server, people):
    url = server.new_database()
    into_postgresql(_arrow(people), url, "people")
    return f"{url}#people"


@pytest.fixture
def asked(collegium):
    def call(table, *arguments, code=0):
        found, printed, errors = collegium("ask", table, *arguments)
        assert found == code, (printed, errors)
        assert "secret-word" not in printed + errors
        return printed, errors

    return call


def answers_of(printed):
    return [
        {name: value for name, value in answer.items() if name != "table"}
        for answer in json.loads(printed)["answers"]
    ]


OTHERS = ("duckdb:///house.duckdb#people", "sqlite:///house.sqlite#main.people", "people.xlsx")


@pytest.mark.parametrize("table", [*OTHERS, "postgresql"])
@pytest.mark.parametrize("whose", [["--owner", "person"], []], ids=["owners", "rows"])
def test_answers_are_those_of_a_file(folder, asked, table, whose, request):
    place = request.getfixturevalue("server_table") if table == "postgresql" else table
    how = [*LEVELS, *whose, "--ledger", "none", "--noise-seed", 5, "--json", *QUESTIONS]
    assert answers_of(asked(place, *how)[0]) == answers_of(asked("people.csv", *how)[0])


@pytest.mark.parametrize("table", [*OTHERS, "postgresql"])
def test_a_ledger_remembers_the_people_of_a_table(folder, asked, table, request, monkeypatch):
    monkeypatch.delenv("COLLEGIUM_LEDGER", raising=False)
    place, said = table, []
    if table == "postgresql":
        place, said = request.getfixturevalue("server_table"), ["--ledger", "house.ledger"]
        Ledger.create(folder / "house.ledger")
        said.append("--allow-new-people")
    whose = [*LEVELS, "--owner", "person", "--spend", 0.5]
    asked(place, *whose, *said, "count where sick")
    beside = "people.ledger" if table == "people.xlsx" else "house.ledger"
    ledger = Ledger(folder / beside)
    assert len(ledger.contents().releases) == 1
    assert ledger.contents().n_owners == 300
    asked(place, *whose, *said, "count where sick")
    assert len(ledger.contents().releases) == 2


def test_a_table_on_a_server_has_no_ledger_beside_it(folder, asked, server_table, monkeypatch):
    monkeypatch.delenv("COLLEGIUM_LEDGER", raising=False)
    whose = [*LEVELS, "--owner", "person", "count"]
    _, errors = asked(server_table, *whose, "count where sick", code=2)
    assert "lies on a server, beside which there is no folder for a ledger" in errors
    assert "--ledger people.ledger" in errors
    asked(server_table, *LEVELS, "--owner", "person", "count")  # is public, and needs none
    asked(server_table, *whose, "count where sick", "--ledger", "none")
    assert not list(Path().glob("*.ledger"))


@pytest.fixture(params=["duckdb", "postgresql"])
def joined(request, folder, people):
    """Visits, people's births and sexes, and their levels, each in a table of its own."""
    visits = people[["person", "age", "income"]]
    names = pd.DataFrame({"person": [f"p{number}" for number in range(300)]})
    about = names.assign(sex=np.where(np.arange(300) % 2, "F", "M"))
    levels = names.assign(level=np.where(np.arange(300) % 3 == 0, "high", "low"))
    tables = {"visits": visits, "about": about.rename(columns={"person": "who"}), "chosen": levels}
    Path("joined.toml").write_text(
        SCHEMA.partition("[columns.region]")[0]
        + '[columns."about.sex"]\nkind = "category"\ncategories = ["F", "M"]\n'
        + '[tables.about]\nowner = "who"\n'
    )
    if request.param == "duckdb":
        for name, table in tables.items():
            into_duckdb(_arrow(table), folder / "joined.duckdb", name)
        return "duckdb:///joined.duckdb#visits"
    url = request.getfixturevalue("server").new_database()
    for name, table in tables.items():
        into_postgresql(_arrow(table), url, name)
    return f"{url}#visits"


JOINED = ["--schema", "joined.toml", "--owner", "person", "--levels", "high=1,low=3"]


@pytest.mark.parametrize("ledger", ["none", "house.ledger"])
def test_other_tables_are_joined_by_person(folder, asked, joined, ledger, people):
    levels = ["--privacy", "chosen.level", "--ledger", ledger]
    if ledger != "none":
        Ledger.create(folder / ledger)
        levels += ["--allow-new-people", "--spend", 1]
        planned, _ = asked(joined, *JOINED, *levels, "mean income by about.sex", "--plan")
        assert "mean income by about.sex" in planned
    printed, _ = asked(joined, *JOINED, *levels, "--json", "mean income by about.sex")
    (answer,) = json.loads(printed)["answers"]
    number = people["person"].str.removeprefix("p").astype(int)
    truth = people["income"].groupby(np.where(number % 2, "F", "M")).mean()
    for row in answer["cells"]:
        assert abs(row["value"] - truth[row["about.sex"]]) < 10 * row["standard_error"]
    if ledger != "none":
        assert len(Ledger(folder / ledger).contents().releases) == 1


def test_what_would_be_joined_is_not_read(folder, asked, joined):
    _, errors = asked(
        *[
            joined,
            "--schema",
            "joined.toml",
            "--owner",
            "person",
            "--epsilon",
            1,
            "--ledger",
            "none",
        ],
        "mean income by about.sex",
        code=2,
    )
    assert "column 'about.sex' is joined where the table lies" in errors
    assert "make a view of both tables" in errors
    assert "since no column of levels is named: give --privacy and levels, or" in errors
    levels = ["--privacy", "chosn.level", "--ledger", "none"]
    _, errors = asked(joined, *JOINED, *levels, "count where age > 40", code=2)
    assert "chosn" in errors


def test_a_study_of_joined_tables_with_a_ledger_is_told_what_to_do(folder, collegium, joined):
    Path("study.toml").write_text(
        f'[data]\nprivate = "{joined}"\nowner = "person"\n[privacy]\ncolumn = "chosen.level"\n'
        'levels = { high = 1.0, low = 3.0 }\n[method]\nkind = "statistics"\n'
        '[ledger]\nurl = "people.ledger"\n'
        '[statistics]\nschema = "joined.toml"\nquestions = ["count where age > 40"]\n'
    )
    code, _, errors = collegium("plan", "study.toml")
    assert code == 2
    assert 'set ledger.url = "none" (--ledger none), with which nobody remembers' in errors
    assert "or make a view of both tables" in errors


def test_a_study_of_joined_tables_knows_all_of_them(folder, collegium, joined, server):
    Path("study.toml").write_text(
        f'[data]\nprivate = "{joined}"\nowner = "person"\n[privacy]\ncolumn = "chosen.level"\n'
        'levels = { high = 1.0, low = 3.0 }\n[method]\nkind = "statistics"\n[ledger]\nurl = "none"\n'
        '[statistics]\nschema = "joined.toml"\nquestions = ["mean income by about.sex"]\n'
    )
    for _ in range(2):
        code, _, errors = collegium("run", "study.toml", "-q")
        assert code == 0, errors
    for change in (
        "UPDATE about SET sex = 'F' WHERE who = 'p0'",
        "UPDATE about SET sex = 'M' WHERE who = 'p0'",
        "UPDATE chosen SET level = 'low' WHERE person = 'p0'",
    ):
        if joined.startswith("duckdb"):
            with duckdb.connect("joined.duckdb") as connection:
                connection.execute(change)
        else:
            server.run(joined.partition("#")[0], change)
        code, _, errors = collegium("run", "study.toml", "-q")
        assert (code == 0) == ("'M'" in change), errors
    assert "the private records are not the same as before" in errors


BAD = {
    "duckdb:///house.duckdb": "names no table",
    "duckdb:///house.duckdb#peple": "peple",
    "duckdb:///house.duckdb#select * from people": "SQL is not taken",
    "duckdb:///house.duckdb#people; drop table people": "SQL is not taken",
    "duckdb:///none.duckdb#people": "does not exist",
    "duckdb:///people.csv#people": "is not a DuckDB database",
    "sqlite:///house.sqlite#peple": "did you mean 'people'",
    "people.xlsx#peple": "did you mean 'people'",
    "mysql://host/house#people": "allowed are duckdb:///",
    f"postgresql://me:{SECRET}@host/house#people": "PGPASSWORD",
    f"postgresql://me@host/house?password={SECRET}#people": "PGPASSWORD",
    "postgresql://nobody@/house?host=/nowhere#people": "no connection to the server",
}


def face_of(name, bad):
    """A command that reads a table."""
    if name == "ask":
        return ["ask", bad, *LEVELS, "count where sick"]
    if name == "synthesize":
        return ["synthesize", bad, *LEVELS, "--ledger", "none", "--plan"]
    if name == "init":
        return ["init", "new.toml", "--from", bad, "--public", "people.csv", "--target", "sick"]
    if name == "init public":
        return ["init", "new.toml", "--from", "people.csv", "--public", bad, "--target", "sick"]
    if name == "schema":
        return ["schema", "init", bad, "--out", "drafted.toml"]
    kind = name.partition(" ")[2]
    more = {
        "statistics": '[statistics]\nschema = "schema.toml"\nquestions = ["count where sick"]',
        "dpsgd": "[run]\nstreaming = true",
        "pate": "",
    }[kind]
    Path("study.toml").write_text(
        f'[data]\nprivate = {json.dumps(bad)}\nowner = "person"\n'
        + ('target = "sick"\npublic = "people.csv"\n' if kind != "statistics" else "")
        + '[privacy]\nlevels = { high = 1.0, low = 3.0 }\ncolumn = "level"\n'
        + f'[method]\nkind = "{kind}"\n[ledger]\nurl = "none"\n{more}\n'
    )
    return ["plan", "study.toml"]


FACES = [
    "ask",
    "synthesize",
    "init",
    "init public",
    "schema",
    "plan statistics",
    "plan dpsgd",
    "plan pate",
]


@pytest.mark.parametrize("name", FACES)
def test_a_bad_place_is_one_line_at_every_face(folder, collegium, name):
    for bad, said in BAD.items():
        if name == "plan dpsgd" and bad.startswith(("sqlite", "people.xlsx")):
            said = "SQLite and workbooks are read into memory"
        code, printed, errors = collegium(*face_of(name, bad))
        assert code == 2, (bad, printed, errors)
        last = [line for line in errors.splitlines() if line.startswith("error: ")]
        assert len(last) == 1 and said in last[0], (bad, errors)
        assert SECRET not in printed + errors
        assert SECRET not in "".join(
            path.read_text(errors="replace") for path in Path().iterdir() if path.suffix == ".log"
        )
    assert not Path("new.toml").exists()
    assert not Path("drafted.toml").exists()


def test_a_password_in_a_studys_file_is_refused_before_anything_is_kept(folder, collegium):
    command = face_of("plan statistics", f"postgresql://me:{SECRET}@host/house#people")
    code, _, errors = collegium(*command)
    assert code == 2
    assert "data.private: 'postgresql://…@host/house#people' holds a password" in errors
    assert not Path("study").exists()


def test_a_password_comes_from_the_environment_and_goes_nowhere(
    folder, collegium, asked, server, server_table, monkeypatch
):
    url = server_table.partition("#")[0]
    role = server.new_role(url, "SELECT ON people", password=SECRET)
    server.log_statements(url)  # after the statement that says it
    before = server.logged(url)
    how = [*LEVELS, "--ledger", "none", "count where sick"]
    for given in (None, "another"):
        if given is not None:
            monkeypatch.setenv("PGPASSWORD", given)
        _, errors = asked(f"{role}#people", *how, code=2)
        assert "set PGPASSWORD, or PGPASSFILE" in errors
    monkeypatch.setenv("PGPASSWORD", SECRET)
    asked(f"{role}#people", *how, "--record", "answers.json")
    monkeypatch.delenv("PGPASSWORD")
    Path("passwords").write_text(f"*:*:*:*:{SECRET}\n")
    Path("passwords").chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(Path("passwords").resolve()))
    for kind in ("statistics", "dpsgd"):
        command = face_of(f"plan {kind}", f"{role}#people")
        text = Path("study.toml").read_text()
        text = text.replace("[run]", '[preprocessing]\nkind = "tabular"\n[run]')
        text = text.replace("target =", 'exclude = ["seen"]\npublic_may_overlap = true\ntarget =')
        Path("study.toml").write_text(text)
        for one in (command, ["run", "study.toml", "--out", kind]):
            code, printed, errors = collegium(*one)
            assert code == 0, errors
            assert SECRET not in printed + errors
    Path("passwords").unlink()
    kept = [path for path in Path().rglob("*") if path.is_file()]
    assert len(kept) > 20
    assert not any(SECRET.encode() in path.read_bytes() for path in kept)
    logged = server.logged(url)[len(before) :]
    assert "SELECT" in logged and SECRET not in logged


def test_a_role_that_may_not_read_is_one_line(folder, asked, server, server_table):
    url = server_table.partition("#")[0]
    role = server.new_role(url)
    _, errors = asked(f"{role}#people", *LEVELS, "--ledger", "none", "count where sick", code=2)
    assert "table 'people' of postgresql://" in errors
    assert "may not read it: GRANT SELECT" in errors
    role = server.new_role(url, "SELECT (person, level, age) ON people")
    how = [*LEVELS, "--ledger", "none"]
    _, errors = asked(f"{role}#people", *how, "count where sick", code=2)
    assert "column 'sick' of postgresql://" in errors
    assert "may not be read by this role: GRANT SELECT on it" in errors
    server.run(url, "ALTER TABLE people ALTER sick TYPE bytea USING ''")
    _, errors = asked(server_table, *how, "count where sick", code=2)
    assert "which the schema names, holds lists, records, bytes or times of day" in errors


def test_what_is_not_on_a_server_is_said(folder, asked, server, server_table):
    url = server_table.partition("#")[0]
    how = [*LEVELS, "--ledger", "none", "count where sick"]
    server.run(url, "CREATE SCHEMA clinic")
    server.run(url, "CREATE TABLE clinic.visits (age int)")
    for bad, said in {
        f"{url}#clinci.visits": "has no table in a schema 'clinci': did you mean 'clinic'?",
        f"{url}#clinic.visit": "has no table 'clinic.visit' that may be read: did you mean 'visits'?",
        f"{server.url('nowhere')}#people": "cannot be opened (there is no such database)",
        f"{server.url('postgres', 'nobody')}#people": "refused role or password",
    }.items():
        assert said in asked(bad, *how, code=2)[1]


@pytest.mark.parametrize(
    "secret",
    [
        f"postgresql://u:{SECRET}@h/db#t",
        f"u:{SECRET}@h/db#t",
        f"host=h password={SECRET} dbname=x",
    ],
)
def test_no_command_takes_or_repeats_a_password(folder, collegium, secret):
    Path("study.toml").write_text(f"[ledger]\nurl = {json.dumps(secret)}\n")
    for command in (
        ["predict", "release", secret, "--out", "x"],
        ["onnx", "release", secret],
        ["ask", secret, "count"],
        ["ask", "people.csv", *LEVELS, "--owner", "person", "count where sick", "--ledger", secret],
        ["ask", "people.csv", *LEVELS, "count where sick", f"--ledger={secret}"],
        ["ask", "people.csv", *LEVELS, "count where sick", "--schema", secret],
        ["ask", "people.csv", *LEVELS, "count where sick", "--record", secret],
        ["schema", "init", "people.csv", "--out", secret],
        ["plan", secret],
        ["ledger", "init", secret],
        [secret],
    ):
        code, printed, errors = collegium(*command)
        assert code == 2, command
        assert "set PGPASSWORD, or PGPASSFILE" in errors, command
        assert SECRET not in printed + errors
    face_of("plan statistics", "people.csv")
    text = Path("study.toml").read_text()
    Path("study.toml").write_text(text.replace('url = "none"', f"url = {json.dumps(secret)}"))
    code, printed, errors = collegium("run", "study.toml")
    assert code == 2 and "set PGPASSWORD, or PGPASSFILE" in errors
    assert SECRET not in printed + errors
    assert not Path("study").exists()


def test_the_ledger_that_is_named_is_the_one_that_remembers(folder, collegium, asked, monkeypatch):
    monkeypatch.delenv("COLLEGIUM_LEDGER", raising=False)
    whose = [*LEVELS, "--owner", "person", "--spend", 0.1]
    Ledger.create(folder / "people.ledger")
    for table in ("duckdb:///house.duckdb#people", "people.csv"):
        printed, _ = asked(table, *whose, "--allow-new-people", "count where sick")
        command = printed.partition("Entered in the ledger ")[2].split("`")[1]
        assert command == f"collegium ledger show {folder / 'people.ledger'}"
        assert collegium(*command.split()[1:])[0] == 0
        printed, _ = asked(table, *whose, "--json", "count where age > 40")
        assert json.loads(printed)["ledger"] == str(folder / "people.ledger")


def test_a_file_of_records_is_asked_for_where_no_table_of_a_database_is_read(folder, collegium):
    for table in (*OTHERS, "postgresql://steward@host/house#people", "house.duckdb"):
        for command in ("predict", "onnx"):
            code, _, errors = collegium(command, "release", table, "--out", "x")
            assert code == 2
            assert "here records are read from a file: export it" in errors


def test_the_page_shows_what_is_said_of_a_password(folder, asked):
    _, errors = asked("postgresql://steward:secret@host/hospital#visits", "count", code=2)
    assert errors.strip() in PAGE.read_text("utf-8")
    assert "secret" not in errors


def test_a_file_is_named_where_only_a_file_will_do(folder, collegium):
    command = face_of("plan statistics", "people.csv")
    text = Path("study.toml").read_text()
    Path("study.toml").write_text(text.replace('"schema.toml"', '"duckdb:///house.duckdb#people"'))
    code, _, errors = collegium(*command)
    assert code == 2
    assert "statistics.schema names a table in a database or workbook, and must be a file" in errors


def test_a_missing_column_is_named_before_a_row_is_read(folder, asked):
    for table in OTHERS:
        _, errors = asked(table, "--privacy", "lvel", "--levels", "high=1,low=3", "count", code=2)
        assert "has no column 'lvel', which --privacy names: did you mean 'level'?" in errors


def test_init_names_tables_as_seen_from_the_study(folder, collegium):
    Path("studies").mkdir()
    with duckdb.connect("house.duckdb") as connection:
        connection.execute("CREATE TABLE others AS SELECT * EXCLUDE (person, level) FROM people")
    code, _, errors = collegium(
        *["init", "studies/new.toml", "--from", "duckdb:///house.duckdb#people"],
        *["--public", "duckdb:///house.duckdb#others", "--target", "sick", "--owner", "person"],
        *["--privacy", "level", "--levels", "high=1,low=3"],
    )
    assert code == 0, errors
    text = Path("studies/new.toml").read_text()
    assert 'private = "duckdb:///../house.duckdb#people"' in text
    assert 'public = "duckdb:///../house.duckdb#others"' in text
    code, _, errors = collegium("init", "same.toml", "--from", OTHERS[0], "--public", OTHERS[0])
    assert code == 2
    assert "was given as private and as public" in errors


@pytest.mark.parametrize("table", OTHERS)
def test_a_schema_is_drafted_from_a_public_table(folder, collegium, table):
    code, _, errors = collegium("schema", "init", table, "--out", "drafted.toml", "-q")
    assert code == 0, errors
    collegium("schema", "init", "people.csv", "--out", "of-csv.toml", "-q")

    def columns(file):
        text = Path(file).read_text()
        return [
            line for line in text.splitlines() if line.startswith(("[columns", "kind", "bounds"))
        ]

    assert columns("drafted.toml") == columns("of-csv.toml")
