"""What students are given is checked, and read as evidence."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import softmax
from sklearn.neighbors import NearestNeighbors

from collegium.distillation.gaussian_process import GaussianProcessStudent
from collegium.distillation.graph import GraphStudent
from collegium.distillation.nearest import nearest
from collegium.distillation.regression import RegressionStudent
from collegium.distillation.released import (
    SHARE_COUNT,
    as_supervised,
    check_released,
    class_shares,
    log_evidence,
    score_released,
)
from collegium.errors import InputError, NothingReleasedError

X = np.arange(12.0).reshape(6, 2)
SURE = [[0.9, 0.1], [0.2, 0.8]]


@pytest.mark.parametrize(
    ("records", "queries", "targets", "said"),
    [
        (np.empty((0, 2)), [0], [[1.0, 0.0]], "at least one record"),
        (X[:, 0], [0], [[1.0, 0.0]], "at least one record with one feature"),
        ([["a"]], [0], [[1.0, 0.0]], "encode them first"),
        (np.where(X == 3, np.nan, X), [0, 1], SURE, "must be finite"),
        (X, [0, 6], SURE, "rows of the 6 public records"),
        (X, [-1, 2], SURE, "rows of the 6 public records"),
        (X, [1, 1], SURE, "no public record is asked about twice"),
        (X, [0.5, 1], SURE, "row numbers"),
        (X, [0, 1], [[0.9, 0.1]], "one row for each of the 2 queries"),
        (X, [0, 1], [[1.0], [1.0]], "at least 2"),
        (X, [0, 1], [[0.9, 0.3], [0.2, 0.8]], "add up to 1"),
        (X, [0, 1], [[np.nan, 0.1], [0.2, 0.8]], "NaN is not allowed"),
        (X, [0, 1], [[1.1, -0.1], [0.2, 0.8]], "probabilities"),
        (X, [0, 1], [[90.0, 10.0], [20.0, 80.0]], "add up to 1"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(records, queries, targets, said):
    with pytest.raises(InputError, match=said) as error:
        check_released(records, queries, targets)
    assert "\n" not in str(error.value)


def test_without_answers_nothing_can_be_learnt():
    with pytest.raises(NothingReleasedError, match="no label was released"):
        check_released(X, [], np.empty((0, 2)))


def test_evidence_is_zero_where_nothing_was_released():
    evidence = check_released(X, [4, 1], SURE).evidence()
    assert not evidence[[0, 2, 3, 5]].any()
    assert (evidence[[4, 1]].argmax(axis=1) == [0, 1]).all()


@given(st.integers(0, 10**6), st.integers(2, 6), st.floats(0.2, 3))
@settings(max_examples=25)
def test_evidence_is_the_likelihood_whatever_the_shares(seed, n_classes, sharpness):
    generator = np.random.default_rng(seed)
    shares = generator.dirichlet(np.full(n_classes, 5.0))
    classes = generator.choice(n_classes, 500, p=shares)
    noisy = sharpness * np.eye(n_classes)[classes] + generator.normal(size=(500, n_classes))
    likelihood = sharpness * noisy
    differences = log_evidence(softmax(likelihood, axis=1)) - likelihood
    assert np.ptp(differences, axis=1).max() < 1e-6


def test_shares_are_found_in_noisy_answers():
    """20,000 answers at one standard deviation; shares within 0.03 + what pseudo-observations add."""
    generator = np.random.default_rng(1)
    shares = np.array([0.7, 0.2, 0.1])
    classes = generator.choice(3, 20_000, p=shares)
    likelihood = np.eye(3)[classes] + generator.normal(size=(20_000, 3))
    found = class_shares(softmax(likelihood, axis=1))
    assert found == pytest.approx((shares + SHARE_COUNT / 3) / (1 + SHARE_COUNT), abs=0.03)
    assert found.sum() == pytest.approx(1)


def test_evidence_is_normalised_over_what_might_have_been_released():
    """One-hot labels: Σ_r P(r)·P(r | c)/P(r) = 1 for each class, at any mistrust."""
    targets = np.eye(3)[[0] * 50 + [1] * 30 + [2] * 20]
    shares = class_shares(targets)
    ratios = np.exp(log_evidence(targets, mistrust=0.25))
    each = np.stack([ratios[0], ratios[50], ratios[80]])
    assert shares @ each == pytest.approx(np.ones(3))


def test_mistrust_bounds_what_one_answer_can_do():
    evidence = log_evidence(np.eye(3), mistrust=0.3)
    assert np.ptp(evidence, axis=1) == pytest.approx(np.log((0.7 * 3 + 0.3) / 0.3))
    assert np.isfinite(log_evidence(np.eye(3))).all()


def test_an_answer_that_says_nothing_is_no_evidence():
    targets = np.concatenate([np.eye(2), np.eye(2), [[0.5, 0.5]]])
    assert log_evidence(targets)[-1] == pytest.approx([0, 0])


def test_the_truth_scores_best_however_noisy_the_answers():
    """A proper score: the true class probabilities beat distorted ones. Fixed seed."""
    generator = np.random.default_rng(3)
    truth = generator.dirichlet([0.3, 0.3, 0.3], 40_000)
    classes = (generator.random((40_000, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    noisy = 0.5 * (0.5 * np.eye(3)[classes] + generator.normal(size=truth.shape))
    targets = softmax(noisy, axis=1)
    own = score_released(truth, targets)
    assert own > score_released(softmax(3 * np.log(truth + 1e-9), axis=1), targets)
    assert own > score_released(softmax(0.3 * np.log(truth + 1e-9), axis=1), targets)
    assert own > score_released(np.full_like(truth, 1 / 3), targets)


def test_plain_labels_become_one_hot_targets():
    _, queries, targets, classes = as_supervised(X[:3], ["b", "a", "b"])
    assert queries.tolist() == [0, 1, 2]
    assert targets.tolist() == [[0, 1], [1, 0], [0, 1]]
    assert classes.tolist() == ["a", "b"]
    with pytest.raises(InputError, match="one class only"):
        as_supervised(X[:2], [1, 1])
    with pytest.raises(InputError, match="one label per record"):
        as_supervised(X[:3], [0, 1])


@pytest.mark.parametrize("make", [RegressionStudent, GraphStudent, GaussianProcessStudent])
def test_whole_numbers_far_from_zero_keep_their_digits(make):
    """Times in seconds: neighbouring 32-bit floats lie 128 s apart."""
    generator = np.random.default_rng(0)
    classes = generator.integers(0, 2, 120)
    seconds = 1_700_000_000 + 20 * classes + generator.integers(0, 9, 120)
    X = np.stack([seconds, seconds + generator.integers(0, 9, 120)], axis=1)
    student = make().fit_released(X, np.arange(60), np.eye(2)[classes[:60]])
    assert student.score(X[60:], classes[60:]) > 0.85
    as_floats = make().fit_released(X.astype(float), np.arange(60), np.eye(2)[classes[:60]])
    assert np.array_equal(student.beliefs_, as_floats.beliefs_)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5, 1e7])
def test_neighbours_are_found_far_from_the_origin(offset):
    X = np.random.default_rng(0).normal(size=(500, 4)) + offset
    found = nearest(X, X, 5, skip_self=True)
    exact = NearestNeighbors(n_neighbors=6).fit(X - offset).kneighbors(X - offset)[1][:, 1:]
    same = [len(set(a) & set(b)) for a, b in zip(found.rows.tolist(), exact.tolist(), strict=True)]
    assert np.mean(same) > 4.99
