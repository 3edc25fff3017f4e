"""Records as networks take them: float32, finite, of one shape. Messages never quote a value."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.errors import InputError


def record_shape(X: Any, input_shape: Sequence[int] | None, images: bool) -> tuple[int, ...]:
    """Find the shape of one record.

    ``input_shape``: as the user gave it.
    ``images``: whether the network takes images: flat records are then square ones of one channel.
    Returns: (n_features,), or (channels, height, width) of an image.

    Examples
    --------
    >>> record_shape(np.zeros((5, 784)), None, images=True)
    (1, 28, 28)
    >>> record_shape(np.zeros((5, 784)), None, images=False)
    (784,)
    """
    own = tuple(int(size) for size in _array(X).shape[1:])
    if input_shape is not None:
        wanted = _checked_shape(input_shape)
        if math.prod(wanted) != math.prod(own):
            raise InputError(
                f"records of shape {own} were given, and input_shape={wanted}: the two must hold equally "
                "many values"
            )
        return wanted
    if len(own) == 2:
        return (1, *own)
    if len(own) == 1 and images:
        side = math.isqrt(own[0])
        if side * side != own[0]:
            raise InputError(
                f"records of {own[0]} values were given to a network for images, which are no square "
                "images of one channel: give input_shape=(channels, height, width), or use 'mlp'"
            )
        return (1, side, side)
    return own


def _checked_shape(input_shape: Any) -> tuple[int, ...]:
    try:
        sizes = [operator.index(size) for size in input_shape]
    except TypeError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise InputError(
            f"input_shape={input_shape!r} was given; allowed are sequences of whole numbers from 1, such as "
            "(channels, height, width) or (features,)"
        )
    return tuple(sizes)


def as_records(X: Any, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Turn records into float32 of a shape."""
    array = _array(X)
    try:
        numbers = np.ascontiguousarray(array, dtype=np.float32)
    except (TypeError, ValueError):
        numbers = None
    if numbers is None:  # outside of the handler: its message may quote a record
        raise InputError(
            "the records hold values that are no numbers: networks need numbers; encode the columns "
            "(preprocessing.kind = 'tabular')"
        )
    if math.prod(numbers.shape[1:]) != math.prod(shape):
        raise InputError(
            f"records of shape {numbers.shape[1:]} were given to a network for records of shape {shape}"
        )
    if not np.isfinite(numbers).all():
        raise InputError(
            "the records contain NaN or infinity: networks need finite numbers; fill gaps in the "
            "preprocessing"
        )
    return numbers.reshape(len(numbers), *shape)


def as_class_numbers(y: Any, n_classes: int, n_records: int) -> NDArray[np.int64]:
    """Check class numbers."""
    numbers = np.asarray(y)
    whole = numbers.dtype.kind in "iub"
    if not whole or numbers.shape != (n_records,):
        raise InputError(
            f"labels of shape {numbers.shape} and type {numbers.dtype} were given for {n_records} records: "
            "give one class number per record"
        )
    if n_records and not (numbers.min() >= 0 and numbers.max() < n_classes):
        raise InputError(
            f"a class number lies outside the list of classes: allowed are whole numbers from 0 to "
            f"{n_classes - 1}; give all classes"
        )
    return numbers.astype(np.int64)


def _array(X: Any) -> NDArray[Any]:
    array = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    if array.ndim < 2 or array.ndim > 4 or 0 in array.shape[1:]:
        raise InputError(
            f"records of shape {array.shape} were given; allowed are (n, features), (n, height, width) and "
            "(n, channels, height, width)"
        )
    return array
