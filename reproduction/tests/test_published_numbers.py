"""The published numbers: the same as in the shared table, and found by their place."""

import csv
import math
from dataclasses import astuple

import pytest

from collegium.errors import InputError
from reproduction.published import budget_from_text, find_published, published_numbers
from reproduction.tables import METRICS, TABLES


def test_every_number_of_the_shared_table_ships_unchanged(shared_folder):
    text = (shared_folder / "reference" / "tables.csv").read_text(encoding="utf-8")
    shared = [tuple(row) for row in csv.reader(text.splitlines())][1:]
    ours = [astuple(row) for row in published_numbers()]
    assert len(shared) > 300
    assert ours[: len(shared)] == shared


def test_no_place_is_given_twice():
    places = [astuple(row)[:-1] for row in published_numbers()]
    assert len(set(places)) == len(places)


def test_every_cell_of_every_table_can_be_measured():
    for spec in TABLES.values():
        assert spec.rows
        for row in spec.rows:
            assert row.metric in METRICS
            assert row.dataset in spec.scenes
            society = spec.society(row)
            assert (len(society.epsilons) == 1) == (row.variant == "none")
            assert row.number > 0


def test_numbers_of_cells():
    assert TABLES["thesis-6.4"].rows[0].number == 271
    more = find_published("thesis", "6.4", higher_budget="5", ratio="75%", variant="weighting")
    assert more is not None
    assert more.is_lower_bound
    assert more.number == 2000
    assert (
        find_published("thesis", "6.6", higher_budget="5", ratio="75%", variant="weighting") is None
    )


def test_an_ambiguous_place_is_refused():
    with pytest.raises(InputError, match="published numbers of paper 1 fit"):
        find_published("paper", "1", variant="weighting")


@pytest.mark.parametrize("text", ["", "ln2", "log", "two"])
def test_a_budget_that_is_none_is_refused(text):
    with pytest.raises(InputError, match="a budget must be a number"):
        budget_from_text(text)


def test_budgets_are_read_as_printed():
    assert budget_from_text("log16") == math.log(16)
    assert budget_from_text("1.5") == 1.5
