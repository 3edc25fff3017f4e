"""A student that learns from a direct model's beliefs, and which of both is better."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import collegium as cg
from collegium.dpsgd import ensemble_choice
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


def rows_of(**settings):
    """See images as rows of numbers, which is quicker."""
    return cg.DPSGDClassifier(preprocessing=PCA(20), **settings)


@pytest.fixture(scope="module")
def sure():
    X, y = load_digits(return_X_y=True)
    model = rows_of(classes=range(10), noise_seed=1, steps=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:700], y[:700], budgets=2.0, X_public=X[1000:1300])
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
    named = same.predict(None)
    assert choose(1e-9, model, named, None) == choose(1e-9, model, named, None)
    assert choose(1e-9, model, named, None).differ == 0
    noisy = Model(scores + np.random.default_rng(1).normal(size=scores.shape) * 0.3)
    much, little = (choose(noise, model, noisy.predict(None), None) for noise in (0.5, 0.1))
    assert much.student and not little.student
    once = choose(0.3, model, noisy.predict(None), None)
    assert once.by_noise == pytest.approx(once.differ, abs=0.03)


def test_the_more_a_student_contradicts_the_less_it_is_heard():
    choices = [Choice(differ, 0.02) for differ in (0.0, 0.01, 0.02, 0.035, 0.05)]
    reaches = [choice.reach for choice in choices]
    assert reaches == sorted(reaches, reverse=True)
    assert reaches[0] == np.inf and reaches[2:] == [pytest.approx(0.75), 0.25, 0.0]
    kinds = [(choice.student, choice.alone) for choice in choices[1:]]
    assert kinds == [(True, True), (True, False), (True, False), (False, False)]
    assert "within 0.75 standard deviations" in choices[2].in_words
    assert Choice(1e-300, 1.0).alone
    assert not Choice(0.01, 0.0).student  # there is no noise to mend


@pytest.mark.parametrize("goal", ["accuracy", "balanced"])
@pytest.mark.parametrize("preprocessing", ["same", None])
def test_a_student_is_heard_where_noise_leaves_doubt(learnt, monkeypatch, goal, preprocessing):
    model, X, y = learnt
    model = clone(model).set_params(goal=goal, preprocessing=PCA(20))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:1000], y[:1000], budgets=0.5, X_public=X[1000:1500])
    monkeypatch.setattr(ensemble_choice, "choose", lambda *_: Choice(0.3, 0.3))
    forest = RandomForestClassifier(30, random_state=0)
    both, choice = model.teach(forest, X[1000:1500], preprocessing=preprocessing)
    assert choice.student and not choice.alone
    monkeypatch.setattr(ensemble_choice, "choose", lambda *_: Choice(0.0, 0.3))
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
    model = rows_of(classes=[0, 1], noise_seed=1, student=DecisionTreeClassifier())
    monkeypatch.setattr(ensemble_choice, "choose", lambda *_: Choice(0.1, 0.1))
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
    for no_student in (None, "auto", GaussianNB, KMeans()):
        with pytest.raises(InputError, match=r"student must (be|have)"):
            model.teach(no_student, X[1000:1200])


@pytest.mark.parametrize(
    "student",
    [
        DecisionTreeClassifier(random_state=0),
        HistGradientBoostingClassifier(max_iter=10, random_state=0),
        KNeighborsClassifier(1),
        RandomForestClassifier(30, random_state=0),
    ],
    ids=lambda student: type(student).__name__,
)
def test_a_student_that_remembers_is_judged_on_what_it_has_not_seen(sure, student):
    model, X, y = sure
    taught, choice = model.teach(student, X[1000:1300])
    assert choice.differ > 0.02 and not choice.alone
    new, truth = X[1300:], y[1300:]
    assert np.mean(taught.predict(new) == truth) > model.score(new, truth) - 0.02


def test_answers_that_are_not_given_do_not_count(sure):
    class TwoMinds(DecisionTreeClassifier):
        def predict_proba(self, X):
            return super().predict_proba(X)[:, ::-1]

    model, X, _ = sure
    taught, choice = model.teach(TwoMinds(random_state=0), X[1000:1300])
    assert choice.differ > 0.5 and taught is model.direct_


@pytest.mark.parametrize("student", [RidgeClassifier(), LinearSVC()])
@pytest.mark.parametrize("classes", [range(10), [False, True]])
def test_a_student_without_probabilities_is_sure(learnt, monkeypatch, student, classes):
    _, X, y = learnt
    y = y if len(classes) == 10 else y % 2 == 1
    monkeypatch.setattr(ensemble_choice, "choose", lambda *_: Choice(0.0, 0.3))
    model = rows_of(classes=classes, noise_seed=1, student=student, steps=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:500], y[:500], budgets=0.5, X_public=X[1000:1200])
    assert model.choice_.alone
    found = model.predict_proba(X[1500:])
    assert set(np.unique(found)) == {0.0, 1.0}
    assert (np.asarray(classes)[found.argmax(axis=1)] == model.predict(X[1500:])).all()
    assert np.isfinite(model.decision_function(X[1500:])).all()


def test_a_student_that_fails_late_costs_nobody_what_was_learnt(learnt, tmp_path):
    _, X, y = learnt

    class FailsLate(DecisionTreeClassifier):
        def fit(self, X, y, sample_weight=None):
            if len(np.unique(np.round(sample_weight, 3))) > 20:  # a rehearsal's beliefs are two
                raise ValueError("singular matrix")
            return super().fit(X, y, sample_weight)

    owners = [f"person {i}" for i in range(1000)]
    ledger = cg.Ledger.create(tmp_path / "people.ledger")
    budgets = cg.Policy({"all": 0.5}).assign(["all"] * 1000, owners=owners)
    model = rows_of(classes=range(10), student=FailsLate(), steps=20)
    with pytest.warns(UserWarning, match=r"the model itself is published: .*singular matrix"):
        model.fit(X[:1000], y[:1000], budgets=budgets, X_public=X[1000:1500], ledger=ledger)
    assert model.choice_ is None and model.score(X[1500:], y[1500:]) > 0.3


def test_few_public_records_tell_nothing_of_a_student(learnt):
    model, X, _ = learnt
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        taught, choice = model.teach(GaussianProcessStudent(), X[1000:1015])
    assert taught is model.direct_ and not choice.student
    assert "15 public records are too few" in choice.in_words


def test_who_stops_early_has_the_noise_of_the_steps_taken(learnt):
    _, X, y = learnt

    def stopped(after):
        model = rows_of(classes=range(10), steps=30, noise_seed=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(
                X[:300],
                y[:300],
                budgets=2.0,
                X_public=X[1000:1200],
                on_step=lambda progress: progress.step == after,
            )
        assert model.steps_taken_ == after
        return model.noise_

    few, every = stopped(5), stopped(30)
    repeated = np.cumsum((1 - 0.9 ** np.arange(1, 31)) ** 2)
    assert few / every == pytest.approx(np.sqrt(repeated[4] / repeated[-1]))
    assert few < 0.2 * every
