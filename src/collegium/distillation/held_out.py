"""Which of two students to publish, told by released answers that they did not see: no private record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from collegium.checks import check_whole
from collegium.distillation.released import even_evidence
from collegium.errors import InputError

_MISTRUST = 0.02
_CONTRADICTED = 3.0  # standard errors
_LEAST_WEIGHT = 0.1


@dataclass(frozen=True)
class HeldOutChoice:
    """Which of both, and why; made of released and public things alone.

    ``differ``: share of the answered records of which the students name different classes.
    ``lead``: evidence there for the second student's classes against the first one's, in standard errors;
        0 where they never differ.
    """

    differ: float
    lead: float

    @property
    def second(self) -> bool:
        """Whether the second is to be published."""
        return self.lead > _CONTRADICTED

    @property
    def in_words(self) -> str:
        """One line."""
        verdict = "contradict the first" if self.second else "do not contradict the first"
        return (
            f"the students name different classes for {self.differ:.1%} of the answered records; answers "
            f"that neither was shown {verdict} (second ahead by {self.lead:.1f} standard errors)"
        )


def choose_held_out(
    first: tuple[Any, Any],
    second: tuple[Any, Any],
    queries: NDArray[np.intp],
    targets: NDArray[np.float64],
    *,
    folds: int = 3,
    random_state: int = 0,
) -> HeldOutChoice:
    """Believe the first student unless answers that it was not shown contradict it beyond chance.

    Released histograms are public once they are paid for, so a choice that reads nothing else costs nobody
    anything (post-processing); no true label is needed. Both are trained without a fold of the answers, for
    each fold. Where they name different classes, an answer speaks for one or the other by
    log P(r | c₂) − log P(r | c₁), whose noise is independent of both. It counts as much as the less sure of
    both prefers its class to the other's, by the difference of its beliefs (and a tenth at least: one may
    have none): where one hardly does, little is lost by either. The sum over such records, over the root of
    the sum of squares, is about standard normal where neither is better.

    The comparison sees what *most teachers* say, which is not the truth where they are wrong together, and
    it has little power where answers are faint: hence an order, and not the larger sum. Let the first be
    the one that a wrong choice loses most without.

    Parameters
    ----------
    first, second : (student, X)
        A student, not changed, with a method ``fit_released`` and an attribute ``beliefs_`` afterwards; and
        all public records as this student sees them, shape (n_public, n_features).
    queries : ndarray of int, shape (n_answers,)
        Rows that were answered, at least two for each fold.
    targets : ndarray, shape (n_answers, n_classes)
        P(answer | class), rows scaled to add up to 1:
        :func:`~collegium.pate.voting.targets.class_posterior`.
    folds : int, default=3
        Parts of the answers; at least 2.
    random_state : int, default=0
        Deals answers to folds.

    Returns
    -------
    HeldOutChoice

    Raises
    ------
    InputError
        If there are fewer than two folds, or answers for them.

    Examples
    --------
    >>> from collegium.distillation.regression import RegressionStudent
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> targets = np.where(X[:, :1] > 0, [[0.8, 0.2]], [[0.2, 0.8]])
    >>> noise = np.random.default_rng(1).normal(size=X.shape)
    >>> blind, seeing = (RegressionStudent(), noise), (RegressionStudent(), X)
    >>> choose_held_out(blind, seeing, np.arange(60), targets).second
    True
    """
    check_whole("folds", folds, least=2)
    if len(queries) < 2 * folds:
        raise InputError(
            f"{len(queries)} answers were given for {folds} folds; allowed are at least {2 * folds}: release "
            "more of them, or name the student"
        )
    evidence = even_evidence(targets, _MISTRUST)
    leads = np.zeros(len(queries))
    differ = np.zeros(len(queries), dtype=bool)
    order = np.random.default_rng([random_state, 6]).permutation(len(queries))
    for judged in np.array_split(order, folds):
        learnt = np.setdiff1d(order, judged)
        beliefs = [
            clone(student)
            .fit_released(X, queries[learnt], targets[learnt])
            .beliefs_[queries[judged]]
            for student, X in (first, second)
        ]
        named = [believed.argmax(axis=1) for believed in beliefs]
        sure = [
            believed[range(len(judged)), own] - believed[range(len(judged)), other]
            for believed, own, other in zip(beliefs, named, reversed(named), strict=True)
        ]
        said = evidence[judged, named[1]] - evidence[judged, named[0]]
        leads[judged] = np.maximum(np.minimum(*sure), _LEAST_WEIGHT) * said
        differ[judged] = named[0] != named[1]
    spread = float(np.sqrt((leads**2).sum()))
    return HeldOutChoice(float(differ.mean()), float(leads.sum()) / spread if spread else 0.0)
