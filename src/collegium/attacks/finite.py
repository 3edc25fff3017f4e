"""What every attack asks of its scores: that they are numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.checks import as_numbers, shown
from collegium.errors import InputError


def finite_numbers(name: str, values: Any) -> NDArray[np.float64]:
    """Refuse scores that are no finite numbers; they are ranked, and averaged.

    ``name``: what they are, in the plural.

    Examples
    --------
    >>> finite_numbers("scores", [0.5, float("inf")])
    Traceback (most recent call last):
    collegium.errors.InputError: scores must be finite, got 0 NaN and 1 infinite of 2: clip them
    """
    numbers = as_numbers(values)
    if numbers is None:
        raise InputError(f"{name} must be numbers, got {shown(values)}: give one for each person")
    n_nan, n_infinite = int(np.isnan(numbers).sum()), int(np.isinf(numbers).sum())
    if n_nan or n_infinite:
        raise InputError(
            f"{name} must be finite, got {n_nan:,} NaN and {n_infinite:,} infinite of {numbers.size:,}: clip "
            "them"
        )
    return numbers
