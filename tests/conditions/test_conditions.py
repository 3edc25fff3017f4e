"""One grammar for conditions: canonical texts, whose rows are meant, errors that point."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium import Schema
from collegium.conditions import parser
from collegium.conditions.contradictions import refuse_contradiction
from collegium.conditions.parser import parse_where
from collegium.errors import InputError

SCHEMA = Schema(
    {
        "age": {"kind": "whole", "bounds": [0, 99], "bins": [0, 18, 65, 99]},
        "income": {"kind": "number", "bounds": [-10, 1e6], "missing": True},
        "education-num": {"kind": "whole", "bounds": [1, 16]},
        "days in hospital": {"kind": "whole", "bounds": [0, 14]},
        "sex": {"kind": "category", "categories": ["F", "M", "it's"]},
        "ward": {"kind": "category", "categories": ["1", "2"]},
        "smoker": {"kind": "flag", "missing": True},
        "by": {"kind": "flag"},
        "name": {"kind": "text"},
    }
)
ROWS = SCHEMA.arrays(
    pd.DataFrame(
        {
            "age": [10, 39, 40, 90, None],
            "income": [5.0, np.nan, -3, 100, 1e9],
            "education-num": [1, 2, 3, 4, 5],
            "days in hospital": [0, 1, 2, 3, 4],
            "sex": ["F", "M", "it's", "unknown", None],
            "ward": [1, 2, 1, 2, 3],
            "smoker": [True, False, None, True, False],
            "by": [True] * 5,
        }
    )
)


CONDITIONS = st.recursive(
    st.sampled_from(
        [
            "age >= 40",
            "age < 18",
            "income > 4.5",
            "sex == 'F'",
            "ward != 1",
            "smoker",
            "sex is missing",
        ]
    ),
    lambda inner: st.one_of(
        st.builds("not ({})".format, inner),
        st.builds("({}) and ({})".format, inner, inner),
        st.builds("({}) or ({})".format, inner, inner),
    ),
    max_leaves=6,
)


EVERY_ROW = SCHEMA.arrays(
    pd.DataFrame(
        list(
            itertools.product(
                [None, 0, 17, 18, 39, 40, 99],
                [None, -10, 4.5, 5],
                ["F", "M", None],
                [1, 2, None],
                [True, False, None],
            )
        ),
        columns=["age", "income", "sex", "ward", "smoker"],
    ),
    ["age", "income", "sex", "ward", "smoker"],
)
"""Of all values that the conditions below can tell apart, each with each."""


@pytest.mark.parametrize(
    ("text", "canonical", "rows"),
    [
        ("age >= 40", "age >= 40", [2, 3]),
        ("age>39", "age >= 40", [2, 3]),
        ("age >= 39.5", "age >= 40", [2, 3]),
        ("not age<40.0", "age >= 40", [2, 3]),
        ("40 <= age", "age >= 40", [2, 3]),
        ("age ≥ 40 and age >= 40", "age >= 40", [2, 3]),
        ("20 <= age < 90", "age <= 89 and age >= 20", [1, 2]),
        ("not 20 <= age < 90", "age <= 19 or age >= 90", [0, 3]),
        ("age = 40 or age == 10", "age == 10 or age == 40", [0, 2]),
        ("age in (40, 10)", "age == 10 or age == 40", [0, 2]),
        ("age not in (40, 10)", "age != 10 and age != 40", [1, 3]),
        ("age <> 40", "age != 40", [0, 1, 3]),
        ("income > 4.5", "income > 4.5", [0, 3, 4]),
        ("not income > 4.5", "income <= 4.5", [2]),
        ("income > -3", "income > -3", [0, 3, 4]),
        ("income != 5", "income != 5", [2, 3, 4]),
        ("sex == 'F'", "sex == 'F'", [0]),
        ('sex != "F"', "sex != 'F'", [1, 2]),
        ("sex = M", "sex == 'M'", [1]),
        ("sex in ('F', 'M')", "sex != 'it''s'", [0, 1]),
        ("sex == 'it''s'", "sex == 'it''s'", [2]),
        ("sex in ('F', 'M', \"it's\")", "sex is not missing", [0, 1, 2]),
        ("ward == 1", "ward == '1'", [0, 2]),
        ("not ward in (1)", "ward == '2'", [1, 3]),
        ("smoker", "smoker", [0, 3]),
        ("not smoker", "not smoker", [1, 4]),
        ("smoker != yes", "not smoker", [1, 4]),
        ("smoker == True", "smoker", [0, 3]),
        ("smoker is missing", "smoker is missing", [2]),
        ("not smoker is null", "smoker is not missing", [0, 1, 3, 4]),
        ("sex is missing", "sex is missing", [3, 4]),
        ("education-num >= 4", "education-num >= 4", [3, 4]),
        ("`days in hospital` > 2", '"days in hospital" >= 3', [3, 4]),
        ("'by' and age > 50", '"by" and age >= 51', [3]),
        ("age > 50 or sex == 'F' and smoker", "age >= 51 or (sex == 'F' and smoker)", [0, 3]),
        (
            "(age > 50 or sex == 'F') and not (smoker)",
            "(age >= 51 or sex == 'F') and not smoker",
            [],
        ),
        (
            "not (age > 50 and smoker or ward == 1)",
            "(age <= 50 or not smoker) and ward == '2'",
            [1],
        ),
        ("age > 50 OR NOT smoker", "age >= 51 or not smoker", [1, 3, 4]),
        ("", "", [0, 1, 2, 3, 4]),
    ],
)
def test_a_condition_has_one_text_and_means_these_rows(text, canonical, rows):
    where = parse_where(text, SCHEMA)
    assert str(where) == canonical
    assert np.flatnonzero(where.mask(ROWS)).tolist() == rows
    again = parse_where(canonical, SCHEMA)
    assert again == where
    assert hash(again) == hash(where)
    assert where.is_everybody == (canonical == "")


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        (
            "agee > 4",
            "at 'agee' (character 1)",
            "no column 'agee' in the schema: did you mean 'age'?",
        ),
        ("age > 4 and sexx == 'F'", "at 'sexx' (character 13)", "did you mean 'sex'?"),
        ("name == 'Ada'", "at 'name'", "is text in the schema"),
        (
            "sex == 'f'",
            "at \"'f'\" (character 8)",
            "no category 'f' in the schema: allowed are F, M",
        ),
        ("sex in ('F', 'Mm')", "at \"'Mm'\" (character 14)", "did you mean 'M'?"),
        ("sex > 'F'", "at 'sex'", "has no order"),
        ("smoker == 7", "at '7'", "allowed are yes and no"),
        ("age == 'old'", "at \"'old'\"", "compare it with a number"),
        ("age > income", "at 'income'", "compare it with a number"),
        ("age", "at the end", "a comparison is missing, such as age >= 0"),
        ("age >", "at the end", "compare it with a number"),
        ("age > 100", "at '100'", "nobody can be >= 101: 'age' holds whole numbers from 0 to 99"),
        ("income < -10", "at '-10'", "nobody can be < -10"),
        ("age == 1.5", "at '1.5'", "whole numbers"),
        ("age > 1e999", "at '1e999'", "too large to compute with"),
        ("age > 4 smoker", "at 'smoker' (character 9)", "'and' or 'or' is missing"),
        ("(age > 4", "at the end", "')' is missing"),
        ("age > 4)", "at ')'", "'and' or 'or' is missing"),
        ("age >> 4", "at '>' (character 6)", "compare it with a number"),
        ("age > 4; drop", "at ';' (character 8)", "not understood"),
        ("sex == 'F", 'at "\'" (character 8)', "the quote has no end"),
        ("age like 3", "at", "list what is meant: age in ('…', '…')"),
        ("sex not in ('F', 'M', \"it's\")", "at 'sex'", "ask for those missing"),
        ("not", "at the end", "the name of a column is expected"),
        ("(" * 50 + "smoker" + ")" * 50, "at '('", "at most 40 parentheses"),
        ("smoker and " * 500 + "smoker", "", "a question may have at most 4,000 characters"),
        ("select age from people", "", "give the condition alone"),
    ],
)
def test_a_wrong_condition_is_refused_in_one_line_that_points_at_the_place(text, at, says):
    with pytest.raises(InputError) as caught:
        parse_where(text, SCHEMA)
    message = str(caught.value)
    assert at in message
    assert says in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ward == 1 and ward == 2", "ward == '1' and ward == '2'"),
        ("age > 50 and age < 40", "age <= 39 and age >= 51"),
        ("age > 50 and age < 51", "age <= 50 and age >= 51"),  # no whole number lies between
        ("income > 5 and income < 5", "income < 5 and income > 5"),
        ("smoker and sex == 'F' and not smoker", "not smoker and smoker"),
        ("90 < age < 80", "age <= 79 and age >= 91"),
        ("age > 4 and age is missing", "age >= 5 and age is missing"),
        ("not (age >= 40 or age < 50)", "age <= 39 and age >= 50"),
        ("sex in ('F', 'M') and sex == 'it''s'", "sex != 'it''s' and sex == 'it''s'"),
        (
            "age in (1, 2) and age in (3, 4)",
            "(age == 1 or age == 2) and (age == 3 or age == 4)",
        ),
        ("smoker or age > 50 and ('by' and age < 40)", "age <= 39 and age >= 51"),
    ],
)
def test_what_nobody_can_meet_is_refused(text, says):
    for asked in (text, f"({text}) or income > 4"):  # to ask for it among others is a mistake, too
        with pytest.raises(InputError) as caught:
            parse_where(asked, SCHEMA)
        message = str(caught.value)
        assert f"nobody can meet {says} at once: take one out, or join them with or" in message
        assert "\n" not in message


@pytest.mark.parametrize(
    "text",
    [
        "age > 50 and age < 52",
        "income > 5 and income < 5.000001",
        "age in (1, 2) and age in (2, 3)",
        "smoker is missing and age > 4",
        "sex in ('F', 'M') and sex != 'F'",
        "(smoker and ward == 1) or (not smoker and ward == 2)",
        "(age > 50 or smoker) and age < 40",
        "age <= 0 and age >= 0",
        "age != 1.5 and age != 2.4 and age < 3",
    ],
)
def test_what_somebody_can_meet_is_asked(text):
    assert parse_where(text, SCHEMA)


@given(CONDITIONS)
@settings(max_examples=150, deadline=None)
def test_no_condition_is_refused_that_somebody_meets_in_all_its_parts(text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parser, "refuse_contradiction", lambda *_: None)
        where = parse_where(text, SCHEMA)
    try:
        refuse_contradiction(where, SCHEMA)
    except InputError:
        assert any(not part.mask(EVERY_ROW).any() for part in _parts(where))


def _parts(where):
    return [where, *itertools.chain(*map(_parts, getattr(where, "parts", ())))]


@given(CONDITIONS)
@settings(max_examples=150, deadline=None)
def test_a_condition_comes_back_from_its_text_and_meets_no_row_that_its_negation_meets(text):
    try:
        where, negated = parse_where(text, SCHEMA), parse_where(f"not ({text})", SCHEMA)
    except InputError as error:  # rightly: without what is refused nothing is missed
        assert "nobody can meet" in str(error)
        return
    assert parse_where(str(where), SCHEMA) == where
    mask, other = where.mask(ROWS), negated.mask(ROWS)
    assert not (mask & other).any()
    complete = ~np.isnan(ROWS["age"]) & ~np.isnan(ROWS["income"]) & (ROWS["ward"] >= 0)
    complete &= (ROWS["sex"] >= 0) & (ROWS["smoker"] >= 0)
    assert (mask | other)[complete].all()


def test_a_column_of_rows_given_as_a_condition_is_not_repeated_in_the_message():
    schema = Schema({"age": {"kind": "whole", "bounds": [17, 90]}})
    with pytest.raises(InputError, match=r"got a list$") as refused:
        parse_where([4711, 4712], schema)
    assert "4711" not in str(refused.value)


def test_a_column_may_be_called_as_a_word_of_sql_is():
    """Alter is German for age."""
    schema = Schema({"Alter": {"kind": "whole", "bounds": [0, 99]}})
    assert str(parse_where("Alter >= 65", schema)) == "Alter >= 65"
    with pytest.raises(InputError, match="this is SQL"):
        parse_where("select * from people", schema)
