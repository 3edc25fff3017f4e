"""A question as a sentence, for people who do not know the language of questions."""

from __future__ import annotations

from collections.abc import Sequence

from collegium.conditions.conditions import Among, Compare, IsMissing, Several, Where, quoted
from collegium.data.date_format import day_of
from collegium.data.date_parts import date_part
from collegium.data.schema_column import plain
from collegium.statistics.query import Query

_KINDS = {
    "sum": "Sum of",
    "mean": "Mean of",
    "var": "Variance of",
    "std": "Standard deviation of",
    "cov": "Covariances of",
    "corr": "Correlations of",
    "histogram": "Count by",
    "crosstab": "Count by",
}
_COMPARED = {
    ">=": "is at least", "<=": "is at most", ">": "is above", "<": "is below", "==": "is", "!=": "is not",
}  # fmt: skip
_OF_DATES = {">=": "is not before", "<=": "is not after", ">": "is after", "<": "is before"}


def sentence(asked: Query) -> str:
    """Say what is asked.

    Examples
    --------
    >>> from collegium import Schema
    >>> from collegium.statistics.language import parse_question
    >>> schema = Schema({
    ...     "age": {"kind": "whole", "bounds": [17, 90]},
    ...     "ward": {"kind": "category", "categories": ["a", "b", "c"]},
    ...     "smoker": {"kind": "flag"},
    ... })
    >>> for text in (
    ...     "mean age by ward where not smoker and age >= 40",
    ...     "share where smoker by ward among age < 40",
    ...     "quantiles(0.1, 0.5) of age",
    ...     "difference of median age by ward between 'a' and 'b'",
    ...     "count people where ward in ('a', 'b')",
    ... ):
    ...     print(sentence(parse_question(text, schema)))
    Mean of age by ward, where age is at least 40 and smoker is no
    Share of the rows where smoker is yes, by ward, among those where age is at most 39
    10 % and 50 % quantiles of age
    Median of age by ward: difference between 'a' and 'b'
    Number of people with a row where ward is not 'c'
    """
    by = f" by {_listed([name_in_words(name) for name in asked.by])}" if asked.by else ""
    apart = ""
    if asked.apart:
        apart = f": difference between {_listed([quoted(one) for one in asked.apart])}"
    rows = "" if asked.where.is_everybody else condition(asked.where)
    if asked.holds:
        among = f", among those where {rows}" if rows else ""
        by = f",{by}" if by else ""
        return f"Share of the rows where {condition(asked.holds)}{by}{among}{apart}"
    if asked.kind == "people":
        return f"Number of people{f' with a row where {rows}' if rows else ''}{f',{by}' if by else ''}{apart}"
    where = f", where {rows}" if rows else ""
    return f"{_head(asked)}{by}{where}{apart}"


def _head(asked: Query) -> str:
    names = [name_in_words(name) for name in asked.columns]
    if asked.kind == "count":
        return "Count"
    if asked.kind == "quantile":
        levels = [
            f"{plain(round(100 * one, 6))} %" for one in asked.levels or (asked.level or 0.5,)
        ]
        what = "quantiles" if len(levels) > 1 else "quantile"
        head = "Median of" if levels == ["50 %"] else f"{_listed(levels)} {what} of"
        return f"{head} {names[0]}"
    if asked.kind == "top":
        return f"The {asked.most} most frequent: {names[0]}"
    if asked.kind == "share":
        return f"Shares of {names[0]}"
    if asked.kind == "ridge":
        return f"Linear regression of {names[0]} on {_listed(names[1:])}"
    return f"{_KINDS[asked.kind]} {_listed(names)}"


def name_in_words(name: str) -> str:
    """Write a column: of a date's part, what it is."""
    part = date_part(name)
    if part is None:
        return name
    if part.part == "age":
        return f"age on {part.on} (by {part.source})"
    return f"{'day of the week' if part.part == 'weekday' else part.part} of {part.source}"


def condition(where: Where, inside: bool = False) -> str:
    """Say which rows are meant."""
    if isinstance(where, Several):
        text = (" and " if where.all else " or ").join(condition(one, True) for one in where.parts)
        return f"({text})" if inside else text
    (column,) = where.columns
    name = name_in_words(column)
    if isinstance(where, Compare):
        words = {**_COMPARED, **(_OF_DATES if where.is_date else {})}[where.operation]
        return f"{name} {words} {day_of(where.number) if where.is_date else plain(where.number)}"
    if isinstance(where, IsMissing):
        return f"{name} is {'missing' if where.missing else 'known'}"
    assert isinstance(where, Among)
    names = list(where.names) if where.is_flag else [quoted(one) for one in where.names]
    return f"{name} is {'not ' if where.excluded else ''}{_listed(names, 'or')}"


def _listed(names: Sequence[str], last: str = "and") -> str:
    *first, end = names
    return f"{', '.join(first)} {last} {end}" if first else end
