"""A student that learns from a direct model's beliefs, and which of both is better."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

import collegium as cg
from collegium.dpsgd.ensemble_choice import choose
from collegium.errors import InputError
from collegium.students import GaussianProcessStudent


@pytest.fixture(scope="module")
def learnt():
    X, y = load_digits(return_X_y=True)
    model = cg.DPSGDClassifier(classes=range(10), noise_seed=1, steps=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:1000], y[:1000], budgets=0.5, X_public=X[1000:1500])
    return model, X, y


def test_a_student_mends_what_noise_did(learnt):
    model, X, y = learnt
    taught, choice = model.teach(
        GaussianProcessStudent(n_components=40, n_landmarks=200), X[1000:1500]
    )
    assert choice.student and choice.differ <= choice.by_noise
    assert "student" in choice.in_words
    before, after = ((m.predict(X[1500:]) == y[1500:]).mean() for m in (model, taught))
    assert after > before + 0.05


def test_a_fit_with_a_student_publishes_what_teach_does(learnt):
    model, X, y = learnt
    student = GaussianProcessStudent(n_components=40, n_landmarks=200, random_state=0)
    taught, choice = model.teach(student, X[1000:1500])
    own = clone(model).set_params(student=student, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own.fit(X[:1000], y[:1000], budgets=0.5, X_public=X[1000:1500])
    assert choice.student and own.choice_ == choice
    seen = X[1500:]
    assert np.array_equal(own.predict(seen), taught.predict(seen))
    assert np.array_equal(own.direct_.predict(seen), model.predict(seen))
    assert (own.decision_function(seen).argmax(axis=1) == own.predict(seen)).all()


def test_a_student_needs_public_records_and_must_learn(learnt):
    model, X, y = learnt
    for student, named in ((GaussianProcessStudent(), "there are none"), ("forest", "'auto'")):
        with pytest.raises(InputError, match=named):
            clone(model).set_params(student=student).fit(X[:100], y[:100], budgets=0.5)
    broken = clone(model).set_params(
        student=GaussianProcessStudent(length_scale=-1), noise_seed=None
    )
    with pytest.raises(InputError, match="length_scale"):  # before anything is spent
        broken.fit(X[:100], y[:100], budgets=0.5, X_public=X[1000:1100])
    assert not hasattr(broken, "privacy_")


def test_a_student_that_contradicts_is_not_believed(learnt):
    model, X, _ = learnt
    stump, choice = model.teach(DecisionTreeClassifier(max_depth=1), X[1000:1500])
    assert not choice.student and stump is model.model_
    assert choice.in_words.startswith("Published: the model, and not the student")


def test_the_choice_sees_public_records_and_the_known_noise_alone():
    class Model:
        def __init__(self, scores):
            self.scores = scores

        def decision_function(self, X):
            return self.scores

        def predict(self, X):
            return self.scores.argmax(axis=1)

    scores = np.random.default_rng(0).normal(size=(4000, 3))
    model, same = Model(scores), Model(scores * 2)
    assert choose(1e-9, model, same, None, None) == choose(1e-9, model, same, None, None)
    assert choose(1e-9, model, same, None, None).differ == 0
    noisy = Model(scores + np.random.default_rng(1).normal(size=scores.shape) * 0.3)
    much, little = (choose(noise, model, noisy, None, None) for noise in (0.5, 0.1))
    assert much.student and not little.student
    once = choose(0.3, model, noisy, None, None)
    assert once.by_noise == pytest.approx(once.differ, abs=0.03)


def test_what_cannot_be_taught_is_one_line(learnt):
    model, X, _ = learnt
    with pytest.raises(InputError, match="features"):
        model.teach(GaussianProcessStudent(), X[:, :5])
    with pytest.raises(InputError, match="length_scale"):
        model.teach(GaussianProcessStudent(length_scale=-1), X[1000:1200])
