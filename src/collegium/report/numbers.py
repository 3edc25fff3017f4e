"""How a report writes numbers: budgets rounded down, costs rounded up, names made harmless to look at."""

from __future__ import annotations

import math
import re
import unicodedata

from collegium.accounting.statement import budget_and_cost, budget_in_digits, cost_in_digits
from collegium.plain_text import harmless

_NEARLY_ALL = 1e-6


def down(value: float) -> str:
    """Write a budget, rounded down; small and large ones with four significant digits.

    Examples
    --------
    >>> down(0.69314718), down(3.0), down(0.00123456), down(1e-5), down(float("inf"))
    ('0.6931', '3', '0.001234', '1e-5', '∞')
    """
    return budget_in_digits(value)


def up(value: float) -> str:
    """Write a cost, rounded up; small and large ones with four significant digits.

    Examples
    --------
    >>> up(0.98761), up(0.0), up(0.00123456), up(12345678.9), up(float("nan"))
    ('0.9877', '0', '0.001235', '1.235e7', '∞')
    """
    return cost_in_digits(value)


def budget_and_spent(spent: float, budget: float) -> tuple[str, str]:
    """Write a budget, and what was spent of it.

    Next to all of it is all of it: nobody reads ten digits to find that a billionth remains.

    Examples
    --------
    >>> budget_and_spent(0.8345303283, 0.8345303284)
    ('0.8345', '0.8345')
    >>> budget_and_spent(0.69314, 0.69314718)
    ('0.69314', '0.69314')
    """
    nearly_all = budget * (1 - _NEARLY_ALL) <= spent <= budget
    return budget_and_cost(budget, budget if nearly_all else spent)


def spent_of(spent: float, budget: float) -> str:
    """Write what was spent of a budget.

    Examples
    --------
    >>> spent_of(0.98761, 1.0)
    '0.9877 of 1'
    """
    return " of ".join(budget_and_spent(spent, budget)[::-1])


def plain(value: float) -> str:
    """Write a setting or a measurement, to the nearest of six significant digits.

    Examples
    --------
    >>> plain(200.0), plain(1.25), plain(1e-5)
    ('200', '1.25', '1e-5')
    """
    return _short_exponent(f"{value:g}")


def count(value: int) -> str:
    """Write a whole number with separated thousands.

    Examples
    --------
    >>> count(1234567)
    '1,234,567'
    """
    return f"{value:,}"


def share(value: float | None) -> str:
    """Write a share as a percentage; a dash where there is none.

    Examples
    --------
    >>> share(0.9876), share(None), share(float("nan"))
    ('98.8 %', '—', '—')
    """
    if value is None or math.isnan(value):
        return "—"
    return f"{100 * value:.1f} %"


def interval(rate: float, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a success rate in ``n`` independent trials.

    Examples
    --------
    >>> [round(end, 3) for end in interval(0.9, 100)]
    [0.826, 0.945]
    """
    z = 1.959963984540054
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def clean(text: str) -> str:
    """Take out what cannot be shown or reorders the text around it (control and direction marks).

    Spaces that no line may break at stay what they are.

    Examples
    --------
    >>> clean("high\\n\\u202eprivacy")
    'high privacy'
    """
    return re.sub(r"[^\S\xa0\u202f]+", " ", harmless(text)).strip()


def shorten(text: str, width: int) -> str:
    """Cut a name to a width in letters; East Asian letters count twice.

    Examples
    --------
    >>> shorten("a rather long name", 10), shorten("short", 10)
    ('a rather…', 'short')
    """
    text = clean(text)
    if display_width(text) <= width:
        return text
    while display_width(text) > width - 1:
        text = text[:-1]
    return text.rstrip() + "…"


def display_width(text: str) -> int:
    """Count letters, East Asian ones twice.

    Examples
    --------
    >>> display_width("abc"), display_width("日本")
    (3, 4)
    """
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _short_exponent(text: str) -> str:
    mantissa, letter, exponent = text.lower().partition("e")
    return f"{mantissa}e{int(exponent)}" if letter else mantissa
