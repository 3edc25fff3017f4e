"""Embeddings that users bring: checked, and brought to one scale by public knowledge."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from collegium.errors import InputError
from collegium.models.features import Embeddings

PUBLIC = np.random.default_rng(0).normal(size=(40, 6)) * 3 + 1
PRIVATE = np.random.default_rng(1).normal(size=(25, 6))


@given(arrays(np.float32, (5, 4), elements=st.floats(-1e3, 1e3, width=32)))
def test_lengths_become_one_and_zero_stays(table):
    made = Embeddings().fit(table).transform(table)
    lengths = np.linalg.norm(made.astype(float), axis=1)
    zero = (table == 0).all(axis=1)
    np.testing.assert_allclose(lengths[~zero], 1, rtol=1e-5)
    assert (made[zero] == 0).all()


def test_public_scales():
    made = Embeddings(normalise="public").fit(PUBLIC).transform(PRIVATE)
    scaler = StandardScaler().fit(PUBLIC)
    np.testing.assert_allclose(made, scaler.transform(PRIVATE), rtol=1e-4, atol=1e-5)


def test_a_dimension_in_which_public_embeddings_agree_is_not_blown_up():
    table = PUBLIC.copy()
    table[:, 2] = 4
    made = Embeddings(normalise="public").fit(table).transform(PRIVATE)
    assert np.abs(made).max() < 100


@pytest.mark.parametrize("normalise", ["none", "length", "public"])
def test_each_record_by_itself(normalise):
    embeddings = Embeddings(normalise=normalise).fit(PUBLIC)
    together = embeddings.transform(np.vstack([PRIVATE, 100 * PUBLIC]))
    np.testing.assert_array_equal(together[:25], embeddings.transform(PRIVATE))
    assert together.dtype == np.float32


def test_models_are_used_as_they_are_in_batches():
    seen = []

    def model(batch):
        seen.append(len(batch))
        return np.stack([batch.sum(axis=(1, 2)), batch[:, 0, 0]], axis=1)

    images = np.random.default_rng(0).random((10, 3, 3))
    made = Embeddings(model, normalise="none", batch_size=4).fit(images).transform(images)
    assert seen == [4, 4, 2] * 2
    np.testing.assert_allclose(made[:, 0], images.sum(axis=(1, 2)), rtol=1e-6)
    fitted = FunctionTransformer(lambda X: X[:, :2])
    assert Embeddings(fitted).fit(PUBLIC).transform(PRIVATE).shape == (25, 2)
    frame = pd.DataFrame({"text": ["tree", "sea", "bee"]})
    counted = Embeddings(lambda f: np.array([[len(t), 1] for t in f["text"]]), batch_size=2)
    assert counted.fit(frame).transform(frame).shape == (3, 2)


@pytest.mark.parametrize(
    ("options", "X", "words"),
    [
        ({"normalise": "max"}, PUBLIC, "must be one of none, length, public"),
        ({}, np.full((2, 2), np.nan), "missing, infinite"),
        ({}, np.zeros((2, 3, 4)), "shape (2, 3, 4)"),
        ({}, np.array([["a"]]), "numbers"),
        ({}, scipy.sparse.eye(3), "sparse"),
        ({"model": 3}, PUBLIC, "neither callable nor has transform"),
        ({"model": lambda batch: batch[:1]}, PUBLIC, "shape (1, 6) of 40 records"),
        ({"model": lambda batch: batch[:, 0]}, PUBLIC, "flatten or pool"),
        ({"model": lambda batch: batch / np.inf * np.inf}, PUBLIC, "missing, infinite"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_bad_input(options, X, words):
    with pytest.raises(InputError) as caught:
        Embeddings(**options).fit(X)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_another_dimension_than_the_public_ones():
    with pytest.raises(InputError, match="5 dimensions were given; allowed are 6"):
        Embeddings().fit(PUBLIC).transform(PRIVATE[:, :5])
