"""Places of tables: what names one, what is refused, and how SQLite and workbooks are read."""

import contextlib
import datetime
import sqlite3
from decimal import Decimal
from functools import partial
from pathlib import Path

import duckdb
import openpyxl
import pandas as pd
import pytest

from collegium.data.engines import places
from collegium.data.engines.places import Place, columns_of, place_of, read_place
from collegium.errors import InputError
from collegium.passwords import refuse_passwords


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a table of each kind, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("people.duckdb") as connection:
        connection.execute("CREATE TABLE visits (age INTEGER)")
    with sqlite3.connect("people.sqlite") as connection:
        connection.execute("CREATE TABLE visits (age, town, born)")
        connection.execute('CREATE TABLE "odd; ""name" (age)')
        connection.executemany(
            "INSERT INTO visits VALUES (?, ?, ?)",
            [(40, "007", 1.5), (41.0, None, b"\x00"), (2**53 + 1, "", 1e20), ("x", "Ulm", None)],
        )
    book = openpyxl.Workbook()
    book.active.title = "Visits 2025"
    rows = [
        ("age", "seen", "smoker", "town"),
        (40, datetime.datetime(2025, 3, 1), True, "007"),
        (41.5, datetime.datetime(2025, 3, 2, 13, 30), False, 7),
        (None, None, None, None),
        ("n/a", "yesterday", "no", datetime.time(12)),
    ]
    for row in rows:
        book.active.append(row)
    book.save("people.xlsx")
    book.create_sheet("Other")
    book.save("two.xlsx")
    return tmp_path


def test_places(here):
    absolute = f"duckdb:///{here}/people.duckdb#main.visits"
    for given, expected in {
        "duckdb:///people.duckdb#visits": Place("duckdb", "people.duckdb", "visits"),
        absolute: Place("duckdb", f"{here}/people.duckdb", "visits", "main"),
        'DuckDB:///people.duckdb#"select ""x"""': Place("duckdb", "people.duckdb", 'select "x"'),
        'duckdb:///people.duckdb#"a.b".c': Place("duckdb", "people.duckdb", "c", "a.b"),
        "duckdb:///people.duckdb#Größe$2": Place("duckdb", "people.duckdb", "Größe$2"),
        "sqlite:///people.sqlite#main.Visits": Place("sqlite", "people.sqlite", "visits"),
        'sqlite:///people.sqlite#"odd; ""name"': Place("sqlite", "people.sqlite", 'odd; "name'),
        "people.xlsx": Place("excel", "people.xlsx", "Visits 2025"),
        "two.xlsx#Other": Place("excel", "two.xlsx", "Other"),
        "postgresql://steward@host:5432/hospital#visits": Place(
            "postgresql", "postgresql://steward@host:5432/hospital", "visits"
        ),
        "postgres://h/db?sslmode=require&user=a@b#public.visits": Place(
            "postgresql", "postgresql://h/db?sslmode=require&user=a@b", "visits", "public"
        ),
        'postgresql:///#"a@b:c"': Place("postgresql", "postgresql:///", "a@b:c"),
    }.items():
        found = place_of(given)
        assert found == expected, given
        assert place_of(str(found)) == found
    assert place_of(Path("people.xlsx")) == place_of("people.xlsx")
    assert place_of("people.xlsx", here).file == here / "people.xlsx"
    assert place_of("sqlite:///people.sqlite#visits", here).where == str(here / "people.sqlite")


def test_what_is_written_without_a_look(tmp_path):
    for given, name in {
        "duckdb:///a/missing.duckdb#visits": "missing.duckdb#visits",
        "sqlite:///missing.sqlite#main.visits": "missing.sqlite#visits",
        "missing.xlsx": "missing.xlsx",
        "a/missing.xlsx#Visits": "missing.xlsx#Visits",
        "postgresql://me@host:5432/hospital?host=/var/run#public.visits": "hospital#visits",
        "postgresql://host#visits": "postgresql#visits",
    }.items():
        place = place_of(given, look=False)
        assert place.name == name
        assert place_of(str(place), look=False) == place
    assert place_of("missing.xlsx", tmp_path, look=False).file == tmp_path / "missing.xlsx"
    with pytest.raises(InputError, match="names no table"):
        place_of("duckdb:///missing.duckdb", look=False)


@pytest.mark.parametrize(
    "given",
    [
        "people.csv",
        "sqlite.parquet",
        "C:/a@b/x.csv",
        "year=2020/password.csv",
        Path("a/b.parquet"),
        "C:/x.csv",
        b"x.xlsx",
        7,
        None,
        pd.NA,
    ],
    ids=repr,
)
def test_what_is_no_place(given):
    assert place_of(given) is None


_SECRET = "hunter2"


@pytest.mark.parametrize(
    "given",
    [
        f"postgresql://me:{_SECRET}@host/db#visits",
        f"postgresql://me:{_SECRET}@host/db",
        f"postgres://me:{_SECRET}#{_SECRET}@host/db#visits",
        f"postgresql://me:12#{_SECRET}@host/db#visits",
        f"postgresql://me:12/{_SECRET}@host/db#visits",
        f"postgresql://me:1?{_SECRET}@host/db#visits",
        f"postgresql://me:@host/db?password={_SECRET}#visits",
        f"postgresql://host/db?password={_SECRET}#visits",
        f"postgresql://host/db?sslpassword={_SECRET}",
        f"postgresql://host/db?oauth_client_secret={_SECRET}#visits",
        f"postgresql://me:{_SECRET}@host:port/db#visits",
        f"mysql://me:{_SECRET}@host/db#visits",
        f"me:{_SECRET}@host/db#visits",
        f"host=host password={_SECRET} dbname=db",
        f"dbname=db sslpassword = {_SECRET}:x@y",
        f'postgresql://me:x"{_SECRET}@host/db#"visits',
        f"duckdb://me:{_SECRET}@host/db#visits",
        f"postgresql:me:{_SECRET}@host/db#visits",
        Path(f"postgresql://me:{_SECRET}@host/db#visits"),
    ],
    ids=str,
)
def test_a_password_is_refused_and_shown_nowhere(given):
    with pytest.raises(InputError) as refused:
        place_of(given)
    assert _SECRET not in str(refused.value)
    assert refused.value.__cause__ is None
    assert "\n" not in str(refused.value)


def test_what_to_set_in_place_of_a_password():
    with pytest.raises(InputError, match="leave it out, and set PGPASSWORD, or PGPASSFILE"):
        place_of("postgresql://me:secret@host/db#visits")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("duckdb:///people.duckdb", "names no table: write #TABLE"),
        ("duckdb:///people.duckdb#", "names no table"),
        ("postgresql://host/db", "names no table"),
        ("duckdb:///people.duckdb#select * from x", "is no name of a table"),
        ("duckdb:///people.duckdb#x; drop table x", "SQL is not taken"),
        ("duckdb:///people.duckdb#x'--", "is no name of a table"),
        ('duckdb:///people.duckdb#"x', "is no name of a table"),
        ("duckdb:///people.duckdb#a.b.c", "TABLE or SCHEMA.TABLE"),
        ("duckdb:///people.duckdb#read_csv('/etc/passwd')", "is no name of a table"),
        ('postgresql://host/db#"\0"', "is no name of a table"),
        ("duckdb://people.duckdb#visits", "names no file: give duckdb:///FILE#TABLE"),
        ("duckdb:///#visits", "names no file"),
        ("duckdb:///:memory:#visits", "names no file"),
        ("duckdb:people.duckdb#visits", "is no place of a table: give duckdb:///FILE"),
        (Path("duckdb:///people.duckdb#visits"), "as text"),
        ("duckdb:///missing.duckdb#visits", "'missing.duckdb' does not exist"),
        ("duckdb:///people.sqlite#visits", "is not a DuckDB database"),
        ("sqlite:///people.duckdb#visits", "is not a SQLite database"),
        ("sqlite:///people.sqlite#visit", "did you mean 'visits'"),
        ("sqlite:///people.sqlite#other.visits", "has no table 'other.visits'"),
        ("mysql://host/db#visits", "a table in 'mysql' cannot be read; allowed are duckdb:///"),
        ("https://host/people.csv", "a table in 'https' cannot be read"),
        ("postgresql://host:port/db#visits", "is no address of a PostgreSQL database"),
        ("postgresql://host/db?options=-csearch_path=x#visits", "'options' cannot be said"),
        ("missing.xlsx", "does not exist"),
        ("fake.xlsx", "is not an Excel workbook"),
        ("damaged.xlsx", "is not a readable workbook"),
        ("two.xlsx", "has 2 sheets (Visits 2025, Other): say which, as in two.xlsx#Visits 2025"),
        ("two.xlsx#other", "did you mean 'Other'"),
    ],
    ids=str,
)
def test_bad_places(here, given, said):
    Path("fake.xlsx").write_text("age\n40\n")
    Path("damaged.xlsx").write_bytes(Path("people.xlsx").read_bytes()[:-300])
    with pytest.raises(InputError) as refused:
        place_of(given)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_cells_of_sqlite_are_read_each_by_itself(here):
    place = place_of("sqlite:///people.sqlite#visits")
    assert columns_of(place) == ("age", "town", "born")
    table = read_place(place)
    assert table["age"].tolist() == ["40", "41", "9007199254740993", "x"]
    assert table["town"].tolist() == ["007", None, None, "Ulm"]
    assert table["born"].tolist() == ["1.5", None, "1e+20", None]
    assert read_place(place, ["born", "age"]).columns.tolist() == ["born", "age"]
    assert len(read_place(place, [])) == 4
    with pytest.raises(InputError, match="has no column 'agee': did you mean 'age'"):
        read_place(place, ["agee"])
    odd = place_of('sqlite:///people.sqlite#"odd; ""name"')
    assert columns_of(odd) == ("age",)
    assert read_place(odd)["age"].tolist() == []


def test_text_that_is_none_is_missing(here):
    with sqlite3.connect("people.sqlite") as connection:
        connection.execute("UPDATE visits SET town = CAST(x'ff' AS TEXT)")
    assert read_place(place_of("sqlite:///people.sqlite#visits"), ["town"])["town"].isna().all()


def test_a_view_that_fails_quotes_nothing(here):
    with sqlite3.connect("people.sqlite") as connection:
        connection.execute("CREATE VIEW broken AS SELECT json(town) AS town FROM visits")
    with pytest.raises(InputError, match="cannot be read as a SQLite database") as refused:
        read_place(place_of("sqlite:///people.sqlite#broken"))
    assert refused.value.__cause__ is None
    assert "JSON" not in str(refused.value)


def test_cells_of_workbooks_are_read_each_by_itself(here):
    place = place_of("people.xlsx")
    table = read_place(place)
    assert table["age"].tolist() == ["40", "41.5", None, "n/a"]
    assert table["smoker"].tolist() == ["True", "False", None, "no"]
    assert table["town"].tolist() == ["007", "7", None, None]
    assert [str(cell) for cell in table["seen"]] == [
        "2025-03-01 00:00:00",
        "2025-03-02 13:30:00",
        "None",
        "yesterday",
    ]
    dates = read_place(place, ["seen"], as_text=True)["seen"].tolist()
    assert dates == ["2025-03-01", "2025-03-02 13:30:00", None, "yesterday"]


def test_columns_without_a_name(here):
    book = openpyxl.Workbook()
    for row in [("age", None, "age"), (1, 2, 3)]:
        book.active.append(row)
    book.save("twice.xlsx")
    with pytest.raises(InputError, match="has the same name for columns 1 and 3"):
        columns_of(place_of("twice.xlsx"))
    openpyxl.Workbook().save("empty.xlsx")
    with pytest.raises(InputError, match="is empty"):
        columns_of(place_of("empty.xlsx"))


def test_a_decimal_is_text():
    from collegium.data.engines import places

    assert places._cell(Decimal("1.10"), False) == "1.10"


@pytest.mark.parametrize(
    "odd", ["x", "", None, 1.5, -0.0, 10**20, True, datetime.date(2025, 1, 2)], ids=repr
)
@pytest.mark.parametrize("kind", ["sqlite", "excel"])
def test_one_cell_changes_no_other(tmp_path, odd, kind):
    """Everybody's numbers, text and dates are read as they were, whatever one person's cell holds."""
    others = [(7, "007", 1.0), (8.5, "x", 2**53 - 1), ("9", 10, "2025-01-02")]

    def written(rows, name):
        if kind == "excel":
            book = openpyxl.Workbook()
            for row in [("a", "b", "c"), *rows]:
                book.active.append(row)
            book.save(tmp_path / f"{name}.xlsx")
            return place_of(f"{tmp_path}/{name}.xlsx")
        with sqlite3.connect(tmp_path / f"{name}.sqlite") as connection:
            connection.execute("CREATE TABLE t (a, b, c)")
            cells = [
                [str(c) if isinstance(c, datetime.date) or c == 10**20 else c for c in row]
                for row in rows
            ]
            connection.executemany("INSERT INTO t VALUES (?, ?, ?)", cells)
        return place_of(f"sqlite:///{tmp_path}/{name}.sqlite#t")

    alone = read_place(written(others, "alone"))
    beside = read_place(written([*others, (odd, odd, odd)], "beside"))
    assert beside.iloc[:3].equals(alone)
    assert alone["a"].tolist() == ["7", "8.5", "9"]
    assert alone["b"].tolist() == ["007", "x", "10"]


@pytest.mark.parametrize(
    "given",
    [
        "duckdb:///C:/me@home/x.duckdb#t",
        "duckdb:////tmp/a:b@c/x.duckdb#t",
        'postgresql://host:5432/db#"a:b@c"',
        "count where password = 'x'",
        "mean income where region = 'a:b@c/d'",
        "high=1,low=3",
        "http://127.0.0.1:8080/x",
    ],
)
def test_what_holds_no_password(given):
    refuse_passwords([given])


def test_the_file_of_a_database_alone_is_told_how_to_be_named():
    with pytest.raises(InputError, match=r"as in sqlite:///p\.sqlite#TABLE"):
        place_of("p.sqlite")
    with pytest.raises(InputError, match=r"as in duckdb:////tmp/p\.duckdb#visits"):
        place_of("/tmp/p.duckdb#visits")


def test_a_locked_database_is_said_to_be_locked(tmp_path, monkeypatch):
    file = tmp_path / "p.sqlite"
    with contextlib.closing(sqlite3.connect(file)) as writer:
        writer.execute("CREATE TABLE visits (age)")
        writer.commit()
        place = place_of(f"sqlite:///{file}#visits")
        monkeypatch.setattr(places.sqlite3, "connect", partial(sqlite3.connect, timeout=0))
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputError, match="is locked by another program"):
            read_place(place)
