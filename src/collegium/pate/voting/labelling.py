"""The labelling job: ask one query after the other until a budget, the queries or the labels run out.

The order of events for each query is what makes it sound: the price is known before any noise is
drawn; a query that somebody cannot afford is refused, which ends the job; the intention is durable in
the journal before noise is drawn, and the outcome is durable before it leaves.

With ``release="histogram"`` an outcome also carries the noisy counts that its label is the arg max of,
and the noisy value of the check. They are the very values that the verdict and the label are computed
from: nothing is drawn for them, and nothing more is charged (:mod:`collegium.pate.voting.release`).

Which record is asked about next may be fixed, or chosen from what was released so far, at the same price
(:mod:`collegium.pate.voting.choosing`). What was reserved is asked about as it stands in the journal: nobody
chooses the past again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from collegium.checks import check_whole
from collegium.errors import BudgetExceededError, InputError
from collegium.noise.grid import GRID, MAX_GRID_VALUE, to_grid
from collegium.noise.sums import MAX_SCALE, Noise, NoisySum
from collegium.pate.voting.charging import (
    ANSWERED,
    LOST,
    REINFORCED,
    REJECTED,
    UNAFFORDABLE,
    Price,
    charge_again,
    may_start,
)
from collegium.pate.voting.choosing import Agenda, QueryChooser, check_choosing
from collegium.pate.voting.noisy_maxima import Aggregator
from collegium.pate.voting.pricing import Prices, Pricing
from collegium.pate.voting.release import HISTOGRAM, LABELS, check_release
from collegium.pate.voting.vote_table import VoteTable
from collegium.personalisation.electorate import Ballot, Electorate

__all__ = [
    "ANSWERED",
    "LOST",
    "NO_LABEL",
    "REINFORCED",
    "REJECTED",
    "UNAFFORDABLE",
    "InteractiveStudent",
    "Journal",
    "LabellingJob",
    "Labels",
    "NoJournal",
    "Outcome",
    "refuse_noise_out_of_range",
    "refuse_weights_off_the_grid",
]

NO_LABEL = -1
BLOCK = 16
"""Queries between two writes of the journal, where budgets pay for more than ten such blocks."""
_CHUNK = 512


@dataclass(frozen=True)
class Outcome:
    """What became of one query. Safe to release under the worst-case guarantee.

    ``position``: place in the order of asking.
    ``query``: row of the public records.
    ``verdict``: ``lost``: charged in full, but the outcome did not survive a crash.
        ``unaffordable``: the check passed, but not the account (data-dependent guarantee only); the
        job ends.
    ``label``: class number, or -1.
    ``noisy_counts``: only where histograms are released, and the teachers answered: weighted counts
        + noise, in votes, multiples of the grid. The label is the arg max.
    ``noisy_check``: only where histograms are released, and there was a check: what was compared
        with the threshold, whether or not it passed.
    """

    position: int
    query: int
    verdict: str
    label: int
    noisy_counts: tuple[float, ...] | None = None
    noisy_check: float | None = None


class InteractiveStudent(Protocol):
    """What Interactive-GNMax needs of a student."""

    def refit(self, queries: list[int], labels: list[int]) -> None:
        """Learn from all labels released so far."""

    def probabilities(self, query: int) -> NDArray[np.float64] | None:
        """Probability of each class for one public record; None before the first fit."""


class Journal(Protocol):
    """Durable memory of a job: see :mod:`collegium.study.journal`."""

    @property
    def reserved(self) -> tuple[int, list[int]] | None:
        """Queries that may have been drawn, and have no outcome: position of the first, and their rows."""

    def settled(self) -> list[Outcome]:
        """Outcomes that are durable, in order; queries that may have been drawn count as lost."""

    def reserve(self, first: int, queries: list[int]) -> None:
        """Make durable that these queries, from position ``first`` on, may be drawn from now on."""

    def settle(self, outcomes: list[Outcome]) -> None:
        """Make the outcomes of the reserved queries durable; the rest was never drawn."""


class NoJournal:
    """A journal for jobs that live and die with the process."""

    reserved = None

    def settled(self) -> list[Outcome]:
        """None is."""
        return []

    def reserve(self, first: int, queries: list[int]) -> None:
        """Remember nothing."""

    def settle(self, outcomes: list[Outcome]) -> None:
        """Remember nothing."""


@dataclass(frozen=True, eq=False)
class Labels:
    """Result of a labelling job.

    ``outcomes``: every query asked, in order.
    ``queries`` (n_labels,): rows of the public records that got a label.
    ``labels`` (n_labels,): their classes.
    """

    outcomes: list[Outcome]
    queries: NDArray[np.intp]
    labels: NDArray[np.intp]
    stop_reason: str

    @property
    def n_asked(self) -> int:
        """Number of queries asked (checks made, where the aggregator has a check)."""
        return len(self.outcomes)

    @property
    def n_answered(self) -> int:
        """Number of queries that the teachers answered."""
        return sum(outcome.verdict == ANSWERED for outcome in self.outcomes)


def refuse_weights_off_the_grid(electorate: Electorate) -> None:
    """Refuse weights whose sums would be rounded, or show in the last bits of a count (``docs/noise.md``)."""
    if (to_grid(electorate.weights) != electorate.weights).any():
        raise InputError(
            f"teacher weights must be multiples of {GRID!r}, on which the noise is drawn: round them with "
            "collegium.noise.grid.to_grid before sensitivities are computed"
        )
    if electorate.weights.sum() > MAX_GRID_VALUE:
        raise InputError(
            "teacher weights add up to more than 2**33 votes, beyond which counts are not exact: give "
            "smaller ones"
        )


def refuse_noise_out_of_range(aggregator: Aggregator, electorate: Electorate) -> None:
    """Refuse, before anything is reserved, noise that cannot be drawn."""
    largest = float(electorate.weights.sum()) / electorate.n_nominal
    scales = [aggregator.noise_scale]
    if aggregator.has_check:
        scales.append(aggregator.check_scale)
    if max(scales) * largest > MAX_SCALE:
        raise InputError(
            f"{aggregator} asks for noise of scale {max(scales) * largest:g} votes: at most "
            f"{MAX_SCALE:g} can be drawn exactly; lower it"
        )


class LabellingJob:
    """One pass over the public records.

    ``votes``: **Sensitive.**
    ``pricing``: prices and accountant; fresh, unless the job goes on.
    ``noise``: adds noise to counts: nothing else of the votes comes out.
    ``order`` (n_queries,): public order in which queries are asked, or who chooses them from what
        was released so far.
    ``max_queries``: stop after so many queries.
    ``max_labels``: stop after so many labels.
    ``journal``: durable memory; default: none.
    ``block``: queries between two writes of the journal: as many are lost at most in a crash.
    ``should_stop``: asked before each query; True ends the job with everything settled.
    ``progress``: called with the number of queries asked so far.
    ``release``: what outcomes show: labels, or also the noisy counts and checks that they follow
        from.
    """

    def __init__(
        self,
        votes: VoteTable,
        electorate: Electorate,
        aggregator: Aggregator,
        pricing: Pricing,
        noise: NoisySum,
        order: NDArray[np.intp] | QueryChooser,
        *,
        student: InteractiveStudent | None = None,
        max_queries: int | None = None,
        max_labels: int | None = None,
        journal: Journal | None = None,
        block: int = BLOCK,
        should_stop: Callable[[], bool] = lambda: False,
        progress: Callable[[int], None] = lambda asked: None,
        release: str = LABELS,
    ) -> None:
        check_release(release, aggregator, pricing.guarantee)
        if release == HISTOGRAM and not pricing.pays_for_histogram:
            raise InputError(
                "a histogram cannot be released at the price of a label: it tells more; use "
                "WorstCasePricing, or release labels"
            )
        if votes.n_teachers != electorate.n_teachers:
            raise InputError(
                f"there are votes of {votes.n_teachers} teachers, but {electorate.n_teachers} teachers "
                "in the plan: give the votes of exactly these teachers"
            )
        if aggregator.consults_student and student is None:
            raise InputError(
                f"aggregator {aggregator.name!r} needs a student: give one, or use 'confident'"
            )
        refuse_weights_off_the_grid(electorate)
        refuse_noise_out_of_range(aggregator, electorate)
        self._shows_histograms = release == HISTOGRAM
        self._votes = votes
        self._electorate = electorate
        self._aggregator = aggregator
        self._pricing = pricing
        self._noise = noise
        self._agenda = Agenda(order, votes.n_queries, max_queries)
        if self._agenda.is_chosen:
            check_choosing(aggregator, pricing.guarantee)
        check_whole("block", block)
        self._student = student if aggregator.consults_student else None
        self._max_labels = max_labels
        self._journal: Journal = journal if journal is not None else NoJournal()
        self._block = block
        self._should_stop = should_stop
        self._progress = progress
        self._first = 0
        self._ballots: list[Ballot] = []
        self._sensitive_counts: NDArray[np.float64] = np.empty((0, votes.n_classes))
        self._prices: Prices | None = None
        self._queries: list[int] = []
        self._labels: list[int] = []
        self._learnt = 0
        self._exhausted = False

    def run(self) -> Labels:
        """Replay what is durable, then go on until something runs out."""
        outcomes = self._restore()
        reason = self._reason_to_stop(len(outcomes))
        while reason is None:
            first = len(outcomes)
            queries = self._agenda.block(first, self._block, outcomes)
            if not queries:
                reason = "queries"
                break
            last = first + len(queries)
            done: list[Outcome] = []
            self._journal.reserve(first, queries)
            while reason is None and first + len(done) < last:
                position = first + len(done)
                try:
                    fresh = self._ask(position)
                    if fresh is None:
                        reason = "budget"
                        break
                    done.append(fresh)
                    self._remember(fresh)
                except Exception:
                    self._settle_after_failure(done, position)
                    raise
                reason = self._reason_to_stop(first + len(done))
            self._journal.settle(done)
            outcomes.extend(done)
            self._progress(len(outcomes))
        return Labels(
            outcomes,
            np.asarray(self._queries, dtype=np.intp),
            np.asarray(self._labels, dtype=np.intp),
            reason,
        )

    def _restore(self) -> list[Outcome]:
        """Charge again for what is durable. Rows stay where the journal has them, whoever chose them."""
        outcomes: list[Outcome] = []
        durable = self._journal.settled()
        for outcome in durable:
            self._agenda.restore(outcome.position, outcome.query)
        for outcome in durable:
            if not self._replay(outcome):
                break
            outcomes.append(outcome)
            self._remember(outcome)
        return outcomes

    def _settle_after_failure(self, done: list[Outcome], position: int) -> None:
        """Keep what was paid for; the query that failed may have been drawn, and counts as lost."""
        if not done or done[-1].position != position:
            done.append(Outcome(position, self._agenda.row(position), LOST, NO_LABEL))
        self._journal.settle(done)

    def _reason_to_stop(self, asked: int) -> str | None:
        if self._exhausted:
            return "budget"
        if self._max_labels is not None and len(self._labels) >= self._max_labels:
            return "labels"
        if asked >= self._agenda.limit:
            return "queries"
        return "interrupted" if self._should_stop() else None

    def _ask(self, position: int) -> Outcome | None:
        """Ask one query; None if somebody cannot afford it."""
        account, price = self._pricing.accountant, self._price(position)
        query = self._agenda.row(position)
        if not may_start(account, price):
            return None
        account.charge(price.check)
        noisy_check = None
        if self._aggregator.has_check:
            noisy_check, passes = self._noisy_check(position, query)
            if not passes:
                return self._with_values(self._reinforce(position, query), None, noisy_check)
        try:
            account.charge(price.answer)
        except BudgetExceededError:
            return Outcome(position, query, UNAFFORDABLE, NO_LABEL)
        noisy = self._noisy_counts(position, query)
        answered = Outcome(position, query, ANSWERED, int(np.argmax(noisy)))
        return self._with_values(answered, noisy, noisy_check)

    def _with_values(
        self, outcome: Outcome, counts: NDArray[np.float64] | None, check: float | None
    ) -> Outcome:
        """Add the noisy values that led to an outcome, where they are released."""
        if not self._shows_histograms:
            return outcome
        values = [*([] if counts is None else counts.tolist()), *([] if check is None else [check])]
        if (to_grid(values) != values).any():
            raise InputError(
                "a noisy value is off the grid, where its last bits could tell of the count: use noise of "
                "collegium.noise.sources"
            )
        shown = None if counts is None else tuple(counts.tolist())
        return replace(outcome, noisy_counts=shown, noisy_check=check)

    def _noisy_check(self, position: int, query: int) -> tuple[float, bool]:
        """Draw what is compared with the threshold, and compare it."""
        ballot, counts = self._ballots[position - self._first], self._counts_at(position)
        believed = self._student.probabilities(query) if self._student else None
        if believed is not None:
            counts = counts - to_grid(ballot.total * believed)
        sigma = self._aggregator.check_scale * ballot.scale
        noised = self._noised(counts.max(keepdims=True), sigma, query, "check")
        value = float(noised[0])
        return value, value >= self._aggregator.check_threshold * ballot.scale

    def _noisy_counts(self, position: int, query: int) -> NDArray[np.float64]:
        ballot, counts = self._ballots[position - self._first], self._counts_at(position)
        scale = self._aggregator.noise_scale * ballot.scale
        return self._noised(counts, scale, query, "answer")

    def _noised(
        self, sensitive_values: NDArray[np.float64], scale: float, query: int, purpose: str
    ) -> NDArray[np.float64]:
        """Add noise: the only way from votes to an outcome. Checks are always Gaussian."""
        kind = "gaussian" if purpose == "check" else self._aggregator.noise
        steps = (sensitive_values / GRID).astype(np.int64)  # exact: weights are on the grid
        noise = Noise.in_votes(kind, scale)
        noisy = self._noise.noised(steps, noise, query=query, purpose=purpose)
        return np.asarray(noisy * GRID)

    def _reinforce(self, position: int, query: int) -> Outcome:
        believed = self._student.probabilities(query) if self._student else None
        if believed is not None and self._aggregator.reinforces(believed):
            return Outcome(position, query, REINFORCED, int(believed.argmax()))
        return Outcome(position, query, REJECTED, NO_LABEL)

    def _replay(self, outcome: Outcome) -> bool:
        """Charge a durable outcome again; False if a lost query was never affordable."""
        self._refuse_another_release(outcome)
        price = self._price(outcome.position)
        return charge_again(self._pricing.accountant, price, outcome.verdict) is not None

    def _refuse_another_release(self, outcome: Outcome) -> None:
        """Refuse outcomes of a job that released something else, or that contradict themselves."""
        counts = outcome.noisy_counts
        if outcome.verdict != ANSWERED:
            fits = counts is None
        elif self._shows_histograms:
            fits = counts is not None and len(counts) == self._votes.n_classes
            fits = fits and int(np.argmax(counts)) == outcome.label  # type: ignore[arg-type]
        else:
            fits = counts is None
        if not self._shows_histograms:
            fits = fits and outcome.noisy_check is None
        if not fits:
            kind = "noisy histograms" if self._shows_histograms else "labels only"
            raise InputError(
                f"the journal's outcome at position {outcome.position} is not one of a job that releases "
                f"{kind}: what a job releases cannot be changed once it has begun; it is left untouched"
            )

    def _remember(self, outcome: Outcome) -> None:
        self._exhausted = outcome.verdict == UNAFFORDABLE
        if outcome.label == NO_LABEL:
            return
        self._queries.append(outcome.query)
        self._labels.append(outcome.label)
        if self._student is None:
            return
        if self._aggregator.wants_refit(len(self._labels) - self._learnt):
            self._student.refit(self._queries, self._labels)
            self._learnt = len(self._labels)

    def _price(self, position: int) -> Price:
        self._load(position)
        assert self._prices is not None
        return self._prices[position - self._first]

    def _load(self, position: int) -> None:
        """Load the chunk of ballots, counts and prices that contains a position."""
        if self._first <= position < self._first + len(self._ballots):
            return
        # Where rows are chosen as outcomes come in, those to the end of the block are known.
        self._first = position if self._agenda.is_chosen else position - position % _CHUNK
        queries = self._agenda.rows(self._first, self._first + _CHUNK)
        positions: Iterable[int] = range(self._first, self._first + len(queries))
        self._ballots = [self._electorate.ballot(p) for p in positions]
        if self._electorate.is_static:
            weights = self._ballots[0].weights
        else:
            weights = np.stack([ballot.weights for ballot in self._ballots])
        self._sensitive_counts = self._votes.counts(queries, weights)
        self._prices = self._pricing.prices(self._ballots, self._sensitive_counts)

    def _counts_at(self, position: int) -> NDArray[np.float64]:
        return np.asarray(self._sensitive_counts[position - self._first])
