"""What records are, as public ones show it: images, a table, or rows of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

IMAGES, TABLE, ROWS = "images", "table", "rows"
_ALIKE = 0.25
"""By how much more a pixel agrees with the one below than with those far off in its line."""
_LEAST_SIDE, _LEAST_RECORDS, _SEEN = 6, 30, 500


def kind_of_records(X_public: Any) -> str:
    """Tell "images", a "table" with named columns, and "rows" of numbers apart.

    Images are arrays of more than two dimensions, or flattened squares in which neighbours agree.

    Examples
    --------
    >>> kind_of_records(np.zeros((5, 28, 28))), kind_of_records(np.zeros((5, 3)))
    ('images', 'rows')
    """
    if isinstance(X_public, pd.DataFrame):
        return TABLE
    if len(X_public.shape) > 2 or _are_flat_images(X_public):
        return IMAGES
    return ROWS


def has_more_than_numbers(X_public: Any) -> bool:
    """Tell whether a table has columns that are no numbers, or lacks some values.

    Examples
    --------
    >>> has_more_than_numbers(pd.DataFrame({"age": [3, 4]}))
    False
    >>> has_more_than_numbers(pd.DataFrame({"age": [3, None]}))
    True
    """
    return isinstance(X_public, pd.DataFrame) and not all(
        is_numeric_dtype(X_public[name].dtype) and X_public[name].notna().all()
        for name in X_public.columns
    )


def _are_flat_images(X: Any) -> bool:
    """Tell whether rows of numbers are flattened square images: whether neighbours agree, in public ones."""
    if hasattr(X, "tocsr") or X.dtype.kind not in "biuf":
        return False
    side = round(X.shape[1] ** 0.5)
    if side < _LEAST_SIDE or side * side != X.shape[1] or X.shape[0] < _LEAST_RECORDS:
        return False
    pixels = np.asarray(X[:_SEEN], dtype=np.float64)
    if not np.isfinite(pixels).all():
        return False
    centred = pixels - pixels.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    alive = length > 1e-9 * length.max(initial=0.0)
    unit = np.divide(centred, length, out=np.zeros_like(centred), where=alive)
    lines, there = unit.reshape(len(unit), side, side), alive.reshape(side, side)
    # A series of measurements, too, agrees with itself nearby; but across a line's end, an image does not.
    both = there[:-1] & there[1:]
    beside = np.abs(np.einsum("nij,nij->ij", lines[:, :-1], lines[:, 1:]))[both]
    far = np.abs(np.subtract.outer(np.arange(side), np.arange(side))) > side // 2
    apart = np.concatenate(  # line by line: large images have billions of pairs
        [
            np.abs(line.T @ line)[far & np.outer(alive_there, alive_there)]
            for line, alive_there in zip(lines.transpose(1, 0, 2), there, strict=True)
        ]
    )
    return bool(beside.size and apart.size and beside.mean() > apart.mean() + _ALIKE)
