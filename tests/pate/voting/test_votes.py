"""Vote tables: what is refused, and that counts are the weighted sums that they should be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collegium import VoteTable
from collegium.errors import InputError
from collegium.noise.grid import to_grid
from collegium.pate.voting.vote_table import ABSTAIN


def counted_by_hand(predictions, queries, weights, n_classes):
    counts = np.zeros((len(queries), n_classes))
    for row, query in enumerate(queries):
        for teacher, vote in enumerate(predictions[query]):
            if vote != ABSTAIN:
                counts[row, vote] += weights[row, teacher]
    return counts


@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(1, 9), st.booleans())
def test_counts_are_the_weighted_sums_of_the_votes(seed, n_classes, n_teachers, per_query):
    generator = np.random.default_rng(seed)
    predictions = generator.integers(ABSTAIN, n_classes, (7, n_teachers))
    queries = generator.permutation(7)[:5]
    weights = to_grid(generator.random((5, n_teachers)) * 3)
    if not per_query:
        weights[:] = weights[0]
    table = VoteTable.from_predictions(predictions, n_classes, allow_abstention=True)
    counts = table.counts(queries, weights if per_query else weights[0])
    assert (counts == counted_by_hand(predictions, queries, weights, n_classes)).all()


def test_counting_does_not_depend_on_the_order_of_the_teachers():
    """Sums on the grid are exact: no low digit tells who voted."""
    generator = np.random.default_rng(1)
    weights = to_grid(generator.random(400) * 3)
    votes = generator.integers(0, 3, (20, 400))
    order = generator.permutation(400)
    table = VoteTable.from_predictions(votes, 3).counts(np.arange(20), weights)
    shuffled = VoteTable.from_predictions(votes[:, order], 3).counts(np.arange(20), weights[order])
    assert (table == shuffled).all()
    assert (table == to_grid(table)).all()


def test_a_teacher_of_weight_zero_moves_nothing():
    weights = np.array([1.0, 0.0, 2.0])
    for vote in range(3):
        table = VoteTable.from_predictions([[0, vote, 2]], 3)
        assert table.counts(np.array([0]), weights).tolist() == [[1.0, 0.0, 2.0]]


def test_an_abstention_moves_no_count():
    table = VoteTable.from_predictions([[0, ABSTAIN, 1]], 2, allow_abstention=True)
    assert table.counts(np.array([0]), np.ones(3)).tolist() == [[1.0, 1.0]]


def test_counts_alone_give_the_same_counts():
    predictions = np.random.default_rng(0).integers(0, 4, (9, 30))
    votes = VoteTable.from_predictions(predictions, 4)
    everything = votes.counts(np.arange(9), np.ones(30))
    counts = VoteTable.from_counts(everything)
    assert (counts.n_queries, counts.n_teachers, counts.n_classes) == (9, 30, 4)
    some = np.array([4, 0, 7])
    assert (counts.counts(some, np.ones(30)) == everything[some]).all()


@pytest.mark.parametrize("weights", [[1.0, 2.0], [1.0, 0.0], [[1.0, 0.0], [1.0, 1.0]]])
def test_counts_alone_cannot_be_weighted(weights):
    counts = VoteTable.from_counts([[1, 1], [2, 0]])
    with pytest.raises(InputError, match="one column per teacher"):
        counts.counts(np.arange(2), np.array(weights))


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64, np.uint64, np.float32, bool])
def test_any_type_of_whole_numbers_will_do(kind):
    table = VoteTable.from_predictions(np.array([[0, 1, 1]], dtype=kind), 2)
    assert table.counts(np.array([0]), np.ones(3)).tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    "predictions",
    [
        [[0, 3]],
        [[0, -1]],
        [[0, -2]],
        [[0, 2**31]],
        [[0, 2**32]],
        [[0, -(2**31)]],
        [[0, -(2**32)]],
        [[0, -(2**63)]],
        np.array([[0, 2**64 - 1]], dtype=np.uint64),
        [[0, 0.5]],
        [[0, np.nan]],
        [[0, np.inf]],
        [["0", "1"]],
        [[None, 1]],
        [0, 1],
        [[[0, 1]]],
        [],
        [[]],
        np.empty((0, 3), dtype=int),
    ],
)
def test_votes_that_are_not_classes_are_refused_in_one_line(predictions):
    with pytest.raises(InputError) as refusal:
        VoteTable.from_predictions(predictions, 3)
    assert "\n" not in str(refusal.value)


def test_missing_values_that_became_integers_are_refused():
    """NaN cast to int64 is −2⁶³, which must not wrap around to class 0."""
    with np.errstate(invalid="ignore"):
        cast = np.array([[0.0, np.nan]]).astype(np.int64)
    with pytest.raises(InputError):
        VoteTable.from_predictions(cast, 3, allow_abstention=True)


def test_abstentions_must_be_allowed_on_purpose():
    with pytest.raises(InputError, match="1 vote"):
        VoteTable.from_predictions([[0, ABSTAIN]], 2)
    with pytest.raises(InputError, match="1 vote"):
        VoteTable.from_predictions([[0, ABSTAIN - 1]], 2, allow_abstention=True)


def test_one_class_is_not_enough():
    with pytest.raises(InputError, match="2 classes"):
        VoteTable.from_predictions([[0, 0]], 1)
    with pytest.raises(InputError, match="2 classes"):
        VoteTable.from_counts([[5], [5]])


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([[3, 1], [3, 2]], "add up"),
        ([[3, 1], [5, -1]], "negative"),
        ([[0, 0], [0, 0]], "no teacher"),
        ([[1.5, 2.5]], "whole numbers"),
    ],
)
def test_impossible_counts_are_refused(counts, message):
    with pytest.raises(InputError, match=message):
        VoteTable.from_counts(counts)


def test_messages_do_not_repeat_a_vote():
    for table in ([[0, 77177]], [[0, 0.77177]], [[0, 77177 * 10**9]]):
        with pytest.raises(InputError) as refusal:
            VoteTable.from_predictions(table, 3)
        assert "77177" not in str(refusal.value)
