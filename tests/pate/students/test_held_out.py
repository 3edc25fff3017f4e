"""Students are told apart by released answers that they did not see."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from collegium.errors import InputError
from collegium.pate.students.held_out import held_out_scores
from collegium.pate.students.regression import RegressionStudent
from collegium.pate.students.targets import class_posterior


class Parrot(BaseEstimator):
    """Believes what it was told, and nothing about other records."""

    def fit_released(self, X, queries, targets):
        self.beliefs_ = np.full((len(X), targets.shape[1]), 1 / targets.shape[1])
        self.beliefs_[queries] = targets
        return self


def released(n=600, noise=30.0):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 3))
    votes = 50.0 * np.eye(3)[X.argmax(axis=1)]
    return X, class_posterior(votes + random.normal(0, noise, votes.shape), noise, np.full(n, 50.0))


def test_a_student_that_learnt_beats_one_that_repeats_what_it_was_told():
    X, targets = released()
    rows = np.arange(len(X))
    linear = RegressionStudent(powers=(1.0,), widths=())
    learnt, repeated = held_out_scores([(linear, X), (Parrot(), X)], rows, targets)
    assert learnt > 20
    assert repeated < 1  # all answers in view it would be the best of all


def test_each_student_has_a_view_of_its_own_and_stays_as_it_was():
    X, targets = released()
    rows = np.arange(len(X))
    student = RegressionStudent(powers=(1.0,), widths=())
    blind = np.random.default_rng(1).normal(size=X.shape)
    seeing, guessing = held_out_scores([(student, X), (student, blind)], rows, targets)
    assert seeing > guessing + 20
    assert not hasattr(student, "beliefs_")


def test_the_same_answers_give_the_same_scores():
    X, targets = released(200)
    rows = np.arange(0, 200, 2)
    given = [(RegressionStudent(powers=(1.0,), widths=()), X)]
    assert held_out_scores(given, rows, targets[rows]) == held_out_scores(
        given, rows, targets[rows]
    )


@pytest.mark.parametrize("wrong", [{"held_out": 0.0}, {"held_out": 1.0}])
def test_shares_outside_are_refused(wrong):
    X, targets = released(40)
    with pytest.raises(InputError, match="held_out"):
        held_out_scores([(Parrot(), X)], np.arange(40), targets, **wrong)


def test_too_few_answers_are_refused():
    X, targets = released(3)
    with pytest.raises(InputError, match="3 answers were given"):
        held_out_scores([(Parrot(), X)], np.arange(3), targets)
