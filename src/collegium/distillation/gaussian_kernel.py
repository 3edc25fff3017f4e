"""The Gaussian kernel that students compare public records with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.distillation.released import Floats


def squared_distances(points: NDArray[Any], others: NDArray[Any]) -> Floats:
    """Squared Euclidean distances, in double precision, shape (n_points, n_others); never negative."""
    wide = np.asarray(points, dtype=np.float64)
    squares = (wide**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)
    return np.asarray(np.maximum(squares - 2 * (wide @ others.T), 0.0))


def gaussian_kernel(points: NDArray[Any], others: NDArray[Any], width: float) -> Floats:
    """Compute exp(−d²/(2·width²)), shape (n_points, n_others).

    Examples
    --------
    >>> gaussian_kernel(np.array([[0.0], [1.0]]), np.array([[0.0]]), width=1.0).round(3).ravel().tolist()
    [1.0, 0.607]
    """
    return np.asarray(np.exp(-squared_distances(points, others) / (2 * width**2)))
