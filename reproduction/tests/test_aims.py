"""Verdicts: what counts as met, cell by cell and for a table."""

import csv
import math

import pytest

from reproduction.cells import Aim, Cell, summarise, write_cells


def cell(ours, published="100", variant="weighting", se=1.0, seeds=10):
    return Cell(
        "t",
        "sound",
        "mnist",
        "labels",
        "",
        "2",
        "50%",
        variant,
        published,
        ours,
        2.0,
        se,
        seeds,
        50,
    )


@pytest.mark.parametrize(
    ("aim", "one", "verdict"),
    [
        (Aim("within", 0.15), cell(115.0), "met"),
        (Aim("within", 0.15), cell(84.9), "not met"),
        (Aim("within", 0.15), cell(1999.0, ">2000"), "not met"),
        (Aim("within", 0.15), cell(2000.0, ">2000"), "met"),
        (Aim("within", 0.15, ("none",)), cell(1.0), ""),
        (Aim("above", metrics=("student_accuracy",)), cell(1.0), ""),
        (Aim("above", metrics=("labels",)), cell(100.1), "met"),
        (Aim("above"), cell(100.0), "not met"),
        (Aim("above"), cell(100.1), "met"),
        (Aim("above"), cell(math.nan), "not met"),
        (Aim("above"), cell(3.0, ""), ""),
        (Aim("mostly above"), cell(99.5), "met"),
        (Aim("mostly above"), cell(98.9), "not met"),
        (Aim("mostly above"), cell(99.5, se=math.nan), "not met"),
    ],
)
def test_verdict_of_a_cell(aim, one, verdict):
    assert aim.verdict(one) == verdict


@pytest.mark.parametrize(
    ("values", "seeds", "verdict"),
    [
        ([101, 102, 99.5, 99.5], 10, "met"),
        ([101, 99.5, 99.5, 99.5], 10, "not met"),
        ([101, 102, 103, 98], 10, "not met"),
        ([101, 102, 103, 104], 9, "not met"),
        ([], 10, "not met"),
    ],
)
def test_summary_of_mostly_above(values, seeds, verdict):
    aim = Aim("mostly above", least_seeds=10)
    assert aim.summary([cell(float(value), seeds=seeds) for value in values])[0] == verdict


def test_summary_says_how_many():
    aim = Aim("within", 0.15, ("weighting",))
    cells = [cell(100.0), cell(50.0), cell(1.0, variant="vanishing")]
    assert aim.summary(cells) == ("not met", "within 15% of every published cell: 1 of 2 cells")


def test_standard_errors_are_over_seeds():
    found = summarise([[80.0, 82.0], [84.0, math.nan], [math.nan]])
    assert found["ours"] == 82.0
    assert (found["seeds"], found["values"]) == (2, 3)
    assert math.isclose(found["se"], 1.5)
    assert math.isclose(found["sd"], 2.0)
    assert math.isnan(summarise([])["ours"])


def test_csv_has_differences_and_verdicts(tmp_path):
    path = tmp_path / "new" / "t.csv"
    write_cells(
        path, [cell(90.0), cell(math.nan)], Aim("within", 0.15), ["the command", "versions"]
    )
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["# the command", "# versions"]
    rows = list(csv.DictReader(lines[2:]))
    assert [row["verdict"] for row in rows] == ["met", "not met"]
    assert (rows[0]["difference"], rows[0]["relative"]) == ("-10", "-0.1")
    assert rows[1]["ours"] == ""
