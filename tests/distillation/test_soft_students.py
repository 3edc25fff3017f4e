"""Soft targets: as weighted copies, through fit_released, or not at all, and then it is said."""

import pickle

import numpy as np
import pandas as pd
import pytest
import skops.io
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from collegium import PrivacyWarning
from collegium.distillation.graph import GraphStudent
from collegium.distillation.regression import RegressionStudent
from collegium.distillation.supervised import (
    NamedClasses,
    RefittedStudent,
    fit_released,
    fit_student,
)
from collegium.errors import InputError, NothingReleasedError

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(60, 3))
LABELS = (X[:, 0] > 0).astype(np.intp) + (X[:, 1] > 0.5)
TARGETS = GENERATOR.dirichlet(np.full(3, 0.7), 60)
NAMES = np.array(["cat", "dog", "owl"])


class Semi(ClassifierMixin, BaseEstimator):
    """Remembers what it was given, and predicts the class that targets name most often."""

    def fit_released(self, X_public, queries, targets):
        self.given_ = (X_public, queries, targets)
        self.classes_ = np.flatnonzero(targets.sum(axis=0))
        self.most_ = int(targets.sum(axis=0).argmax())
        return self

    def predict(self, X):
        return np.full(X.shape[0], self.most_)

    def predict_proba(self, X):
        return np.tile(np.eye(len(self.classes_))[0], (X.shape[0], 1))


def copies(targets):
    rows, columns = np.nonzero(targets)
    return rows, columns, targets[rows, columns]


@pytest.mark.parametrize(
    "records", [X, pd.DataFrame(X, columns=list("abc")), sparse.csr_matrix(X)], ids=type
)
def test_each_record_is_copied_for_each_class_with_its_probability(records):
    student = fit_student(LogisticRegression(), records, LABELS, targets=TARGETS, tell=pytest.fail)
    kept = np.where(TARGETS >= 1e-3, TARGETS, 0)
    rows, columns, weights = copies(kept / kept.sum(axis=1, keepdims=True))
    alone = LogisticRegression().fit(X[rows], columns, sample_weight=weights)
    np.testing.assert_allclose(student.coef_, alone.coef_, atol=1e-8)


def test_tiny_probabilities_make_no_copies():
    class Counting(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            self.size_, self.weight_ = len(y), sample_weight.sum()
            return super().fit(X, y, sample_weight)

    targets = np.where(np.eye(3)[LABELS] == 1, 0.999, 0.0005)
    student = fit_student(Counting(), X, LABELS, targets=targets)
    assert (student.size_, student.weight_) == (60, pytest.approx(60))


def test_a_thousand_equal_classes_keep_their_copies():
    targets = np.full((2, 2000), 1 / 2000)
    student = fit_student(GaussianNB(), X[:2], np.array([0, 1]), targets=targets)
    assert student.classes_.size == 2000


def test_earlier_steps_of_a_pipeline_see_each_record_once():
    model = make_pipeline(StandardScaler(), LogisticRegression())
    for routing in (False, True):
        with config_context(enable_metadata_routing=routing):
            student = fit_student(model, X, LABELS, targets=TARGETS, tell=pytest.fail)
        np.testing.assert_allclose(student[0].mean_, X.mean(axis=0))
        scaled = StandardScaler().fit_transform(X)
        alone = fit_student(LogisticRegression(), scaled, LABELS, targets=TARGETS)
        np.testing.assert_allclose(student[-1].coef_, alone.coef_, atol=1e-8)
        np.testing.assert_array_equal(student.predict(X), alone.predict(scaled))
    assert not hasattr(model[0], "mean_"), "the prototype is left alone"


def test_targets_that_are_labels_are_learnt_as_labels():
    sure = np.eye(3)[LABELS]
    told = []
    forest = RandomForestClassifier(5, random_state=0)
    student = fit_student(forest, X, LABELS, targets=sure, tell=told.append)
    alone = RandomForestClassifier(5, random_state=0).fit(X, LABELS)
    np.testing.assert_array_equal(student.predict_proba(X), alone.predict_proba(X))
    assert told == []


@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: make_pipeline(StandardScaler(), m)])
def test_a_student_without_weights_learns_the_labels_and_says_so(wrap):
    told = []
    student = fit_student(
        wrap(KNeighborsClassifier(1)), X, LABELS, targets=TARGETS, tell=told.append
    )
    assert student.predict(X).tolist() == LABELS.tolist()
    assert len(told) == 1 and "KNeighborsClassifier cannot take soft targets" in told[0]
    with pytest.warns(PrivacyWarning, match="cannot take soft targets"):
        fit_student(KNeighborsClassifier(1), X, LABELS, targets=TARGETS)


def test_classes_have_the_names_that_columns_have():
    student = fit_student(GaussianNB(), X, NAMES[LABELS], targets=TARGETS, classes=NAMES)
    assert student.classes_.tolist() == NAMES.tolist()


def test_if_all_probability_is_on_one_class_the_student_always_predicts_it():
    targets = np.tile([0.0, 0.9995, 0.0005], (60, 1))
    told = []
    student = fit_student(GaussianNB(), X, LABELS, targets=targets, tell=told.append)
    assert student.predict(X).tolist() == [1] * 60
    assert "of one class" in told[0]


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (TARGETS[:5], "one row per label"),
        (TARGETS * 2, "add up to 1"),
        (TARGETS - [1, -1, 0], "add up to 1"),
    ],
)
def test_targets_that_do_not_fit_are_refused(targets, message):
    with pytest.raises(InputError, match=message) as error:
        fit_student(GaussianNB(), X, LABELS, targets=targets)
    assert "\n" not in str(error.value)


# --------------------------------------------------------------------- all public records


@pytest.mark.parametrize("targets", [None, TARGETS[:20]])
def test_a_student_of_all_public_records_gets_everything(targets):
    queries = np.arange(0, 60, 3)
    student = fit_released(
        Semi(), X, queries, LABELS[queries], np.arange(3), targets, tell=lambda line: None
    )
    X_public, asked, given = student.given_
    assert X_public is X and asked is queries
    expected = np.eye(3)[LABELS[queries]] if targets is None else targets
    np.testing.assert_array_equal(given, expected)
    assert isinstance(student, Semi)


def test_its_class_numbers_become_the_names_of_the_classes():
    queries = np.arange(60)
    student = fit_released(Semi(), X, queries, LABELS, NAMES, TARGETS)
    assert isinstance(student, NamedClasses)
    most = NAMES[TARGETS.sum(axis=0).argmax()]
    for copy in (student, pickle.loads(pickle.dumps(student))):
        assert copy.predict(X[:2]).tolist() == [most] * 2
        assert copy.classes_.tolist() == NAMES.tolist()
        assert copy.predict_proba(X[:2]).shape == (2, 3)
        assert copy.score(X, np.full(60, most)) == 1.0
    few = fit_released(
        Semi(), X, queries, np.where(LABELS > 0, 2, 0), NAMES, tell=lambda line: None
    )
    assert few.classes_.tolist() == ["cat", "owl"]


def test_other_students_learn_from_what_was_labelled():
    queries = np.arange(0, 60, 2)
    student = fit_released(GaussianNB(), X, queries, LABELS[queries], NAMES)
    alone = GaussianNB().fit(X[queries], NAMES[LABELS[queries]])
    np.testing.assert_array_equal(student.predict(X), alone.predict(X))


def test_labels_of_one_class_only_make_a_constant_student_of_any_kind():
    queries = np.arange(4)
    told = []
    student = fit_released(Semi(), X, queries, np.full(4, 1), NAMES, tell=told.append)
    assert student.predict(X[:3]).tolist() == ["dog"] * 3
    assert len(told) == 1 and "all 4 released label(s) are of one class" in told[0]


@pytest.mark.parametrize("names", [[False, True], [0.5, 1.5], [3, 4], ["no", "yes"]], ids=str)
def test_classes_of_any_type_may_be_the_only_one_that_was_released(names):
    queries, names = np.arange(4), np.array(names)
    student = fit_released(GaussianNB(), X, queries, np.zeros(4, np.intp), names)
    kept = skops.io.loads(skops.io.dumps(student))
    assert kept.predict(X[:3]).tolist() == [names[0]] * 3


def test_fewer_labels_than_classes_are_learnt_from_and_said():
    told = []
    student = fit_released(
        GaussianNB(), X, np.array([0, 1]), np.array([0, 2]), NAMES, tell=told.append
    )
    assert set(student.predict(X)) <= {"cat", "owl"}
    (line,) = told
    assert line == (
        "2 label(s) were released for 3 classes, none of class dog: the student learns from what is there"
    )


def test_without_labels_there_is_no_student_of_any_kind():
    nothing = np.array([], dtype=np.intp)
    with pytest.raises(NothingReleasedError, match="no label was released"):
        fit_released(Semi(), X, nothing, nothing, NAMES)


def test_interactive_refits_students_of_all_public_records():
    student = RefittedStudent(Semi(), X, 3)
    student.refit([0, 1, 2], [0, 2, 2])
    assert student.probabilities(5).tolist() == [1.0, 0.0, 0.0]


def test_in_a_pipeline_a_student_learns_from_all_public_records():
    X, y = make_moons(400, noise=0.1, random_state=0)
    X = X * [1.0, 100.0]
    rows = np.concatenate([np.flatnonzero(y == c)[:4] for c in (0, 1)])
    piped = make_pipeline(StandardScaler(), GraphStudent())
    student = fit_released(piped, X, rows, y[rows], ["a", "b"])
    scaled = StandardScaler().fit_transform(X)
    alone = fit_released(GraphStudent(), scaled, rows, y[rows], ["a", "b"])
    assert student.predict(X).tolist() == alone.predict(scaled).tolist()
    assert np.mean(student.predict(X) == np.array(["a", "b"])[y]) > 0.75
    assert not hasattr(piped[-1], "beliefs_")


def test_classes_keep_their_type():
    X = np.linspace(-3, 3, 40)[:, None]
    y = (X[:, 0] > 0).astype(np.intp)
    for estimator in (RegressionStudent(), LogisticRegression()):
        student = fit_released(estimator, X, np.arange(40), y, np.array([False, True]))
        assert student.predict(X).dtype == bool
