"""Questions about dates: by year, month and weekday, ages on a day, and answers that are dates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from collegium import Policy, Schema, Statistics
from collegium.errors import InputError
from collegium.statistics.language import parse_question

SCHEMA = Schema(
    {
        "visit": {"kind": "date", "bounds": ["2021-01-01", "2024-12-31"], "written": "31.12.2024"},
        "born on": {"kind": "date", "bounds": ["1930-01-01", "2010-12-31"]},
        "cost": {"kind": "number", "bounds": [0, 100], "readable": 0.3},
    }
)
RNG = np.random.default_rng(0)
N = 3000
VISITS = pd.to_datetime("2021-01-01") + pd.to_timedelta(RNG.integers(0, 1461, N), "D")
BORN = pd.to_datetime("1930-01-01") + pd.to_timedelta(RNG.integers(0, 29_000, N), "D")
FRAME = pd.DataFrame({"visit": VISITS.strftime("%d.%m.%Y"), "born on": BORN.strftime("%Y-%m-%d")})


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("count by year of visit", "count by year(visit)"),
        ("count by YEAR(visit), month(visit)", "count by year(visit), month(visit)"),
        (
            "mean age of 'born on' at 2024-06-30 where visit >= 2023-01-01",
            'mean age("born on", 2024-06-30) where visit >= 2023-01-01',
        ),
        (
            "count where visit between '2022-03-01' and 2022-05-31",
            "count where visit <= 2022-05-31 and visit >= 2022-03-01",
        ),
        ("count where not visit > 2022-03-01", "count where visit <= 2022-03-01"),
        ("count where weekday(visit) in ('Saturday', 'Sunday')",) * 2,
        (
            "count where month(visit) not between 6 and 8",
            "count where month(visit) <= 5 or month(visit) >= 9",
        ),
        ("median visit by weekday(visit)",) * 2,
    ],
)
def test_a_question_has_one_text_and_comes_back_from_it(question, text):
    assert str(parse_question(question, SCHEMA)) == text
    assert parse_question(text, SCHEMA) == parse_question(question, SCHEMA)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("histogram visit", r"ask count by year\(visit\), month\(visit\) or weekday\(visit\)"),
        ("count by visit", r"ask by year\(visit\)"),
        ("sum visit", "dates have no sum"),
        ("count where visit > 3", "compare it with a date, such as 2024-12-31"),
        ("count where visit > 2024-02-30", "compare it with a date"),
        ("count where visit < 2021-01-01", "from 2021-01-01 to 2024-12-31 in the schema"),
        ("count where visit > 2022-01-01 and visit < 2021-06-01", "nobody can meet"),
        ("mean year(cost)", "year needs a date, but column 'cost' is of kind number"),
        ("mean age(visit)", "',' is missing"),
        ("mean age(visit, 3)", "the day is expected here"),
        ("mean age(visit, 2019-01-01)", "nobody was born by 2019-01-01"),
        ("mean cost", r"'cost' could be read in only 30 % of the public records.*readable"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(question, said):
    with pytest.raises(InputError, match=said) as caught:
        parse_question(question, SCHEMA)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("where", ["memory", "files"])
def test_answers_are_those_of_the_table(where, tmp_path):
    """With hardly any noise (ε = 300): each is within six standard errors, and one in 10⁸ would not be."""
    if where == "memory":
        ask = Statistics(FRAME, [300.0] * N, schema=SCHEMA, noise_seed=1)
    else:
        FRAME.assign(level="all").to_parquet(tmp_path / "t.parquet")
        ask = Statistics(
            tmp_path / "t.parquet",
            Policy({"all": 300.0}),
            schema=SCHEMA,
            privacy="level",
            noise_seed=1,
        )
    years = ask.ask("count by year(visit)")
    assert list(years.cells.index) == ["2021", "2022", "2023", "2024"]
    known = VISITS.year.value_counts().sort_index().to_numpy()
    assert (abs(years.value - known) <= 6 * years.standard_error).all()
    weekdays = ask.ask("count by weekday(visit)").value
    assert abs(weekdays["Sunday"] - (VISITS.day_of_week == 6).sum()) < 20
    answer = ask.ask("mean visit")
    assert (
        abs(answer.value - (VISITS - pd.Timestamp(0)).days.to_numpy().mean())
        < 6 * answer.standard_error
    )
    assert str(answer).startswith("mean visit: 20") and " days; 95 %: 20" in str(answer)
    middle = ask.ask("median visit")
    assert abs(middle.value - np.median((VISITS - pd.Timestamp(0)).days)) < 40
    ages = ask.ask('mean age("born on", 2024-06-30)')
    on = pd.Timestamp("2024-06-30")
    had = (BORN.month < 6) | ((BORN.month == 6) & (BORN.day <= 30))
    assert (
        abs(ages.value - (on.year - BORN.year - ~had).to_numpy().mean()) < 6 * ages.standard_error
    )
    where = "visit between 2022-03-01 and 2022-05-31"
    count = ask.ask(f"count where {where}")
    assert abs(count.value - ((VISITS >= "2022-03-01") & (VISITS <= "2022-05-31")).sum()) < 20
