"""Is there a person in the table whom nobody named? Asked on the operator's screen, and nowhere else."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection

import numpy as np
import pandas as pd

from collegium.checks import listed
from collegium.data.column_types import numbers_of
from collegium.errors import PrivacyWarning

_LEAST_NAMES = 30  # fewer values are categories
_MOST_RECORDS, _LEAST_RECORDS = 20, 1.05  # of one person, on average
_LEAST_NUMBERS = 100  # fewer whole numbers are ages, hours, counts
_MOST_OFTEN = 0.02  # of all records are one person's: an amount is 0 more often
_MOSTLY = 0.5  # numbers: then the others are gaps among them


def ask_about_people(
    table: pd.DataFrame,
    known: Collection[str | None],
    advice: Callable[[list[str]], str],
    stacklevel: int = 3,
) -> None:
    """Warn of columns whose values repeat as those of a person's name do, where nobody said who a person is.

    Each record of such a person would be protected by itself, and all of them together by nothing. Columns
    that are no features are asked about as well: a name that was left out for that may be the owner's.

    ``table``: private records, as they were given.
    ``known``: columns that are not asked about.
    ``advice``: what to do about such columns, and what if they are no people.
    """
    found = [name for name in table.columns if name not in known and may_be_a_person(table[name])]
    if found:
        values, asked = table[found[0]].nunique(), [str(name) for name in found]
        more = f" (and {listed(asked[1:], 5)})" if asked[1:] else ""
        warnings.warn(
            f"{len(table):,} records, {values:,} different values of {asked[0]!r}{more}: does it say whose "
            f"record it is? {advice(asked)}",
            PrivacyWarning,
            stacklevel=stacklevel,
        )


def may_be_a_person(column: pd.Series) -> bool:
    """Tell whether values repeat as those of a person's name do."""
    values = column.dropna()
    if pd.api.types.is_bool_dtype(values.dtype) or not len(values):
        return False
    numbers = pd.api.types.is_numeric_dtype(values.dtype)
    if not numbers:  # of a CSV file, whose cells are characters
        read = numbers_of(values)
        if not np.isfinite(read).all():
            read = max(read, numbers_of(values, ","), key=lambda read: int(np.isfinite(read).sum()))
        there = np.isfinite(read)
        if there.mean() > _MOSTLY:
            values, numbers = pd.Series(read[there]), True
    different = values.nunique()
    if different < (_LEAST_NUMBERS if numbers else _LEAST_NAMES):
        return False
    if not _LEAST_RECORDS <= len(values) / different <= _MOST_RECORDS:
        return False
    if numbers and (values != np.rint(values)).any():
        return False
    return bool(values.value_counts().iloc[0] <= max(_MOST_RECORDS, _MOST_OFTEN * len(values)))
