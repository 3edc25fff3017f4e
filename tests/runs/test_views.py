"""What a preprocessing says of private records stays inside."""

import warnings

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer

from collegium import GNMax, PATEClassifier
from collegium.errors import InputError
from collegium.runs.views import View, fitted_view

PUBLIC = np.array([[1.0, 2.0], [3.0, 4.0]])
PRIVATE = np.array([[1.0, 2.0], [271828.0, 4.0]])


def _refuse(X):
    if (X > 1000).any():
        raise ValueError(f"what is {X.max():g}?")
    return X


def _warn(X):
    warnings.warn(f"there is {X.max():g}", UserWarning, stacklevel=1)
    return X


def _everything_said(error):
    said = []
    while error is not None:
        said.append(str(error))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return " ".join(said)


def test_a_preprocessing_that_fails_on_private_records_does_not_quote_them():
    view = fitted_view(FunctionTransformer(_refuse), PUBLIC, "preprocessing")
    with pytest.raises(InputError, match="ValueError, whose message is not shown") as refusal:
        view.of_private(PRIVATE)
    assert "271828" not in _everything_said(refusal.value)
    assert view.of(PUBLIC) is PUBLIC


def test_nor_does_an_estimator_that_is_fitted():
    X = np.tile(PUBLIC, (30, 1))
    X[7, 0] = 271828.0
    model = PATEClassifier(
        n_teachers=3,
        aggregator=GNMax(sigma=1.0),
        preprocessing=FunctionTransformer(_refuse),
        noise_seed=1,
    )
    with pytest.raises(InputError, match="could not transform the private records") as refusal:
        model.fit(
            X, np.arange(60) % 2, budgets=np.full(60, 100.0), X_public=np.tile(PUBLIC, (9, 1))
        )
    assert "271828" not in _everything_said(refusal.value)


def test_nothing_is_warned_of_about_private_records():
    view = View(FunctionTransformer(_warn))
    with pytest.warns(UserWarning, match="there is 4"):
        view.of(PUBLIC)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(view.of_private(PRIVATE), PRIVATE)
