"""Doubtful choice: half of the questions at random, then those that linear regression can hardly tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.checks import check_whole
from collegium.distillation.regression import RegressionStudent
from collegium.distillation.supervised import failure_is_told
from collegium.pate.queries.active_choice import answers_of
from collegium.pate.voting.aggregators import Aggregator
from collegium.pate.voting.labelling import Outcome
from collegium.pate.voting.release import LABELS
from collegium.personalisation.electorate import Electorate


class DoubtfulChooser:
    """A :class:`~collegium.pate.voting.choosing.QueryChooser` that asks where two classes are near.

    n faint histograms tell as much as fewer, clearer ones, wherever they are. So they belong where they
    decide: between classes that a student of the first half can hardly tell apart, and not among records of
    which every teacher says the same.

    ``points`` (n_public, n_features): public records as numbers, as the teachers see them.
    ``order`` (n_public,): public order of the first half, and of what follows if nothing can be learnt.
    ``planned``: how many questions are asked.
    ``electorate``, ``aggregator``, ``n_classes``, ``release``, ``targets``, ``tell``: as
        :class:`~collegium.pate.queries.active_choice.ActiveChooser` has them.

    Notes
    -----
    The first half is linearly regressed on the points
    (:class:`~collegium.distillation.regression.RegressionStudent`), whichever student learns in the end. The
    others come in the order of the ratio of their two largest beliefs, the least first. It is a function of
    public records and released outcomes, and so costs nothing.
    """

    def __init__(
        self,
        points: Any,
        order: NDArray[np.intp],
        planned: int,
        electorate: Electorate,
        aggregator: Aggregator,
        n_classes: int,
        *,
        release: str = LABELS,
        targets: str = "mixture",
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        check_whole("planned", planned)
        self._points = np.asarray(points, dtype=np.float64)
        self._order = np.asarray(order, dtype=np.intp)
        self._half = (planned + 1) // 2
        self._read = (electorate, aggregator, n_classes, release, targets)
        self._tell = tell
        self._known: tuple[tuple[Outcome, ...], NDArray[np.intp]] | None = None

    def next(self, n: int, outcomes: Sequence[Outcome]) -> list[int]:
        """Choose up to ``n`` rows that were not asked about; see the protocol."""
        asked = {outcome.query for outcome in outcomes}
        ranking, room = self._order, min(n, self._half - len(outcomes))
        if len(outcomes) >= self._half:
            ranking, room = self._ranking(tuple(outcomes[: self._half])), n
        return [row for row in ranking.tolist() if row not in asked][:room]

    def _ranking(self, lesson: tuple[Outcome, ...]) -> NDArray[np.intp]:
        """Order of all public records after the first half, the most doubtful first."""
        if self._known is None or self._known[0] != lesson:
            self._known = lesson, self._rank(lesson)
        return self._known[1]

    def _rank(self, lesson: tuple[Outcome, ...]) -> NDArray[np.intp]:
        queries, codes, targets = answers_of(lesson, *self._read)
        if np.unique(codes).size < 2:
            return self._order
        ranking = self._order
        with failure_is_told(self._tell, len(codes), "so the next questions come in random order"):
            ranking = most_doubtful(self._points, self._order, queries, targets)
        return ranking


def most_doubtful(
    points: NDArray[Any],
    order: NDArray[np.intp],
    queries: NDArray[np.intp],
    targets: NDArray[np.float64],
) -> NDArray[np.intp]:
    """Put public records in the order of how near their two likeliest classes are, by linear regression.

    ``points`` (n_public, n_features): public records.
    ``order`` (n_public,): breaks ties.
    ``queries`` (n_answers,), ``targets`` (n_answers, n_classes): what was released.
    Returns (n_public,): rows, the most doubtful first, those in ``queries`` among them.

    Examples
    --------
    >>> points = np.linspace(-1, 1, 41).reshape(-1, 1)
    >>> targets = np.where(points > 0, [[0.9, 0.1]], [[0.1, 0.9]])
    >>> most_doubtful(points, np.arange(41), np.arange(41), targets)[0] in (19, 20, 21)
    True
    """
    guide = RegressionStudent(powers=(1.0,), widths=())
    beliefs = guide.fit_released(points, queries, targets).beliefs_[order]
    first_two = np.sort(np.log(np.maximum(beliefs, 1e-300)), axis=1)[:, -2:]
    return np.asarray(order[np.argsort(first_two[:, 1] - first_two[:, 0], kind="stable")])
