"""What the numbers given to smooth sensitivity must be; messages about votes never repeat their values."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.errors import InputError

Floats = NDArray[np.float64]


def numbers(name: str, value: ArrayLike) -> Floats:
    """Return an array of floats, or raise InputError if something in it is no number."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if np.isnan(array).any():
        raise InputError(
            f"{name} must be a number or an array of numbers, without NaN: pass floats"
        )
    return array


def nonnegative(name: str, value: ArrayLike) -> Floats:
    """Return an array of floats in [0, ∞); for public numbers, which messages repeat."""
    array = numbers(name, value)
    refused = array[~((array >= 0) & np.isfinite(array))]
    if refused.size:
        raise InputError(f"{name} must be finite and at least 0, got {refused[0]:g}: correct it")
    return array


def positive(name: str, value: float) -> float:
    """Return one float in (0, ∞)."""
    array = nonnegative(name, value)
    if array.ndim or array == 0:
        raise InputError(f"{name} must be one number above 0, got {value}: correct it")
    return float(array)


def one_per_group(name: str, value: ArrayLike) -> Floats:
    """Return non-negative floats of shape (n_groups,); a single number is one group."""
    array = np.atleast_1d(nonnegative(name, value))
    if array.ndim != 1:
        raise InputError(f"{name} must have shape (n_groups,), got {array.shape}: give one a group")
    return array
