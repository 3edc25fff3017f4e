"""Dates: how they are written is found from public records, and each cell is read by itself."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collegium.data.column_types import ColumnTypes
from collegium.data.date_format import DateFormat, all_formats, date_format_of, day_number
from collegium.data.schema import Schema
from collegium.errors import InputError

DAYS = st.dates(date(1900, 1, 1), date(2100, 12, 31))


def written(day: date, one: DateFormat, time: str = "") -> str:
    parts = {"d": f"{day.day:02}", "m": f"{day.month:02}", "y": str(day.year)}
    return one.mark.join(parts[field] for field in one.order) + time


@pytest.mark.parametrize("one", all_formats(), ids=str)
@given(
    days=st.lists(DAYS, min_size=1, max_size=20), time=st.sampled_from(["", " 07:30", "T23:59:59Z"])
)
def test_what_is_written_in_a_format_is_found_and_read_again(one, days, time):
    days = [*days, date(2024, 12, 31)]
    cells = [written(day, one, time) for day in days]
    assert date_format_of(cells, "x") == one == DateFormat.of(str(one))
    assert one.read(cells).tolist() == [(day - date(1970, 1, 1)).days for day in days]


@given(st.text(max_size=12))
def test_no_cell_is_an_error(cell):
    for one in all_formats():
        assert len(one.read([cell, None, 3, pd.NaT, np.nan])) == 5


def test_day_and_month_that_may_stand_either_way_round_are_refused_with_the_key(tmp_path):
    cells = ["03/04/2024", "01/12/2023"]
    (tmp_path / "p.csv").write_text("\n".join(["visit", *cells]))
    with pytest.raises(
        InputError, match=r"'visit'.*either way round.*'31/12/2024' or '12/31/2024'.*--dates"
    ):
        Schema.from_public(tmp_path / "p.csv")
    drafted = Schema.from_public(tmp_path / "p.csv", dates="12/31/2024")["visit"]
    assert (drafted.kind, drafted.written) == ("date", "12/31/2024")
    assert drafted.bounds == ("2023-01-01", "2024-12-31")
    # Where both ways are the same day, nothing is open.
    assert date_format_of(["03/03/2024"], "x") is not None
    with pytest.raises(InputError, match="whose day is above 12"):
        Schema(
            {"x": {"kind": "date", "bounds": ["2020-01-01", "2021-01-01"], "written": "03/04/2024"}}
        )


def test_a_cell_is_read_alike_whatever_others_hold():
    schema = Schema(
        {"d": {"kind": "date", "bounds": ["2020-01-01", "2024-12-31"], "written": "31.12.2024"}}
    )
    cells = ["05.03.2022", "secret", "2022-03-05", "31.02.2022", "01.01.1900", "5.3.2022 10:00"]
    alone = [schema.arrays(pd.DataFrame({"d": [cell]}))["d"][0] for cell in cells]
    together = schema.arrays(pd.DataFrame({"d": cells}))["d"]
    assert np.array_equal(alone, together, equal_nan=True)
    assert together[0] == together[5] == day_number("2022-03-05")
    assert together[4] == day_number("2020-01-01") and np.isnan(together[1:4]).all()
    categorical = pd.DataFrame({"d": pd.Categorical([*cells, None])})
    assert np.array_equal(schema.arrays(categorical)["d"][:6], together, equal_nan=True)
    # A reader that took 05.03. for the third of May did so for everybody: refused.
    with pytest.raises(InputError, match="read it as text"):
        schema.arrays(pd.DataFrame({"d": pd.to_datetime(["2022-03-05"])}))
    with pytest.raises(InputError, match="holds numbers"):
        schema.arrays(pd.DataFrame({"d": [20220305]}))
    usual = Schema({"d": {"kind": "date", "bounds": ["2020-01-01", "2024-12-31"]}})
    for typed in (pd.to_datetime(["2022-03-05", None]), [date(2022, 3, 5), None]):
        assert usual.arrays(pd.DataFrame({"d": typed}))["d"][0] == day_number("2022-03-05")


@given(DAYS, DAYS)
def test_parts_of_dates_are_those_of_the_calendar(day, other):
    schema = Schema({"d": {"kind": "date", "bounds": ["1900-01-01", "2100-12-31"]}})
    on = max(day, other)
    names = ["year(d)", "month(d)", "weekday(d)", f"age(d, {on})"]
    found = schema.arrays(pd.DataFrame({"d": [day.isoformat(), "x"]}), names)
    weekday = day.weekday()
    age = on.year - day.year - ((on.month, on.day) < (day.month, day.day))
    assert [found[name][0] for name in names] == [day.year, day.month, weekday, age]
    assert found["weekday(d)"][1] == -1 and np.isnan(found["year(d)"][1])
    assert schema["weekday(d)"].keys[weekday] == day.strftime("%A")
    assert schema["year(d)"].codes(found["year(d)"])[0] == (day.year - 1900) // 10


def test_a_schema_with_dates_is_read_again(tmp_path):
    start = date(2020, 2, 3)
    public = pd.DataFrame(
        {
            "visit": [(start + timedelta(days=7 * i)).strftime("%d.%m.%Y") for i in range(60)],
            "rare": ["3"] + [None] * 59,
        }
    )
    public.to_csv(tmp_path / "public.csv", index=False)
    draft = Schema.from_public(tmp_path / "public.csv")
    draft.write(tmp_path / "schema.toml")
    text = (tmp_path / "schema.toml").read_text()
    assert Schema.read(tmp_path / "schema.toml") == draft
    assert 'written = "31.12.2024"' in text and "by year(visit), month(visit)" in text
    assert (
        draft["rare"].readable == pytest.approx(1 / 60, abs=1e-4) and "readable = 0.01667" in text
    )
    toml_dates = text.replace('["2020-01-01", "2021-12-31"]', "[2020-01-01, 2021-12-31]")
    (tmp_path / "own.toml").write_text(toml_dates)
    assert toml_dates != text and Schema.read(tmp_path / "own.toml") == draft


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({"kind": "date"}, "bounds must be the first and the last date"),
        ({"kind": "date", "bounds": [1, 2]}, "bounds must be the first and the last date"),
        ({"kind": "date", "bounds": ["2024-01-01", "2023-01-01"]}, "bounds must be the first"),
        ({"kind": "date", "bounds": ["2024-01-01", "2024-02-30"]}, "bounds must be the first"),
        (
            {"kind": "date", "bounds": ["2024-01-01", "2025-01-01"], "step": 2},
            "step is for columns",
        ),
    ],
)
def test_what_is_wrong_is_refused_in_one_line(column, said):
    with pytest.raises(InputError, match=said) as caught:
        Schema({"visit": column})
    assert "columns.visit." in str(caught.value) and "\n" not in str(caught.value)


def test_studies_read_dates_as_days_by_the_same_reader():
    cells = ["31.12.2020", "1.2.2021", "15.03.2021"]
    types = ColumnTypes.of(pd.DataFrame({"d": cells}), characters=True)
    assert types.kinds == {"d": "number"} and types.reading()["written"] == {"d": "31.12.2024"}
    read = types.applied(pd.DataFrame({"d": ["1.2.2021", "x"]}), tell=False)["d"]
    assert read.iloc[0] == day_number("2021-02-01") and np.isnan(read.iloc[1])
