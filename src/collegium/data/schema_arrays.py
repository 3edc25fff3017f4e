"""Rows of a private table as a public schema reads them: each cell by itself, and never an error about one.

What is no number, no category and neither yes nor no is missing. A value outside the bounds is clipped.
Whether that happened to anybody is told to nobody, since a message about it would be a release.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from numbers import Integral
from types import NoneType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.checks import nearest, shown
from collegium.data.column_types import (
    DATE,
    IN_NUMBERS,
    TEXT,
    TRUTH,
    kind_of,
    numbers_of,
    typed_cells,
)
from collegium.data.frames import as_arrow
from collegium.data.number_format import NumberFormat
from collegium.data.schema_column import CATEGORY, FLAG, WHOLE, Column, flag_word, flag_words
from collegium.data.schema_column import DATE as DAYS
from collegium.errors import InputError
from collegium.names import as_names, is_whole_number

_MOST_EXACT = 2**53


def n_rows(frame: Any) -> int:
    """Count the rows of a table, of any library that :func:`series_of` reads."""
    if isinstance(frame, pd.DataFrame):
        return len(frame)
    for name in ("num_rows", "height"):
        if hasattr(frame, name):
            return int(getattr(frame, name))
    return int(as_arrow(frame).num_rows)


def series_of(frame: Any, name: str) -> pd.Series:
    """Take one column of a table: pandas, Arrow, or whatever speaks Arrow's C interface (Polars, DuckDB).

    Raises InputError if there is no such column: names of columns are public.
    """
    if isinstance(frame, pd.DataFrame):
        if not frame.columns.is_unique:
            raise InputError("the table has two columns of the same name: rename one")
        if name not in frame.columns:
            raise _lacks(name, [str(column) for column in frame.columns])
        return frame[name]
    table = as_arrow(frame)
    if name not in table.column_names:
        raise _lacks(name, table.column_names)
    return table.column(name).to_pandas()


def take_frame_rows(frame: Any, rows: NDArray[np.intp]) -> Any:
    """Take some rows of a table, of any library that :func:`series_of` reads: pandas stays pandas."""
    if len(rows) == n_rows(frame) and bool((np.diff(rows) == 1).all()):  # all of them, in order
        return frame
    if isinstance(frame, pd.DataFrame):
        return frame.iloc[rows]
    import pyarrow as pa

    table = as_arrow(frame)
    for place, name in enumerate(
        table.column_names
    ):  # pyarrow takes no rows of Polars' text and bytes
        kind = table.schema.types[place]
        if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
            wide = pa.large_string() if pa.types.is_string_view(kind) else pa.large_binary()
            table = table.set_column(place, name, table.column(place).cast(wide))
    return table.take(pa.array(rows))


def values_of(series: pd.Series, name: str, column: Column) -> NDArray[Any]:
    """Read a private column as the schema says.

    Returns (n,): numbers within bounds with NaN where one is missing; or the places of categories, or 0 and
    1 for no and yes, with -1 where it is missing or unknown.
    """
    if column.kind == DAYS:
        return _days(series, name, column)
    if kind_of(series.dtype) == DATE:
        raise InputError(
            f"column {name!r} holds dates, but its kind in the schema is {column.kind}: set kind = 'date', "
            "or convert them to numbers or text"
        )
    if series.dtype.kind == "c":  # one complex number is enough for that: all others are as before
        series = pd.Series([_text_or_number(cell) for cell in series.tolist()], dtype=np.float64)
    if column.kind == CATEGORY:
        _refuse_typed(series, name, column)
        return _places(series, {key: place for place, key in enumerate(column.keys)}, column)
    if column.kind == FLAG:
        return _places(series, flag_words(), column)
    if column.number_format is not None and typed_cells(series):
        raise InputError(
            f"column {name!r} holds numbers, and the schema says that they are written as "
            f"{column.written!r}: read it as text (in pandas: dtype={{{name!r}: str}}), or remove written if "
            "they never stood in text"
        )
    numbers = _numbers(series, column.number_format)
    numbers[np.isinf(numbers)] = np.nan  # as everywhere: infinity is no value
    if column.kind == WHOLE:
        # Halves up, here and wherever rows lie: whole numbers of 2**52 and more have no room for a half.
        down = np.floor(numbers)
        numbers = np.where(numbers == down, numbers, np.floor(numbers + 0.5))
    return numbers.clip(column.lower, column.upper)


def _days(series: pd.Series, name: str, column: Column) -> NDArray[np.float64]:
    """Read dates as days since 1970, within the bounds."""
    its = column.date_format
    if isinstance(series.dtype, pd.CategoricalDtype):
        known = _days(pd.Series(series.cat.categories), name, column)
        return np.asarray(np.append(known, np.nan)[series.cat.codes.to_numpy()])
    if kind_of(series.dtype) == DATE:
        if not its.is_usual:
            raise InputError(
                f"a reader found the dates of column {name!r}, and the schema says that they are written as "
                f"{column.written!r}: read it as text (in pandas: dtype={{{name!r}: str}}), or remove "
                "written if they never stood in text"
            )
        naive = series.dt.tz_localize(None) if getattr(series.dtype, "tz", None) else series
        days = naive.to_numpy(dtype="datetime64[D]")
        found = np.where(np.isnat(days), np.nan, days.astype(np.int64).astype(np.float64))
    elif typed_cells(series):
        raise InputError(
            f"column {name!r} holds {typed_cells(series)}, but dates in the schema: read it as text (in "
            f"pandas: dtype={{{name!r}: str}}), or change its kind"
        )
    else:
        found = its.read(series.tolist())
    return found.clip(column.lower, column.upper)


def _numbers(series: pd.Series, written: NumberFormat | None) -> NDArray[np.float64]:
    if isinstance(series.dtype, pd.CategoricalDtype):
        numbers = _numbers(pd.Series(series.cat.categories), written)
        return np.asarray(np.append(numbers, np.nan)[series.cat.codes.to_numpy()])
    if written is not None:
        return written.read(series.tolist())
    if kind_of(series.dtype) == TEXT and not isinstance(series.dtype, pd.StringDtype):
        series = pd.Series(_readable(series), dtype=object)
    return np.array(numbers_of(series), dtype=np.float64)


def _refuse_typed(series: pd.Series, name: str, column: Column) -> None:
    """Refuse categories that a reader of tables took for numbers or truth values, unless they are such."""
    typed = typed_cells(series)
    if not typed or column.of_whole_numbers or (column.of_truths and typed != IN_NUMBERS):
        return
    text = next(one for one in column.categories if not is_whole_number(one))
    raise InputError(
        f"column {name!r} holds {typed}, and its categories are text, such as {shown(text)}: one other cell "
        f"would change how everybody's are read, so read it as text (in pandas: dtype={{{name!r}: str}})"
    )


def _places(series: pd.Series, keys: dict[str, int], column: Column) -> NDArray[np.int64]:
    """Find the cells of a column among some names.

    Where these are numbers, text is read as a number, each cell by itself: as if the column had been typed.
    """
    if series.dtype == object:  # cells of several types: each is spelt by itself
        series = pd.Series(_spelt(series), dtype=object)
    if isinstance(series.dtype, pd.CategoricalDtype):
        codes, found = series.cat.codes.to_numpy(), series.cat.categories
    else:
        codes, found = pd.factorize(series)
    names: list[str | None] = _spelt(pd.Series(found)).tolist()
    if column.kind == FLAG:  # upper and lower case, and blanks, do not matter
        names = [name if name is None else flag_word(name) for name in names]
    elif column.of_whole_numbers:
        names = _as_whole_numbers(names)
    if column.of_truths:
        names = [name if name not in TRUTH else str(bool(TRUTH[name])) for name in names]
    known = [-1 if name is None else keys.get(name, -1) for name in names]
    places = np.array([*known, -1], dtype=np.int64)
    return places[np.asarray(codes, dtype=np.int64)]


def _as_whole_numbers(names: Sequence[str | None]) -> list[str | None]:
    """Spell each name that is a whole number as one."""
    numbers = np.array(
        pd.to_numeric(pd.Series(names, dtype=object), errors="coerce"), dtype=np.float64
    )
    whole = (np.abs(numbers) < _MOST_EXACT) & (numbers == np.rint(numbers))
    pairs = zip(names, numbers.tolist(), whole.tolist(), strict=True)
    return [str(int(number)) if is_whole else name for name, number, is_whole in pairs]


def _spelt(cells: pd.Series) -> NDArray[np.object_]:
    """Spell cells as names are spelt; numbers that several whole numbers are read as have no name."""
    found = _readable(cells)
    for place, cell in enumerate(found):
        # Whole ones, too: where somebody else's cell is empty, the column holds them as such floats.
        if not isinstance(cell, (str, NoneType)) and abs(float(cell)) >= _MOST_EXACT:
            found[place] = None
    return as_names(found)


def _readable(cells: pd.Series) -> list[Any]:
    """Take text and numbers; whatever else stands in a cell is missing: no reader stumbles over it."""
    found: list[Any] = cells.astype(object).tolist()
    return [c if type(c) is str and c.isascii() else _text_or_number(c) for c in found]


def _text_or_number(cell: Any) -> Any:
    try:
        if isinstance(cell, str):
            cell.encode()
        elif isinstance(cell, Decimal):
            return float(cell)
        elif isinstance(cell, Integral):
            float(cell)
        elif isinstance(cell, (complex, np.complexfloating)):
            return None if cell.imag else cell.real
        elif not isinstance(cell, (float, np.floating, np.bool_)):
            return None
    except (ValueError, OverflowError):  # half a letter, no number at all, or too large a one
        return None
    return cell


def _lacks(name: str, columns: list[str]) -> InputError:
    return InputError(
        f"the table has no column {name!r}, which is needed here: {nearest(name, columns)}"
    )
