"""Columns of a schema as expressions of a database, read as :mod:`~collegium.data.schema_arrays` reads them.

Each value by itself, and never an error about one: a number is brought within its bounds before anything is
computed of it, so that no row overflows; infinity is told by comparison, as engines differ in what they call
it; numbers in a statement are written as text that is cast, as some engines round literals in between. What
an engine cannot read in the same way (numbers in text, say) is read here, row by row, and said to be.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import pandas as pd

from collegium.checks import nearest
from collegium.data.column_types import TRUTH
from collegium.data.date_parts import DatePart, date_part
from collegium.data.schema import Schema
from collegium.data.schema_arrays import values_of
from collegium.data.schema_column import (
    CATEGORY,
    DATE,
    FLAG,
    FLAG_LETTERS,
    FLAG_NUMBERS,
    TEXT,
    WHOLE,
    Column,
    flag_words,
)
from collegium.errors import InputError

_EPOCH = date(1970, 1, 1)
_LARGEST = sys.float_info.max
_EXACT_DIGITS = 15
"""Decimals of no more digits are the quotient of two doubles, rounded once, whatever an engine does."""
_NARROW = 1e-100
"""Within narrower bounds, what is computed may fall below the smallest double."""


def real(number: float) -> Any:
    """A number, to the bit."""
    import ibis

    return ibis.literal(repr(float(number))).cast("float64")


class Number:
    """A double of each row, with the operators of arrays; constants beside it are exact."""

    def __init__(self, expression: Any) -> None:
        self.expression = expression

    def __add__(self, other: Any) -> Number:
        return Number(self.expression + _expression(other))

    def __radd__(self, other: Any) -> Number:
        return Number(_expression(other) + self.expression)

    def __sub__(self, other: Any) -> Number:
        return Number(self.expression - _expression(other))

    def __rsub__(self, other: Any) -> Number:
        return Number(_expression(other) - self.expression)

    def __mul__(self, other: Any) -> Number:
        return Number(self.expression * _expression(other))

    def __rmul__(self, other: Any) -> Number:
        return Number(_expression(other) * self.expression)

    def __truediv__(self, other: Any) -> Number:
        return Number(self.expression / _expression(other))

    def __rtruediv__(self, other: Any) -> Number:
        return Number(_expression(other) / self.expression)

    def __lt__(self, other: Any) -> Any:
        return holds(self.expression < _expression(other))

    def __le__(self, other: Any) -> Any:
        return holds(self.expression <= _expression(other))

    def __gt__(self, other: Any) -> Any:
        return holds(self.expression > _expression(other))

    def __ge__(self, other: Any) -> Any:
        return holds(self.expression >= _expression(other))

    def __eq__(self, other: object) -> Any:
        return holds(self.expression == _expression(other))

    def __ne__(self, other: object) -> Any:
        return holds(self.expression != _expression(other))

    __hash__ = None  # type: ignore[assignment]


class OfExpressions:
    """The algebra of :mod:`~collegium.weighted_sums.reading` in a database."""

    def where(self, condition: Any, yes: Any, no: Any) -> Number:
        """One or the other; the latter where the condition is not known."""
        return Number(choice(condition, _expression(yes), _expression(no)))

    def within(self, x: Any, low: float, high: float) -> Number:
        """What is outside becomes the nearest bound."""
        import ibis

        return Number(ibis.least(ibis.greatest(_expression(x), real(low)), real(high)))

    def floor(self, x: Any) -> Number:
        """As a double; of what no whole number of 64 bits could not hold."""
        return Number(_expression(x).floor().cast("float64"))


def _expression(value: Any) -> Any:
    return value.expression if isinstance(value, Number) else real(value)


def choice(condition: Any, yes: Any, no: Any) -> Any:
    """One or the other; the latter where the condition is not known."""
    import ibis

    return ibis.cases((condition, yes), else_=no)


def holds(condition: Any) -> Any:
    """What is not known does not hold."""
    return condition.fill_null(False)


@dataclass(frozen=True)
class Key:
    """What rows are grouped by: an expression, and the place among a column's keys of each of its values.

    ``places``: None: the value is the place itself.
    """

    expression: Any
    places: Mapping[Any, int] | None = None


class InTable:
    """Columns of a table in a database; one reading of :class:`~collegium.conditions.conditions.Columns`.

    Parameters
    ----------
    table : ibis.Table
    schema : Schema
    """

    def __init__(self, table: Any, schema: Schema) -> None:
        self._table, self._schema = table, schema
        self._kinds = table.schema()

    def refuse_missing(self, names: Sequence[str]) -> None:
        """Refuse columns that the table lacks, or that hold what the schema cannot mean."""
        for name in self._schema.sources(names):
            if name not in self._kinds:
                raise InputError(
                    f"the table has no column {name!r}, which is needed here: "
                    f"{nearest(name, list(self._kinds))}"
                )
            kind = self._kinds[name]
            examples = [example for dtype, example in _EXAMPLES if getattr(kind, dtype)()]
            if not examples:
                raise InputError(
                    f"column {name!r} holds neither numbers, text, truth values nor dates there: make a view "
                    "in which it does, or leave it out of the schema"
                )
            for example in examples:
                values_of(pd.Series([example]), name, self._schema[name])  # which refuses it

    def why_not(self, name: str) -> str:
        """Why a column is read here, row by row; "": it is read where it lies."""
        part = self._part(name)
        source = name if part is None else part.source
        column, kind = self._schema[source], self._kinds[source]
        if column.kind == TEXT:
            return f"{source!r} is text"
        if kind.is_string():
            if column.kind == CATEGORY and column.of_whole_numbers:
                return f"{source!r} holds whole numbers as text"
            if column.kind in (CATEGORY, FLAG):
                return ""
            return f"{source!r} holds {'dates' if column.kind == DATE else 'numbers'} as text"
        if column.kind == DATE:
            return "" if kind.is_date() or kind.is_timestamp() else f"{source!r} is no date there"
        if kind.is_boolean():
            of_numbers = column.kind == CATEGORY and not column.of_truths
            return f"{source!r} holds truth values" if of_numbers else ""
        if kind.is_decimal() and (kind.precision is None or kind.precision > _EXACT_DIGITS):
            return f"{source!r} holds decimals of more than {_EXACT_DIGITS} digits"
        if not (kind.is_floating() or kind.is_decimal() or _is_whole(kind)):
            return f"{source!r} holds whole numbers of 64 bits without a sign"
        if column.kind == CATEGORY and not column.of_whole_numbers:
            return f"{source!r} holds numbers"
        if column.kind not in (CATEGORY, FLAG) and column.width < _NARROW:
            return f"{source!r} has bounds so close to one another"
        return ""

    def number(self, name: str) -> Number:
        """A double within the bounds; NULL where one is missing."""
        return Number(self._number(name))

    def _number(self, name: str) -> Any:
        part = self._part(name)
        if part is not None:
            return self._of_date(part, self._schema[name])
        column = self._schema[name]
        if column.kind == DATE:
            return self._days(name)
        if column.kind == FLAG:
            return self.code(name).cast("float64")
        found = clipped(self._double(name), column.lower, column.upper)
        if column.kind != WHOLE or _is_whole(self._kinds[name]):
            return found
        down = found.floor().cast("float64")
        return choice(found == down, found, (found + real(0.5)).floor().cast("float64"))

    def code(self, name: str) -> Any:
        """The place of a category, or 1 and 0; NULL where it is missing or unknown."""
        import ibis

        cases = [
            (self._is_one(name, place), place) for place in range(len(self._schema[name].keys))
        ]
        return ibis.cases(*cases, else_=None).cast("int64")

    def place(self, name: str) -> Any:
        """The same, also of a part of a date."""
        return self.key(name).expression if self._part(name) is not None else self.code(name)

    def key(self, name: str) -> Key:
        """What rows are grouped by; NULL: in none of the groups."""
        import ibis

        column, part = self._schema[name], self._part(name)
        if part is not None and column.kind == CATEGORY:
            return Key(self._of_date(part, column))
        if column.kind == CATEGORY and self._kinds[name].is_string() and not column.of_truths:
            text = self._table[name]
            known = choice(text.isin(column.keys), text, ibis.null("string"))
            return Key(known, {key: place for place, key in enumerate(column.keys)})
        if column.kind in (CATEGORY, FLAG):
            return Key(self.code(name))
        return Key(binned(self._number(name), column.edges, len(column.keys)))

    def among(self, name: str, codes: tuple[int, ...], names: tuple[str, ...]) -> Any:
        """Whether the category is one of these."""
        if self._part(name) is not None:
            return holds(self.key(name).expression.isin(codes))
        found = self._is_one(name, codes[0])
        for code in codes[1:]:
            found = found | self._is_one(name, code)
        return found

    def missing(self, name: str) -> Any:
        """Whether there is no value that the schema knows."""
        column = self._schema[name]
        if column.kind in (CATEGORY, FLAG):
            if self._part(name) is not None:
                return self.key(name).expression.isnull()
            return ~self.among(name, tuple(range(len(column.keys))), column.keys)
        return self._number(name).isnull()

    def everybody(self) -> Any:
        """What holds for each row."""
        import ibis

        return ibis.literal(True)

    def _part(self, name: str) -> DatePart | None:
        return None if name in self._schema.columns else date_part(name)

    def _is_one(self, name: str, place: int) -> Any:
        """Whether a category is the one of this place."""
        column, kind, cell = self._schema[name], self._kinds[name], self._table[name]
        if kind.is_string():
            if column.kind == FLAG:
                capitals, small, blanks = FLAG_LETTERS
                words = [word for word, code in flag_words().items() if code == place]
                word = cell.translate(capitals + blanks, small)
                return holds(word.isin(words) | word.re_search(FLAG_NUMBERS[place]))
            key = column.keys[place]
            if column.of_truths:
                words = [word for word, truth in TRUTH.items() if str(bool(truth)) == key]
                return holds(cell.isin(words))
            return holds(cell == key)
        if kind.is_boolean():
            truth = place == 1 if column.kind == FLAG else column.keys[place] == "True"
            return holds(cell if truth else ~cell)
        number = place if column.kind == FLAG else int(column.keys[place])
        return holds(self._double(name) == real(number))

    def _double(self, name: str) -> Any:
        """A finite double, or NULL."""
        import ibis

        kind, cell = self._kinds[name], self._table[name]
        if kind.is_boolean():
            return ibis.cases((cell, real(1)), (~cell, real(0)), else_=ibis.null("float64"))
        if _is_whole(kind):
            return cell.cast("float64")
        # NaN, which decimals have, too, is above every number for some, and for none for others: within two,
        # it is for nobody.
        x = cell.cast("float64")
        inside = (x >= real(-_LARGEST)) & (x <= real(_LARGEST))
        return choice(inside, x, ibis.null("float64"))

    def _within(self, name: str, ends: tuple[Any, Any], inside: Callable[[Any], Any]) -> Any:
        """What is made of a date within the bounds, or of the bound that it is beyond: never subtracted."""
        import ibis

        column, day = self._schema[name], self._table[name]
        day = day.date() if self._kinds[name].is_timestamp() else day
        low, high = (ibis.literal(_day(end)) for end in (column.lower, column.upper))
        return ibis.cases((day < low, ends[0]), (day > high, ends[1]), else_=inside(day))

    def _date(self, name: str) -> Any:
        """A date within the bounds."""
        column = self._schema[name]
        return self._within(name, (_day(column.lower), _day(column.upper)), lambda day: day)

    def _days(self, name: str) -> Any:
        """Days since 1970 within the bounds."""
        column = self._schema[name]
        ends = real(column.lower), real(column.upper)
        return self._within(name, ends, lambda day: day.epoch_days().cast("float64"))

    def _of_date(self, part: DatePart, column: Column) -> Any:
        day = self._date(part.source)
        if part.part == "weekday":
            return day.day_of_week.index().cast("int64")
        year, month = day.year().cast("int64"), day.month().cast("int64")
        found = year if part.part == "year" else month
        if part.part == "age":
            then = [int(number) for number in part.on.split("-")]
            late = (month > then[1]) | ((month == then[1]) & (day.day().cast("int64") > then[2]))
            found = then[0] - year - choice(late, 1, 0)
        return clipped(found.cast("float64"), column.lower, column.upper)


def clipped(x: Any, low: float, high: float) -> Any:
    """Bring a number within bounds; NULL stays NULL."""
    import ibis

    return ibis.cases((x > real(high), real(high)), (x < real(low), real(low)), else_=x)


def binned(x: Any, edges: Sequence[float], n: int) -> Any:
    """The interval of a number, from 0 to n - 1, each with its lower edge; NULL where there is none."""
    import ibis

    def between(first: int, last: int) -> Any:
        if first == last:
            return ibis.literal(first, type="int64")
        middle = (first + last + 1) // 2
        return choice(x < real(edges[middle]), between(first, middle - 1), between(middle, last))

    return ibis.cases((x.isnull(), ibis.null("int64")), else_=between(0, n - 1))


def _day(days: float) -> date:
    return _EPOCH + timedelta(days=int(days))


def _is_whole(kind: Any) -> bool:
    return bool(kind.is_integer()) and not kind.is_uint64()


_EXAMPLES = (
    ("is_date", pd.Timestamp("2020-01-01")),
    ("is_timestamp", pd.Timestamp("2020-01-01")),
    ("is_boolean", True),
    ("is_integer", 1),
    ("is_floating", 0.5),
    ("is_decimal", 0.5),
    ("is_string", "text"),
)
