"""The label command's files: numbers or one clear line, which quotes nothing of what they hold."""

import sys

import numpy as np
import pandas as pd
import pytest

from collegium.cli.main import main

SECRET = "SECRET"


@pytest.fixture
def label(tmp_path, monkeypatch, capsys):
    """Label with some votes and budgets: exit code and lines of errors."""
    monkeypatch.chdir(tmp_path)
    np.save("votes.npy", np.arange(60).reshape(12, 5) % 3)
    (tmp_path / "budgets.csv").write_text("epsilon\n5\n")

    def call(*options, votes="votes.npy", budgets="budgets.csv"):
        files = ("--votes", votes, "--budgets", budgets, "--out", "out", "--classes", "3")
        noise = ("--aggregator", "gnmax", "--sigma", "50")
        monkeypatch.setattr(sys, "argv", ["collegium", "label", *files, *noise, *map(str, options)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert SECRET not in printed.out + printed.err
        return ended.value.code or 0, printed.err.strip().splitlines()

    return call


def test_these_files_are_fine(label):
    assert label("--votes-are", "predictions") == (0, [])


@pytest.mark.parametrize("are", ["auto", "counts", "predictions"])
@pytest.mark.parametrize(
    "array",
    [
        np.full((12, 5), SECRET),
        np.full((12, 5), SECRET.encode()),
        np.full((12, 5), np.datetime64("2020-01-01")),
        np.ones((12, 5), dtype=complex),
        np.zeros((12, 5), dtype=[("a", int)]),
    ],
    ids=lambda array: array.dtype.kind,
)
def test_arrays_of_anything_but_numbers_are_refused(label, array, are):
    np.save("other.npy", array)
    code, lines = label("--votes-are", are, votes="other.npy")
    assert (code, lines) == (2, ["error: other.npy must hold numbers only: one row per query"])


@pytest.mark.parametrize("are", ["auto", "predictions"])
def test_tables_of_text_and_folders_are_refused(label, are):
    pd.DataFrame({"a": [SECRET, "1"], "b": [1, 2]}).to_parquet("text.parquet")
    code, lines = label("--votes-are", are, votes="text.parquet")
    assert (code, lines) == (2, ["error: text.parquet must hold numbers only: one row per query"])
    code, lines = label("--votes-are", are, votes=".")
    assert (code, lines) == (2, ["error: . is a folder: give one file, .npy or .csv"])
    code, lines = label(budgets=".")
    assert code == 2 and len(lines) == 1 and "is a folder" in lines[0]


def test_a_table_of_numbers_is_read(label):
    pd.DataFrame(np.arange(60).reshape(12, 5) % 3).rename(columns=str).to_parquet("votes.parquet")
    assert label("--votes-are", "predictions", votes="votes.parquet") == (0, [])


@pytest.mark.parametrize(
    ("text", "column", "row"),
    [
        (f"epsilon\n{SECRET}\n", "epsilon", 0),
        (f"epsilon\n1\n2\n3\n{SECRET}\n5\n", "epsilon", 3),
        (f"epsilon,delta\n1,{SECRET}\n", "delta", 0),
        ("epsilon\nTrue\n", "epsilon", 0),
        ("epsilon\n1\n" + "9" * 400 + "\n", "epsilon", 1),
    ],
)
def test_budgets_that_are_no_numbers_are_not_quoted(label, tmp_path, text, column, row):
    (tmp_path / "other.csv").write_text(text)
    code, lines = label(budgets="other.csv")
    assert code == 2
    (line,) = lines
    assert f"column '{column}' must hold numbers, but row {row} (counted from 0)" in line
    assert "999" not in line


@pytest.mark.parametrize("column", ["owners", "teachers_per_owner", "teacher"])
def test_counts_that_are_no_numbers_are_not_quoted(label, tmp_path, column):
    for value in (SECRET, "9" * 400, "1.5"):
        (tmp_path / "other.csv").write_text(f"epsilon,{column}\n1,{value}\n")
        code, lines = label(budgets="other.csv")
        assert code == 2 and len(lines) == 1 and f"column '{column}' must hold" in lines[0]
        assert value not in lines[0]


@pytest.mark.parametrize(
    "option",
    [
        ("--shuffle-seed", -1),
        ("--noise-seed", -1),
        ("--classes", 10**30),
        ("--max-labels", 0),
        ("--sigma", 1e300),
    ],
)
def test_numbers_that_nothing_can_be_done_with_are_refused(label, option):
    code, lines = label("--votes-are", "predictions", *option)
    assert code == 2 and len(lines) == 1
