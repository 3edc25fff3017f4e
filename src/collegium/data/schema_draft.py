"""A first schema, from public records: what a person then checks."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.checks import shown
from collegium.data.column_types import DATE, TEXT, kind_of, numbers_of
from collegium.data.datasets.table_files import read_table
from collegium.data.date_format import DateFormat, date_format_of, day_of
from collegium.data.engines.places import place_of
from collegium.data.engines.sources import read_whole
from collegium.data.number_format import NumberFormat, are_numbers, format_of
from collegium.data.schema_arrays import n_rows, series_of, values_of
from collegium.data.schema_column import (
    CATEGORY,
    FLAG,
    LEAST_READABLE,
    MOST_STEPS,
    NUMBER,
    WHOLE,
    Column,
    flag_words,
    plain,
)
from collegium.data.schema_column import DATE as DAYS
from collegium.data.schema_column import TEXT as IGNORED
from collegium.errors import InputError
from collegium.names import as_names, spelt_alike

MOST_DRAFTED = 100
"""More different texts are names or remarks, and no categories."""
_DECIMALS = 4
_FEW = 20  # different whole numbers may be codes of categories


def drafted(
    records: Any,
    separator: str | None = None,
    decimal: str | None = None,
    dates: str | None = None,
) -> tuple[dict[str, Column], dict[str, str]]:
    """Describe the columns of public records.

    ``records``: a table, the path of a CSV or Parquet file, or what names a table in a database.
    ``separator``, ``decimal``: of a CSV file; default: what it shows.
    ``dates``: an example of how dates are written, where records leave it open.
    Returns ``columns``, by name.
    Returns ``notes``: what to check, by name of the column.
    """
    place = place_of(records)
    if place is not None:
        records = read_whole(place).records
    elif isinstance(records, (str, os.PathLike)):
        records = read_table(Path(records), separator=separator, as_text=True)
    if not n_rows(records):
        raise InputError(
            "the public table has no rows: give public records, or write the schema by hand"
        )
    described = {
        str(name): _drafted(series_of(records, name), decimal, dates)
        for name in _names_of(records)
        if str(name)
    }
    if not described:
        raise InputError(
            "the public table has no columns: give public records, or write the schema by hand"
        )
    return (
        {name: column for name, (column, _) in described.items()},
        {name: note for name, (_, note) in described.items()},
    )


def _names_of(records: Any) -> list[Any]:
    if isinstance(records, pd.DataFrame):
        return list(records.columns)
    names = getattr(records, "column_names", None) or getattr(records, "columns", None)
    if names is None:
        raise InputError("a table with named columns is needed: give a DataFrame")
    return [str(name) for name in names]


def _drafted(series: pd.Series, decimal: str | None, dates: str | None) -> tuple[Column, str]:
    column, note = _described(series, decimal, dates)
    read = float(_readable(series, column).mean())
    if column.kind == IGNORED or read >= LEAST_READABLE:
        return column, note
    found = replace(column, readable=_short(read))
    return found, (
        f"{note}\nreadable: so few public records have a value that nothing is asked about it; remove it if "
        "private rows have more"
    )


def _readable(series: pd.Series, column: Column) -> NDArray[np.bool_]:
    """Tell which records have a value that the schema reads."""
    if column.kind == IGNORED:
        return np.ones(len(series), dtype=bool)
    values = values_of(series, str(series.name), column)
    return np.asarray(~np.isnan(values) if values.dtype.kind == "f" else values >= 0)


def _described(series: pd.Series, decimal: str | None, dates: str | None) -> tuple[Column, str]:
    series = series[~_blank(series)]  # as an empty cell of a CSV file: no value
    given = series.notna().to_numpy()
    if not given.any():
        return Column(IGNORED), "no public record has a value here: say what it may hold"
    found = _dates(series, dates)
    if found is not None:
        return found
    names = as_names(series[given])
    words = {str(name).strip().casefold() for name in set(names)}
    if words <= set(flag_words()) and len({flag_words()[word] for word in words}) == 2:
        places = [flag_words()[str(name).strip().casefold()] for name in names]
        mean = _short(float(np.mean(places)))
        column = Column(FLAG, mean=mean, known_from=len(places))
        return column, "yes or no; mean: the share of yes"
    written = _written(series, decimal)
    numbers = written.read(series.tolist()) if written else numbers_of(series, decimal or ".")
    is_certain = written is not None and written.is_certain
    if kind_of(series.dtype) != TEXT or is_certain or are_numbers(numbers[given], names):
        finite = numbers[np.isfinite(numbers)]
        if finite.size:
            column, note = _number(finite, written)
            unread = sorted(set(names[~np.isfinite(numbers[given])]))
            if unread:
                named = ", ".join(map(shown, unread))
                note += f"\n{named}, and whatever else is no number, count as missing"
            return column, note
    return _category(names)


def _blank(series: pd.Series) -> NDArray[np.bool_]:
    """Tell which cells are text of nothing but blanks."""
    return np.array([isinstance(cell, str) and not cell.strip() for cell in series.tolist()], bool)


def _dates(series: pd.Series, dates: str | None) -> tuple[Column, str] | None:
    """Describe a column of dates; None: it holds none."""
    written = None
    if kind_of(series.dtype) == DATE:
        days = DateFormat().read(series.tolist())
    else:
        cells = [cell for cell in series.tolist() if isinstance(cell, str)]
        if not cells and not any(isinstance(cell, date) for cell in series.tolist()):
            return None
        its = date_format_of(cells, str(series.name), dates) if cells else DateFormat()
        if its is None:
            return None
        written = None if its.is_usual else str(its)
        days = its.read(series.tolist())
    days = days[np.isfinite(days)]
    first, last = day_of(days.min()), day_of(days.max())
    column = Column(DAYS, bounds=(f"{first[:4]}-01-01", f"{last[:4]}-12-31"), written=written)
    name = name_in_question(str(series.name))
    return column, (
        f"public records go from {first} to {last}; dates outside the bounds count as the nearest bound\n"
        f"to group by it, ask by year({name}), month({name}) or weekday({name}); of dates of birth, "
        f"age({name}, {last[:4]}-12-31)"
    )


def name_in_question(name: str) -> str:
    """Write a column's name as questions do, in quotes where it is not one word."""
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'


def _written(series: pd.Series, decimal: str | None) -> NumberFormat | None:
    """Find how the numbers of a column are written, where that is not as everywhere."""
    if kind_of(series.dtype) != TEXT:
        return None
    cells = [cell for cell in series.tolist() if isinstance(cell, str)]
    found = format_of(cells, str(series.name), decimal)
    if found is None or found.separates_or_names:
        return found
    has_comma = found.decimal == "," and any("," in cell for cell in cells)
    return found if has_comma else None


def _number(numbers: NDArray[np.float64], written: NumberFormat | None) -> tuple[Column, str]:
    low, high = float(numbers.min()), float(numbers.max())
    whole = bool((numbers == np.rint(numbers)).all()) and max(-low, high) < 2**53
    lower, upper = rounded_out(low, high)
    known: dict[str, Any] = {"bounds": (lower, upper)}
    if written is not None:
        known["written"] = str(written)
    own = 1.0 if whole else _step_of(numbers)
    step = None if own is None else _coarse_enough(own, upper - lower)
    if whole:
        known["bounds"] = (int(lower), int(upper))
    if step is not None and step <= upper - lower and not (whole and step == 1):
        known["step"] = int(step) if whole else step
    mean, sd = float(np.clip(_short(float(numbers.mean())), lower, upper)), float(numbers.std())
    known["mean"], known["known_from"] = mean, len(numbers)
    if sd > 0:
        known["sd"] = min(_short(sd), (upper - lower) / 2)
    note = (
        f"public records go from {_in_short(low)} to {_in_short(high)}; values outside the bounds count as "
        "the nearest bound, and narrow bounds mean less noise"
    )
    if step != own and own is not None and step is not None:
        note += (
            f"\nstep: coarser than the {plain(own)} of public records, because a quantile is one of at most "
            f"{MOST_STEPS:,} values"
        )
    if whole and np.unique(numbers).size <= _FEW:
        note += "\nif these are codes, set kind = 'category', and list them as categories"
    return Column(WHOLE if whole else NUMBER, **known), note


def _category(names: NDArray[np.object_]) -> tuple[Column, str]:
    counts = pd.Series(names, dtype=object).value_counts()
    if len(counts) > MOST_DRAFTED:
        note = f"{len(counts):,} different texts: list categories if you want to ask about them"
        return Column(IGNORED), note
    categories = sorted(counts.index)
    shares = {name: round(float(counts[name] / len(names)), _DECIMALS) for name in categories}
    if sum(shares.values()) > 1:  # rounding up everywhere
        scale = 10**_DECIMALS
        shares = {name: int(counts[name]) * scale // len(names) / scale for name in categories}
    note = "all that occur in public records; anything else in a private row counts as missing"
    if alike := spelt_alike(categories):
        note += (
            f"\n{alike} of them are others of them but for blanks around them, or upper and lower case, and "
            "count apart: if they mean the same, write them alike in the tables, or in views of them"
        )
    return Column(CATEGORY, categories=categories, shares=shares, known_from=len(names)), note


def rounded_out(low: float, high: float) -> tuple[float, float]:
    """Round bounds outwards to a tenth of the power of ten below their distance; a sign stays.

    Examples
    --------
    >>> rounded_out(17, 90), rounded_out(0.13, 0.94), rounded_out(5, 5)
    ((17.0, 90.0), (0.13, 0.94), (5.0, 6.0))
    >>> rounded_out(1234, 98_765)
    (1000.0, 99000.0)
    """
    if low == high:
        high = low + 1
    digits = 1 - math.floor(math.log10(high - low))
    scale = 10.0 ** abs(digits)
    if digits >= 0:
        return math.floor(low * scale) / scale, math.ceil(high * scale) / scale
    return float(math.floor(low / scale) * scale), float(math.ceil(high / scale) * scale)


def _in_short(number: float) -> str:
    """Write a number of public records with no more digits than help to choose bounds."""
    return plain(float(f"{number:.6g}"))


def _step_of(numbers: NDArray[np.float64]) -> float | None:
    """Find the power of ten that all numbers are multiples of."""
    for digits in range(1, _DECIMALS + 1):
        scaled = numbers * 10.0**digits
        if np.allclose(scaled, np.rint(scaled), rtol=0, atol=1e-6):
            return float(f"1e-{digits}")
    return None


def _coarse_enough(step: float, width: float) -> float:
    """Find the smallest of step and 1, 2 or 5 times a power of ten that leaves at most so many values.

    Examples
    --------
    >>> _coarse_enough(0.01, 21_000), _coarse_enough(0.01, 600), _coarse_enough(1, 2_000_000)
    (0.5, 0.01, 50.0)
    """
    exponent = math.floor(math.log10(step) + 1e-9)
    while math.floor(width / step * (1 + 1e-12)) + 1 > MOST_STEPS:
        step = next(
            larger
            for digit in (1, 2, 5, 10)
            if (larger := float(f"{digit}e{exponent}")) > step * (1 + 1e-9)
        )
        exponent = math.floor(math.log10(step) + 1e-9)
    return step


def _short(number: float) -> float:
    return float(f"{number:.4g}")
