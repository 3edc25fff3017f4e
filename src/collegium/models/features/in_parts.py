"""Images some at a time: what is made of them on the way takes more than fits for all images at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from collegium.models.features.image_points import ImagePoints
from collegium.models.features.scattering import ScatteringTransform

_IMAGES = 2048


def transformed(transformer: Any, X: Any) -> Any:
    """Apply a fitted transformer; one that begins with images, to some at a time.

    Only where every later step treats each record by itself to the last bit (``exact_by_record``).
    """
    together = _together(transformer)
    if together is None or not isinstance(X, np.ndarray) or len(X) <= together:
        return transformer.transform(X)
    part = transformer.transform(X[:together])
    made = np.empty((len(X), *part.shape[1:]), dtype=part.dtype)
    made[:together] = part
    for first in range(together, len(X), together):
        made[first : first + together] = transformer.transform(X[first : first + together])
    return made


def shows_as_it_learns(transformer: Any) -> bool:
    """Tell whether fitting to images makes what is to be shown of them, bit for bit, so that once will do.

    Looking at images is slow, and what comes after them learns from what was seen.
    """
    return isinstance(transformer, ImagePoints) or _begins_with_images(transformer)


def _begins_with_images(transformer: Any) -> bool:
    """Tell whether images come first, and all that follows treats each record by itself."""
    if not isinstance(transformer, Pipeline) or len(transformer.steps) < 2:
        return False
    (_, first), *others = transformer.steps
    return isinstance(first, ImagePoints | ScatteringTransform) and all(
        getattr(step, "exact_by_record", False) for _, step in others
    )


def _together(transformer: Any) -> int | None:
    """How many images at a time: whole blocks of the first step, whose arithmetic then stays the same."""
    if not _begins_with_images(transformer):
        return None
    first = transformer[0]
    if isinstance(first, ImagePoints):
        return _IMAGES
    block: int = max(1, first.batch_size // first.image_shape_[2])
    return -(-_IMAGES // block) * block
