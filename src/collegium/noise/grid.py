"""The grid on which weighted vote counts and noise live, so that sums of both are exact.

Teacher weights are multiples of :data:`GRID`, a power of two; so are all weighted counts, and noise is
drawn on the same grid (see ``docs/noise.md``). In double precision such sums are exact up to 2³³
votes, so no low-order bit of a released value depends on how a sum was rounded.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.errors import InputError

GRID: float = 2.0**-20
"""Step of the grid of vote counts, weights and noise, in votes: about one millionth of a vote."""

MAX_GRID_VALUE: float = 2.0**33
"""Up to here, in votes, every multiple of GRID is a float, so sums on the grid are exact."""


def to_grid(values: ArrayLike) -> NDArray[np.float64]:
    """Nearest multiples of GRID, exactly; ties go to the even multiple.

    Put teacher weights (and public predictions that are subtracted from counts) on the grid
    *before* counting, and compute sensitivities from the rounded weights: then counts are on the
    grid by themselves, and rounding has not changed anybody's influence.

    ``values``: in votes; finite, of magnitude at most 2**33.
    Returns: multiples of GRID, within GRID / 2 of ``values``; zero is never negative.

    Examples
    --------
    >>> to_grid([0.5, 1e-9]).tolist()
    [0.5, 0.0]
    >>> float(to_grid(0.1)) / GRID
    104858.0
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "values for the noise grid must be real numbers; convert them first"
        ) from None
    if not bool(np.all(np.abs(array) <= MAX_GRID_VALUE)):
        raise InputError(
            "values for the noise grid include one that is not finite or exceeds 2**33 votes; "
            "rescale the weights"
        )
    # Both products are exact (powers of two); adding 0.0 turns -0.0 into 0.0.
    return np.asarray(np.rint(array / GRID) * GRID + 0.0)
