"""Kernel components: what they are, that records do not meet in them, and what is refused."""

import numpy as np
import pytest
from sklearn.decomposition import KernelPCA
from sklearn.linear_model import LogisticRegression

from collegium.errors import InputError
from collegium.features import KernelComponents


def rings(n=400):
    """Two classes that no line divides: near two opposite directions, or near two others."""
    random = np.random.default_rng(0)
    classes = np.arange(n) % 2
    angle = (classes + 2 * random.integers(2, size=n)) * np.pi / 2 + random.normal(size=n) * 0.2
    return np.stack([np.cos(angle), np.sin(angle)], axis=1), classes


def test_a_line_in_them_is_a_curve_in_the_records():
    X, y = rings()
    flat = LogisticRegression().fit(X, y).score(X, y)
    made = KernelComponents(n_components=10, n_anchors=100).fit(X).transform(X)
    assert flat < 0.7 and LogisticRegression().fit(made, y).score(made, y) > 0.99


def test_with_all_records_as_anchors_they_are_those_of_kernel_pca():
    X, _ = rings(60)
    ours = KernelComponents(n_components=5, n_anchors=60, whiten=0.0).fit(X)
    theirs = KernelPCA(5, kernel="rbf", gamma=0.5 / ours.width_**2).fit_transform(X)
    assert np.abs(np.abs(ours.transform(X)) - np.abs(theirs)).max() < 1e-3
    whitened = KernelComponents(n_components=5, n_anchors=60, whiten=1.0).fit(X).transform(X)
    assert np.allclose(whitened.std(axis=0), 1, atol=1e-3)


def test_a_record_is_shown_in_the_same_way_whoever_else_is_there():
    X, _ = rings(1500)
    fitted = KernelComponents(n_components=8, n_anchors=50).fit(X[:200])
    whole = fitted.transform(X)
    assert (fitted.transform(X[:700]) == whole[:700]).all()
    assert (fitted.transform(np.concatenate([X[:5], -X[5:]]))[:5] == whole[:5]).all()
    assert fitted.get_feature_names_out()[-1] == "kernel7"
    assert np.isfinite(fitted.transform(np.zeros((2, 2)))).all()


def test_what_cannot_be_used_is_refused():
    X, _ = rings(50)
    with pytest.raises(InputError, match="most public records are alike"):
        KernelComponents().fit(np.ones((9, 3)))
    with pytest.raises(InputError, match="allowed are 2"):
        KernelComponents().fit(X).transform(np.ones((4, 3)))
    with pytest.raises(InputError, match="length_scale"):
        KernelComponents(length_scale=0).fit(X)


def test_fewer_components_of_what_was_fitted_are_those_of_a_fit_with_fewer() -> None:
    public = np.random.default_rng(4).normal(size=(60, 5))
    narrowed = KernelComponents(30).fit(public).narrowed(7)
    alone = KernelComponents(7).fit(public)
    assert narrowed.get_params() == alone.get_params()
    np.testing.assert_allclose(narrowed.transform(public), alone.transform(public), atol=1e-5)
