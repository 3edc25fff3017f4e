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
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from collegium.errors import InputError
from collegium.noise.grid import GRID
from collegium.noise.sums import Noise, NoisySum
from collegium.pate.voting.charging import ANSWERED, REJECTED
from collegium.pate.voting.choosing import Agenda, QueryChooser
from collegium.pate.voting.labelling import (
    NO_LABEL,
    Labels,
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


class JointLabelling:
    """One pass over the public records, of one party among several.

    ``votes``: of this party's teachers; all others abstain. **Sensitive.**
    ``electorate``: of the teachers of all parties, who take part in every query.
    ``pricing``: what noisy histograms cost, with a fresh account: the same at all parties.
    ``noise``: adds up what the parties have.
    ``asking``: public order of the queries, or who chooses them, the same at all parties.
    ``max_queries``, ``max_labels``: stop after so many.
    ``progress``: called with the number of queries asked so far.
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
        progress: Callable[[int], None] = lambda asked: None,
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
        self._max_labels = max_labels
        self._progress = progress
        self._batches = 0

    def run(self) -> Labels:
        """Ask batch after batch, until something runs out."""
        outcomes: list[Outcome] = []
        while True:
            labelled = [one for one in outcomes if one.label != NO_LABEL]
            reason, most = self._room(len(outcomes), len(labelled))
            rows = self._agenda.block(len(outcomes), most, outcomes) if most else []
            if not rows:
                return Labels(
                    outcomes,
                    np.array([one.query for one in labelled], dtype=np.intp),
                    np.array([one.label for one in labelled], dtype=np.intp),
                    reason,
                )
            outcomes += self._asked(len(outcomes), rows)
            self._progress(len(outcomes))

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
        counts = self._votes.counts(np.asarray(rows, dtype=np.intp), self._ballot.weights)
        passes, checks = np.ones(len(rows), dtype=bool), None
        if self._aggregator.has_check:
            self._account.charge(self._price.check, len(rows))
            scale = self._aggregator.check_scale * self._ballot.scale
            checks = self._noised(counts.max(axis=1), scale, rows, "checks")
            passes = checks >= self._aggregator.check_threshold * self._ballot.scale
        answered = np.flatnonzero(passes)
        noisy = np.full(counts.shape, np.nan)
        if answered.size:
            self._account.charge(self._price.answer, int(answered.size))
            scale = self._aggregator.noise_scale * self._ballot.scale
            asked = [rows[number] for number in answered.tolist()]
            noisy[answered] = self._noised(counts[answered], scale, asked, "answers")
        self._batches += 1
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
        self, sensitive_values: Floats, scale: float, rows: list[int], purpose: str
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
            steps, noise, query=self._batches, purpose=f"{purpose} about rows {asked}"
        )
        return np.asarray(noisy * GRID)[np.argsort(order)]
