"""One grammar for questions: canonical texts, the columns they look at, errors that point."""

import pytest

from collegium import Schema
from collegium.conditions.parser import parse_where
from collegium.errors import InputError
from collegium.statistics.language import checked_question, parse_question

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
        ("count where ward == 1 and ward == 2", "nobody can meet ward == '1' and ward == '2'"),
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
