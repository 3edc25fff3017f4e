"""Active choice: ask next where a student that learnt from what was released is least certain."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.distillation.supervised import failure_is_told, released_beliefs
from collegium.errors import InputError
from collegium.pate.queries.selection import next_queries
from collegium.pate.voting.aggregators import Aggregator
from collegium.pate.voting.histograms import released_histograms
from collegium.pate.voting.labelling import NO_LABEL, Labels, Outcome
from collegium.pate.voting.release import HISTOGRAM, LABELS
from collegium.pate.voting.targets import released_targets
from collegium.personalisation.electorate import Electorate

FIRST_LABELS = 16
GROWTH = 1.5


class ActiveChooser:
    """A :class:`~collegium.pate.voting.choosing.QueryChooser` that follows a student's doubts.

    The first questions are those of a public order. Whenever the number of released labels has reached
    16, 24, 36, 54 … (half as many again), the student is fitted afresh to all labels released so far,
    soft targets included where histograms are released, and the public records that were not asked
    about are put into a new order by :func:`~collegium.pate.queries.selection.next_queries`.

    ``student``: cloned for each fit; with a fixed ``random_state``, the same outcomes lead to the
        same choice.
    ``X_public`` (n_public, ...): public records as the student sees them.
    ``points`` (n_public, n_features): public records as numbers whose distances mean something.
    ``order`` (n_public,): public order of the first questions, a permutation.
    ``electorate``: the job's: public numbers, with which histograms are read.
    ``targets``: what the student learns from histograms.
    ``first``, ``growth``: labels before the first fit, and how much more before each further one.
    ``tell``: told, in one line, if the student could not be fitted: the order then goes on as
        before.

    Notes
    -----
    The choice is a function of public records and released outcomes: it costs nothing, and the price of a
    question does not depend on the record (the whole argument: :mod:`collegium.pate.voting.choosing`). A
    block ends where the student is to be fitted again, so the choice does not depend on where blocks began:
    a job that was interrupted goes on as if it had not been. (Answers that were lost in a crash are missing,
    though: from there on, it may ask about other records.)
    """

    def __init__(
        self,
        student: Any,
        X_public: Any,
        points: Any,
        order: NDArray[np.intp],
        electorate: Electorate,
        aggregator: Aggregator,
        n_classes: int,
        *,
        release: str = LABELS,
        targets: str = "mixture",
        first: int = FIRST_LABELS,
        growth: float = GROWTH,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        require_beliefs(student)
        if first < 2 or not growth > 1:
            raise InputError(
                f"first={first!r} and growth={growth!r} were given; allowed are first from 2 and growth "
                "above 1"
            )
        self._student = student
        self._X_public = X_public
        self._points = points
        self._order = np.asarray(order, dtype=np.intp)
        self._electorate = electorate
        self._aggregator = aggregator
        self._n_classes = n_classes
        self._release = release
        self._targets = targets
        self._first = first
        self._growth = growth
        self._tell = tell
        self._rankings: dict[int, tuple[tuple[Outcome, ...], NDArray[np.intp] | None]] = {}

    def next(self, n: int, outcomes: Sequence[Outcome]) -> list[int]:
        """Choose up to ``n`` rows that were not asked about; see the protocol."""
        labelled = [place for place, outcome in enumerate(outcomes) if outcome.label != NO_LABEL]
        fits, wanted = [], self._first
        while wanted <= len(labelled):
            fits.append(wanted)
            wanted = max(wanted + 1, math.ceil(wanted * self._growth))
        ranking = self._order
        for n_labels in reversed(fits):
            # What came after this label is not looked at: blocks leave no trace in the choice.
            lesson = tuple(outcomes[: labelled[n_labels - 1] + 1])
            found = self._ranking(n_labels, lesson)
            if found is not None:
                ranking = found
                break
        asked = {outcome.query for outcome in outcomes}
        room = min(n, wanted - len(labelled))
        return [row for row in ranking.tolist() if row not in asked][:room]

    def _ranking(self, n_labels: int, lesson: tuple[Outcome, ...]) -> NDArray[np.intp] | None:
        """Order of all that was not asked about, after so many labels; None if nothing can be learnt."""
        known = self._rankings.get(n_labels)
        if known is None or known[0] != lesson:
            known = self._rankings[n_labels] = (lesson, self._rank(lesson))
        return known[1]

    def _rank(self, lesson: tuple[Outcome, ...]) -> NDArray[np.intp] | None:
        queries, codes, targets = answers_of(
            lesson,
            self._electorate,
            self._aggregator,
            self._n_classes,
            self._release,
            self._targets,
        )
        if np.unique(codes).size < 2:
            return None
        asked = [outcome.query for outcome in lesson]
        ranking: NDArray[np.intp] | None = None
        consequence = "so the next questions follow the order from before"
        with failure_is_told(self._tell, len(codes), consequence):
            beliefs = released_beliefs(
                self._student, self._X_public, queries, codes, self._n_classes, targets
            )
            ranking = next_queries(beliefs, self._points, asked, len(self._points))
        return ranking


def answers_of(
    outcomes: Sequence[Outcome],
    electorate: Electorate,
    aggregator: Aggregator,
    n_classes: int,
    release: str,
    targets: str,
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Read what was released while a job goes on: rows, labels, and targets (n_answers, n_classes)."""
    answers = [outcome for outcome in outcomes if outcome.label != NO_LABEL]
    queries = np.array([outcome.query for outcome in answers], dtype=np.intp)
    codes = np.array([outcome.label for outcome in answers], dtype=np.intp)
    labels = Labels(list(outcomes), queries, codes, "interrupted")
    histograms = None
    if release == HISTOGRAM:
        histograms = released_histograms(labels, electorate, aggregator, n_classes)
    return queries, codes, released_targets(labels, n_classes, histograms, targets)


def require_beliefs(student: Any) -> None:
    """Refuse a student that cannot say how sure it is."""
    if not hasattr(student, "predict_proba"):
        raise InputError(
            "the query order 'active' asks where the student is least certain, and "
            f"{type(student).__name__} has no predict_proba: use a student that has, or the order 'coverage'"
        )
