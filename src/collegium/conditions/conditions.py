"""Which rows are meant: frozen conditions on columns of a public schema, in one canonical form.

Negations are pushed down to the comparisons, so a missing value satisfies neither a comparison nor its
negation; conditions that mean the same by the rules of ``and``, ``or`` and ``not`` mostly are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from collegium.data.date_format import day_of
from collegium.data.date_parts import date_part
from collegium.data.schema_column import plain

WORD = r"[^\W\d][\w.-]*"
KEYWORDS = frozenset(
    {
        *("and", "or", "not", "in", "is", "where", "by", "on", "missing", "null", "true", "false"),
        *("yes", "no", "between", "like"),
    }
)
Arrays = Mapping[str, NDArray[Any]]
OPERATIONS: dict[str, Any] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


class Columns(Protocol):
    """Columns of some rows, read as a public schema says: arrays in memory, or expressions of a database.

    Everything that is made of them is made with operators alone, which both have.
    """

    def number(self, name: str) -> Any:
        """The values of a column of numbers: which satisfy no comparison but ``!=`` where one is missing."""
        ...

    def among(self, name: str, codes: tuple[int, ...], names: tuple[str, ...]) -> Any:
        """Whether the category is one of these: places among the keys, and names in the schema."""
        ...

    def missing(self, name: str) -> Any:
        """Whether there is no value."""
        ...

    def everybody(self) -> Any:
        """What holds for each row."""
        ...


@dataclass(frozen=True)
class InArrays:
    """Columns in memory: ``arrays``, from :meth:`collegium.data.schema.Schema.arrays`."""

    arrays: Arrays

    def number(self, name: str) -> NDArray[np.float64]:
        """NaN where one is missing."""
        values: NDArray[np.float64] = self.arrays[name]
        return values

    def among(self, name: str, codes: tuple[int, ...], names: tuple[str, ...]) -> Any:
        """By their places."""
        values = self.arrays[name]
        return values == codes[0] if len(codes) == 1 else np.isin(values, codes)

    def missing(self, name: str) -> NDArray[np.bool_]:
        """NaN, or no place."""
        values = self.arrays[name]
        absent: NDArray[np.bool_] = np.isnan(values) if values.dtype.kind == "f" else values < 0
        return absent

    def everybody(self) -> NDArray[np.bool_]:
        """All rows."""
        return np.ones(len(next(iter(self.arrays.values()))), dtype=bool)


class Where:
    """A condition on rows; its text is the canonical form."""

    @property
    def columns(self) -> frozenset[str]:
        """Columns that are looked at."""
        raise NotImplementedError

    def mask(self, arrays: Arrays) -> NDArray[np.bool_]:
        """Tell for each row whether it is meant.

        ``arrays``: from :meth:`collegium.data.schema.Schema.arrays`, of at least one column.
        """
        found: NDArray[np.bool_] = self.holds(InArrays(arrays))
        return found

    def holds(self, columns: Columns) -> Any:
        """Whether it holds, made of columns wherever they are."""
        raise NotImplementedError

    @property
    def is_everybody(self) -> bool:
        """Whether nobody is left out."""
        return False


@dataclass(frozen=True)
class _OfColumn(Where):
    column: str

    @property
    def columns(self) -> frozenset[str]:
        """The one column."""
        return frozenset([self.column])


@dataclass(frozen=True)
class Compare(_OfColumn):
    """A number beside a literal."""

    operation: str
    number: float
    is_date: bool = False

    def holds(self, columns: Columns) -> Any:
        """No value is unlike a number where there is none."""
        found = OPERATIONS[self.operation](columns.number(self.column), self.number)
        return found & ~columns.missing(self.column) if self.operation == "!=" else found

    def __str__(self) -> str:
        number = day_of(self.number) if self.is_date else plain(self.number)
        return f"{name_text(self.column)} {self.operation} {number}"


@dataclass(frozen=True)
class Among(_OfColumn):
    """A category that is one of some, or, ``excluded``, one of all others.

    ``codes``: their places among the column's keys, in that order.
    ``names``: the same as the schema writes them.
    ``is_flag``: whether the one name is yes or no.
    """

    codes: tuple[int, ...]
    names: tuple[str, ...]
    excluded: bool = False
    is_flag: bool = False

    def holds(self, columns: Columns) -> Any:
        """A missing value is in none."""
        found = columns.among(self.column, self.codes, self.names)
        return ~found & ~columns.missing(self.column) if self.excluded else found

    def __str__(self) -> str:
        column = name_text(self.column)
        if self.is_flag:
            return column if self.codes == (1,) else f"not {column}"
        if len(self.names) == 1:
            return f"{column} {'!=' if self.excluded else '=='} {quoted(self.names[0])}"
        names = ", ".join(map(quoted, self.names))
        return f"{column} {'not in' if self.excluded else 'in'} ({names})"


@dataclass(frozen=True)
class IsMissing(_OfColumn):
    """A value that is missing, or unknown to the schema; or one that is there."""

    missing: bool

    def holds(self, columns: Columns) -> Any:
        """Whether there is one."""
        absent = columns.missing(self.column)
        return absent if self.missing else ~absent

    def __str__(self) -> str:
        return f"{name_text(self.column)} is {'' if self.missing else 'not '}missing"


@dataclass(frozen=True)
class Several(Where):
    """Conditions of which all hold, or at least one; made by :func:`all_of` and :func:`any_of`."""

    parts: tuple[Where, ...]
    all: bool

    @property
    def columns(self) -> frozenset[str]:
        """Columns of all parts."""
        return frozenset().union(*(part.columns for part in self.parts))

    @property
    def is_everybody(self) -> bool:
        """Whether there is no condition at all."""
        return not self.parts

    def holds(self, columns: Columns) -> Any:
        """All parts, or one."""
        if not self.parts:
            return columns.everybody()
        return reduce(and_ if self.all else or_, (part.holds(columns) for part in self.parts))

    def __str__(self) -> str:
        texts = (f"({part})" if isinstance(part, Several) else str(part) for part in self.parts)
        return (" and " if self.all else " or ").join(texts)


EVERYBODY = Several((), all=True)


def all_of(parts: Iterable[Where]) -> Where:
    """Join conditions that must all hold, in the order of their texts, each once."""
    return _joined(parts, all_hold=True)


def any_of(parts: Iterable[Where]) -> Where:
    """Join conditions of which one must hold, in the order of their texts, each once."""
    return _joined(parts, all_hold=False)


def _joined(parts: Iterable[Where], all_hold: bool) -> Where:
    flat: set[Where] = set()
    for part in parts:
        flat.update(part.parts if isinstance(part, Several) and part.all == all_hold else [part])
    ordered = tuple(sorted(flat, key=str))
    return ordered[0] if len(ordered) == 1 else Several(ordered, all_hold)


def name_text(name: str) -> str:
    """Write the name of a column, in quotes where it is not one word."""
    if part := date_part(name):
        return replace(part, source=name_text(part.source)).name
    is_word = re.fullmatch(WORD, name) and name.casefold() not in KEYWORDS
    return name if is_word else quoted(name, '"')


def quoted(text: str, mark: str = "'") -> str:
    """Write text in quotes; a quote within is written twice."""
    return f"{mark}{text.replace(mark, 2 * mark)}{mark}"
