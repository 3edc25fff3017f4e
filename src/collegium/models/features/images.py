"""What all transformers of images ask of them: arrays of numbers, of one known shape."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.checks import check_whole
from collegium.errors import InputError


def image_array(X: ArrayLike) -> NDArray[Any]:
    """Take images as an array of numbers of at least two dimensions, whose values are not looked at."""
    if hasattr(X, "tocsr"):
        raise InputError(
            "the images are sparse; allowed are dense arrays: convert them with X.toarray()"
        )
    images = np.asarray(X)
    if images.dtype.kind not in "buif":
        raise InputError(
            f"images of type {images.dtype} were given; allowed are numbers; convert them"
        )
    if images.ndim < 2:
        raise InputError(
            f"images of shape {images.shape} were given; allowed are (images, height, width), the same "
            "with channels, or (images, pixels); stack the images along the first axis"
        )
    return images


def check_image_shape(shape: Any) -> None:
    """Refuse a parameter ``shape`` that is no shape of an image; None is allowed."""
    if shape is None:
        return
    if not isinstance(shape, (tuple, list)) or len(shape) not in (2, 3):
        raise InputError(
            f"shape={shape!r} was given; allowed are (height, width) and (height, width, channels)"
        )
    for length in shape:
        check_whole("each length of shape", length)


def image_shape(
    given: tuple[int, ...], declared: tuple[int, ...] | None = None
) -> tuple[int, int, int]:
    """Tell (height, width, channels) of one image from the shape of one record.

    ``declared``: what the user says it is; None: flattened images are squares of one channel.

    Examples
    --------
    >>> image_shape((784,)), image_shape((32, 32, 3))
    ((28, 28, 1), (32, 32, 3))
    """
    pixels = int(np.prod(given))
    if declared is not None:
        if int(np.prod(declared)) != pixels:
            raise InputError(
                f"images of {pixels} values were given, but shape={tuple(declared)} holds "
                f"{int(np.prod(declared))}: give the shape of one image"
            )
        shape = tuple(declared)
    elif len(given) in (2, 3):
        shape = given
    else:
        side = round(pixels**0.5)
        if len(given) != 1 or side * side != pixels:
            raise InputError(
                f"images of shape {given} were given, which are not flattened squares: give "
                "shape=(height, width) or (height, width, channels)"
            )
        shape = (side, side)
    height, width, depth = (*shape, 1)[:3]
    return int(height), int(width), int(depth)


def of_image_shape(X: ArrayLike, shape: tuple[int, int, int]) -> NDArray[Any]:
    """Take images of a known shape (height, width, channels), flattened or not, as (n, *shape)."""
    images = image_array(X)
    height, width, depth = shape
    if int(np.prod(images.shape[1:])) != height * width * depth:
        raise InputError(
            f"images of shape {images.shape[1:]} were given; allowed is the shape given to fit, "
            f"{height} × {width} pixels of {depth} channel(s); resize them or fit again"
        )
    return images.reshape(-1, height, width, depth)


def scale_of(shape: tuple[int, int, int], least_side: int, most_side: int) -> tuple[int, int]:
    """Tell how often each pixel is repeated, or how many are averaged, across and down.

    ``shape``: (height, width, channels).

    Examples
    --------
    >>> scale_of((8, 8, 1), 16, 64), scale_of((96, 200, 3), 16, 64)
    ((2, 1), (1, 4))
    """
    height, width, _ = shape
    times = max(1, -(-least_side // min(height, width)))
    return (times, 1) if times > 1 else (1, max(1, -(-max(height, width) // most_side)))


def resized(images: NDArray[Any], scale: tuple[int, int]) -> NDArray[np.float32]:
    """Enlarge or shrink images (n, height, width, channels), as :func:`scale_of` says."""
    times, merged = scale
    floats = images.astype(np.float32)
    if times > 1:
        return floats.repeat(times, axis=1).repeat(times, axis=2)
    for axis in (1, 2) if merged > 1 else ():
        starts = np.arange(0, floats.shape[axis], merged)
        counts = np.minimum(merged, floats.shape[axis] - starts).astype(np.float32)
        floats = np.add.reduceat(floats, starts, axis=axis)
        floats /= counts.reshape((-1, 1, 1) if axis == 1 else (-1, 1))
    return floats
