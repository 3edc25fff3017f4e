"""The shares of the classes among the people that a student is for: public numbers, given by the user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.errors import InputError

ROUNDING = 0.01
"""Shares that people write down are rounded: their sum may be off by so much."""


def as_class_shares(
    given: Mapping[Any, float] | ArrayLike, classes: ArrayLike, name: str = "class_shares"
) -> NDArray[np.float64]:
    """Check shares of classes, and scale them to add up to exactly 1.

    They must be public knowledge (a census, an earlier publication). Counting them in the private
    records would be a release of its own, which no account covers.

    ``given`` (n_classes,): a mapping names every class, as it is or as text; an array follows the
        class list.
    ``classes`` (n_classes,): the public class list.
    Returns (n_classes,).

    Examples
    --------
    >>> as_class_shares({">50K": 0.24, "<=50K": 0.76}, ["<=50K", ">50K"]).tolist()
    [0.76, 0.24]
    """
    known = [str(value) for value in np.asarray(classes).tolist()]
    if isinstance(given, Mapping):
        by_name = {str(key): value for key, value in given.items()}
        if set(by_name) != set(known) or len(by_name) != len(given):
            raise InputError(
                f"{name} must give each class one share ({', '.join(known)}), got "
                f"{', '.join(by_name) or 'none'}"
            )
        given = [by_name[value] for value in known]
    try:
        array = np.asarray(given)
    except ValueError:  # a list within the list
        array = np.empty(0, dtype=object)
    shares = array.astype(np.float64) if array.dtype.kind in "iuf" else np.empty(0)
    if shares.shape != (len(known),):
        raise InputError(
            f"{name} must hold one number for each of {len(known)} classes, got {given!r}"
        )
    total = float(shares.sum())
    if not (np.isfinite(shares) & (shares > 0)).all() or abs(total - 1) > ROUNDING:
        raise InputError(
            f"{name} must be greater than 0 and add up to 1, got {shares.tolist()} (sum {total:g})"
        )
    return np.asarray(shares / total)
