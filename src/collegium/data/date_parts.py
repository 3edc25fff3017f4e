"""What questions may ask of a date: its year, month or day of the week, and how old somebody was on a day.

Each is a column of its own, made of a column of dates, public wherever that one's bounds are, and named as it
is asked for: ``year(visit)``, ``month(visit)``, ``weekday(visit)``, ``age(birth, 2024-12-31)``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.data.date_format import day_number
from collegium.data.schema_column import CATEGORY, DATE, WHOLE, Column
from collegium.errors import InputError

PARTS = ("year", "month", "weekday", "age")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NAME = re.compile(
    r"(?P<part>year|month|weekday)\((?P<source>.+)\)|age\((?P<of>.+), (?P<on>\d{4}-\d{2}-\d{2})\)"
)
_FEW = 50  # years that are groups of their own


@dataclass(frozen=True)
class DatePart:
    """A part of a date.

    ``part``: one of :data:`PARTS`. ``source``: the column of dates. ``on``: the day of an age.
    """

    part: str
    source: str
    on: str = ""

    @property
    def name(self) -> str:
        """Of the column that it is."""
        return f"{self.part}({self.source}{', ' * bool(self.on)}{self.on})"

    def column(self, dates: Column) -> Column:
        """What is publicly known of it. Raises InputError if ``dates`` is no column of dates."""
        if dates.kind != DATE:
            raise InputError(
                f"{self.part} needs a date, but column {self.source!r} is of kind {dates.kind} in the schema"
            )
        if self.part == "weekday":
            return Column(CATEGORY, categories=WEEKDAYS, missing=dates.missing)
        if self.part == "month":
            return Column(WHOLE, bounds=(1, 12), missing=dates.missing)
        if self.part == "age" and not day_number(self.on) >= dates.lower:
            raise InputError(
                f"nobody was born by {self.on}: {self.source!r} begins later in the schema"
            )
        ends = sorted(self._numbers(np.array([dates.lower, dates.upper])).tolist())
        low, high = int(max(ends[0], 0)) if self.part == "age" else int(ends[0]), int(ends[1])
        high = max(high, low + 1)
        bins: tuple[int, ...] = ()
        if high - low >= _FEW:
            bins = tuple(range(low // 10 * 10, high // 10 * 10 + 11, 10))
        return Column(WHOLE, bounds=(low, high), bins=bins, missing=dates.missing)

    def values(self, days: NDArray[np.float64], column: Column) -> NDArray[Any]:
        """Take it from dates, as :meth:`~collegium.data.schema.Schema.arrays` has columns."""
        if self.part == "weekday":  # the first of January 1970 was a Thursday
            return np.where(np.isnan(days), -1, (np.nan_to_num(days) + 3) % 7).astype(np.int64)
        return np.clip(self._numbers(days), column.lower, column.upper)

    def _numbers(self, days: NDArray[np.float64]) -> NDArray[np.float64]:
        there = ~np.isnan(days)
        dates = np.where(there, days, 0).astype(np.int64).astype("datetime64[D]")
        months = dates.astype("datetime64[M]").astype(np.int64) + 12 * 1970
        year, month = months // 12, months % 12 + 1
        found = year if self.part == "year" else month
        if self.part == "age":
            day = (dates - dates.astype("datetime64[M]")).astype(np.int64) + 1
            then = [int(number) for number in self.on.split("-")]
            before = (month > then[1]) | ((month == then[1]) & (day > then[2]))
            found = then[0] - year - before
        return np.where(there, found.astype(np.float64), np.nan)


def date_part(name: str) -> DatePart | None:
    """Understand the name of a part of a date; None: it is none.

    Examples
    --------
    >>> date_part("year(day of visit)"), date_part("age")
    (DatePart(part='year', source='day of visit', on=''), None)
    """
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    if found["part"]:
        return DatePart(found["part"], found["source"])
    return DatePart("age", found["of"], found["on"])
