"""The label command's files: numbers or one clear line, which quotes nothing of what they hold."""

import sys

import numpy as np
import pandas as pd
import pytest

from collegium.cli.main import main
from tests.settings_file import settings

SECRET = "SECRET"


@pytest.fixture
def label(tmp_path, monkeypatch, capsys):
    """Label with some votes and budgets: exit code and lines of errors."""
    monkeypatch.chdir(tmp_path)
    np.save("votes.npy", np.arange(60).reshape(12, 5) % 3)
    (tmp_path / "budgets.csv").write_text("epsilon\n5\n")

    def call(*options, votes="votes.npy", budgets="budgets.csv", sigma=50):
        files = ("--votes", votes, "--budgets", budgets, "--out", "out", "--classes", "3")
        noise = ("--aggregator", "gnmax", "--sigma", sigma)
        monkeypatch.setattr(
            sys, "argv", ["collegium", "label", *map(str, (*files, *noise, *options))]
        )
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
    ("text", "column", "record"),
    [
        (f"epsilon\n{SECRET}\n", "epsilon", 1),
        (f"epsilon\n1\n2\n3\n{SECRET}\n5\n", "epsilon", 4),
        (f"epsilon,delta\n1,{SECRET}\n", "delta", 1),
        ("epsilon\nTrue\n", "epsilon", 1),
        ("epsilon\n1\n" + "9" * 400 + "\n", "epsilon", 2),
    ],
)
def test_budgets_that_are_no_numbers_are_not_quoted(label, tmp_path, text, column, record):
    (tmp_path / "other.csv").write_text(text)
    code, lines = label(budgets="other.csv")
    assert code == 2
    (line,) = lines
    assert f"column '{column}' must hold numbers, but record {record} (row {record + 1} of" in line
    assert "999" not in line


@pytest.mark.parametrize(
    ("budgets", "votes", "words"),
    [
        ("epsilon\n1\n2\n3\n4\n", 0, "votes of 5 teachers (columns), but there are budgets of 4"),
        ("epsilon\n1\n2\n3\n4\n", 7, "votes of 5 teachers (columns), but there are budgets of 4"),
        ("epsilon\n1\n", 3, "first in row 2, column 3: give class numbers"),
        ("epsilon\n1\n", 0.5, "but row 2, column 3 has none"),
        ("group,epsilon\na,1\nA,1\na,2\n", 0, "second (ε = 2, δ = 1e-05) in record 3 (row 4 of"),
    ],
)
def test_rows_are_counted_as_a_person_counts(label, tmp_path, budgets, votes, words):
    (tmp_path / "other.csv").write_text(budgets)
    table = np.arange(60.0).reshape(12, 5) % 3
    table[1, 2] = votes
    np.save("others.npy", table)
    code, lines = label(
        *("--votes-are", "predictions") * (0 < votes < 7), votes="others.npy", budgets="other.csv"
    )
    assert code == 2 and words in lines[-1]


def test_groups_that_differ_in_case_only_are_told(label, tmp_path):
    (tmp_path / "other.csv").write_text("group,epsilon\n" + "a,5\n" * 3 + "A,5\n" * 2)
    code, lines = label("--votes-are", "predictions", budgets="other.csv")
    assert code == 0 and len(lines) == 1 and "2 groups are called like another one" in lines[0]


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
        ("--noise-seed", -1),
        ("--classes", 10**30),
        ("--settings", "study.seed = -1"),
        ("--settings", "aggregation.max_labels = 0"),
        ("--settings", "aggregation.threshold = nan"),
    ],
)
def test_numbers_that_nothing_can_be_done_with_are_refused(label, tmp_path, option):
    if option[0] == "--settings":
        option = settings(tmp_path, option[1])
    code, lines = label("--votes-are", "predictions", *option)
    assert code == 2 and len(lines) == 1


def test_noise_that_is_too_large_is_refused(label):
    code, lines = label("--votes-are", "predictions", sigma=1e300)
    assert code == 2 and len(lines) == 1
