"""Which of both signs a direction has: the same on every processor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def oriented(directions: NDArray[Any]) -> NDArray[Any]:
    """Turn directions round that point away from a fixed one: which sign a solver finds is chance.

    By no single entry: the largest two of a column are often equal, and of different sign.

    ``directions`` (n, n_directions).

    Examples
    --------
    >>> found = np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> bool((oriented(found) == oriented(-found)).all())
    True
    """
    along = np.cos(np.arange(len(directions)) + 1.0) @ directions
    return np.asarray(directions * np.where(along < 0.0, -1.0, 1.0))
