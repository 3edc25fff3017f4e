"""PATEClassifier with released histograms: attributes, statement, students, and what is refused."""

import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from collegium import (
    Account,
    ConfidentGNMax,
    ExponentialMax,
    GNMax,
    InteractiveGNMax,
    LNMax,
    PATEClassifier,
    PermuteAndFlip,
    PrivacyWarning,
    Queries,
)
from collegium.errors import InputError, NothingReleasedError
from collegium.pate.voting.targets import class_posterior

GENERATOR = np.random.default_rng(8)
X = GENERATOR.normal(size=(300, 3))
Y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
X_PUBLIC = GENERATOR.normal(size=(60, 3))
SHOWN, PLAIN = Queries(release="histogram"), Queries(release="labels")
BUDGETS = np.where(np.arange(300) % 3 == 0, 8.0, 4.0)


class Graph(ClassifierMixin, BaseEstimator):
    """Nearest public record that was answered, whatever else is public."""

    def fit_released(self, X_public, queries, targets):
        self.n_public_ = len(X_public)
        self.points_, self.targets_ = X_public[queries], targets
        self.classes_ = np.arange(targets.shape[1])
        return self

    def predict(self, X):
        away = ((np.asarray(X)[:, None] - self.points_) ** 2).sum(axis=2)
        return self.targets_[away.argmin(axis=1)].argmax(axis=1)


def fitted(**settings):
    defaults = {
        "teacher": DecisionTreeClassifier(max_depth=2),
        "n_teachers": 10,
        "aggregator": GNMax(sigma=12),
        "student": LogisticRegression(),
        "queries": SHOWN,
        "noise_seed": 3,
        "random_state": 5,
    }
    return PATEClassifier(**{**defaults, **settings}).fit(X, Y, budgets=BUDGETS, X_public=X_PUBLIC)


@pytest.mark.parametrize(
    "aggregator",
    [
        GNMax(12),
        LNMax(0.05),
        ConfidentGNMax(3, 15, 12),
        InteractiveGNMax(threshold=0, sigma_threshold=8, sigma=12, refit_every=4),
    ],
    ids=lambda aggregator: aggregator.name,
)
def test_histograms_are_kept_and_cost_nothing(aggregator):
    priced = {"aggregator": aggregator, "account": Account(price="histogram")}
    shown, plain = fitted(**priced), fitted(**priced, queries=PLAIN)
    assert shown.labels_.tolist() == plain.labels_.tolist()
    spent = [model.privacy_.by_group()["epsilon_spent"].tolist() for model in (shown, plain)]
    assert spent[0] == spent[1]
    histograms = shown.histograms_
    assert len(histograms) == shown.n_queries_ and not hasattr(plain, "histograms_")
    labelled = histograms.rows(histograms.labelled)
    assert labelled.queries.tolist() == shown.labelled_indices_.tolist()
    answered = labelled.rows(labelled.answered)
    expected = class_posterior(
        answered.counts, answered.noise_scales, answered.totals, noise=answered.noise
    )
    np.testing.assert_array_equal(shown.targets_[labelled.answered], expected)
    np.testing.assert_array_equal(plain.targets_.sum(axis=1), 1.0)
    assert set(np.unique(plain.targets_)) <= {0.0, 1.0}


def test_the_statement_says_what_is_released():
    shown, plain = fitted().privacy_, fitted(queries=PLAIN).privacy_
    assert (shown.released, plain.released) == ("histogram", "labels")
    assert any("noisy vote counts of all classes" in line for line in shown.sentences())
    assert any("nothing of the vote counts" in line for line in plain.sentences())


def test_targets_change_the_student_and_nothing_that_was_released():
    mixture, noise, argmax = (
        fitted(queries=Queries(release="histogram", targets=kind))
        for kind in ("mixture", "noise", "argmax")
    )
    assert mixture.labels_.tolist() == noise.labels_.tolist() == argmax.labels_.tolist()
    assert not np.array_equal(mixture.student_.coef_, argmax.student_.coef_)
    plain = fitted(queries=PLAIN)
    np.testing.assert_array_equal(argmax.student_.coef_, plain.student_.coef_)


def test_a_fitted_model_can_be_pickled_and_cloned():
    model = fitted()
    copy = pickle.loads(pickle.dumps(model))
    assert copy.predict(X_PUBLIC).tolist() == model.predict(X_PUBLIC).tolist()
    assert copy.histograms_.counts.tobytes() == model.histograms_.counts.tobytes()
    assert clone(model).queries == SHOWN


@pytest.mark.parametrize("release", ["labels", "histogram"])
def test_students_of_all_public_records_are_served(release):
    model = fitted(student=Graph(), queries=Queries(release=release))
    assert model.student_.student.n_public_ == 60
    np.testing.assert_array_equal(model.student_.student.targets_, model.targets_)
    assert set(model.predict(X_PUBLIC)) <= {"yes", "no"}


def test_a_student_without_weights_is_warned_about():
    with pytest.warns(PrivacyWarning, match="KNeighborsClassifier cannot take soft targets"):
        fitted(student=KNeighborsClassifier(1))


def test_if_nothing_was_answered_the_checks_are_still_shown():
    model = PATEClassifier(
        DecisionTreeClassifier(max_depth=2),
        n_teachers=10,
        aggregator=ConfidentGNMax(1000, 15, 12),
        queries=SHOWN,
        noise_seed=1,
        random_state=1,
    )
    with pytest.raises(NothingReleasedError):
        model.fit(X, Y, budgets=BUDGETS, X_public=X_PUBLIC)
    assert not model.histograms_.answered.any()
    assert np.isfinite(model.histograms_.checks).all() and len(model.histograms_) > 0


class Untouchable(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        raise AssertionError("nothing may be trained")

    def predict(self, X):
        raise AssertionError("nothing may be asked")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"account": Account("data-dependent")}, "holds for the arg max only"),
        ({"aggregator": PermuteAndFlip()}, "'pfmax' cannot be released"),
        ({"aggregator": ExponentialMax()}, "'expmax' cannot be released"),
    ],
)
def test_what_cannot_be_is_refused_before_training(settings, message):
    with pytest.raises(InputError, match=message) as error:
        fitted(teacher=Untouchable(), **settings)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("public", "message"),
    [(None, "public records are missing"), (X_PUBLIC[:, :2], "features"), (X_PUBLIC[:0], "empty")],
)
def test_public_records_that_are_missing_or_of_other_shape_are_refused(public, message):
    model = PATEClassifier(Untouchable(), n_teachers=10, queries=SHOWN)
    with pytest.raises(InputError, match=message) as error:
        model.fit(X, Y, budgets=BUDGETS, X_public=public)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"release": "votes"}, "release must be one of labels, histogram"),
        ({"targets": "em"}, "targets must be one of argmax, noise, mixture"),
    ],
)
def test_queries_that_cannot_be_are_refused_when_they_are_made(settings, message):
    with pytest.raises(InputError, match=message) as error:
        Queries(**settings)
    assert "\n" not in str(error.value)


def test_fewer_labels_than_classes_are_learnt_from_and_said():
    names = np.array(["a", "b", "c", "d"])
    y = names[(X[:, 0] > 0).astype(int) + 2 * (X[:, 1] > 0)]
    model = PATEClassifier(
        DecisionTreeClassifier(max_depth=3),
        n_teachers=5,
        aggregator=GNMax(1.0),
        student=LogisticRegression(),
        queries=Queries(max_labels=3, release="histogram", targets="argmax"),
        noise_seed=2,
        random_state=3,
    )
    with pytest.warns(PrivacyWarning, match=r"3 label\(s\) were released for 4 classes"):
        model.fit(X, y, budgets=np.full(300, 1e6), X_public=X_PUBLIC)
    assert set(model.predict(X_PUBLIC)) <= set(model.labels_.tolist())


def test_histograms_introduce_themselves_in_one_line():
    model = fitted(queries=Queries(max_queries=40, release="histogram"))
    scale = f"{model.histograms_.noise_scales[0]:g}"
    told = f"NoisyHistograms(40 queries × 2 classes, 40 answered, gaussian noise of scale {scale})"
    assert str(model.histograms_) == repr(model.histograms_) == told
    nothing = repr(model.histograms_.rows(np.zeros(40, dtype=bool)))
    assert nothing == "NoisyHistograms(0 queries × 2 classes, 0 answered)"
    changing = fitted(personalisation="vanishing", aggregator=LNMax(0.05)).histograms_
    ends = f"{changing.noise_scales.min():g} to {changing.noise_scales.max():g}"
    assert f"laplace noise of scale {ends})" in repr(changing)
    checked = repr(fitted(aggregator=ConfidentGNMax(3, 15, 12)).histograms_)
    assert "answered, gaussian noise" in checked and len(checked) < 120
