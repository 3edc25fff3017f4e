"""Matrix products in which a row's result depends on this row alone, to the last bit.

How BLAS rounds a product depends on how many rows there are and where a row stands, also in blocks of one
size. Where people's features are computed together, nobody's presence may change those of others.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def exact_product(rows: NDArray[Any], matrix: NDArray[Any]) -> Floats:
    """Multiply rows with a matrix: without rounding, after both were rounded to some 21 bits.

    Each row is rounded to multiples of a power of two that follows from its own largest entry, and so is the
    matrix. Sums of products are then whole numbers below 2^53 times one power of two: exact in double
    precision, in whatever order they are added.

    ``rows`` (n, d): finite.
    ``matrix`` (d, m): finite.
    Returns (n, m).

    Examples
    --------
    >>> rows, matrix = np.array([[0.5, 0.1], [3.0, 4.0]]), np.array([[2.0], [1.0]])
    >>> np.round(exact_product(rows, matrix), 5).tolist()
    [[1.1], [10.0]]
    >>> bool((exact_product(rows[1:], matrix) == exact_product(rows, matrix)[1:]).all())
    True
    """
    bits = (53 - math.ceil(math.log2(rows.shape[1] + 1))) // 2
    rows, matrix = rows.astype(np.float64), matrix.astype(np.float64)
    steps = np.frexp(np.abs(rows).max(axis=1, initial=0.0))[1][:, None] - bits
    step = math.frexp(float(np.abs(matrix).max(initial=0.0)))[1] - bits
    whole = np.rint(np.ldexp(rows, -steps)) @ np.rint(np.ldexp(matrix, -step))
    return np.asarray(np.ldexp(whole, steps + step))
