"""The columns of a table as plain arrays: which are numbers, which are categories."""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_complex_dtype, is_datetime64_any_dtype, is_numeric_dtype

from collegium.data.tables import take_rows
from collegium.errors import InputError

#: The category of a missing value; always reserved, whether or not the public records miss any.
MISSING = "<missing>"

ALIKE = (
    "all records of the public table are alike; allowed are tables in which records differ; give public "
    "records that look like the private ones"
)

_LARGEST = np.finfo(np.float64).max / 4
_EPOCH, _DAY = pd.Timestamp(0, tz="UTC"), pd.Timedelta(days=1)
_ROWS, _FEWEST_ROWS = 2048, 32  # records that are described together, at most and at least
_CELLS = 2**22  # of what they are described by


def listed(columns: Collection[str]) -> str:
    """Name columns in an error, the first few in alphabetical order.

    Returns: for example ``"'age', 'sex'"``, or ``"none"``.

    Examples
    --------
    >>> listed({"sex", "age"})
    "'age', 'sex'"
    """
    names = sorted(map(str, columns))
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(map(repr, names[:5])) + more if names else "none"


def numeric_columns(frame: pd.DataFrame) -> list[str]:
    """List the columns that are treated as numbers: numeric (not complex), boolean, or dates."""
    types = zip(frame.columns, frame.dtypes, strict=True)
    return [column for column, dtype in types if _are_numbers(dtype)]


def check_columns(frame: Any) -> None:
    """Check that something is a table whose columns have names of their own."""
    if not isinstance(frame, pd.DataFrame):
        raise InputError(
            f"a {type(frame).__name__} was given; allowed is a pandas DataFrame; "
            "convert it, or use PixelScaler for images"
        )
    if not all(isinstance(column, str) for column in frame.columns):
        raise InputError(
            "the table has columns whose names are not text; allowed are text names; "
            "convert them with frame.columns.astype(str)"
        )
    if not frame.columns.is_unique:
        raise InputError(
            f"the table has several columns named {listed(set(_repeated(frame)))}; "
            "allowed is each name once; rename or drop columns"
        )


def numbers_of(frame: pd.DataFrame, columns: list[str]) -> NDArray[np.float64]:
    """Return numeric columns as one array, missing values as NaN, dates as days since 1970 (UTC).

    ``frame`` (n_records, any): the table.
    ``columns``: the numeric columns, or columns without any value.
    Returns (n_records, n_columns): the numbers; those beyond a quarter of the largest double count
        as that quarter, so that medians and ranges do not overflow.
    """
    numbers = np.empty((len(frame), len(columns)), dtype=np.float64)
    taken = frame[columns]
    if all(isinstance(dtype, np.dtype) and dtype.kind == "f" for dtype in taken.dtypes):
        numbers[:] = taken.to_numpy()  # of many columns, much faster
    else:
        for position, column in enumerate(columns):
            values = frame[column]
            if is_datetime64_any_dtype(values.dtype):
                values = (pd.to_datetime(values, utc=True) - _EPOCH) / _DAY
            numbers[:, position] = values.to_numpy(dtype=np.float64, na_value=np.nan)
    names = [columns[place] for place in np.flatnonzero(np.isinf(numbers).any(axis=0))]
    if names:
        raise InputError(
            f"columns {listed(names)} hold infinite values; allowed are finite and missing ones; "
            "replace them"
        )
    return np.clip(numbers, -_LARGEST, _LARGEST, out=numbers)


def texts_of(frame: pd.DataFrame, columns: list[str]) -> NDArray[np.object_]:
    """Return categorical columns as one array of texts, missing values as :data:`MISSING`.

    ``frame`` (n_records, any): the table.
    ``columns``: the categorical columns.
    Returns (n_records, n_columns): the categories, as text.
    """
    texts = np.empty((len(frame), len(columns)), dtype=object)
    for position, column in enumerate(columns):
        values = frame[column]
        texts[:, position] = values.astype(object).map(str).to_numpy(dtype=object)
        texts[values.isna().to_numpy(), position] = MISSING
    return texts


def frequent_categories(texts: NDArray[np.object_], limit: int | None) -> list[str]:
    """Return the categories of a column, at most so many, and then the one for missing values.

    ``texts`` (n_records,): the column, as :func:`texts_of` returns it.
    ``limit``: how many categories are kept, not counting the missing one; ties go by the alphabet.
    Returns: the kept categories in alphabetical order, then :data:`MISSING`.

    Examples
    --------
    >>> frequent_categories(np.array(["b", "a", "b", "c"], dtype=object), 2)
    ['a', 'b', '<missing>']
    """
    counts = pd.Series(texts, dtype=object).value_counts()
    by_frequency = sorted((-int(count), category) for category, count in counts.items())
    kept = [category for _, category in by_frequency if category != MISSING][:limit]
    return [*sorted(kept), MISSING]


def in_blocks(
    make: Callable[[Any], NDArray[np.float32]], records: Any, width: int
) -> NDArray[np.float32]:
    """Describe records some at a time, each by itself, so that what is made on the way stays small.

    ``make``: describes each record by itself.
    ``records`` (n_records, any): a table, or an array.
    ``width``: numbers that a record is described by on the way.
    Returns (n_records, n_features): the same as of all at once.
    """
    rows = _rows_at_once(width)
    n = records.shape[0]
    if n <= rows:
        return make(records)
    first = make(take_rows(records, slice(0, rows)))
    made = np.empty((n, first.shape[1]), dtype=first.dtype)
    made[:rows] = first
    for start in range(rows, n, rows):
        made[start : start + rows] = make(take_rows(records, slice(start, start + rows)))
    return made


def cells_at_once(n_records: int, width: int) -> int:
    """Count the numbers that records are described by together, if so many are described in blocks."""
    return width * min(n_records, _rows_at_once(width))


def _rows_at_once(width: int) -> int:
    return min(_ROWS, max(_FEWEST_ROWS, _CELLS // max(1, width)))


def _are_numbers(dtype: Any) -> bool:
    if is_datetime64_any_dtype(dtype):
        return True
    return bool(is_numeric_dtype(dtype)) and not is_complex_dtype(dtype)


def _repeated(frame: pd.DataFrame) -> list[str]:
    return list(frame.columns[frame.columns.duplicated()])
