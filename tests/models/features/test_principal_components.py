"""Components and scales from public records only."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from collegium.errors import InputError
from collegium.models.features import PublicComponents

PUBLIC = np.random.default_rng(0).normal(size=(60, 8)) @ np.diag(2.0 ** -np.arange(8))
PRIVATE = np.random.default_rng(1).normal(size=(30, 8)) + 5


def test_equals_scikit_learns_components():
    ours = PublicComponents(4).fit(PUBLIC)
    theirs = PCA(4, svd_solver="full").fit(PUBLIC)
    np.testing.assert_allclose(ours.transform(PRIVATE), theirs.transform(PRIVATE), atol=1e-4)
    np.testing.assert_allclose(
        ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-5
    )


def test_many_features_are_solved_well_enough():
    generator = np.random.default_rng(0)
    public = generator.normal(size=(200, 1500)) * 1.02 ** -np.arange(1500)
    ours = PublicComponents(20).fit(public)
    best = PCA(20, svd_solver="full").fit(public).explained_variance_ratio_.sum()
    assert ours.explained_variance_ratio_.sum() > 0.98 * best
    again = PublicComponents(20).fit(public)
    np.testing.assert_array_equal(ours.components_, again.components_)


@given(whiten=st.floats(0.05, 1))
@settings(max_examples=20)
def test_whitening_flattens_and_keeps_the_mean_variance_at_one(whiten):
    plain = PublicComponents(5).fit(PUBLIC).transform(PUBLIC).std(axis=0)
    flat = PublicComponents(5, whiten=whiten).fit(PUBLIC).transform(PUBLIC).std(axis=0)
    assert np.mean(flat**2) == pytest.approx(1, rel=1e-4)
    np.testing.assert_allclose(flat / flat[0], (plain / plain[0]) ** (1 - whiten), rtol=1e-3)


def test_without_components_features_are_standardised():
    table = PUBLIC.copy()
    table[:, 3] = 7
    made = PublicComponents(whiten=1.0).fit(table).transform(table)
    np.testing.assert_allclose(made.std(axis=0)[[0, 7]], made.std(axis=0)[0], rtol=1e-4)
    assert (made[:, 3] == 0).all()


def test_each_record_by_itself_to_the_last_bit():
    public = np.random.default_rng(2).normal(size=(300, 40)).astype(np.float32)
    private = np.random.default_rng(3).normal(size=(2500, 40)).astype(np.float32)
    components = PublicComponents(9, whiten=0.5).fit(public)
    changed = private.copy()
    changed[1:] *= 100
    np.testing.assert_array_equal(
        components.transform(private)[0], components.transform(changed)[0]
    )
    np.testing.assert_array_equal(
        components.transform(private)[:700], components.transform(private[:700])
    )


def test_the_guard_learns_from_public_records_whatever_fit_is_given():
    guarded = PublicComponents(3, public=PUBLIC).fit(PRIVATE)
    np.testing.assert_array_equal(guarded.mean_, PublicComponents(3).fit(PUBLIC).mean_)
    pipeline = make_pipeline(PublicComponents(3, public=PUBLIC), PublicComponents(2))
    assert clone(pipeline).fit(PRIVATE).transform(PRIVATE).shape == (30, 2)


@pytest.mark.parametrize(
    ("options", "X", "words"),
    [
        ({"n_components": 60}, PUBLIC, "at most 8"),
        ({"n_components": 5}, PUBLIC[:3], "at most 2"),
        ({"n_components": 0}, PUBLIC, "n_components must be a whole number of at least 1, got 0"),
        (
            {"n_components": 2.5},
            PUBLIC,
            "n_components must be a whole number of at least 1, got 2.5",
        ),
        ({"whiten": 1.5}, PUBLIC, "whiten must lie between 0 and 1, got 1.5"),
        ({"whiten": np.nan}, PUBLIC, "whiten must be a number, got nan"),
        ({}, np.full((3, 2), np.nan), "missing, infinite"),
        ({}, np.array([["a", "b"]]), "type <U1"),
        ({}, np.zeros((0, 3)), "at least one row"),
        ({}, np.zeros(3), "shape (3,)"),
        ({}, scipy.sparse.eye(4), "sparse"),
    ],
)
def test_bad_input(options, X, words):
    with pytest.raises(InputError) as caught:
        PublicComponents(**options).fit(X)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_other_features_than_fitted():
    with pytest.raises(InputError, match="7 features were given; allowed are 8"):
        PublicComponents(2).fit(PUBLIC).transform(PRIVATE[:, :7])
