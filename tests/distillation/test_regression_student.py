"""The regression student finds the leading class where classes overlap and teachers are divided."""

import pickle

import numpy as np
import pytest
from scipy.special import expit, softmax
from scipy.stats import norm
from sklearn.base import clone
from sklearn.linear_model import Ridge

from collegium.distillation.regression import RegressionStudent, _ridge
from collegium.errors import InputError


def world(n=2000, sigma=300.0, seed=0, shift=-1.0):
    """Teachers split smoothly along a line; histograms of 250 votes with noise that hides them."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(2 * n, 5)) * [2.0, 1.0, 0.5, 0.3, 0.1]
    share = expit(X @ [1.0, -1.0, 0.5, 0.0, 0.0] + shift)
    counts = 250 * np.stack([1 - share, share], axis=1)
    noisy = counts + generator.normal(0, sigma, counts.shape)
    targets = softmax(250 * noisy / sigma**2, axis=1)
    return X[:n], targets[:n], X[n:], (share[n:] > 0.5).astype(np.intp)


def test_it_finds_the_majority_of_divided_teachers():
    X, targets, X_new, y_new = world()
    assert (targets.argmax(axis=1) == (world()[3])).mean() < 0.7
    student = RegressionStudent(n_landmarks=150)
    student.fit_released(X, np.arange(len(X)), targets)
    assert student.score(X_new, y_new) > 0.92


def test_unequal_classes_are_not_swallowed():
    X, targets, X_new, y_new = world(shift=-2.0)
    student = RegressionStudent(n_landmarks=150)
    student.fit_released(X, np.arange(len(X)), targets)
    assert student.predict(X_new).mean() == pytest.approx(y_new.mean(), abs=0.06)


def test_many_answers_that_say_little_are_as_good_as_few_clear_ones():
    many = world(n=1500, sigma=300.0)
    few = world(n=1500, sigma=300.0 / np.sqrt(20))
    rows = np.arange(75)
    first = RegressionStudent(n_landmarks=150).fit_released(many[0], np.arange(1500), many[1])
    second = RegressionStudent(n_landmarks=150).fit_released(few[0], rows, few[1][rows])
    assert first.score(many[2], many[3]) > second.score(few[2], few[3]) - 0.03


def test_leaving_one_out_in_closed_form_is_leaving_one_out():
    generator = np.random.default_rng(0)
    basis, leads = generator.normal(size=(12, 3)), generator.normal(size=(12, 2))
    fits = _ridge(basis, leads)
    for number, penalty in enumerate(np.geomspace(1e-3, 1e5, 17)):
        for row in (0, 7):
            others = np.arange(12) != row
            # The intercept is not penalised, and features are centred anew without the record.
            alone = (
                Ridge(alpha=penalty).fit(basis[others], leads[others]).predict(basis[row : row + 1])
            )
            assert fits.held_out[number, row] == pytest.approx(alone[0], abs=1e-6)


def test_it_keeps_the_manners_of_scikit_learn():
    X, targets, X_new, _ = world(n=300)
    rows = np.arange(0, 300, 2)
    first = RegressionStudent(n_landmarks=50).fit_released(X, rows, targets[rows])
    again = clone(first).fit_released(X, rows, targets[rows])
    believed = first.predict_proba(X_new)
    assert believed.sum(axis=1) == pytest.approx(1)
    assert np.array_equal(believed, again.predict_proba(X_new))
    assert np.array_equal(believed, pickle.loads(pickle.dumps(first)).predict_proba(X_new))
    assert first.beliefs_.shape == (300, 2)
    names = np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)]
    assert RegressionStudent(n_landmarks=50).fit(X, names).score(X, names) > 0.9


def test_constant_features_and_few_answers():
    X = np.concatenate([np.ones((40, 1)), np.linspace(-1, 1, 40)[:, None]], axis=1)
    student = RegressionStudent().fit_released(X, [0, 39], np.eye(3)[[0, 1]])
    assert student.predict_proba(X).shape == (40, 3)
    assert np.isfinite(student.predict_proba(X)).all()
    blank = RegressionStudent().fit_released(np.ones((5, 2)), [0, 1], [[0.5, 0.5], [0.9, 0.1]])
    assert np.isfinite(blank.predict_proba(np.ones((2, 2)))).all()


def test_what_cannot_be_done_is_refused():
    X, targets, _, _ = world(n=100)
    rows = np.arange(100)
    for student, said in [
        (RegressionStudent(powers=()), "powers"),
        (RegressionStudent(widths=(0.0,)), "widths"),
        (RegressionStudent(n_landmarks=0), "n_landmarks"),
        (RegressionStudent(mistrust=1.0), "mistrust"),
        (RegressionStudent(temper=0.0), "temper"),
    ]:
        with pytest.raises(InputError, match=said):
            student.fit_released(X, rows, targets)
    fitted = RegressionStudent(n_landmarks=20).fit_released(X, rows, targets)
    with pytest.raises(InputError, match="prepare them in the same way"):
        fitted.predict(X[:, :4])


@pytest.mark.parametrize("rarity", [2.5, 4.0])
def test_clear_answers_count_alike_for_frequent_and_rare_classes(rarity):
    """13.5 and 4.2 % of class 1; Bayes' rule names it for 4.8 and 0.4 %. Five samples of 2,000 labels."""
    everybody = norm.ppf((np.arange(4000) + 0.5) / 4000)[:, None]
    gain = (
        2 * expit(1.5 * everybody[:, 0] - rarity) - 1
    )  # of naming class 1, in chances to be right
    best = gain > 0
    named, right = [], []
    for seed in range(5):
        generator = np.random.default_rng(seed)
        X = generator.normal(size=(22_000, 1))[:2000]
        y = (generator.random(22_000)[:2000] < expit(1.5 * X[:, 0] - rarity)).astype(np.intp)
        student = RegressionStudent(n_landmarks=60)
        student.fit_released(X, np.arange(2000), np.eye(2)[y])
        answers = student.predict(everybody) == 1
        named.append(answers.mean())
        right.append((gain * answers).mean() - (gain * best).mean())
    # A student of the evidence relative to unequal shares named 1.4 and 2.4 times as many.
    assert 0.5 < np.mean(named) / best.mean() < 1.2
    assert np.mean(right) > -0.003


@pytest.mark.parametrize(("n", "named"), [(40, [0]), (40, [0] * 19 + [1])])
def test_answers_of_nearly_one_class_leave_the_other_one_possible(n, named):
    """What a check lets through where teachers agree: Laplace's rule leaves 1/42 for what nobody named."""
    X = np.random.default_rng(0).normal(size=(300, 5))
    targets = np.eye(2)[np.resize(named, n)]
    student = RegressionStudent(n_landmarks=50).fit_released(X, np.arange(n), targets)
    assert 1 / (2 * (n + 2)) < student.predict_proba(X)[:, 1].mean() < 4 / (n + 2)
    assert student.predict_proba(X).min() > 1e-3
