"""How dates are written in text: in which order day, month and year stand, and what is between them.

Found from public records, kept in the schema as an example (``written = "31.12.2024"``), and applied to each
private cell by itself. A time of day behind a date is not looked at. Dates are whole days since 1970.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.checks import shown
from collegium.data.number_format import NEARLY_ALL, NumberFormat
from collegium.errors import InputError

_EPOCH = date(1970, 1, 1)
_FIRST = _EPOCH.toordinal()
_TIME = r"(?:[T ]+\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[AaPp][Mm])?(?: ?(?:Z|UTC|[+-]\d{2}:?\d{2}))?)?"
_FIELDS = {"d": r"(?P<d>\d{1,2})", "m": r"(?P<m>\d{1,2})", "y": r"(?P<y>\d{4})"}
_ORDERS = {"ymd": "-/.", "dmy": "./-", "mdy": "/-"}
_EXAMPLE = {"d": "31", "m": "12", "y": "2024"}
_LOOKS = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}" + _TIME)


@dataclass(frozen=True)
class DateFormat:
    """How the dates of a column are written.

    ``order``: of day, month and year, such as "dmy". ``mark``: between them.

    Examples
    --------
    >>> german = DateFormat.of("31.12.2024")
    >>> german.read(["1.2.2024", "01.02.2024 17:30", "2024-02-01", "31.2.2024", "k.A."]).tolist()
    [19754.0, 19754.0, nan, nan, nan]
    >>> str(DateFormat("mdy", "/"))
    '12/31/2024'
    """

    order: str = "ymd"
    mark: str = "-"

    @classmethod
    def of(cls, example: str) -> DateFormat:
        """Read the format off an example. Raises InputError if it shows none, or leaves the order open."""
        for one in all_formats():
            if str(one) == example.strip():
                return one
        able = [one for one in all_formats() if np.isfinite(one.read([example])[0])]
        if len(able) == 1:
            return able[0]
        raise InputError(
            "written must be an example of a date whose day is above 12, such as '31.12.2024', "
            f"'12/31/2024' or '2024-12-31', got {shown(example)}"
        )

    @property
    def is_certain(self) -> bool:
        """Whether nothing but a date is written so: as of numbers."""
        return True

    @property
    def separates_or_names(self) -> bool:
        """Whether there is more to it than what is read everywhere: as of numbers."""
        return True

    @property
    def is_usual(self) -> bool:
        """Whether dates are written as programs write them."""
        return self == DateFormat()

    def __str__(self) -> str:
        return self.mark.join(_EXAMPLE[field] for field in self.order)

    @cached_property
    def _date(self) -> re.Pattern[str]:
        return re.compile(re.escape(self.mark).join(_FIELDS[field] for field in self.order) + _TIME)

    def read(self, cells: Iterable[object]) -> NDArray[np.float64]:
        """Read dates, each cell by itself, as days since 1970: NaN where there is none.

        ``cells`` (n,): text, or dates; whatever else stands there is no date.
        """
        return np.array([self._read(cell) for cell in cells], dtype=np.float64)

    def _read(self, cell: object) -> float:
        if isinstance(cell, date):  # pandas' missing time is one that is not equal to itself
            if cell != cell:
                return np.nan
            return float((cell.date() if isinstance(cell, datetime) else cell).toordinal() - _FIRST)
        found = self._date.fullmatch(cell.strip()) if isinstance(cell, str) else None
        if found is None:
            return np.nan
        try:
            return float((date(int(found["y"]), int(found["m"]), int(found["d"])) - _EPOCH).days)
        except ValueError:  # a thirtieth of February
            return np.nan


def all_formats() -> list[DateFormat]:
    """List every format that is known."""
    return [DateFormat(order, mark) for order, marks in _ORDERS.items() for mark in marks]


def format_from(example: str) -> DateFormat | NumberFormat:
    """Read a format of dates or of numbers off an example."""
    return DateFormat.of(example) if _LOOKS.fullmatch(example.strip()) else NumberFormat.of(example)


def may_be_dates(cells: Sequence[object]) -> bool:
    """Tell whether some of the first public cells look like dates."""
    return any(isinstance(cell, str) and _LOOKS.fullmatch(cell.strip()) for cell in cells[:100])


def date_format_of(
    cells: Sequence[str], column: str, example: str | None = None
) -> DateFormat | None:
    """Find how public dates are written.

    ``cells``: public, none missing. ``column``: its name, for messages.
    ``example``: which of several formats it is, where cells leave it open.
    Returns None if one in ten of them is no date in any format.
    Raises InputError if day and month may stand either way round.

    Examples
    --------
    >>> print(date_format_of(["03/04/2024", "1/12/2023 07:30"], "visit"))
    Traceback (most recent call last):
    collegium.errors.InputError: column 'visit' of the public records holds '03/04/2024', and day and month
    may stand either way round: ...
    >>> print(date_format_of(["03.04.2024"], "visit"))  # with points, nobody writes the month first
    31.12.2024
    >>> print(date_format_of(["03/04/2024", "12/31/2023"], "visit"), date_format_of(["17", "x"], "age"))
    12/31/2024 None
    """
    looking = [cell for cell in cells if _LOOKS.fullmatch(cell.strip())]
    if not looking or len(looking) < NEARLY_ALL * len(cells):
        return None
    read = {one: one.read(looking) for one in all_formats()}
    counts = {one: int(np.isfinite(days).sum()) for one, days in read.items()}
    most = max(counts.values())
    if not most or most < NEARLY_ALL * len(cells):
        return None
    first, *others = [one for one in read if counts[one] == most]
    if all(np.array_equal(read[first], read[one], equal_nan=True) for one in others):
        return first
    said = None if example is None else DateFormat.of(example)
    if said in (first, *others):
        return said
    examples = " or ".join(repr(str(one)) for one in (first, *others))
    raise InputError(
        f"column {column!r} of the public records holds {looking[0].strip()!r}, and day and month may stand "
        f"either way round: say how its dates are written, {examples} (in a study: data.types, in a schema: "
        "written, for a draft: --dates), or write them as 2024-12-31"
    )


def day_number(value: Any) -> float:
    """Read one date, as 2024-12-31, as days since 1970; NaN if it is none."""
    return float(DateFormat().read([value])[0])


def day_of(days: float) -> str:
    """Write days since 1970 as a date: the nearest.

    Examples
    --------
    >>> day_of(19722.6)
    '2024-01-01'
    """
    return (_EPOCH + timedelta(days=round(days))).isoformat()
