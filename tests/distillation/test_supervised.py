"""Students learn from public records and released labels, and from nothing else."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.tree import DecisionTreeClassifier

from collegium import PrivacyWarning
from collegium.distillation.supervised import RefittedStudent, fit_student
from collegium.errors import InputError, NothingReleasedError

X = np.linspace(-1, 1, 40)[:, None]
LABELS = (X[:, 0] > 0).astype(np.intp)


def test_student_is_a_clone_that_learnt_the_labels():
    prototype = DecisionTreeClassifier(random_state=0)
    student = fit_student(prototype, X, LABELS)
    assert student.predict(X).tolist() == LABELS.tolist()
    assert student is not prototype
    assert not hasattr(prototype, "tree_")


def test_without_labels_there_is_no_student():
    with pytest.raises(NothingReleasedError, match="no label was released") as error:
        fit_student(DecisionTreeClassifier(), X[:0], LABELS[:0])
    assert "\n" not in str(error.value)


def test_with_labels_of_one_class_the_student_always_predicts_it_and_says_so():
    with pytest.warns(PrivacyWarning, match=r"all 3 released label\(s\) are of one class"):
        student = fit_student(LogisticRegression(), X[:3], np.full(3, 4))
    assert student.predict(X).tolist() == [4] * 40
    assert student.classes_.tolist() == [4]
    assert student.predict_proba(X).tolist() == [[1.0]] * 40


def test_refitted_student_believes_nothing_before_two_classes_are_known():
    student = RefittedStudent(LogisticRegression(), X, 3)
    assert student.probabilities(0) is None
    student.refit([], [])
    student.refit([1, 2], [1, 1])
    assert student.probabilities(0) is None


@pytest.mark.parametrize("records", [X, pd.DataFrame(X, columns=["x"], index=np.arange(40) + 7)])
def test_refitted_student_equals_one_fitted_on_the_released_rows(records):
    rows, labels = [3, 30, 5, 36], [2, 0, 2, 0]
    student = RefittedStudent(LogisticRegression(), records, 4)
    student.refit(rows, labels)
    alone = LogisticRegression().fit(X[rows], labels).predict_proba(X)
    for query in range(40):
        believed = student.probabilities(query)
        assert believed.shape == (4,)
        assert believed[[0, 2]] == pytest.approx(alone[query])
        assert believed[[1, 3]].tolist() == [0, 0]


def test_refitting_starts_from_scratch():
    student = RefittedStudent(LogisticRegression(), X, 2)
    student.refit([0, 39], [1, 0])
    student.refit([0, 39], [0, 1])
    assert student.probabilities(0)[0] > 0.5


def test_interactive_needs_a_student_with_probabilities():
    with pytest.raises(InputError, match="RidgeClassifier has no predict_proba") as error:
        RefittedStudent(RidgeClassifier(), X, 2)
    assert "\n" not in str(error.value)
