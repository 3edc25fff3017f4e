"""What mechanisms are told about people: columns of numbers, and weights on the grid."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.checks import as_numbers
from collegium.errors import InputError
from collegium.noise.exact_choice import MAX_SCORE
from collegium.noise.grid import GRID, MAX_GRID_VALUE

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def as_column(name: str, values: ArrayLike, *, finite: bool = True) -> Floats:
    """Return numbers, shape (n,), n > 0; a message never shows one, as they may be private."""
    column = as_numbers(values)
    if column is None:
        raise InputError(f"{name} must be numbers, one for each: convert them first")
    if column.ndim != 1 or not column.size:
        raise InputError(f"{name} must be a list of numbers, got shape {column.shape}")
    if np.isnan(column).any() or (finite and np.isinf(column).any()):
        allowed = "finite numbers" if finite else "numbers"
        raise InputError(
            f"{name} must be {allowed}, and one is not: leave it out, or give a bound for it"
        )
    return column


def as_flags(name: str, values: ArrayLike) -> NDArray[np.bool_]:
    """Return true or false for everybody, shape (n,)."""
    try:
        flags = np.asarray(values)
    except ValueError:
        flags = np.zeros(0)
    if flags.dtype != np.bool_ or flags.ndim != 1:
        raise InputError(
            f"{name} must be true or false for everybody: compare first, as in age >= 40"
        )
    return flags


def in_steps(name: str, weights: ArrayLike, step: float = GRID) -> Integers:
    """Return weights (or budgets) in steps, rounded down, so that nobody weighs more than given.

    ``step``: a power of two.
    """
    column = as_column(name, weights)
    if (column < 0).any() or (column > MAX_GRID_VALUE).any():
        raise InputError(f"{name} must be at least 0 and at most 2**33, and one is not: correct it")
    if column.sum() >= MAX_SCORE * step / 2:
        raise InputError(f"{name} add up to {MAX_SCORE * step / 2:g} or more: give smaller ones")
    return np.floor(column / step).astype(np.int64)


def refuse_other_lengths(**columns: NDArray[Any]) -> None:
    """Refuse columns of different lengths."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{length} {name}" for name, length in lengths.items())
        raise InputError(f"there must be one of each for everybody, got {said}")
