"""How dates are written in text: in which order, and with what between day, month and year.

Found from public records, kept in the schema as an example (``written = "31.12.2024"``), and applied to each
private cell by itself. A time of day may stand behind a date, and dates are those of the clock where they
were written: an offset from UTC is not added.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.checks import shown
from collegium.errors import InputError

_YEAR, _SHORT = r"(\d{4})", r"(\d{1,2})"
_TIME = r"(?:[T ,]\s*(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?\s*(?:Z|UTC|[+-]\d{2}:?\d{2})?)?"
_MARKS, _POINT = "-./", "."
_DAY_FIRST, _MONTH_FIRST, _YEAR_FIRST = "dmy", "mdy", "ymd"
_LAST_DAY = {"y": "2024", "m": "12", "d": "31"}
_NEARLY_ALL = 0.9
_LOOKED_AT = 100
_OF_NUMPY = "datetime64[s]"


@dataclass(frozen=True)
class DateFormat:
    """How the dates of a column are written.

    ``order``: "ymd", "dmy" or "mdy". ``mark``: between them, one of ``-./``.

    Examples
    --------
    >>> german = DateFormat.of("31.12.2024")
    >>> german.read(["1.2.2024", "01.02.2024 07:30", "30.2.2024", "k.A."]).astype(str).tolist()
    ['2024-02-01T00:00:00', '2024-02-01T07:30:00', 'NaT', 'NaT']
    >>> str(german), str(DateFormat.of("12/31/1999"))
    ('31.12.2024', '12/31/2024')
    """

    order: str
    mark: str

    @classmethod
    def of(cls, example: str) -> DateFormat:
        """Read the format off an example.

        Raises InputError if it is no date, or leaves open which of its numbers is the day.
        """
        able = [one for one in _FORMATS if not np.isnat(one.read([example])[0])]
        if len(able) != 1:
            raise InputError(
                f"an example of a date must have a year of four digits and a day after the 12th, such as "
                f"'31.12.2024', '2024-12-31' or '12/31/2024', got {shown(example)}"
            )
        return able[0]

    def read(self, cells: Iterable[object]) -> NDArray[np.datetime64]:
        """Read dates, each cell by itself; NaT where there is none.

        Returns ``datetime64[s]`` (n,): years 1 to 9999.
        """
        places, different = pd.factorize(pd.Series(list(cells), dtype=object), use_na_sentinel=True)
        found = [
            self._pattern.fullmatch(cell.strip()) if isinstance(cell, str) else None
            for cell in different.tolist()
        ]
        parts = np.zeros((len(found) + 1, 6), dtype=np.int64)  # the last row: what is missing
        for row, match in zip(parts, found, strict=False):
            if match is not None:
                given = dict(zip(self.order, match.groups()[:3], strict=True))
                clock = (int(part or 0) for part in match.groups()[3:])
                row[:] = (int(given["y"]), int(given["m"]), int(given["d"]), *clock)
        dates: NDArray[np.datetime64] = _dates(parts)[places]
        return dates

    @property
    def _pattern(self) -> re.Pattern[str]:
        mark = re.escape(self.mark)
        body = mark.join(_YEAR if part == "y" else _SHORT for part in self.order)
        return re.compile(body + _TIME)

    def __str__(self) -> str:
        return self.mark.join(_LAST_DAY[part] for part in self.order)


_FORMATS = tuple(
    DateFormat(order, mark)
    for order in (_YEAR_FIRST, _DAY_FIRST, _MONTH_FIRST)
    for mark in _MARKS
    if not (order == _MONTH_FIRST and mark == _POINT)  # nobody writes the month first with points
)


def may_be_dates(cells: Sequence[object]) -> bool:
    """Tell whether any of the first public cells is a date in any format."""
    return any(not np.isnat(one.read(cells[:_LOOKED_AT])).all() for one in _FORMATS)


def date_format_of(cells: Sequence[object], column: str) -> DateFormat | None:
    """Find how public dates are written.

    ``cells``: public, none missing. ``column``: its name, for messages.
    Returns None if one in ten of them is no date in any format, such as one with a year of two digits.
    Raises InputError if day and month may be either.

    Examples
    --------
    >>> print(date_format_of(["03.04.2024", "7.8.2023 12:15"], "visit"))
    31.12.2024
    >>> print(date_format_of(["03/14/2024", "07/08/2023"], "visit"), date_format_of(["A1"], "ward"))
    12/31/2024 None
    """
    if not may_be_dates(cells):
        return None
    able = {}
    for one in _FORMATS:
        dates = one.read(cells)
        n_read = int((~np.isnat(dates)).sum())
        if n_read >= _NEARLY_ALL * len(cells):
            able[one] = (n_read, dates)
    if not able:
        return None
    most = max(n_read for n_read, _ in able.values())
    best = {one: dates for one, (n_read, dates) in able.items() if n_read == most}
    first, dates = next(iter(best.items()))
    for other, others in best.items():
        differ = np.flatnonzero((others != dates) & ~(np.isnat(others) & np.isnat(dates)))
        if differ.size:
            raise InputError(
                f"column {column!r} of the public records holds {shown(cells[differ[0]])}, whose day may be "
                f"its month: say how dates are written, '{first}' or '{other}' (data.types of a study, "
                "written in a schema)"
            )
    return first


def _dates(parts: NDArray[np.int64]) -> NDArray[np.datetime64]:
    year, month, day, hour, minute, second = parts.T
    months = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1)
    dates = days.astype(_OF_NUMPY) + (3600 * hour + 60 * minute + second)
    exists = (year > 0) & (month > 0) & (month < 13) & (days.astype("datetime64[M]") == months)
    exists &= (day > 0) & (hour < 24) & (minute < 60) & (second < 61)
    return np.where(exists, dates, np.datetime64("NaT"))
