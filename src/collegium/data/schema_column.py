"""What is publicly known of one column of a private table, checked when it is said."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.checks import check_number, check_truth, nearest, shown
from collegium.data.date_format import DateFormat, day_number, day_of
from collegium.data.number_format import NumberFormat
from collegium.errors import InputError
from collegium.names import as_names, is_whole_number
from collegium.parameters import check_fields, setting, settings_of

NUMBER, WHOLE, CATEGORY, FLAG, TEXT = "number", "whole", "category", "flag", "text"
DATE = "date"
KINDS = (NUMBER, WHOLE, DATE, CATEGORY, FLAG, TEXT)
FLAG_KEYS = ("no", "yes")
MOST_KEYS = 10_000
"""Categories or bins of one column."""
LEAST_READABLE = 0.5
"""Where fewer public records have a readable value, nothing is asked."""
MOST_STEPS = 1 << 16
"""Values of one column's grid that quantiles can choose among."""
_LARGEST = 1e60  # squares of larger numbers, times many people, leave the range of floats
_MOST_EXACT = 2**53
_SINGLE_VALUES = 50  # a whole column with at most so many values is shown value by value
_BINS = 10
_FITS = {
    "bounds": (NUMBER, WHOLE, DATE),
    "step": (NUMBER, WHOLE),
    "bins": (NUMBER, WHOLE),
    "written": (NUMBER, WHOLE, DATE),
    "categories": (CATEGORY,),
    "shares": (CATEGORY,),
    "mean": (NUMBER, WHOLE, FLAG),
    "sd": (NUMBER, WHOLE),
    "known_from": (NUMBER, WHOLE, CATEGORY, FLAG),
    "missing": (NUMBER, WHOLE, DATE, CATEGORY, FLAG),
    "readable": (NUMBER, WHOLE, DATE, CATEGORY, FLAG),
}


@dataclass(frozen=True, eq=True)
class Column:
    """What is publicly known of one column: all of it is said, and nothing read off private rows.

    Attributes
    ----------
    kind : {"number", "whole", "date", "category", "flag", "text"}
        ``"text"`` is known to be there, and not asked about.
    bounds : (lower, upper)
        Of numbers, or of dates (``"2020-01-01"``). Values outside are taken for the nearest bound.
    step : float or None
        Between neighbouring values, from ``lower`` on; 1 for whole numbers.
    categories : tuple of str
        All that count; anything else in a private row counts as missing.
    mean, sd : float or None
        Known from elsewhere (a census, public records); a flag's mean is the share of yes.
    shares : dict of str to float
        Of categories, known from elsewhere.
    known_from : int or None
        From how many public records mean, sd and shares are, so that they have an error of their own; None:
        from so many that it does not matter.
    missing : bool, default=True
        Whether a private row may lack a readable value: then how many have one is asked along. False: each
        has one, and one that has none counts as the middle of the bounds.
    bins : tuple of float
        Edges of the groups that numbers may be grouped by; each bin holds its lower edge, the last one
        both. Whole numbers of at most 50 values need none.
    written : str or None
        An example of how numbers stand in text, with decimals: ``"1.234,5 €"``, ``"12,5 %"``. None: as in
        ``"1234.5"``. Of dates: ``"31.12.2024"``; None: as in ``"2024-12-31"``.
    readable : float or None
        Share of the public records with a readable value, where that is below a half: then nothing is asked
        about it. None: not known, or more.

    Raises
    ------
    InputError
        If something is missing, does not fit the kind, or contradicts the rest.

    Examples
    --------
    >>> age = Column("whole", bounds=(17, 90), bins=(17, 40, 65, 90))
    >>> age.width, age.keys
    (73.0, ('[17, 40)', '[40, 65)', '[65, 90]'))
    """

    kind: str = setting(None, "What the column holds.", kind="text", choices=KINDS)
    bounds: Sequence[Any] | None = setting(
        None,
        "Lowest and highest value, or date; others are clipped.",
        kind="list",
        items=("number", "text"),
    )
    step: float | None = setting(
        None, "Between neighbouring values.", kind="number", above=0, below=math.inf
    )
    categories: Sequence[str] = setting([], "All categories that count.", items=("text",))
    mean: float | None = setting(
        None, "Known from elsewhere.", kind="number", above=-math.inf, below=math.inf
    )
    sd: float | None = setting(
        None, "Standard deviation, known from elsewhere.", kind="number", above=0, below=math.inf
    )
    shares: Mapping[str, float] = setting(
        {}, "Shares of categories, known from elsewhere.", items=("number",), least=0, most=1
    )
    known_from: int | None = setting(
        None, "From how many public records mean, sd and shares are.", kind="whole number", least=1
    )
    missing: bool = setting(True, "Whether a private row may lack a readable value.")
    bins: Sequence[float] = setting([], "Edges of groups.", items=("number",))
    written: str | None = setting(
        None, "An example of how numbers or dates are written.", kind="text"
    )
    readable: float | None = setting(
        None, "Share of the public records with a readable value.", kind="number", least=0, most=1
    )

    def __post_init__(self) -> None:
        if isinstance(self.bounds, list | tuple):  # TOML has dates of its own
            said = [one.isoformat() if type(one) is date else one for one in self.bounds]
            object.__setattr__(self, "bounds", said)
        check_fields(self)
        if self.kind is None:
            raise InputError(f"kind is missing: give one of {', '.join(KINDS)}")
        check_truth("missing", self.missing)
        self._refuse_what_does_not_fit()
        if self.kind == DATE:
            self._check_dates()
        elif self.kind in (NUMBER, WHOLE):
            self._check_numbers()
        elif self.kind == CATEGORY:
            self._check_categories()
        elif self.mean is not None:
            check_number("mean", self.mean, least=0, most=1)

    def __hash__(self) -> int:
        return hash((self.kind, self.bounds, self.categories, self.bins))

    def __repr__(self) -> str:
        said = (f"{name}={value!r}" for name, value in self.said().items())
        return f"Column({', '.join(said)})"

    @property
    def is_number(self) -> bool:
        """Whether it has a mean; a flag is 0 or 1, a date the days since 1970."""
        return self.kind in (NUMBER, WHOLE, DATE, FLAG)

    @property
    def is_whole(self) -> bool:
        """Whether its values are whole numbers: of days, for dates."""
        return self.kind in (WHOLE, DATE)

    @property
    def lower(self) -> float:
        """Lowest value."""
        return self._bound(0) if self.bounds else 0.0

    @property
    def upper(self) -> float:
        """Highest value."""
        return self._bound(1) if self.bounds else 1.0

    def _bound(self, end: int) -> float:
        assert self.bounds is not None
        return day_number(self.bounds[end]) if self.kind == DATE else float(self.bounds[end])

    def write(self, number: float) -> str:
        """Write a value of this column: a date as a date."""
        return day_of(number) if self.kind == DATE else plain(number)

    @property
    def width(self) -> float:
        """Between the bounds."""
        return self.upper - self.lower

    @property
    def grid(self) -> float:
        """Between neighbouring values; 0 where none is known."""
        return float(self.step or (0 if self.kind == NUMBER else 1))

    @property
    def n_steps(self) -> int:
        """How many values its grid has between the bounds; 0 where it has none."""
        return math.floor(self.width / self.grid * (1 + 1e-12)) + 1 if self.grid else 0

    @cached_property
    def number_format(self) -> NumberFormat | None:
        """How numbers stand in text; None: as everywhere."""
        if self.written is None or self.kind == DATE:
            return None
        return NumberFormat.of(self.written)

    @cached_property
    def date_format(self) -> DateFormat:
        """How dates stand in text."""
        return DateFormat() if self.written is None else DateFormat.of(self.written)

    @property
    def has_keys(self) -> bool:
        """Whether rows can be grouped by it: categories, a flag, bins, or whole numbers with few values."""
        return self.kind in (CATEGORY, FLAG) or bool(self.bins) or self._has_few_values

    @cached_property
    def edges(self) -> tuple[float, ...]:
        """Edges of the bins of numbers: as given, or ten equal ones, or one for each whole value."""
        if self.bins:
            return tuple(float(edge) for edge in self.bins)
        if self._has_few_values:
            n_values = int(self.width // self.grid) + 1
            return tuple(self.lower + place * self.grid for place in range(n_values + 1))
        equal = np.linspace(self.lower, self.upper, _BINS + 1).tolist()
        digits = 0 if self.kind == WHOLE else 3 - math.floor(math.log10(self.width))
        return (self.lower, *(round(edge, digits) + 0.0 for edge in equal[1:-1]), self.upper)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Names of the groups of this column."""
        if self.kind == CATEGORY:
            return tuple(self.categories)
        if self.kind == FLAG:
            return FLAG_KEYS
        if self.kind in (TEXT, DATE):
            return ()
        edges = self.edges
        if not self.bins and self._has_few_values and self.grid == 1:
            return tuple(plain(edge) for edge in edges[:-1])
        pairs = list(pairwise(edges))
        inner = [f"[{plain(low)}, {plain(high)})" for low, high in pairs[:-1]]
        return (*inner, f"[{plain(pairs[-1][0])}, {plain(pairs[-1][1])}]")

    @cached_property
    def of_whole_numbers(self) -> bool:
        """Whether all categories are whole numbers in their usual spelling."""
        return self.kind == CATEGORY and all(map(is_whole_number, self.categories))

    @property
    def of_truths(self) -> bool:
        """Whether all categories are truth values as tables spell them."""
        return self.kind == CATEGORY and {"True", "False"}.issuperset(self.categories)

    @property
    def _has_few_values(self) -> bool:
        return self.kind == WHOLE and self.width // self.grid < _SINGLE_VALUES

    def codes(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Tell the place among :attr:`keys` of each value.

        ``values`` (n,): an array of this column, from :meth:`Schema.arrays`.
        Returns (n,): -1 where it is missing or no category.
        """
        if self.kind in (CATEGORY, FLAG):
            return np.asarray(values, dtype=np.int64)
        places = np.searchsorted(np.asarray(self.edges), values, side="right") - 1
        places = np.clip(places, 0, len(self.keys) - 1)
        return np.where(np.isnan(values), -1, places).astype(np.int64)

    def numbers(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Take the values of this column as numbers between the bounds; NaN where one is missing.

        ``values`` (n,): an array of this column, from :meth:`Schema.arrays`.
        """
        if self.kind != FLAG:
            return np.asarray(values, dtype=np.float64)
        return np.where(values < 0, np.nan, values).astype(np.float64)

    def place_of(self, value: Any) -> int:
        """Find a category, or yes or no, among the keys; -1 if it is none of them."""
        if self.kind == FLAG:
            return int(flag_words().get(flag_word(str(value)), -1))
        name = as_names([value])[0]
        return self.keys.index(name) if name in self.keys else -1

    def said(self) -> dict[str, Any]:
        """Collect what was said, without what goes without saying."""
        values = {name: getattr(self, name) for name in settings_of(self)}
        plain_values = {
            name: dict(value)
            if isinstance(value, Mapping)
            else list(value)
            if isinstance(value, tuple)
            else value
            for name, value in values.items()
        }
        return {
            name: value
            for name, value in plain_values.items()
            if value is not None
            and (name, value) != ("missing", True)
            and not (isinstance(value, list | dict) and not value)
        }

    def _refuse_what_does_not_fit(self) -> None:
        for name in self.said():
            kinds = _FITS.get(name, KINDS)
            if self.kind not in kinds:
                raise InputError(
                    f"{name} is for columns of kind {' or '.join(kinds)}, but this one is of kind "
                    f"{self.kind}: remove it, or change kind"
                )

    def _check_dates(self) -> None:
        given = list(self.bounds or ())
        days = [day_number(one) for one in given]
        if len(days) != 2 or not days[0] < days[1]:
            got = f"got {shown(given)}" if given else "got none"
            raise InputError(
                f"bounds must be the first and the last date, such as ['2020-01-01', '2024-12-31'], {got}"
            )
        object.__setattr__(self, "bounds", tuple(given))
        _ = self.date_format  # checked when it is said

    def _check_numbers(self) -> None:
        if self.bounds is None or len(self.bounds) != 2:
            given = "got none" if self.bounds is None else f"got {shown(list(self.bounds))}"
            raise InputError(f"bounds must be the lowest and the highest value, {given}")
        _ = self.number_format  # checked when it is said
        if any(isinstance(one, str) for one in self.bounds):
            raise InputError(f"bounds must be numbers, got {shown(list(self.bounds))}")
        whole = self.kind == WHOLE
        numbers = {"bounds": self.bounds, "bins": self.bins, "step": [self.step or 1]}
        for name, given_numbers in numbers.items():
            for number in given_numbers:
                check_number(name, number, least=-_LARGEST, most=_LARGEST)
                if whole and (number != round(number) or abs(number) > _MOST_EXACT):
                    raise InputError(
                        f"{name} of a column of kind whole must be a whole number below 2^53, got "
                        f"{shown(number)}: round it, or set kind = 'number'"
                    )
        object.__setattr__(self, "bounds", tuple(self.bounds))
        object.__setattr__(self, "bins", tuple(self.bins))
        if not self.lower < self.upper or math.isinf(self.width):
            raise InputError(
                f"bounds must be the lower one, then the upper one, got {shown(list(self.bounds))}"
            )
        if self.step is not None and self.step > self.width:
            raise InputError(f"step must be at most {plain(self.width)}, got {plain(self.step)}")
        if self.mean is not None:
            check_number("mean", self.mean, least=self.lower, most=self.upper)
        if self.sd is not None:
            check_number("sd", self.sd, above=0, most=self.width / 2)
        if self.bins:
            self._check_bins()

    def _check_bins(self) -> None:
        edges = self.edges
        rising = all(low < high for low, high in pairwise(edges))
        if not 2 <= len(edges) <= MOST_KEYS + 1 or not rising:
            raise InputError(
                f"bins must be 2 to {MOST_KEYS + 1:,} increasing edges, got {shown(list(self.bins))}"
            )
        if edges[0] > self.lower or edges[-1] < self.upper:
            raise InputError(
                f"bins must cover the bounds, {plain(self.lower)} to {plain(self.upper)}, got "
                f"{shown(list(self.bins))}"
            )

    def _check_categories(self) -> None:
        names = [str(name) for name in self.categories]
        if not 1 <= len(names) <= MOST_KEYS:
            raise InputError(
                f"categories must be a list of 1 to {MOST_KEYS:,} names, got {len(names):,}"
            )
        if len(set(names)) < len(names):
            twice = next(name for place, name in enumerate(names) if name in names[:place])
            raise InputError(f"categories must be different, got {shown(twice)} twice")
        object.__setattr__(self, "categories", tuple(names))
        for name in self.shares:
            if name not in names:
                raise InputError(
                    f"shares mentions {shown(name)}, which is not a category: {nearest(str(name), names)}"
                )
        if sum(self.shares.values()) > 1 + 1e-6:
            raise InputError(
                f"shares must add up to at most 1, got {plain(sum(self.shares.values()))}"
            )


def flag_words() -> dict[str, int]:
    """List the words for yes and no, as they stand in tables, in lower case."""
    yes = ("true", "yes", "y", "t", "1", "1.0", "ja", "oui", "sí", "si", "tak")
    no = ("false", "no", "n", "f", "0", "0.0", "-0", "-0.0", "nein", "non", "nie")
    return {**dict.fromkeys(no, 0), **dict.fromkeys(yes, 1)}


FLAG_LETTERS = ("ABCDEFGHIJKLMNOPQRSTUVWXYZÍ", "abcdefghijklmnopqrstuvwxyzí", " \t\n\r\f\v\u00a0")
"""Capital letters, small ones in their place, and blanks, which are taken out: as any database can do."""


FLAG_NUMBERS = ("^-?0+([.]0*)?$", "^0*1([.]0*)?$")
"""How no and yes are written as numbers, without blanks: as any database tells them."""


def flag_word(text: str) -> str:
    """Spell yes or no as :func:`flag_words` does.

    Examples
    --------
    >>> flag_word(" JA"), flag_word("Sí "), flag_word("01"), flag_word("0.00")
    ('ja', 'sí', '1', '0')
    """
    word = text.translate(_FLAG_TABLE)
    if word[:1] in "-01":
        for code, pattern in enumerate(FLAG_NUMBERS):
            if re.search(pattern, word):
                return str(code)
    return word


_FLAG_TABLE = str.maketrans(*FLAG_LETTERS)


def plain(number: float) -> str:
    """Write a number as short as it can be written without loss.

    Examples
    --------
    >>> plain(40.0), plain(0.1), plain(1e300)
    ('40', '0.1', '1e+300')
    """
    value = float(number)
    return str(int(value)) if value == value // 1 and abs(value) < 1e15 else repr(value)


def column_from(name: str, given: Any) -> Column:
    """Make a column of what a file or a caller says; messages begin with its name.

    ``given``: a Column, or a mapping.
    """
    where = f"columns.{name}"
    if isinstance(given, Column):
        return given
    if not isinstance(given, Mapping):
        raise InputError(f"{where} must be a section with keys, got {shown(given)}")
    allowed = settings_of(Column)
    for key in given:
        if key not in allowed:
            raise InputError(f"unknown key {where}.{key}: {nearest(str(key), list(allowed))}")
    try:
        return Column(**given)
    except InputError as error:
        raise InputError(f"{where}.{error}") from None
