"""A student that learns from a direct model's beliefs, and which of both is better."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

import collegium as cg
from collegium.dpsgd import classifier
from collegium.dpsgd import student as student_of_dpsgd
from collegium.dpsgd.ensemble_choice import Choice, choose
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


def test_the_more_a_student_contradicts_the_less_it_is_heard():
    choices = [Choice(differ, 0.02) for differ in (0.0, 0.01, 0.02, 0.035, 0.05)]
    reaches = [choice.reach for choice in choices]
    assert reaches == sorted(reaches, reverse=True)
    assert reaches[0] == np.inf and reaches[2:] == [pytest.approx(0.75), 0.25, 0.0]
    kinds = [(choice.student, choice.alone) for choice in choices[1:]]
    assert kinds == [(True, True), (True, False), (True, False), (False, False)]
    assert "within 0.75 standard deviations" in choices[2].in_words
    assert not Choice(0.01, 0.0).student  # there is no noise to mend


@pytest.mark.parametrize("goal", ["accuracy", "balanced"])
@pytest.mark.parametrize("preprocessing", ["same", None])
def test_a_student_is_heard_where_noise_leaves_doubt(learnt, monkeypatch, goal, preprocessing):
    model, X, y = learnt
    model = clone(model).set_params(goal=goal)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:1000], y[:1000], budgets=0.5, X_public=X[1000:1500])
    monkeypatch.setattr(classifier, "choose", lambda *_: Choice(0.3, 0.3))
    forest = RandomForestClassifier(30, random_state=0)
    both, choice = model.teach(forest, X[1000:1500], preprocessing=preprocessing)
    assert choice.student and not choice.alone
    monkeypatch.setattr(classifier, "choose", lambda *_: Choice(0.0, 0.3))
    alone, _ = model.teach(forest, X[1000:1500], preprocessing=preprocessing)
    new = X[1500:]
    scores, mine = model.decision_function(new), model.predict_proba(new)
    theirs = alone.predict_proba(new)
    named, others = scores.argmax(axis=1), theirs.argmax(axis=1)
    rows = np.arange(len(new))
    apart = scores[rows, named] - scores[rows, others]
    heard = (named != others) & (apart < 0.75 * np.sqrt(2) * model.noise_)
    assert 0.02 < heard.mean() < (named != others).mean()
    found = both.predict_proba(new)
    assert np.allclose(found, np.where(heard[:, None], theirs, mine))
    if goal == "accuracy":
        assert (both.predict(new) == found.argmax(axis=1)).all()
    else:
        assert not (both.predict(new) == found.argmax(axis=1)).all()


def test_of_two_classes_one_score_holds_the_noise(learnt, monkeypatch):
    _, X, y = learnt
    y = y % 2
    model = cg.DPSGDClassifier(classes=[0, 1], noise_seed=1, student=DecisionTreeClassifier())
    monkeypatch.setattr(student_of_dpsgd, "choose", lambda *_: Choice(0.1, 0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:1000], y[:1000], budgets=0.5, X_public=X[1000:1500])
    new = X[1500:]
    seen = model.preprocessing_.transform(new)
    last = model.model_[-1]
    scores = last.model.decision_function(seen)
    others = last.student.predict(seen)
    heard = ((scores > 0) != others) & (np.abs(scores) < 0.75 * model.noise_)
    assert heard.any()
    assert (model.predict(new) == np.where(heard, others, scores > 0)).all()
    assert (np.sign(model.decision_function(new)) > 0).tolist() == (
        model.predict(new) == 1
    ).tolist()


def test_what_cannot_be_taught_is_one_line(learnt):
    model, X, _ = learnt
    with pytest.raises(InputError, match="features"):
        model.teach(GaussianProcessStudent(), X[:, :5])
    with pytest.raises(InputError, match="length_scale"):
        model.teach(GaussianProcessStudent(length_scale=-1), X[1000:1200])
