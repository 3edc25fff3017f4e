"""Students are told apart by released answers that they did not see."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from collegium.distillation.held_out import choose_held_out
from collegium.distillation.regression import RegressionStudent
from collegium.errors import InputError
from collegium.pate.voting.targets import class_posterior

LINEAR = RegressionStudent(powers=(1.0,), widths=())


class Parrot(BaseEstimator):
    """Believes what it was told, and nothing about other records."""

    def fit_released(self, X, queries, targets):
        self.beliefs_ = np.full((len(X), targets.shape[1]), 1 / targets.shape[1])
        self.beliefs_[queries] = targets
        return self


def released(n=600, noise=30.0, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    votes = 50.0 * np.eye(3)[X.argmax(axis=1)]
    return X, class_posterior(votes + random.normal(0, noise, votes.shape), noise, np.full(n, 50.0))


def test_one_that_learnt_replaces_one_that_repeats_what_it_was_told():
    X, targets = released()
    rows = np.arange(len(X))
    assert choose_held_out((Parrot(), X), (LINEAR, X), rows, targets).second
    # with all answers in view the parrot would never be contradicted
    assert choose_held_out((LINEAR, X), (Parrot(), X), rows, targets).lead < -5


def test_each_student_has_a_view_of_its_own_and_stays_as_it_was():
    X, targets = released()
    blind = np.random.default_rng(1).normal(size=X.shape)
    choice = choose_held_out((LINEAR, blind), (LINEAR, X), np.arange(len(X)), targets)
    assert choice.second and choice.differ > 0.3
    assert not hasattr(LINEAR, "beliefs_")


def test_the_first_stands_where_answers_say_nothing():
    """The lead of a student as blind as the first is about standard normal: |lead| > 4 in 1 of 16,000."""
    leads = []
    for seed in range(12):
        X, targets = released(120, seed=seed)
        random = np.random.default_rng([seed, 1])
        views = random.normal(size=(2, *X.shape))
        choice = choose_held_out(
            (LINEAR, views[0]), (LINEAR, views[1]), np.arange(len(X)), targets, random_state=seed
        )
        leads.append(choice.lead)
    assert max(np.abs(leads)) < 4
    assert 0.5 < np.sqrt(np.mean(np.square(leads))) < 1.6


class Fixed(BaseEstimator):
    """Believes what it always believed."""

    def __init__(self, beliefs):
        self.beliefs = beliefs

    def fit_released(self, X, queries, targets):
        self.beliefs_ = self.beliefs
        return self


def test_answers_count_where_both_students_are_sure_of_different_classes():
    """Ten answers where both are sure outweigh sixty where one of them hardly is."""
    sure, hardly = [0.0, 1.0], [0.49, 0.51]
    second = np.array([sure] * 10 + [hardly] * 60)
    targets = np.array([[0.2, 0.8]] * 10 + [[0.8, 0.2]] * 60)
    first = np.tile([1.0, 0.0], (70, 1))
    views = ((Fixed(first), first), (Fixed(second), second))
    choice = choose_held_out(*views, np.arange(70), targets)
    assert choice.differ == 1 and choice.lead > 0


def test_a_student_is_never_ahead_of_itself():
    X, targets = released(60)
    choice = choose_held_out((LINEAR, X), (LINEAR, X), np.arange(0, 60, 2), targets[::2])
    assert (choice.differ, choice.lead, choice.second) == (0.0, 0.0, False)
    assert "do not contradict" in choice.in_words


@pytest.mark.parametrize(("n", "folds", "said"), [(5, 3, "5 answers"), (40, 1, "folds")])
def test_too_few_answers_or_folds_are_refused(n, folds, said):
    X, targets = released(40)
    with pytest.raises(InputError, match=said):
        choose_held_out((LINEAR, X), (LINEAR, X), np.arange(n), targets[:n], folds=folds)
