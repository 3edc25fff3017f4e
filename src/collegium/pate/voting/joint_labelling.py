"""Labelling by the teachers of several parties: many queries in one sum, since each sum is a round of files.

Every party knows the votes of its own teachers. Theirs of one query add up to the weighted counts
n = Σ_p n_p, and a sum of parties opens n + Z to all of them, Z ~ N(0, σ²) in each class, and nothing else
(``docs/parties.md``).

**What is released** is therefore the noisy histogram, whatever a student learns of it: everybody who can read
the files has it. The account pays for it: √2·Δ/σ per answer, Δ the weight of an owner's teacher, exactly as
where one table has all records (:mod:`collegium.pate.voting.release`). An owner's records are with one party,
and there with one teacher, so n moves as it would with all teachers in one place.

**A check** cannot see max_j n_j, which is no sum. What parties can add is how far each one's own teachers
agree: s = Σ_p max_j n_pj, one number. An owner moves one party's term, by Δ at most, since each n_pj moves by
Δ at most; so s + N(0, σ_T²) is (Δ/σ_T)-GDP: the price of the check in one place. A noisy histogram to take
the maximum of would cost √2·Δ/σ_T, and its maximum is largely that of m noises. s is at least max_j n_j, and
equal to it where all parties' teachers name the same class most often; a query on which each party is of one
mind and the parties of two passes, and its histogram shows it.

**Many at once.** The rows of a batch are fixed before any of its noise is drawn, and what is left pays for a
batch even if all its queries are answered. Charges come before noise. So an account ends where it would, had
the queries been asked one after the other: the noises are independent, whenever they are drawn, and events
that are charged beforehand compose (Smith & Thakurta 2022, arXiv 2210.17520). Everything that decides on the
next batch (budgets, weights, noisy values that were opened) is the same at all parties, which therefore stop
at the same query.

**After a crash** or Ctrl-C, a batch that is reserved in the journal and has no outcome is taken up again:
what this party has posted for it stands, so the same sums come of it as everywhere, and nothing more is
charged. A sum that was not opened is lost, at all parties alike, and the rows of its batch are charged in
full. The account is a function of the outcomes alone, bit for bit, whoever was cut off: were it charged batch
by batch here and one by one there, rounding could let one party ask a query more.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from collegium.errors import InputError
from collegium.noise.grid import GRID
from collegium.noise.sums import Noise, NoisySum
from collegium.parties.waiting import SumNotOpenedError
from collegium.pate.voting.charging import ANSWERED, LOST, REJECTED, charge_again
from collegium.pate.voting.choosing import Agenda, QueryChooser
from collegium.pate.voting.labelling import (
    NO_LABEL,
    Journal,
    Labels,
    NoJournal,
    Outcome,
    refuse_noise_out_of_range,
    refuse_weights_off_the_grid,
)
from collegium.pate.voting.noisy_maxima import Aggregator
from collegium.pate.voting.pricing import WorstCasePricing
from collegium.pate.voting.vote_table import VoteTable
from collegium.personalisation.electorate import Electorate

Floats = NDArray[np.float64]

MOST_NUMBERS = 2**20
"""Numbers in one sum: 8 MB of masked ones from each party."""
MOST_QUERIES = 10**6
"""Queries of one job: a sum is numbered by the first of its batch."""


class JointLabelling:
    """One pass over the public records, of one party among several.

    ``votes``: of this party's teachers; all others abstain. **Sensitive.**
    ``electorate``: of the teachers of all parties, who take part in every query.
    ``pricing``: what noisy histograms cost, with a fresh account: the same at all parties.
    ``noise``: adds up what the parties have.
    ``asking``: public order of the queries, or who chooses them, the same at all parties.
    ``max_queries``, ``max_labels``: stop after so many.
    ``journal``: durable memory; default: none.
    ``progress``: called with the number of queries asked so far.
    ``tell``: told of a sum that was not opened.
    """

    def __init__(
        self,
        votes: VoteTable,
        electorate: Electorate,
        aggregator: Aggregator,
        pricing: WorstCasePricing,
        noise: NoisySum,
        asking: NDArray[np.intp] | QueryChooser,
        *,
        max_queries: int | None = None,
        max_labels: int | None = None,
        journal: Journal | None = None,
        progress: Callable[[int], None] = lambda asked: None,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        refuse_weights_off_the_grid(electorate)
        refuse_noise_out_of_range(aggregator, electorate)
        if votes.n_classes > MOST_NUMBERS:
            raise InputError(
                f"{votes.n_classes:,} classes are too many for parties: at most {MOST_NUMBERS:,}"
            )
        self._votes, self._aggregator, self._noise = votes, aggregator, noise
        self._ballot = electorate.ballot(0)
        self._account = pricing.accountant
        self._price = pricing.price(self._ballot)
        self._agenda = Agenda(asking, votes.n_queries, max_queries)
        if self._agenda.limit > MOST_QUERIES:
            raise InputError(
                f"parties ask about at most {MOST_QUERIES:,} public records, and here are "
                f"{self._agenda.limit:,}: set max_queries"
            )
        self._max_labels = max_labels
        self._journal: Journal = NoJournal() if journal is None else journal
        self._progress, self._tell = progress, tell

    def run(self) -> Labels:
        """Charge again what is durable, then ask batch after batch, until something runs out."""
        outcomes = self._restored()
        while True:
            first, labelled = len(outcomes), [one for one in outcomes if one.label != NO_LABEL]
            if self._journal.reserved is None:
                reason, most = self._room(first, len(labelled))
                rows = self._agenda.block(first, most, outcomes) if most else []
                if not rows:
                    return Labels(
                        outcomes,
                        np.array([one.query for one in labelled], dtype=np.intp),
                        np.array([one.label for one in labelled], dtype=np.intp),
                        reason,
                    )
                self._journal.reserve(first, rows)
            else:
                _, rows = self._journal.reserved
                for number, row in enumerate(rows):
                    self._agenda.restore(first + number, row)
            done = self._asked(first, rows)
            self._journal.settle(done)
            outcomes += done
            self._progress(len(outcomes))

    def _restored(self) -> list[Outcome]:
        """Charge again for what is durable, but for a batch that is to be taken up."""
        begun = self._journal.reserved
        outcomes = self._journal.settled()[: None if begun is None else begun[0]]
        for one in outcomes:
            self._agenda.restore(one.position, one.query)
        self._charge(outcomes)
        return outcomes

    def _charge(self, outcomes: list[Outcome]) -> None:
        for one in outcomes:
            charge_again(self._account, self._price, one.verdict)

    def _room(self, asked: int, labels: int) -> tuple[str, int]:
        """Say how many queries may be asked at once, and why no more, if it is none."""
        if self._max_labels is not None and labels >= self._max_labels:
            return "labels", 0
        if asked >= self._agenda.limit:
            return "queries", 0
        most = min(self._agenda.limit - asked, MOST_NUMBERS // self._votes.n_classes)
        if self._max_labels is not None:
            most = min(most, self._max_labels - labels)
        paid = self._account.how_many(self._price.reserve, most)
        if paid == 0:
            return "budget", 0
        if self._aggregator.has_check and 1 < paid <= most:
            paid -= (
                1  # checks and answers are charged in another order than counted: a rounding apart
            )
        return "queries", int(min(paid, most))

    def _asked(self, first: int, rows: list[int]) -> list[Outcome]:
        """Ask a batch: it is charged in full before anything is posted, and at what it did cost after."""
        before = self._account.state()
        self._account.charge(self._price.reserve, len(rows))
        try:
            outcomes = self._drawn(first, rows)
        except SumNotOpenedError as error:
            self._tell(str(error))
            outcomes = [
                Outcome(first + number, row, LOST, NO_LABEL) for number, row in enumerate(rows)
            ]
        self._account.restore(before)
        self._charge(outcomes)
        return outcomes

    def _drawn(self, first: int, rows: list[int]) -> list[Outcome]:
        counts = self._votes.counts(np.asarray(rows, dtype=np.intp), self._ballot.weights)
        passes, checks = np.ones(len(rows), dtype=bool), None
        if self._aggregator.has_check:
            scale = self._aggregator.check_scale * self._ballot.scale
            checks = self._noised(counts.max(axis=1), scale, first, rows, "checks")
            passes = checks >= self._aggregator.check_threshold * self._ballot.scale
        answered = np.flatnonzero(passes)
        noisy = np.full(counts.shape, np.nan)
        if answered.size:
            scale = self._aggregator.noise_scale * self._ballot.scale
            asked = [rows[number] for number in answered.tolist()]
            noisy[answered] = self._noised(counts[answered], scale, first, asked, "answers")
        return [
            Outcome(
                first + number,
                row,
                ANSWERED if passes[number] else REJECTED,
                int(np.argmax(noisy[number])) if passes[number] else NO_LABEL,
                tuple(noisy[number].tolist()) if passes[number] else None,
                None if checks is None else float(checks[number]),
            )
            for number, row in enumerate(rows)
        ]

    def _noised(
        self, sensitive_values: Floats, scale: float, first: int, rows: list[int], purpose: str
    ) -> Floats:
        """Add up with the other parties: the only way from votes to an outcome.

        In the order of the rows, which are in the sum's name: whoever chose them in another order, by other
        rounding, sums the same; parties that ask about other rows have no sum in common.
        """
        order = np.argsort(rows)
        asked = sha256(np.sort(rows).astype("<i8").tobytes()).hexdigest()[:16]
        steps = (sensitive_values[order] / GRID).astype(np.int64)  # exact: weights are on the grid
        noise = Noise.in_votes("gaussian", scale)
        noisy = self._noise.noised(
            steps, noise, query=first, purpose=f"{purpose} about rows {asked}"
        )
        return np.asarray(noisy * GRID)[np.argsort(order)]
