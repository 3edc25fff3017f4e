"""Checks of records that all features share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.data.tables import float_type
from collegium.errors import InputError


def dense_table(X: Any, what: str, n_features: int | None = None) -> NDArray[Any]:
    """Take records as a table of finite numbers.

    ``X`` (n_records, n_features): records; may be private.
    ``n_features``: how many the public records had; None: these are the public ones.
    Returns (n_records, n_features): float64 where it was given, and for whole numbers of more than
        16 bits.
    """
    if hasattr(X, "tocsr"):
        raise InputError(
            f"the {what} are sparse; allowed are dense tables: convert with X.toarray()"
        )
    table = np.asarray(X)
    if table.dtype.kind not in "buif":
        raise InputError(
            f"the {what} are an array of type {table.dtype}; allowed are numbers: give text as a column of a "
            "DataFrame (of pandas, Polars or Arrow), and nothing has to be encoded"
        )
    if table.ndim != 2 or 0 in table.shape:
        raise InputError(
            f"the {what} have shape {table.shape}; allowed are tables (records, features) of at least one "
            "row and one column"
        )
    finite_numbers(table, what)
    if n_features not in (None, table.shape[1]):
        raise InputError(
            f"{what} with {table.shape[1]} features were given; allowed are {n_features}, as in the public "
            "records"
        )
    return table.astype(float_type(table.dtype), copy=False)


def finite_numbers(values: NDArray[Any], what: str) -> None:
    """Check that no value is missing or infinite, without quoting any.

    ``values``: records; may be private.
    ``what``: what the message calls them.
    """
    if values.dtype.kind == "f" and values.size:
        # One pass, and no array of answers: extremes are NaN or infinite if any value is.
        low, high = float(values.min()), float(values.max())
        largest = float(np.finfo(np.float32).max)
        if not (-largest <= low and high <= largest):
            raise InputError(
                f"the {what} hold values that are missing, infinite or too large for 32 bits; allowed are "
                "finite numbers; replace them"
            )
