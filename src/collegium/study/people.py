"""Is there a person in the table whom nobody named? Asked on the operator's screen, and nowhere else."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from collegium.checks import listed, shown
from collegium.data.column_types import numbers_of
from collegium.errors import PrivacyWarning
from collegium.study.sections import Data

_LEAST_NAMES = 30  # fewer values are categories
_MOST_RECORDS, _LEAST_RECORDS = 20, 1.05  # of one person, on average
_LEAST_NUMBERS = 100  # fewer whole numbers are ages, hours, counts


def ask_about_people(table: pd.DataFrame, data: Data) -> None:
    """Warn of columns whose values repeat as those of a person's name do, and that are not the owner's.

    Each record of such a person would be protected by itself, and all of them together by nothing.

    ``table``: private records, as they were read.
    """
    known = {data.target, data.owner, *(data.not_people or ())}
    asked = [
        str(name)
        for name in table.columns
        if name not in known and _may_be_a_person(table[name], table.get(data.owner))
    ]
    if asked:
        values = table[asked[0]].nunique()
        more = f" (and {listed(asked[1:], 5)})" if asked[1:] else ""
        warnings.warn(
            f"{len(table):,} records, {values:,} different values of {asked[0]!r}{more}: is it a person? "
            f"Then set data.owner = {shown(asked[0])}, so that one budget covers all records of a "
            f"person; if not, data.not_people = {shown(asked[:5])}",
            PrivacyWarning,
            stacklevel=3,
        )


def _may_be_a_person(column: pd.Series, owner: pd.Series | None) -> bool:
    values = column.dropna()
    if pd.api.types.is_bool_dtype(values.dtype) or not len(values):
        return False
    numbers = pd.api.types.is_numeric_dtype(values.dtype)
    if not numbers:
        read = numbers_of(values)  # of a CSV file, whose cells are characters
        if np.isfinite(read).all():
            values, numbers = pd.Series(read), True
    different = values.nunique()
    if different < (_LEAST_NUMBERS if numbers else _LEAST_NAMES):
        return False
    if not _LEAST_RECORDS <= len(values) / different <= _MOST_RECORDS:
        return False
    if numbers and (values != np.rint(values)).any():
        return False
    if owner is None:
        return True
    pairs = pd.DataFrame({"owner": owner, "value": column}).drop_duplicates()
    return bool(
        len(pairs) > owner.nunique()
    )  # one value for each owner: the owner's budget covers it
