"""Votings: a voting without limits passes the very labels at which a limited one stops."""

import numpy as np
import pytest

from collegium import Budget, ConfidentGNMax, GNMax, VoteTable
from reproduction.readings import PUBLISHED, SOUND
from reproduction.votings import History, vote, vote_without_limits

GROUPS = {"low": Budget(2.0), "high": Budget(6.0)}
SIZES = {"low": 700, "high": 300}


@pytest.mark.parametrize("variant", ["none", "upsampling", "weighting", "vanishing"])
@pytest.mark.parametrize("reading", [PUBLISHED, SOUND], ids=lambda reading: reading.name)
def test_a_voting_without_limits_goes_through_the_limited_one(house, reading, variant):
    plan = reading.personalisation(variant).plan(GROUPS, SIZES, 60)
    votes = VoteTable.from_predictions(house.predictions(300, plan.n_teachers, 4, 0.9), 4)
    aggregator = ConfidentGNMax(threshold=40, sigma_threshold=30, sigma=15)
    limited = vote(votes, plan, reading, aggregator, (1, 2))
    free = vote_without_limits(votes, plan, reading, aggregator, (1, 2))
    budgets = [group.budget.epsilon for group in plan.groups.values()]
    assert 0 < len(limited.labels) < 300
    assert len(free.labels) == 300
    assert (np.diff(free.epsilon, axis=0) >= -1e-12).all()
    if variant == "vanishing" and reading is SOUND:
        # A query is refused unless check and answer can be paid; the next may cost the group nothing.
        assert free.labels_within(budgets) >= len(limited.labels)
    else:
        assert free.labels_within(budgets) == len(limited.labels)
    if reading is PUBLISHED:
        assert np.isin(free.order, np.arange(2, 51)).all()


def test_histograms_are_of_the_nominal_number_of_teachers(house):
    plan = SOUND.personalisation("upsampling").plan(GROUPS, SIZES, 60)
    votes = VoteTable.from_predictions(house.predictions(40, plan.n_teachers, 4, 0.9), 4)
    made = vote(votes, plan, SOUND, GNMax(sigma=60.0), (0, 0), release="histogram")
    assert plan.n_teachers > 60
    assert made.noisy_counts.shape == (len(made.labels), 4)
    assert np.array_equal(made.noisy_counts.argmax(axis=1), made.labels)
    # Rows add up to 60 plus four independent noises of 60 each: a mean beyond 5 errors has chance 6e-7.
    error = 2 * 60.0 / np.sqrt(len(made.labels))
    assert abs(made.noisy_counts.sum(axis=1).mean() - 60) < 5 * error


def test_spending_per_label():
    history = History(
        np.array([0, 1, 1, 2]), np.array([[0.1], [0.4], [0.5], [0.9]]), np.zeros((4, 1))
    )
    assert history.at_labels(3)[:, 0].tolist()[:2] == [0.4, 0.9]
    assert np.isnan(history.at_labels(3)[2, 0])
    assert [history.labels_within([b]) for b in (0.05, 0.1, 0.45, 0.89, 0.9)] == [0, 0, 1, 1, 2]
