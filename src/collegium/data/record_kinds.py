"""What records are, as public ones show it: images, a table, or rows of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

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


def _are_flat_images(X: Any) -> bool:
    """Tell whether rows of numbers are flattened square images: whether neighbours agree, in public ones."""
    if hasattr(X, "tocsr") or X.dtype.kind not in "biuf":
        return False
    side = round(X.shape[1] ** 0.5)
    if side < 6 or side * side != X.shape[1] or X.shape[0] < 30:
        return False
    pixels = np.asarray(X[:500], dtype=np.float64)
    if not np.isfinite(pixels).all():
        return False
    centred = pixels - pixels.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    alive = length > 1e-9 * length.max(initial=0.0)
    unit = centred[:, alive] / length[alive]
    agreement = unit.T @ unit
    place = np.flatnonzero(alive)
    down, across = (abs(at[:, None] - at) for at in np.divmod(place, side))
    # A series of measurements, too, agrees with itself nearby; but across a line's end, an image does not.
    beside = abs(agreement[(down == 1) & (across == 0)])
    apart = abs(agreement[(down == 0) & (across > side // 2)])
    return bool(beside.size and apart.size and beside.mean() > apart.mean() + _ALIKE)
