"""Checks that every accounting function makes on what it is given.

Vote counts, log q and Rényi costs may be data-dependent, so messages about them never repeat
their values; public parameters (noise scales, budgets, orders, sensitivities) are repeated.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.checks import as_numbers
from collegium.errors import InputError

FloatArray = NDArray[np.float64]


def as_floats(name: str, value: ArrayLike) -> FloatArray:
    """Return `value` as an array of floats, or raise InputError if it is no number or has a NaN."""
    array = as_numbers(value)
    if array is None:
        raise InputError(f"{name} must be a number or an array of numbers; pass floats.")
    if np.isnan(array).any():
        raise InputError(f"{name} contains NaN; allowed are numbers only: find where it came from.")
    return array


def as_nonnegative(name: str, value: ArrayLike) -> FloatArray:
    """Return `value` as an array of floats in [0, inf)."""
    array = as_floats(name, value)
    refused = array[~((array >= 0) & np.isfinite(array))]
    if refused.size:
        raise InputError(f"{name} must be finite and at least 0, got {refused[0]:g}; correct it.")
    return array


def as_nonnegative_scalar(name: str, value: ArrayLike) -> float:
    """Return `value` as one float in [0, inf)."""
    return _only(name, as_nonnegative(name, value))


def as_positive(name: str, value: ArrayLike) -> FloatArray:
    """Return `value` as an array of floats in (0, inf)."""
    array = as_floats(name, value)
    refused = array[~((array > 0) & np.isfinite(array))]
    if refused.size:
        raise InputError(f"{name} must be finite and above 0, got {refused[0]:g}; correct it.")
    return array


def as_positive_scalar(name: str, value: float) -> float:
    """Return `value` as one float in (0, inf)."""
    return _only(name, as_positive(name, value))


def as_extended_scalar(name: str, value: float) -> float:
    """Return `value` as one float in [0, inf]: infinity is allowed."""
    scalar = _only(name, as_floats(name, value))
    if scalar < 0:
        raise InputError(f"{name} must be at least 0 (inf is allowed), got {scalar:g}; correct it.")
    return scalar


def as_delta(value: float) -> float:
    """Return `value` as one float in (0, 1)."""
    scalar = _only("delta", as_floats("delta", value))
    if not 0 < scalar < 1:
        raise InputError(
            f"delta must lie strictly between 0 and 1, got {scalar:g}; "
            "choose it below 1 / number of owners, for example 1e-5."
        )
    return scalar


def as_log_probability(name: str, value: ArrayLike) -> FloatArray:
    """Return `value` as floats in [-inf, 0] of shape (n_queries,); values are never repeated."""
    array = np.atleast_1d(as_floats(name, value))
    if array.ndim != 1:
        raise InputError(f"{name} must have shape (n_queries,), got {array.ndim} dimensions.")
    if (array > 0).any():
        raise InputError(f"{name} must be at most 0, as a log-probability; pass log q, not q.")
    return array


def as_counts(counts: ArrayLike) -> FloatArray:
    """Return vote counts as floats of shape (n_queries, n_classes); values are never repeated."""
    array = as_floats("counts", counts)
    if array.ndim != 2 or array.shape[1] < 2:
        raise InputError(
            "counts must have shape (n_queries, n_classes) with at least 2 classes, "
            f"got shape {array.shape}; reshape one query to (1, n_classes)."
        )
    if not ((array >= 0) & np.isfinite(array)).all():
        raise InputError("counts must be finite and at least 0; pass the un-noised vote counts.")
    return array


def _only(name: str, array: FloatArray) -> float:
    if array.ndim:
        raise InputError(f"{name} must be a single number, got shape {array.shape}.")
    return float(array)
