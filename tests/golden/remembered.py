"""Scikit-learn's arithmetic on the same arrays, done once: most cases of the record share their teachers.

What the package hands to a model is compared cell by cell, so that whatever decides on it is still seen.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.naive_bayes import GaussianNB

_FITTED: dict[Any, dict[str, Any]] = {}
_SAID: dict[Any, Any] = {}


@contextmanager
def remembered() -> Iterator[None]:
    """Fit and ask each :class:`GaussianNB` once for the same parameters and arrays."""
    with (
        mock.patch.object(GaussianNB, "fit", _fits_once(GaussianNB.fit)),
        mock.patch.object(GaussianNB, "predict", _says_once(GaussianNB.predict)),
    ):
        yield


def _fits_once(fit: Callable[..., GaussianNB]) -> Callable[..., GaussianNB]:
    @functools.wraps(fit)
    def once(self: GaussianNB, X: Any, y: Any, sample_weight: Any = None) -> GaussianNB:
        given = (_cells(X), _cells(y), sample_weight)
        if sample_weight is not None or None in given[:2] or type(self) is not GaussianNB:
            return fit(self, X, y, sample_weight)
        key = (*given, repr(sorted(vars(self).items())))
        if key not in _FITTED:
            _FITTED[key] = copy.deepcopy(vars(fit(self, X, y)))
        vars(self).update(copy.deepcopy(_FITTED[key]))
        return self

    return once


def _says_once(predict: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(predict)
    def once(self: GaussianNB, X: Any) -> Any:
        asked = _cells(X)
        if asked is None or type(self) is not GaussianNB:
            return predict(self, X)
        learnt = tuple(
            (name, _cells(value) if isinstance(value, np.ndarray) else repr(value))
            for name, value in sorted(vars(self).items())
        )
        if (asked, learnt) not in _SAID:
            _SAID[asked, learnt] = predict(self, X)
        return _SAID[asked, learnt].copy()

    return once


def _cells(values: Any) -> Any:
    """Everything of an array or of a table of numbers; None if it is something else."""
    names = ()
    if isinstance(values, pd.DataFrame):
        names = (*values.columns, *map(str, values.dtypes))
        values = values.to_numpy()
    if not isinstance(values, np.ndarray):
        return None
    if values.dtype == object:
        return (names, values.shape, repr(values.tolist()))
    return (names, values.dtype.str, values.shape, values.tobytes())
