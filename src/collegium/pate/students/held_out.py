"""Which of several students to publish, told by released answers that each did not see: no private record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from collegium.checks import check_number
from collegium.errors import InputError
from collegium.pate.students.released import even_evidence

_MISTRUST = 0.02


def held_out_scores(
    candidates: Sequence[tuple[Any, Any]],
    queries: NDArray[np.intp],
    targets: NDArray[np.float64],
    *,
    held_out: float = 1 / 3,
    random_state: int = 0,
) -> list[float]:
    """Score students by answers that they were not shown; the largest score is the one to publish.

    Released histograms are public once they are paid for, so a choice that reads nothing else costs nobody
    anything (post-processing). A student is trained on some of the answers and judged by the others: by the
    evidence in them for the classes that it names. So only records of which students name different classes
    tell them apart, and how sure a student is does not count: one that is rightly too sure of itself lost
    to a worse one by the likelihood of its beliefs. True labels are not needed. It judges
    who foretells what *most teachers* say, which is not the truth where they are wrong together.

    Parameters
    ----------
    candidates : sequence of (student, X)
        Each student, not changed, with a method ``fit_released`` and an attribute ``beliefs_`` afterwards;
        and all public records as this student sees them, shape (n_public, n_features).
    queries : ndarray of int, shape (n_answers,)
        Rows that were answered, at least 4.
    targets : ndarray, shape (n_answers, n_classes)
        P(answer | class), rows scaled to add up to 1:
        :func:`~collegium.pate.students.targets.class_posterior`.
    held_out : float, default=1/3
        Share of the answers that judges.
    random_state : int, default=0
        Draws them.

    Returns
    -------
    list of float
        For each candidate, the sum over held-out answers of log P(answer | class it names) less the log of
        the mean over all classes, in nats. Differences of a few nats are chance.

    Raises
    ------
    InputError
        If there are fewer than 4 answers, no candidate, or a share outside 0 to 1.

    Examples
    --------
    >>> from collegium.pate.students.regression import RegressionStudent
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> targets = np.where(X[:, :1] > 0, [[0.8, 0.2]], [[0.2, 0.8]])
    >>> noise = np.random.default_rng(1).normal(size=X.shape)
    >>> seeing, blind = held_out_scores(
    ...     [(RegressionStudent(), X), (RegressionStudent(), noise)], np.arange(60), targets
    ... )
    >>> seeing > blind
    True
    """
    check_number("held_out", held_out, above=0, below=1)
    if len(queries) < 4 or not candidates:
        raise InputError(
            f"{len(candidates)} students and {len(queries)} answers were given; allowed are at least one "
            "student and 4 answers: release more of them, or name the student"
        )
    order = np.random.default_rng([random_state, 6]).permutation(len(queries))
    n_held = min(max(1, round(held_out * len(queries))), len(queries) - 1)
    judged, learnt = order[:n_held], np.sort(order[n_held:])
    evidence = even_evidence(targets[judged], _MISTRUST)
    scores = []
    for student, X in candidates:
        fitted = clone(student).fit_released(X, queries[learnt], targets[learnt])
        named = fitted.beliefs_[queries[judged]].argmax(axis=1)
        scores.append(float(evidence[np.arange(n_held), named].sum()))
    return scores
