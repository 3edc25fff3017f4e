"""Values on the grid of the noise: rounded first, noised in whole steps, and paid for as rounded."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.accounting.events import rounded_up
from collegium.checks import as_numbers, shown
from collegium.errors import InputError
from collegium.noise.grid import GRID, MAX_GRID_VALUE
from collegium.noise.sources import SecureNoise, WordSource
from collegium.noise.sums import Integers, Noise, NoisySum

Floats = NDArray[np.float64]


def to_steps(name: str, values: ArrayLike, *, exact: bool) -> Integers:
    """Return values in steps of GRID, of magnitude at most 2^33 in all: what is beyond that is clipped.

    ``exact``: whether they are multiples of GRID on every data set, which is checked.
    """
    array = as_numbers(values)
    if array is None:
        raise InputError(f"{name} must be a number, or a list of numbers: convert it first")
    if array.ndim > 1 or not array.size or np.isnan(array).any():
        raise InputError(f"{name} must be a number or a list of numbers, without NaN: correct it")
    scaled = np.clip(array, -MAX_GRID_VALUE, MAX_GRID_VALUE) / GRID
    if exact and (np.rint(scaled) != scaled).any():
        raise InputError(
            f"{name} was said to be on the grid of 2**-20 always, and is not: leave exact=True out"
        )
    return np.rint(scaled).astype(np.int64)


def per_cohort(name: str, sensitivity: ArrayLike) -> Floats:
    """Return one amount for each cohort, shape (n_cohorts,); a single number is one cohort."""
    given = as_numbers(sensitivity)
    if given is None:
        raise InputError(
            f"{name} must be a number for each cohort, got {shown(sensitivity)}: give a list of them"
        )
    amounts = np.atleast_1d(given)
    if amounts.ndim != 1 or not amounts.size or not ((amounts >= 0) & np.isfinite(amounts)).all():
        raise InputError(
            f"{name} must be finite and at least 0, one number for each cohort, got {shown(amounts.tolist())}"
        )
    return amounts


def as_rounded(sensitivity: Floats, coordinates: int, norm: int, *, exact: bool) -> Floats:
    """Return how far an owner moves a vector after it was rounded: by up to one step per coordinate more.

    ``norm``: 1 or 2.
    """
    if exact:
        return sensitivity
    more = GRID * (coordinates if norm == 1 else math.sqrt(coordinates))
    return rounded_up(np.where(sensitivity > 0, sensitivity + more, 0.0))


def source_of(noise: WordSource | None) -> WordSource:
    """Return a source of random words; default: the operating system's."""
    if noise is not None and not callable(getattr(noise, "words", None)):
        raise InputError(f"noise must be SecureNoise() or SeededNoise(seed), got {shown(noise)}")
    return SecureNoise() if noise is None else noise


def noised(
    steps: Integers, its: Noise, noise: NoisySum | None, *, query: int, purpose: str
) -> Floats:
    """Add noise; what is then rounded to a float costs nothing.

    ``noise``: default: from the operating system's randomness.
    """
    source = SecureNoise() if noise is None else noise
    if not callable(getattr(source, "noised", None)):
        raise InputError(f"noise must be SecureNoise() or SeededNoise(seed), got {shown(noise)}")
    return np.asarray(source.noised(steps, its, query=query, purpose=purpose) * GRID)
