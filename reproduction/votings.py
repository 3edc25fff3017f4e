"""One voting of an ensemble, with seeded noise, and what everybody had spent after each query."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium import Budget, Queries, VoteTable
from collegium.accounting import RenyiAccountant, rdp_to_epsilon
from collegium.accounting.neighbours import Arrangement
from collegium.mechanisms import SeededNoise
from collegium.pate.pipeline import PlannedVoting
from collegium.pate.voting.aggregators import Aggregator
from collegium.pate.voting.labelling import LabellingJob
from collegium.pate.voting.price_choice import ChosenPrice
from collegium.personalisation import Electorate, Plan
from reproduction.readings import Reading

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Voting:
    """What one voting released.

    Attributes
    ----------
    queries, labels : ndarray of int, shape (n_labels,)
        Rows of the public records, and their labels.
    n_asked, n_answered : int
        Queries asked; queries that the teachers answered.
    noisy_counts : ndarray of float, shape (n_labels, n_classes), or (0, n_classes)
        Where histograms were released: noisy counts, divided by the ballot's scale, so that they are of
        the nominal number of teachers and their noise is the aggregator's.
    """

    queries: NDArray[np.intp]
    labels: NDArray[np.intp]
    n_asked: int
    n_answered: int
    noisy_counts: Floats


@dataclass(frozen=True, eq=False)
class History:
    """What a voting without limits cost. A statement about one data set: sensitive outside experiments.

    Attributes
    ----------
    labels : ndarray of int, shape (n_queries,)
        Labels released after each query.
    epsilon : ndarray of float, shape (n_queries, n_groups)
        The most that anybody in each group has spent after each query.
    order : ndarray of float, shape (n_queries, n_groups)
        The order at which the conversion is best; NaN in the worst case.
    """

    labels: NDArray[np.intp]
    epsilon: Floats
    order: Floats

    def at_labels(self, n_labels: int) -> Floats:
        """Spending when each label was released, shape (n_labels, n_groups); NaN after the last one."""
        first = np.searchsorted(self.labels, np.arange(1, n_labels + 1))
        padded = np.vstack([self.epsilon, np.full((1, self.epsilon.shape[1]), np.nan)])
        return np.asarray(padded[np.minimum(first, len(self.epsilon))])

    def labels_within(self, budgets: ArrayLike) -> int:
        """Labels released before anybody had spent more than these budgets, one per group."""
        return self.labels_while(np.asarray((self.epsilon <= np.asarray(budgets)).all(axis=1)))

    def labels_while(self, affordable: NDArray[np.bool_]) -> int:
        """Labels released before a condition first failed, shape (n_queries,): one value per query."""
        last = len(affordable) if affordable.all() else int(np.argmin(affordable))
        return int(self.labels[last - 1]) if last else 0


def vote(
    votes: VoteTable,
    plan: Plan,
    reading: Reading,
    aggregator: Aggregator,
    run_seed: tuple[int, int],
    max_labels: int | None = None,
    release: str = "labels",
) -> Voting:
    """Let an ensemble vote until somebody's budget is spent.

    Parameters
    ----------
    votes : VoteTable
        Of the ensemble.
    plan : Plan
        Weights and budgets.
    reading : Reading
        The account.
    aggregator : Aggregator
        The mechanism.
    run_seed : pair of int
        Of the ensemble and of this voting: order of the queries, participation and noise.
    max_labels : int, optional
        Stop there.
    release : {"labels", "histogram"}
        What the students see; see :mod:`collegium.pate.voting.release`.
    """
    electorate = plan.electorate(_seed(run_seed))
    voting = PlannedVoting(
        plan,
        electorate,
        aggregator,
        reading.settings,
        Queries(max_labels=max_labels, release=release),
        Arrangement(),
        ChosenPrice("histogram"),
    )
    order = query_order(votes.n_queries, run_seed)
    labels = voting.release(votes, order, SeededNoise(_seed(run_seed))).labels
    counts = [
        np.asarray(outcome.noisy_counts) / electorate.ballot(outcome.position).scale
        for outcome in labels.outcomes
        if outcome.noisy_counts is not None
    ]
    return Voting(
        labels.queries,
        labels.labels,
        labels.n_asked,
        labels.n_answered,
        np.array(counts).reshape(-1, votes.n_classes),
    )


def vote_without_limits(
    votes: VoteTable,
    plan: Plan,
    reading: Reading,
    aggregator: Aggregator,
    run_seed: tuple[int, int],
    *,
    max_labels: int | None = None,
    max_queries: int | None = None,
) -> History:
    """Let an ensemble vote beyond all budgets, and write down what it costs; see :func:`vote`.

    The same noise is drawn as in :func:`vote`, so both agree until the first budget is spent.
    """
    electorate = _unlimited(plan.electorate(_seed(run_seed)))
    pricing = reading.pricing(aggregator, electorate)
    order = query_order(votes.n_queries, run_seed)[:max_queries]
    epsilon: list[Floats] = []
    best: list[Floats] = []

    def write_down(asked: int) -> None:
        if asked > len(epsilon):
            spent, orders = _spending(pricing.accountant, electorate)
            epsilon.append(spent)
            best.append(orders)

    labels = LabellingJob(
        votes,
        electorate,
        aggregator,
        pricing,
        SeededNoise(_seed(run_seed)),
        order,
        max_labels=max_labels,
        block=1,
        progress=write_down,
    ).run()
    released = np.cumsum([outcome.label >= 0 for outcome in labels.outcomes])
    return History(released.astype(np.intp), np.array(epsilon), np.array(best))


def query_order(n_queries: int, run_seed: tuple[int, int]) -> NDArray[np.intp]:
    """Shuffle the public records for one voting."""
    return np.random.default_rng([run_seed[0], 3, run_seed[1]]).permutation(n_queries)


def _seed(run_seed: tuple[int, int]) -> int:
    return 1000 * run_seed[0] + run_seed[1]


def _unlimited(electorate: Electorate) -> Electorate:
    free = {name: Budget(math.inf, b.delta) for name, b in electorate.groups.items()}
    return replace(electorate, groups=free)


def _spending(account: object, electorate: Electorate) -> tuple[Floats, Floats]:
    """The most of each group, and its best order, in the order of the groups."""
    assert hasattr(account, "epsilon_spent")
    if isinstance(account, RenyiAccountant):
        epsilon, orders = rdp_to_epsilon(
            account.sensitive_rdp, account.orders, float(account.delta[0]), account.conversion
        )
    else:
        epsilon = account.epsilon_spent()
        orders = np.full(len(epsilon), np.nan)
    names = np.asarray(electorate.cohort_groups, dtype=object)
    most = [
        int(cohorts[np.argmax(epsilon[cohorts])])
        for cohorts in (np.flatnonzero(names == group) for group in electorate.groups)
    ]
    return epsilon[most], orders[most]
