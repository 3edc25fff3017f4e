"""What teachers, votes and students got right."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reproduction.records import Split
from reproduction.votings import Voting


def confusion(
    truth: NDArray[np.intp], predicted: NDArray[np.intp] | None, n_classes: int
) -> NDArray[np.int64]:
    """Count records by true and predicted class; all 0 without predictions.

    Examples
    --------
    >>> confusion(np.array([0, 1, 1]), np.array([0, 0, 1]), 2).tolist()
    [[1, 0], [1, 1]]
    """
    table = np.zeros((n_classes, n_classes), dtype=np.int64)
    if predicted is not None:
        np.add.at(table, (truth, predicted), 1)
    return table


def accuracies(confusions: NDArray[np.int64]) -> NDArray[np.float64]:
    """Accuracy of each student in percent, shape (n_students,); NaN where none could be trained."""
    right = np.trace(confusions, axis1=1, axis2=2)
    with np.errstate(invalid="ignore"):
        return np.asarray(100.0 * right / confusions.sum(axis=(1, 2)))


def class_accuracies(confusions: NDArray[np.int64]) -> NDArray[np.float64]:
    """Accuracy within each class in percent, shape (n_students, n_classes)."""
    right = np.diagonal(confusions, axis1=1, axis2=2)
    with np.errstate(invalid="ignore"):
        return np.asarray(100.0 * right / confusions.sum(axis=2))


def voting_accuracy(split: Split, voting: Voting) -> float:
    """Share of the released labels that are right, in percent; NaN without labels."""
    if not len(voting.labels):
        return float("nan")
    return 100.0 * float(np.mean(voting.labels == split.codes_public[voting.queries]))


def teacher_accuracies(split: Split, test_votes: NDArray[np.int8]) -> NDArray[np.float64]:
    """Accuracy of each teacher on the test records, in percent, shape (n_teachers,).

    Parameters
    ----------
    split : Split
        The records.
    test_votes : ndarray of int8, shape (n_test, n_teachers)
        What the teachers say of the test records.
    """
    return np.asarray(100.0 * (test_votes == split.codes_test[:, None]).mean(axis=0))
