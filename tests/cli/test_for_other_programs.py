"""What other programs read: a table with everybody's level, a plan as a page, where a run is."""

import json
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collegium import Ledger, Policy
from collegium.data.datasets.table_files import read_table

POLICY = Policy({"high": 1.0, "low": 3.0})
#: Names that software likes to change: numbers to their values, spaces and quotes to nothing.
NAMES = ["007", "7", "1.50", "Ann Lee", " Bo ", 'C. "Cy" O\'Brien', "semi;colon", "=1+1", "Ünä"]
SCRIPT = "</title><script>alert(1)</script>"


@pytest.fixture
def refused(collegium):
    """Run a command that is refused, and give its one line."""

    def run(*arguments: str) -> str:
        code, printed, error = collegium(*arguments)
        assert (code, printed, error.count("\n")) == (2, "", 1), error
        return error

    return run


@pytest.fixture
def people(tmp_path):
    """A ledger in which somebody has left."""
    ledger = Ledger.create(tmp_path / "people.ledger")
    who = [*NAMES, "gone"]
    ledger.change(POLICY.assign(["high", "low"] * 5, owners=who))
    ledger.forget("gone")
    return str(tmp_path / "people.ledger")


@pytest.fixture
def visits(tmp_path):
    """Write rows of everybody, of somebody who has left and of a stranger, twice each."""

    def write(separator: str = ",") -> str:
        who = [*NAMES, "gone", "stranger"]
        rows = pd.DataFrame({"who": who * 2, "cost": "0010", "note": 'two\nlines; "so"'})
        rows.to_csv(tmp_path / "visits.csv", sep=separator, index=False)
        return str(tmp_path / "visits.csv")

    return write


def levels_of(place, table, out, *more):
    return "ledger", "levels", place, table, "--owner", "who", "--out", str(out), *more


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_levels_stand_beside_every_row_of_those_who_take_part(
    collegium, people, visits, tmp_path, separator
):
    out = tmp_path / "granted.csv"
    code, printed, _ = collegium(*levels_of(people, visits(separator), out))
    assert code == 0
    assert "9 of 11 people take part, with 18 of 22 rows" in printed
    found = read_table(out, as_text=True)  # finds the separator as it did in the table
    assert list(found) == ["who", "cost", "note", "privacy"]
    assert list(found["who"]) == NAMES * 2
    assert list(found["privacy"]) == [*(["high", "low"] * 5)[:9]] * 2
    assert set(found["cost"]) == {"0010"}
    assert set(found["note"]) == {'two\nlines; "so"'}
    assert out.read_text().startswith(separator.join(found))
    assert os.name == "nt" or out.stat().st_mode & 0o077 == 0


def test_levels_are_those_of_now_and_replace_older_ones(collegium, people, visits, tmp_path):
    Ledger(people).change(POLICY.assign(["low"], owners=["007"]))
    out = tmp_path / "granted.csv"
    assert collegium(*levels_of(people, visits(), out, "--level-column", "note"))[0] == 0
    found = read_table(out, as_text=True)
    assert list(found) == ["who", "cost", "note"]
    assert set(found.loc[found["who"] == "007", "note"]) == {"low"}


def test_levels_of_numbers_in_parquet(collegium, tmp_path):
    Ledger.create(tmp_path / "people.ledger").change(POLICY.assign(["high"], owners=[7]))
    day = pd.to_datetime(["2026-01-31", None])
    table = pd.DataFrame({"who": [7, 8], "big": [2**60 + 1, 1], "day": day, "yes": [True, False]})
    table.to_parquet(tmp_path / "visits.parquet")
    out = tmp_path / "granted.parquet"
    place = str(tmp_path / "people.ledger")
    assert collegium(*levels_of(place, str(tmp_path / "visits.parquet"), out))[0] == 0
    found = pq.read_table(out)
    assert found.drop(["privacy"]).schema.types == pa.Table.from_pandas(table).schema.types
    assert found["big"].to_pylist() == [2**60 + 1]
    assert found["privacy"].to_pylist() == ["high"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--owner", "whoo"], "did you mean 'who'?"),
        (["--level-column", "who"], "give their column a name of its own"),
        (["--level-column", " "], "give their column a name of its own"),
        (["--out", "visits.csv"], "exists already"),
        (["--out", "none/granted.csv"], "there is no folder none"),
        (["--out", "granted.parquet"], "give a name that ends in .csv"),
        (["--out", "granted.csv.gz"], "give a name that ends in .csv"),
        (["--out", "granted"], "give a name that ends in .csv"),
        (["--key", "none.key"], "cannot be read"),
    ],
)
def test_levels_are_refused_in_one_line_and_change_nothing(
    refused, people, visits, tmp_path, monkeypatch, more, says
):
    visits()
    monkeypatch.chdir(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert says in refused(*levels_of(people, "visits.csv", "granted.csv", *more))
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_levels_of_rows_without_a_name_of_strangers_and_without_a_ledger(refused, people, tmp_path):
    table, out = tmp_path / "visits.csv", tmp_path / "granted.csv"
    table.write_text("who,cost\n7,1\n,2\n")
    assert "1 of 2 rows have no name in column 'who'" in refused(
        *levels_of(people, str(table), out)
    )
    table.write_text("who,cost\nstranger,1\ngone,2\n")
    assert "nobody in the table has a level" in refused(*levels_of(people, str(table), out))
    nowhere = str(tmp_path / "none.ledger")
    assert "there is no ledger" in refused(*levels_of(nowhere, str(table), out))
    assert not out.exists()


def test_levels_where_nothing_can_be_written(refused, people, visits, monkeypatch, tmp_path):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("collegium.cli.outputs.write_durably", full)
    out = tmp_path / "granted.csv"
    assert f"{out} cannot be written (No space left on device)" in refused(
        *levels_of(people, visits(), out)
    )


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Write a study with names that are programs, and settings of its own."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(7)
    first, second = rng.normal(size=(2, 400))
    kind = np.where(first + second / 2 > 0, "<b>yes</b>", "no")
    rows = pd.DataFrame({"<i>first</i>": first, "{{second}}": second, "kind": kind})
    rows[:300].assign(privacy=["<b>high</b>", "low"] * 150).to_csv("private.csv", index=False)
    rows[300:].to_csv("public.csv", index=False)
    settings = f"""
[study]
name = "{SCRIPT}"
[data]
private = "private.csv"
public = "public.csv"
target = "kind"
classes = ["<b>yes</b>", "no"]
[privacy]
column = "privacy"
levels = {{ "<b>high</b>" = 1.0, low = 3.0 }}
[method]
kind = "dpsgd"
"""
    (tmp_path / "study.toml").write_text(settings)
    return "study.toml"


def test_a_plan_is_a_page_on_which_names_are_text(collegium, study, tmp_path):
    assert collegium("plan", study, "--html", "plan.html", "--quiet")[0] == 0
    page = (tmp_path / "plan.html").read_text()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "&lt;b&gt;high&lt;/b&gt;" in page
    assert "&lt;i&gt;first&lt;/i&gt;, {{second}}" in page
    assert not any(mark in page for mark in ("<script", "<b>", "<i>"))
    assert "default-src 'none'" in page
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("public.csv", "public.csv exists already and is left as it is"),
        ("none/plan.html", "there is no folder none for plan.html"),
        (".", ". is a folder"),
    ],
)
def test_a_plan_is_written_to_a_file_of_its_own(refused, study, tmp_path, where, says):
    before = (tmp_path / "public.csv").read_bytes()
    assert says in refused("plan", study, "--html", where)
    assert (tmp_path / "public.csv").read_bytes() == before


def test_a_run_keeps_in_a_file_where_it_is(collegium, study, tmp_path, monkeypatch):
    file, seen = tmp_path / "progress.json", []
    file.touch()  # as programs make it that want a name of their own
    replace = type(file).replace

    def watched(new, place):
        if place.name == file.name:
            seen.append(json.loads(new.read_text()))
        return replace(new, place)

    monkeypatch.setattr(type(file), "replace", watched)
    assert collegium("run", study, "--quiet", "--progress", str(file))[0] == 0
    assert seen[0] == {"stage": "", "done": 0, "total": None, "seconds_left": None, "waits": ""}
    assert seen[-1]["stage"] == "report"
    assert json.loads(file.read_text()) == seen[-1]
    before = len(seen)  # the same command again, as after an interruption, begins anew in the file
    assert collegium("run", study, "--quiet", "--progress", str(file))[0] == 0
    assert seen[before] == seen[0]
    for place in ("study/vault/progress.json", "study/release/progress.json"):
        code, _, error = collegium("run", study, "--progress", place)
        assert (code, "would be among the files of the study" in error) == (2, True)
        assert not (tmp_path / place).exists()


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("public.csv", "public.csv exists already and is left as it is"),
        ("study.toml", "study.toml exists already and is left as it is"),
        ("none/progress.json", "there is no folder none for progress.json"),
        (".", ". is a folder"),
        ("..", ".. is a folder"),
        pytest.param(
            "pipe",
            "pipe exists already",
            marks=pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX"),
        ),
    ],
)
def test_a_run_keeps_it_in_a_file_of_its_own(refused, study, tmp_path, where, says):
    if where == "pipe":
        os.mkfifo(where)
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert says in refused("run", study, "--progress", where)
    assert where != "pipe" or (tmp_path / where).is_fifo()
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_a_run_does_not_begin_where_nothing_can_be_written(refused, study, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("collegium.cli.progress._keep_in", full)
    error = refused("run", study, "--progress", "progress.json")
    assert "progress.json cannot be written (No space left on device)" in error
    assert not (tmp_path / "study").exists()
