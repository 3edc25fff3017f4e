"""What DP-SGD with a linear model publishes: scikit-learn's own estimators, which need nothing of ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer

from collegium.checks import listed
from collegium.data.tables import take_rows
from collegium.dpsgd.linear_sums import CONSTANT, to_features
from collegium.errors import InputError

Floats = NDArray[np.float64]
# Powers of two of a row's largest entry: squares end at 2^1024, and scikit-learn's normaliser, which leaves
# rows shorter than 2^-48 as they are, takes all others from here on as they are.
_SHORT, _LONG = -40, 400
_TOGETHER = 1024


def as_rows(seen: Any, what: str) -> Floats:
    """Take records as rows of unit length, each by itself; a row that is no number is 0.

    Raises InputError if they are no table of numbers; says nothing of their values.
    """
    if isinstance(seen, pd.DataFrame):
        others = [name for name in seen if not pd.api.types.is_numeric_dtype(seen[name].dtype)]
        if others:
            raise InputError(
                f"column {listed(others)} of the {what} holds no numbers, and which categories there are is "
                "never read off private records: give X_public, public records with the same columns (and "
                "leave preprocessing as it is), or preprocessing=DeclaredTable(Schema({…})), or leave such "
                "columns out"
            )
        seen = seen.to_numpy(np.float64, na_value=np.nan)
    elif hasattr(seen, "toarray"):
        seen = seen.toarray()
    array = np.asarray(seen)
    if array.dtype.kind not in "buif" or array.ndim != 2:
        raise InputError(
            f"the {what} are of type {array.dtype} and shape {array.shape} after preprocessing: give an "
            "array of numbers (flatten images), or a DataFrame with named columns, where some are text"
        )
    with np.errstate(over="ignore"):  # of longer floats: what is beyond is no number, either
        array = array.astype(np.float64, copy=False)
    array = np.where(np.isfinite(array), array, 0.0)
    return np.asarray(Normalizer().fit_transform(_within_reach(array)))


def as_features(seen: Any, what: str) -> NDArray[np.int16]:
    """Take records as sums do (:func:`to_features` of :func:`as_rows`), some at a time: 64 bits take room."""
    made: NDArray[np.int16] | None = None
    for first in range(0, max(seen.shape[0], 1), _TOGETHER):
        some = slice(first, first + _TOGETHER)
        part = to_features(as_rows(take_rows(seen, some), what))
        if made is None:
            made = np.empty((seen.shape[0], part.shape[1]), dtype=part.dtype)
        made[some] = part
    assert made is not None, "even no records have a width"
    return made


def _within_reach(rows: Floats) -> Floats:
    """Bring rows that are too long or too short to be normalised near length 1.

    Each by itself, by a power of two; a model weighs directions alone. Exact, but for entries that are 2^1000
    times smaller than the row's largest.
    """
    largest = np.abs(rows).max(axis=1, initial=0.0)
    powers = np.frexp(largest)[1]
    far = ((powers < _SHORT) | (powers > _LONG)) & (largest > 0)
    if far.any():
        rows = rows.copy()
        rows[far] = np.ldexp(rows[far], -powers[far, None])
    return rows


def linear_model(
    parameters: Floats, classes: NDArray[Any], bounds: tuple[float, float] | None
) -> Pipeline:
    """Make a fitted model of what was learnt: of numbers between bounds, or else of classes."""
    if bounds is None:
        return linear_classifier(parameters, classes)
    return linear_regressor(parameters, *bounds)


def linear_classifier(parameters: Floats, classes: NDArray[Any]) -> Pipeline:
    """Make a fitted softmax (or logistic) regression on rows of unit length.

    ``parameters`` (n_features + 1, n_outputs): the last row belongs to the constant.
    """
    model = LogisticRegression()
    model.classes_ = np.asarray(classes)
    model.coef_ = np.ascontiguousarray(parameters[:-1].T)
    model.intercept_ = parameters[-1] * CONSTANT
    model.n_features_in_ = len(parameters) - 1
    model.n_iter_ = np.array([1], dtype=np.int32)
    rows = Normalizer().fit(np.zeros((1, len(parameters) - 1)))
    return make_pipeline(rows, model)


def is_linear_model(model: Any) -> bool:
    """Tell whether a model is made like those of :func:`linear_classifier`."""
    steps = [type(step) for _, step in getattr(model, "steps", ())]
    return steps == [Normalizer, LogisticRegression]


def linear_regressor(parameters: Floats, low: float, high: float) -> Pipeline:
    """Make a fitted linear regression on rows of unit length, whose scores of [-1, 1] mean low to high.

    ``parameters`` (n_features + 1, 1): the last row belongs to the constant.
    """
    half, middle = (high - low) / 2, (high + low) / 2
    model = LinearRegression()
    model.coef_ = np.ascontiguousarray(parameters[:-1, 0]) * half
    model.intercept_ = float(parameters[-1, 0]) * CONSTANT * half + middle
    model.n_features_in_ = len(parameters) - 1
    rows = Normalizer().fit(np.zeros((1, len(parameters) - 1)))
    return make_pipeline(rows, model)
