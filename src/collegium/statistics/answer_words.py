"""How answers are written: values in their unit, what was counted, who is not heard, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from collegium.plain_text import among_others

PEOPLE, SHARE, DATE = "people", "%", "date"
"""Units of values: how many people, a share of something, a day."""
_MOST_LEVELS = 8


def rows_of(most: int) -> str:
    """Say what is counted where a person may have several rows."""
    if most == 1:
        return f"{PEOPLE}, each in equal parts over their rows"
    return f"rows, at most {most:,} per person"


def in_digits(error: float, value: float) -> int:
    """Decimals to show beside so large an error: two of its digits."""
    if not math.isfinite(error) or error <= 1e-9 * abs(value):
        return 0 if value == round(value) else 2
    return int(min(12, max(0, 1 - math.floor(math.log10(error)))))


def numbers_of(cell: Mapping[str, Any], unit: str = "") -> tuple[str, str, str]:
    """Write value, standard error and interval in so many digits as the error leaves; empty: not known.

    ``cell``: a row of an answer's cells; what is not known is None or NaN.
    ``unit``: :data:`SHARE`, of what is written in per cent; :data:`DATE`, of days since 1970; or another.

    Examples
    --------
    >>> numbers_of({"value": 0.1234, "standard_error": 0.011, "lower": 0.1, "upper": 0.15}, SHARE)
    ('12.3 %', '1.1 %', '10.0 % to 15.0 %')
    >>> numbers_of({"value": 19723, "standard_error": 2, "lower": 19720, "upper": 19726}, DATE)
    ('2024-01-01', '2.0 days', '2023-12-29 to 2024-01-04')
    """
    times = 100 if unit == SHARE else 1
    value, error = times * _number(cell["value"]), times * _number(cell["standard_error"])
    if math.isnan(value):
        return "", "", ""
    lower, upper = times * _number(cell["lower"]), times * _number(cell["upper"])
    if math.isinf(lower) and math.isinf(upper):
        return f"{value:,.3g}", "", "it could be any number"
    digits, behind = in_digits(error, value), {SHARE: " %", DATE: " days"}.get(unit, "")

    def written(number: float) -> str:
        return "" if math.isnan(number) else f"{number:,.{digits}f}{behind}"

    write = _day if unit == DATE else written
    between = "" if math.isnan(lower) else f"{write(lower)} to {write(upper)}"
    return write(value), written(error), between


def at_tick(number: float, unit: str) -> str:
    """Write a number beside an axis."""
    return _day(number) if unit == DATE else f"{100 * number:.4g} %"


def _day(days: float) -> str:
    # What writes dates elsewhere comes with numerical libraries, and help does not wait for these.
    return "" if math.isnan(days) else (date(1970, 1, 1) + timedelta(days=round(days))).isoformat()


def _number(given: Any) -> float:
    return math.nan if given is None else float(given)


def not_heard_in_words(people: int, silent: Mapping[str, int]) -> str:
    """Say how many take part, where others have nothing left; empty where nobody has.

    ``silent``: people with nothing left, by level.

    Examples
    --------
    >>> not_heard_in_words(3000, {"low": 1200})
    'of the 3,000 people who still take part; 1,200 have nothing left (low: 1,200)'
    """
    if not silent:
        return ""
    levels = [f"{among_others(name)}: {n:,}" for name, n in list(silent.items())[:_MOST_LEVELS]]
    more = ", …" if len(silent) > _MOST_LEVELS else ""
    whole = sum(silent.values())
    have = "has" if whole == 1 else "have"
    those = "person who still takes part" if people == 1 else "people who still take part"
    return f"of the {people:,} {those}; {whole:,} {have} nothing left ({', '.join(levels)}{more})"


def price_in_words(shares: Mapping[str, float]) -> str:
    """Say what an answer costs each person, as a share of the budget, by group.

    Examples
    --------
    >>> price_in_words({"high": 0.1, "low": 0.031})
    'price: 10 % of the budget of each person of high, 3.1 % of low'
    >>> price_in_words({"high": 0.1, "low": 0.1})
    "price: 10 % of each person's budget"
    """
    written = {name: percent_of(share) for name, share in shares.items()}
    if len(set(written.values())) == 1:
        return f"price: {next(iter(written.values()))} of each person's budget"
    (name, first), *others = list(written.items())[:_MOST_LEVELS]
    more = ", …" if len(written) > _MOST_LEVELS else ""
    rest = "".join(f", {share} of {among_others(level)}" for level, share in others)
    return f"price: {first} of the budget of each person of {among_others(name)}{rest}{more}"


def percent_of(share: float) -> str:
    """Write a share of a budget, rounded up to two digits.

    Examples
    --------
    >>> percent_of(0.1), percent_of(0.03101), percent_of(1.0), percent_of(0.0)
    ('10 %', '3.2 %', '100 %', '0 %')
    """
    if not share:
        return "0 %"
    per_cent = 100 * share * (1 - 1e-9)
    digits = max(0, 1 - math.floor(math.log10(per_cent)))
    return f"{math.ceil(per_cent * 10**digits) / 10**digits:g} %"


def header_of(cells: Sequence[Mapping[str, Any]], unit: str, confidence: float) -> str:
    """Say, once for all cells of a table, what stands behind a value."""
    written = [numbers_of(cell, unit) for cell in cells]
    said = ["± standard error"] * any(error for _, error, _ in written)
    said += [f"{100 * confidence:g} % interval"] * any(between for *_, between in written)
    return f" ({'; '.join(said)})" if said else ""
