"""One grammar for questions and conditions: canonical texts, whose rows are meant, errors that point."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium import Schema
from collegium.errors import InputError
from collegium.statistics import language
from collegium.statistics.contradictions import refuse_contradiction
from collegium.statistics.language import checked_question, parse_question, parse_where

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
            parse_question(f"count where {asked}", SCHEMA)
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
        patch.setattr(language, "refuse_contradiction", lambda *_: None)
        where = parse_where(text, SCHEMA)
    try:
        refuse_contradiction(where, SCHEMA)
    except InputError:
        assert any(not part.mask(EVERY_ROW).any() for part in _parts(where))


def _parts(where):
    return [where, *itertools.chain(*map(_parts, getattr(where, "parts", ())))]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("count", "count"),
        ("COUNT where age>39", "count where age >= 40"),
        ("mean income by sex where age >= 40", "mean income by sex where age >= 40"),
        ("mean(income) where age >= 40.0 by sex", "mean income by sex where age >= 40"),
        ("sum 'days in hospital'", 'sum "days in hospital"'),
        ("mean smoker by age, sex", "mean smoker by age, sex"),
        ("median age by ward", "median age by ward"),
        ("quantile(0.50) age", "median age"),
        ("quantile .9 income", "quantile(0.9) income"),
        ("histogram sex where smoker", "histogram sex where smoker"),
        ("crosstab sex, ward", "crosstab sex, ward"),
        ("corr age, income", "corr age, income"),
        ("ridge income on age, smoker", "ridge income on age, smoker"),
        ("ridge(income, age)", "ridge income on age"),
        ('count by "by"', 'count by "by"'),
    ],
)
def test_a_question_has_one_text_and_comes_back_from_it(text, canonical):
    asked = parse_question(text, SCHEMA)
    assert str(asked) == canonical
    assert parse_question(canonical, SCHEMA) == asked
    assert hash(parse_question(canonical, SCHEMA)) == hash(asked)


def test_a_question_knows_all_columns_that_it_looks_at():
    asked = parse_question("mean income by sex where age > 3 and not smoker", SCHEMA)
    assert asked.needs == ("age", "income", "sex", "smoker")
    where = parse_where("age > 3 and not smoker", SCHEMA)
    same = checked_question("mean", ["income"], None, ["sex"], where, schema=SCHEMA)
    assert asked == same
    by_text = checked_question(
        "mean", ["income"], by=["sex"], where="not smoker and age>=4", schema=SCHEMA
    )
    assert by_text == asked
    with pytest.raises(InputError, match="schema must be of type Schema"):
        checked_question("count")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "a question must be text"),
        ("mode age", "there is no question 'mode'"),
        ("avg age", "did you mean 'mean'?"),
        ("meen age", "did you mean 'mean'?"),
        ("max age", "ask quantile(0.99)"),
        ("mean", "mean needs one column, got 0"),
        ("mean age, income", "mean needs one column, got 2"),
        ("mean agee", "at 'agee' (character 6): there is no column 'agee'"),
        ("mean sex", "mean needs numbers, but column 'sex' is a category"),
        ("mean name", "is text in the schema"),
        ("median smoker", "ask mean smoker, which is the share"),
        ("quantile age", "quantile needs a level first"),
        ("quantile(1.5) age", "the level of a quantile must lie strictly between 0 and 1"),
        ("count sex", "count counts rows"),
        ("count sex == 'F'", "'by' or 'where' is expected here"),
        ("mean age by income", "groups must be public, but column 'income' has none: give it bins"),
        ("mean age by sex, sex", "named twice after 'by'"),
        ("corr age, income by sex", "not with corr"),
        ("crosstab sex", "crosstab needs at least two columns"),
        ("corr age, age", "corr names a column twice"),
        ("ridge income", "'on' is missing"),
        ("ridge income on sex", "ridge needs numbers"),
        ("mean age by sex by ward", "there are two 'by'"),
        ("mean age where age > 4 group by sex", "'by' or 'where' is expected"),
        ("SELECT AVG(income) FROM t WHERE age > 39", "ask instead: mean income where age >= 40"),
        (
            "select sex, count(*) from t where smoker group by sex order by sex;",
            "ask instead: count by sex where smoker",
        ),
        (
            "SELECT STDDEV(agee) FROM t",
            "as a question it would be: std agee; but 'std agee', at 'agee'",
        ),
        ("SELECT * FROM people", "SQL is not understood; a question is one of count"),
        ("DELETE FROM people", "SQL is not understood"),
    ],
)
def test_a_wrong_question_is_refused_in_one_line(text, says):
    with pytest.raises(InputError) as caught:
        parse_question(text, SCHEMA)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


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
