"""What a label costs that is the arg max of Gaussian counts: less than the noisy counts themselves.

An owner moves weight Δ from some classes to others. The noisy counts tell α·h²/2 at order α, with
h = √2·Δ/σ. Which of them is the largest tells about 0.64 of that as h falls: 2/π where two classes are tied,
and at most 0.5 % more with many others just below them. Proof and numbers: ``docs/vote-accounts.md``.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.accounting.renyi import validate_orders

Floats = NDArray[np.float64]

#: Bounds of m(λ) = sup (E e^{λs} − 1)/λ² at λ = 0, 1/8 … 2, over all scores s that an arg max can have. The
#: supremum, found to six digits, and 0.2 %; ``python benchmarks/labels.py`` proves each of them.
MOMENTS: Final = (
    0.32063, 0.32152, 0.32421, 0.32876, 0.3353, 0.34399, 0.35506, 0.36882, 0.38568,
    0.40616, 0.43094, 0.46089, 0.49716, 0.54127, 0.5952, 0.66164, 0.7442,
)  # fmt: skip
STEP: Final = 0.125
#: Rounding to the grid and ties cost no more than so many grid steps on top of Δ, where Δ has 128 at least.
GRID_STEPS: Final = 32.0
#: A label is charged this share of the noisy counts at least. Its bound is not below, at any h and λ.
LEAST_SHARE: Final = 0.64
_UP = 1 + 2.0**-44


def gaussian_arg_max_rdp(
    moves: ArrayLike, scale: float, orders: ArrayLike, resolution: float = 0.0
) -> Floats:
    """Bound the Rényi cost of a label, the arg max_j of n_j + N(0, scale²), whatever the counts n are.

    Where the bound does not apply, or is not smaller, it is that of the noisy counts, 2·(moves/scale)²·α/2.

    Parameters
    ----------
    moves : array-like of float, shape (...)
        Weight of an owner's teachers: the votes that may move from one class to another.
    scale : float
        Standard deviation of the noise, in the same unit.
    orders : array-like of float, shape (n_orders,)
    resolution : float, default=0.0
        Grid step to which noisy counts are rounded before they are compared; ties in any way.

    Returns
    -------
    ndarray of float64, shape (..., n_orders)

    Examples
    --------
    >>> from collegium.accounting.renyi import gaussian_rdp
    >>> counts = gaussian_rdp(2**0.5, 40.0, [4.0, 16.0, 64.0])
    >>> (gaussian_arg_max_rdp(1.0, 40.0, [4.0, 16.0, 64.0]) / counts).round(3)
    array([0.651, 0.654, 1.   ])
    """
    alpha = validate_orders(orders)
    delta = np.asarray(moves, dtype=np.float64)[..., None]
    of_counts = alpha * (delta / scale) ** 2
    h = np.sqrt(2) * (delta + GRID_STEPS * resolution) / scale
    tilt = np.sqrt(alpha * (alpha - 1) + 0.5) * h
    knots = STEP * np.arange(len(MOMENTS))
    applies = (alpha >= 2) & (h <= 0.5) & (tilt <= knots[-1]) & (delta >= 128 * resolution)
    moment = np.interp(tilt, knots, MOMENTS) + h * (0.11 + 0.1 / alpha)
    with np.errstate(over="ignore"):
        excess = alpha * (alpha - 1) * h * h * np.exp(tilt * h / 8) * moment
        of_label = np.log1p(excess) / (alpha - 1) * _UP
    of_label = np.clip(of_label, LEAST_SHARE * of_counts, of_counts)
    return np.where(applies, of_label, of_counts)


def mu_within_rdp(limit: ArrayLike, order: ArrayLike) -> Floats:
    """Bound the μ of Gaussian noise whose labels were charged within a Rényi limit, and checks in full.

    Each of them cost at least LEAST_SHARE·μ²·α/2 at order α, so Σμ² ≤ 2·limit/(α·LEAST_SHARE), whatever was
    asked in the light of what: all noisy counts together are μ-GDP (Smith & Thakurta 2022).

    Parameters
    ----------
    limit : array-like of float
        Of the Rényi cost that was charged.
    order : array-like of float
        At which it was.

    Examples
    --------
    >>> from collegium.accounting.renyi import affordable_rdp
    >>> limit = affordable_rdp(1.0, [16.0], 1e-5)
    >>> float(mu_within_rdp(limit, 16.0)[0].round(3)), round(57**0.5 * 2**0.5 / 40, 3)
    (0.307, 0.267)
    """
    squared = 2 * np.asarray(limit) / (np.asarray(order) * LEAST_SHARE)
    return np.asarray(np.sqrt(squared) * (1 + 1e-9))
