"""How numbers are written in text: what separates thousands, what stands before decimals, and a unit.

Found from public records, kept in the schema as an example (``written = "1.234,5 €"``), and applied to each
private cell by itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from collegium.checks import shown
from collegium.errors import InputError

_BLANKS = " \u00a0\u202f"
_THOUSANDS = (",", ".", "'", "’", *_BLANKS)
_MARKS = {",": "comma", ".": "point"}
_PARTS = re.compile(r"([^\d+\-]*)([+-]?\d(?:[\d,.'’ \u00a0\u202f]*\d)?)(\D*)")
_LEADING_ZERO = re.compile(r"0\d")
_WORD, _PLURAL = re.compile(r"[^\W\d_]+$"), re.compile(r"(?:en|e|s|n)$")
_FEW_WORDS, NEARLY_ALL = 3, 0.9  # "n/a", "unknown": words for missing numbers
_CODES = 20  # so few different numbers, with a word among them, are codes of categories
_ENOUGH = 60
"""So many numbers with exactly three digits behind their mark: decimals are so in 0.9^60 = 0.2 % of cases."""


class UnclearDecimalError(InputError):
    """A mark in public numbers may stand before decimals or between thousands."""


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written.

    ``decimal``: before the decimals. ``thousands``: between groups of three digits; "": nothing.
    ``before``, ``behind``: a unit, without the blanks around it.

    Examples
    --------
    >>> euros = NumberFormat.of("1.234,5 €")
    >>> euros.read(["12.345,50 €", "17", "1.23", "k.A."]).tolist()
    [12345.5, 17.0, nan, nan]
    >>> str(euros)
    '1.234,5 €'
    """

    decimal: str = "."
    thousands: str = ""
    before: str = ""
    behind: str = ""

    @classmethod
    def of(cls, example: str) -> NumberFormat:
        """Read the format off an example.

        Raises InputError if it shows no number, or leaves open what a mark means.
        """
        parts = _PARTS.fullmatch(example.strip())
        marks = re.findall(r"[^\d+\-]", parts[2]) if parts else []
        if parts and marks:
            *others, decimal = marks
            found = cls(decimal, others[0] if others else "", parts[1].strip(), parts[3].strip())
            unclear = not others and bool(re.fullmatch(r"[+-]?[1-9]\d{0,2}\D\d{3}", parts[2]))
            if decimal in ",." and not unclear and np.isfinite(found.read([example])[0]):
                return found
        raise InputError(
            f"written must be an example with decimals, such as '1.234,5 €' or '12.5 %', got {shown(example)}"
        )

    @property
    def separates_or_names(self) -> bool:
        """Whether there is more to it than what stands before decimals."""
        return bool(self.thousands or self.before or self.behind)

    @property
    def is_certain(self) -> bool:
        """Whether nothing but a number is written so: with a unit, no code of a category is."""
        return bool(self.before or self.behind)

    def __str__(self) -> str:
        whole = f"1{self.thousands}234" if self.thousands else "12"
        said = f"{whole}{self.decimal}5"
        return f"{self.before} {said} {self.behind}".strip()

    @cached_property
    def _number(self) -> re.Pattern[str]:
        groups = rf"[1-9]\d{{0,2}}(?:{re.escape(self.thousands)}\d{{3}})+|" * bool(self.thousands)
        return re.compile(rf"[+-]?(?:{groups}\d+)(?:{re.escape(self.decimal)}\d+)?")

    def read(self, cells: Iterable[object]) -> NDArray[np.float64]:
        """Read numbers, each cell by itself: NaN where there is none. With or without the unit.

        ``cells`` (n,): text; whatever else stands there is no number.
        """
        return np.array([self._read(cell) for cell in cells], dtype=np.float64)

    def _read(self, cell: object) -> float:
        if not isinstance(cell, str):
            return np.nan
        text = cell.strip().removeprefix(self.before)
        if self.behind:
            text = self._without_unit(text)
        text = text.strip()
        if not self._number.fullmatch(text):
            return np.nan
        plain = text.replace(self.thousands, "") if self.thousands else text
        return float(plain.replace(self.decimal, "."))

    def _without_unit(self, text: str) -> str:
        if text.endswith(self.behind):
            return text.removesuffix(self.behind)
        word = _WORD.search(text)
        is_same = word is not None and _singular(word[0]) == _singular(self.behind)
        return text[: word.start()] if word is not None and is_same else text


def _singular(unit: str) -> str:
    """Take the ending of a plural off a unit, in the languages that have one of these.

    Examples
    --------
    >>> [_singular(unit) for unit in ("day", "days", "Tag", "Tage", "Stunde", "Stunden", "€", "ms")]
    ['day', 'day', 'Tag', 'Tag', 'Stund', 'Stund', '€', 'ms']
    """
    return _PLURAL.sub("", unit) if unit.isalpha() and len(unit) > 3 else unit


def are_numbers(numbers: NDArray[np.float64], cells: NDArray[np.object_]) -> bool:
    """Tell public numbers, with a few words for missing ones among them, from names of categories.

    ``numbers`` (n,): what was read, NaN where nothing. ``cells`` (n,): what stands there.

    Examples
    --------
    >>> ages = np.array(["n/a", *map(str, range(60))], dtype=object)
    >>> are_numbers(np.array([np.nan, *range(60)]), ages)
    True
    >>> are_numbers(np.array([np.nan, *[1, 2] * 30]), np.array(["n/a", *["1", "2"] * 30], dtype=object))
    False
    """
    are = np.isfinite(numbers)
    if are.all() or not are.any():
        return bool(are.all())
    few_words = len(set(cells[~are])) <= _FEW_WORDS and are.mean() >= NEARLY_ALL
    return bool(few_words and np.unique(numbers[are]).size > _CODES)


def format_of(cells: Sequence[str], column: str, decimal: str | None = None) -> NumberFormat | None:
    """Find how public numbers are written.

    ``cells``: public, none missing. ``column``: its name, for messages.
    ``decimal``: what stands before decimals, if that is known.
    Returns None if one in ten of them is no number in any format.
    Raises UnclearDecimalError if two formats make different numbers of them.

    Examples
    --------
    >>> print(format_of(["1.234 €", "17,50 €", "n/a", *["3 €"] * 20], "cost"))
    1.234,5 €
    >>> print(format_of(["1 Tag", "3 Tage", "12 Tage"], "stay"))
    12.5 Tage
    >>> print(format_of(["A12", "A13"], "ward"), format_of(["0.125", "1.375"], "dose"))
    None 12.5
    >>> print(format_of(["Ward 012", "Ward 113"], "ward"))
    None
    """
    found = [match for cell in cells if (match := _PARTS.fullmatch(cell.strip()))]
    units = Counter((match[1], _singular(match[3].strip())) for match in found)
    n_cells = len(cells)
    if not found or units.most_common(1)[0][1] < NEARLY_ALL * n_cells:
        return None
    unit = units.most_common(1)[0][0]
    alike = [match for match in found if (match[1], _singular(match[3].strip())) == unit]
    before, behind = unit[0], Counter(match[3].strip() for match in alike).most_common(1)[0][0]
    bodies = [match[2] for match in alike]
    if any(map(str.isalpha, before)) and before == before.rstrip():  # a code, such as A12
        return None
    if any(map(str.isalpha, before)) and any(
        map(_LEADING_ZERO.match, bodies)
    ):  # such as "Ward 012"
        return None
    if len(before.split()) > 1 or len(behind.split()) > 2:  # a remark, such as "seen on day 12"
        return None
    before = before.strip()
    marks = [mark for mark in _THOUSANDS if any(mark in body for body in bodies)]
    both = [(point, mark) for mark in ("", *marks) for point in decimal or ".," if point != mark]
    formats = [NumberFormat(point, mark, before, behind) for point, mark in both]
    able = {one: one.read(bodies) for one in formats}
    able = {
        one: read for one, read in able.items() if np.isfinite(read).sum() >= NEARLY_ALL * n_cells
    }
    if not able:
        return None
    most = max(int(np.isfinite(read).sum()) for read in able.values())
    best = {one: read for one, read in able.items() if np.isfinite(read).sum() == most}
    plainest, numbers = next(iter(best.items()))
    others = [
        one for one, read in best.items() if not np.array_equal(read, numbers, equal_nan=True)
    ]
    if not others:
        return plainest
    separated = next(one for one in others if one.thousands)
    mark = separated.thousands
    n_marked = sum(mark in body for body in bodies)
    if n_marked < len(bodies) and n_marked >= _ENOUGH:
        return separated
    if n_marked == len(bodies) and mark == ".":  # three decimals each, as programs write them
        return plainest
    example = next(body for body in bodies if mark in body)
    raise UnclearDecimalError(
        f"column {column!r} of the public records holds {example!r}, whose {_MARKS[mark]} may mark "
        f"decimals or separate thousands: set data.decimal = {mark!r} (--decimal) if it marks decimals, or "
        "write thousands without a separator; if the column is text, set data.types"
    )
