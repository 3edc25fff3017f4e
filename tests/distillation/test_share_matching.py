import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from collegium.distillation.share_matching import match_shares, share_offsets
from collegium.errors import InputError


@given(st.integers(2, 6), st.integers(1, 60), st.integers(0, 10**6))
def test_mean_beliefs_become_the_shares(n_classes, n, seed):
    generator = np.random.default_rng(seed)
    believed = generator.dirichlet(np.full(n_classes, 0.3), n)
    shares = generator.dirichlet(np.full(n_classes, 2.0)) * 0.95 + 0.05 / n_classes
    logs = np.log(np.maximum(believed, 1e-9))
    offsets = share_offsets(believed, shares)
    assert np.abs(softmax(logs + offsets, axis=1).mean(axis=0) - shares).max() < 1e-6
    assert abs(offsets.sum()) < 1e-9


def test_offsets_are_the_minimum_that_a_general_optimiser_finds():
    generator = np.random.default_rng(0)
    believed, shares = generator.dirichlet(np.ones(4), 200), np.array([0.1, 0.2, 0.3, 0.4])
    logs = np.log(believed)

    def value(b):
        return logsumexp(logs + b, axis=1).mean() - shares @ b

    found = minimize(value, np.zeros(4), tol=1e-12).x
    assert np.abs(share_offsets(believed, shares) - (found - found.mean())).max() < 1e-4


def test_known_label_shift_is_undone():
    """Beliefs of Bayes' rule under wrong shares become those under the right ones (to sampling error)."""
    generator = np.random.default_rng(2)
    right, wrong = np.array([0.8, 0.2]), np.array([0.4, 0.6])
    y = generator.random(200_000) < right[1]
    x = generator.normal(size=y.size) + 1.5 * y
    likelihood = np.stack([norm.pdf(x), norm.pdf(x - 1.5)], axis=1)

    def bayes(shares):
        joint = likelihood * shares
        return joint / joint.sum(axis=1, keepdims=True)

    offsets = share_offsets(bayes(wrong), right)
    expected = np.log(right / wrong)
    # The share of class 1 among 200,000 records has a standard deviation of 0.0009: 5 of them is 0.03 in
    # the offset.
    assert np.abs((offsets[1] - offsets[0]) - (expected[1] - expected[0])) < 0.03


def test_a_matched_student_keeps_its_classes_and_the_order_within_them():
    generator = np.random.default_rng(3)
    X = generator.normal(size=(400, 2))
    y = np.where(X[:, 0] > 0.8, "rare", "usual")
    bent = LogisticRegression(class_weight="balanced").fit(X, y)
    classes = np.array(["usual", "rare"])
    student = match_shares(bent, X, classes, np.array([0.8, 0.2]))
    assert student.classes_.tolist() == ["rare", "usual"]
    believed = student.predict_proba(X)
    assert believed.mean(axis=0) == pytest.approx([0.2, 0.8], abs=1e-6)
    assert (np.argsort(believed[:, 0]) == np.argsort(bent.predict_proba(X)[:, 0])).all()
    assert set(student.predict(X)) == {"rare", "usual"}


def test_classes_that_the_student_never_met_are_left_out():
    X = np.arange(10.0)[:, None]
    known = LogisticRegression().fit(X, np.repeat([0, 2], 5))
    student = match_shares(known, X, np.arange(3), np.array([0.3, 0.4, 0.3]))
    assert student.predict_proba(X).mean(axis=0) == pytest.approx([0.5, 0.5], abs=1e-6)


def test_a_student_without_probabilities_is_refused():
    X = np.arange(10.0)[:, None]
    with pytest.raises(InputError, match="LinearSVC has no predict_proba"):
        match_shares(LinearSVC().fit(X, X[:, 0] > 4), X, np.array([False, True]), np.full(2, 0.5))
