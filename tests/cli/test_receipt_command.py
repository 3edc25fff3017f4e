"""Receipts for everybody: a page each, in a folder for one pair of eyes, and an index."""

import csv
from pathlib import Path

import pytest

from collegium import Ledger, Policy
from collegium.accounting import Neighbours
from collegium.ledger import Cost
from collegium.report.receipt import receipt_of

NAMES = ["ann", "Ann", "../../etc/passwd", "<b>&", "=1+1", "CON", "", "bob", "zoe", "ann"]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    made = Ledger.create(tmp_path_factory.mktemp("ledger") / "people.ledger")
    levels = ["high", "high", "low", "low", "low", "low", "high"]
    owners = ["ann", "Ann", "../../etc/passwd", "<b>&", "=1+1", "CON", "bob"]
    people = Policy({"high": 1.0, "low": 3.0}).assign(levels, owners=owners)
    costs = {"high": Cost(0.02), "low": Cost(0.1)}
    made.reserve("a", "Study of 2025", people, costs, neighbours=Neighbours.ANY_CHANGE)
    return made


@pytest.fixture
def names(tmp_path):
    path = tmp_path / "names.csv"
    with path.open("w", newline="") as file:
        rows = [(name, 50) for name in NAMES if name]
        csv.writer(file).writerows([("patient", "age"), *rows])
    return path


@pytest.mark.parametrize("kind", ["html", "txt"])
def test_everybody_gets_what_they_would_be_told_alone(collegium, ledger, names, tmp_path, kind):
    folder = tmp_path / "receipts"
    if kind == "txt":
        folder.mkdir(mode=0o755)
    asked = ["--all", names, "--owner", "patient", "--ledger", str(ledger), "--out", folder]
    code, printed, _ = collegium("receipt", *asked, *(["--text"] if kind == "txt" else []))
    assert (
        code == 0
        and "Wrote 8 receipts" in printed
        and "1 of these names are not in the ledger" in printed
    )
    with (folder / "index.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["owner"] for row in rows].count("'=1+1") == 1  # which would be a formula
    rows = [{**row, "owner": row["owner"].removeprefix("'")} for row in rows]
    assert [row["owner"] for row in rows] == list(dict.fromkeys(filter(None, NAMES)))
    assert [row["file"] for row in rows] == [f"{number}.{kind}" for number in range(1, 9)]
    for row in rows:
        alone = receipt_of(row["owner"], ledger.account_of(row["owner"]), ledger.neighbours)
        page = (folder / row["file"]).read_text(encoding="utf-8")
        assert page == (alone.as_html() if kind == "html" else alone.as_text())
    assert len(list(folder.iterdir())) == 9
    modes = {path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert (folder.stat().st_mode & 0o777, modes) == (0o700, {0o600})


def test_no_name_in_the_index_is_a_formula_or_steers_a_terminal(collegium, ledger, tmp_path):
    table = tmp_path / "names.csv"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([["who"], ['=HYPERLINK("http://x")'], ["ann\x1b[2J"]])
    folder = tmp_path / "receipts"
    assert collegium("receipt", "--all", table, "--ledger", str(ledger), "--out", folder)[0] == 0
    with (folder / "index.csv").open(newline="") as file:
        owners = [row["owner"] for row in csv.DictReader(file)]
    assert owners == ['\'=HYPERLINK("http://x")', "ann [2J"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "give one name, or a table of names with --all"),
        (["ann", "--all", "{names}"], "give one name, or a table of names with --all"),
        (["ann", "--out", "x"], "--out, --owner and --text go with --all"),
        (["ann", "--text"], "--out, --owner and --text go with --all"),
        (["nobody"], "has no account of 'nobody'"),
        (["ann", "--html", "{ledger}"], "exists already and is left as it is"),
        (["--all", "{names}"], "give --out FOLDER"),
        (["--all", "{names}", "--out", "x", "--html", "y"], "--html is for one receipt"),
        (["--all", "{names}", "--out", "x"], "has 2 columns: say which"),
        (["--all", "{names}", "--owner", "id", "--out", "x"], "has no column 'id'"),
        (["--all", "none.csv", "--out", "x"], "none.csv"),
        (["--all", "{gaps}", "--owner", "patient", "--out", "x"], "1 rows without a name, first record 2"),
        (["--all", "{nobody}", "--out", "x"], "has no rows"),
        (["--all", "{names}", "--owner", "patient", "--out", "{full}"], "is not empty, so nothing"),
        (["--all", "{names}", "--owner", "patient", "--out", "{names}"], "is a file: give a folder"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_one_line(
    collegium, ledger, names, tmp_path, monkeypatch, given, said
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gaps.csv").write_text("patient,age\nann,1\n,2\n")
    (tmp_path / "nobody.csv").write_text("patient\n")
    full = tmp_path / "full"
    full.mkdir(mode=0o755)
    (full / "other").touch()
    places = {
        "names": names, "ledger": str(ledger), "gaps": "gaps.csv", "nobody": "nobody.csv", "full": full
    }  # fmt: skip
    whole = Path(str(ledger)).read_bytes()
    code, printed, error = collegium(
        "receipt", *(one.format(**places) for one in given), "--ledger", str(ledger)
    )
    assert (code, printed, error.count("\n")) == (2, "", 1) and said in error
    assert not (tmp_path / "x").exists() and [path.name for path in full.iterdir()] == ["other"]
    assert full.stat().st_mode & 0o777 == 0o755
    assert Path(str(ledger)).read_bytes() == whole


def test_a_folder_that_is_not_finished_is_empty(collegium, ledger, names, tmp_path, monkeypatch):
    def fail(*_, **__):
        yield "first"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("collegium.report.receipt.texts_of", fail)
    asked = ["--all", names, "--owner", "patient", "--ledger", str(ledger)]
    code, _, error = collegium("receipt", *asked, "--out", tmp_path / "pages")
    assert (code, error.count("\n")) == (2, 1) and not list((tmp_path / "pages").iterdir())
