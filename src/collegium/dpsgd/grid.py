"""The grid of noisy sums: clipped contributions are whole numbers on it, and so is the noise.

A sum of clipped contributions is a vector of whole numbers in units of :data:`UNIT` times the clip norm.
Sums of whole numbers are exact, in whatever order, on however many machines; noise is a continuous Gaussian
rounded to the same grid (:mod:`collegium.noise.sums`), so what is released is the continuous mechanism,
rounded: its account holds to the last bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collegium.errors import InputError
from collegium.noise.exact_sampling import MAX_SCALE_STEPS
from collegium.noise.sums import Integers, Noise, NoisySum

FACTOR_BITS = 15
"""Errors and features of a linear model are multiples of 2^-15, so that their products lie on the grid."""
UNIT_BITS = 2 * FACTOR_BITS
UNIT: float = 2.0**-UNIT_BITS
"""Step of the grid, in units of the clip norm: about 1e-9 of what one owner moves."""
MAX_NOISE: float = MAX_SCALE_STEPS * UNIT
"""Largest standard deviation of the noise, in units of the clip norm: 2^14."""


def noisy(total: Integers, sigma: float, noise: NoisySum, *, step: int) -> NDArray[np.float64]:
    """Add noise to a sum on the grid: what may be released of it.

    Parameters
    ----------
    total : ndarray of int64
        **Sensitive.** Sum of clipped contributions.
    sigma : float
        Standard deviation, in units of the clip norm.
    noise : NoisySum
        Draws for this step.
    step : int
        Its number, for seeded noise.

    Returns
    -------
    ndarray of float64, of the shape of total
        In units of the clip norm.

    Raises
    ------
    InputError
        If sigma is larger than can be drawn exactly.
    """
    if not 0 < sigma <= MAX_NOISE:
        raise InputError(
            f"noise of {sigma:g} clip norms was asked for, allowed is up to {MAX_NOISE:,.0f}: budgets are "
            "too small for so many steps, take fewer"
        )
    its = Noise("gaussian", sigma / UNIT)
    units = noise.noised(total, its, query=step, purpose="gradient 0")
    return units.astype(np.float64) * UNIT
