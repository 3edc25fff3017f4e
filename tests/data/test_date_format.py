"""Dates in text: each format reads what it writes, days that do not exist are missing, doubt is refused."""

import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collegium.data.date_format import DateFormat, date_format_of
from collegium.errors import InputError

EXAMPLES = {
    "2024-12-31": "{0:04}-{1:02}-{2:02}",
    "2024/12/31": "{0:04}/{1}/{2}",
    "31.12.2024": "{2}.{1:02}.{0:04}",
    "31/12/2024": "{2:02}/{1:02}/{0:04}",
    "31-12-2024": "{2:02}-{1}-{0:04}",
    "12/31/2024": "{1}/{2}/{0:04}",
}


@given(
    days=st.lists(st.dates(), min_size=1, max_size=20), example=st.sampled_from(sorted(EXAMPLES))
)
def test_each_format_reads_the_dates_that_it_writes(days, example):
    written = DateFormat.of(example)
    assert str(written) == example
    cells = [EXAMPLES[example].format(day.year, day.month, day.day) for day in days]
    assert written.read(cells).astype("datetime64[D]").tolist() == days
    with_time = [f" {cell}T23:59:58.5+02:00 " for cell in cells]
    assert [moment.date() for moment in written.read(with_time).tolist()] == days
    assert all(moment.second == 58 for moment in written.read(with_time).tolist())


@given(
    year=st.integers(1, 9999),
    month=st.integers(0, 13),
    day=st.integers(0, 32),
    hour=st.integers(0, 30),
)
def test_what_is_no_date_is_missing(year, month, day, hour):
    read = DateFormat.of("2024-12-31").read([f"{year:04}-{month}-{day} {hour}:00"])[0]
    try:
        exists = datetime.datetime(year, month, day, hour)
    except ValueError:
        assert np.isnat(read)
    else:
        assert read.tolist() == exists


@given(
    days=st.lists(st.dates(), min_size=1, max_size=40), example=st.sampled_from(sorted(EXAMPLES))
)
def test_a_format_that_is_found_reads_the_truth_and_doubt_is_refused(days, example):
    cells = [EXAMPLES[example].format(day.year, day.month, day.day) for day in days]
    try:
        found = date_format_of(cells, "visit")
    except InputError as error:
        assert "written in a schema" in str(error)
        assert all(day.day <= 12 for day in days)
    else:
        assert found is not None
        assert found.read(cells).astype("datetime64[D]").tolist() == days


@pytest.mark.parametrize(
    "cells",
    [
        ["31.12.24"] * 9,
        ["20241231"] * 9,
        ["1.2"] * 9,
        ["2024-13-40"] * 9,
        ["A-1", "B-2"],
        [],
        [None, 3],
    ],
)
def test_other_text_is_no_date(cells):
    assert date_format_of(cells, "visit") is None


@pytest.mark.parametrize(
    "example", ["03.04.2024 x", "1/2/2024", "31.12.24", "", "number", "12.31.2024"]
)
def test_an_example_that_leaves_doubt_is_refused(example):
    with pytest.raises(InputError, match="an example of a date must have a year of four digits"):
        DateFormat.of(example)


def test_a_cell_is_read_by_itself_whatever_the_others_are():
    cells = ["31.12.2024", "12/31/2024", None, 7, float("nan"), "k.A.", "31.12.2024"]
    read = DateFormat.of("31.12.2024").read(cells)
    assert (~np.isnat(read)).tolist() == [True, *[False] * 5, True]
