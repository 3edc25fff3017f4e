"""Prices: what the check and the answer of each query cost each cohort, and the account that pays.

One class per guarantee. Worst-case prices follow from a ballot alone; only data-dependent ones look at
votes, and everything that they are is sensitive.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.accounting.accountant import Accountant
from collegium.accounting.accountants import (
    GUARANTEES,
    GaussianAccountant,
    RenyiAccountant,
)
from collegium.accounting.arg_max import mu_within_rdp
from collegium.accounting.events import Composition, Event, SensitiveCurve
from collegium.accounting.neighbours import Neighbours
from collegium.accounting.promises import Promise
from collegium.accounting.renyi import (
    DEFAULT_ORDERS,
    SEED_ORDERS,
    affordable_rdp,
    validate_orders,
)
from collegium.errors import InputError
from collegium.pate.voting.charging import Price
from collegium.pate.voting.noisy_maxima import Aggregator
from collegium.pate.voting.release import HISTOGRAM, LABELS
from collegium.personalisation.electorate import Ballot, Electorate

__all__ = [
    "BOUNDS",
    "GUARANTEES",
    "PRICES",
    "DataDependentPricing",
    "LabelPricing",
    "Pricing",
    "WorstCasePricing",
    "pricing_for",
    "worst_case_pricing",
]

#: What an answer is charged in the worst case: all noisy counts, or the label alone.
PRICES = (HISTOGRAM, LABELS)
#: Of noise that is pure, on a ledger: all noisy counts, in what the ledger promises.
IN_MU, IN_PURE = "mu", "pure"

Floats = NDArray[np.float64]
ANY_CHANGE = Neighbours.ANY_CHANGE
#: Data-dependent bounds: the papers' (for reproduction), both exact ones, or only one of these.
BOUNDS = ("papers", "sharp", "sharp-check", "sharp-q")


class Prices(Protocol):
    """Prices of the queries of a chunk, by row."""

    def __getitem__(self, row: int, /) -> Price: ...


class Pricing(ABC):
    """Prices of one job, with the accountant that they are charged to.

    ``accountant``: who has spent how much.
    ``pays_for_histogram``: whether prices cover all noisy counts, where the aggregator's do.
    """

    pays_for_histogram: ClassVar[bool] = True
    guarantee: ClassVar[str]
    accountant: Accountant

    @abstractmethod
    def prices(self, ballots: Sequence[Ballot], sensitive_counts: Floats) -> Prices:
        """Price a chunk of queries.

        ``ballots``: one for each query of the chunk.
        ``sensitive_counts`` (n, n_classes): their weighted counts.
        Returns: as sensitive as the accountant.
        """


class WorstCasePricing(Pricing):
    """The events of the aggregator themselves: they depend on ballot and noise alone."""

    guarantee = "worst-case"
    promise: ClassVar[Promise] = Promise.EITHER

    def __init__(
        self, aggregator: Aggregator, electorate: Electorate, neighbours: Neighbours = ANY_CHANGE
    ) -> None:
        self._aggregator, self._neighbours = aggregator, neighbours
        self._known: tuple[Ballot, Price] | None = None
        self.accountant = self._account_for(electorate)

    def _account_for(self, electorate: Electorate) -> Accountant:
        names = electorate.cohort_groups
        return GaussianAccountant(*_budgets(electorate), names, self._neighbours, self.promise)

    def prices(self, ballots: Sequence[Ballot], sensitive_counts: Floats) -> Prices:
        """Price each ballot; the votes are not looked at."""
        return _EachBallot(self, ballots)

    def price(self, ballot: Ballot) -> Price:
        """Price a query with this ballot: it is started only if check and answer can be afforded."""
        if self._known is None or self._known[0] is not ballot:
            check, answer = self.check(ballot), self.answer(ballot)
            self._known = (ballot, Price(check, answer, Composition([check, answer])))
        return self._known[1]

    def check(self, ballot: Ballot) -> Event:
        """The check of a query with this ballot."""
        return self._aggregator.check_event(ballot, self._neighbours)

    def answer(self, ballot: Ballot) -> Event:
        """The answer to a query with this ballot."""
        return self._aggregator.answer_event(ballot, self._neighbours)


class _InMu(WorstCasePricing):
    promise = Promise.GAUSSIAN


class _InPure(WorstCasePricing):
    promise = Promise.PURE


class LabelPricing(WorstCasePricing):
    """Worst-case prices of labels alone: what noisy counts would tell beyond the label is not paid for.

    A public Rényi account at one order for each budget, that at which a query that all teachers answer is
    cheapest. Of Gaussian noise it buys about 30 % more answers than :class:`WorstCasePricing`, where an
    answer is a small part of the budget (``docs/vote-accounts.md``). No noisy count may be released.
    """

    pays_for_histogram = False

    def _account_for(self, electorate: Electorate) -> Accountant:
        everybody = self.price(replace(electorate, participation=None).ballot(0)).reserve
        about = (electorate.cohort_groups, self._neighbours)
        account = RenyiAccountant(
            *_budgets(electorate), DEFAULT_ORDERS, "canonne", *about, usual=everybody
        )
        fixed = np.unique(account.fixed_order[np.isfinite(account.fixed_order)])
        if not fixed.size:
            return account
        # The same orders again: what costs at all the others is never looked at.
        return RenyiAccountant(*_budgets(electorate), fixed, "canonne", *about, usual=everybody)

    def mu_by_name(self) -> dict[str, float]:
        """Within which μ all noisy counts of each group stay, however the account is used up."""
        account = self.accountant
        assert isinstance(account, RenyiAccountant)
        mu: dict[str, float] = {}
        for cohort, name in enumerate(account.names):
            order, budget = account.fixed_order[[cohort]], account.epsilon[cohort]
            if np.isinf(budget):
                continue
            limit = affordable_rdp(budget, order, account.delta[cohort], account.conversion)
            mu[name] = max(mu.get(name, 0.0), float(mu_within_rdp(limit, order)[0]))
        return mu

    def answer(self, ballot: Ballot) -> Event:
        """The label of a query with this ballot."""
        return self._aggregator.label_event(ballot, self._neighbours)


class _EachBallot:
    def __init__(self, pricing: WorstCasePricing, ballots: Sequence[Ballot]) -> None:
        self._pricing, self._ballots = pricing, ballots

    def __getitem__(self, row: int) -> Price:
        return self._pricing.price(self._ballots[row])


class DataDependentPricing(Pricing):
    """Costs computed from the raw votes. **Sensitive.**

    ``bounds`` chooses between the papers' bounds and the exact ones of this package: the union bound or
    the exact q of a Gaussian answer, and Theorem 6 or the exact divergence of a check. Not given, it is
    "papers" where the papers' orders or conversion are asked for, and "sharp" otherwise. The exact ones
    are for the noise as it is rounded to the grid; up to that (a part in a million) they are never
    worse.

    With the papers' bounds the account also goes on while any Rényi order is within the budget, as theirs
    does; otherwise one order is fixed before the first query: the cheapest if six teachers of ten agreed.

    As in the papers, a query is started if its check can be afforded; the answer is refused if it cannot.
    """

    guarantee = "data-dependent"
    accountant: RenyiAccountant

    def __init__(
        self,
        aggregator: Aggregator,
        electorate: Electorate,
        orders: ArrayLike = DEFAULT_ORDERS,
        conversion: str = "canonne",
        neighbours: Neighbours = ANY_CHANGE,
        bounds: str | None = None,
    ) -> None:
        if bounds is None:
            seeds = conversion == "mironov" or np.array_equal(np.asarray(orders), SEED_ORDERS)
            bounds = "papers" if seeds else "sharp"
        if bounds not in BOUNDS:
            raise InputError(f"unknown bounds {bounds!r}: allowed are {', '.join(BOUNDS)}")
        self.bounds = bounds
        self._aggregator = aggregator
        self._levels, self._level_of = np.unique(electorate.sensitivity, return_inverse=True)
        self.accountant = RenyiAccountant(
            *_budgets(electorate),
            orders,
            conversion,
            electorate.cohort_groups,
            neighbours,
            sensitive=True,
            any_order=bounds == "papers",
            usual=self._of_six_in_ten(electorate, validate_orders(orders)),
        )

    def _of_six_in_ten(self, electorate: Electorate, orders: Floats) -> SensitiveCurve:
        """What an answer would cost if everybody took part and six of ten agreed: made up, so public."""
        ballot = replace(electorate, participation=None).ballot(0)
        made_up = ballot.total * np.array([[0.6, 0.4]])
        about = (made_up, ballot.scale, self._levels, orders, self.bounds)
        curve = self._aggregator.sensitive_check_rdp(*about)
        curve = curve + self._aggregator.sensitive_answer_rdp(*about)
        return SensitiveCurve(curve[0][self._level_of], orders)

    def prices(self, ballots: Sequence[Ballot], sensitive_counts: Floats) -> Prices:
        """Compute the costs of a chunk, for each different sensitivity."""
        _refuse_excess(sensitive_counts, np.array([ballot.total for ballot in ballots]))
        scale = np.array([ballot.scale for ballot in ballots])
        shape = (len(ballots), self._levels.size, self.accountant.orders.size)
        answers, checks = np.empty(shape), np.empty(shape)
        for value in np.unique(scale):
            rows = np.flatnonzero(scale == value)
            of_rows = (
                sensitive_counts[rows], float(value), self._levels, self.accountant.orders, self.bounds
            )  # fmt: skip
            answers[rows] = self._aggregator.sensitive_answer_rdp(*of_rows)
            checks[rows] = self._aggregator.sensitive_check_rdp(*of_rows)
        return _SensitivePrices(self, ballots, checks, answers)

    def for_cohorts(self, sensitive_per_level: Floats, ballot: Ballot) -> SensitiveCurve:
        """Give each cohort the cost of its sensitivity, if it has a teacher who takes part."""
        present = ballot.sensitivity > 0
        rdp = np.asarray(sensitive_per_level[self._level_of] * present[:, None])
        return SensitiveCurve(rdp, self.accountant.orders, self.accountant.neighbours)


class _SensitivePrices:
    def __init__(
        self,
        pricing: DataDependentPricing,
        ballots: Sequence[Ballot],
        sensitive_checks: Floats,
        sensitive_answers: Floats,
    ) -> None:
        self._pricing, self._ballots = pricing, ballots
        self._sensitive_checks, self._sensitive_answers = sensitive_checks, sensitive_answers

    def __getitem__(self, row: int) -> Price:
        ballot = self._ballots[row]
        check = self._pricing.for_cohorts(self._sensitive_checks[row], ballot)
        answer = self._pricing.for_cohorts(self._sensitive_answers[row], ballot)
        return Price(check, answer, reserve=check)


def _budgets(electorate: Electorate) -> tuple[list[float], list[float]]:
    budgets = electorate.cohort_budgets
    return [budget.epsilon for budget in budgets], [budget.delta for budget in budgets]


def _refuse_excess(counts: Floats, weights: Floats) -> None:
    """Refuse vote counts that add up to more than the teachers' weight; less if some abstain."""
    excess = ~(counts.sum(axis=1) <= weights * (1 + 1e-5))  # weights are rounded to a grid
    if excess.any():
        raise InputError(
            f"vote counts add up to more than the weight of the teachers who take part in "
            f"{int(excess.sum())} of {len(counts)} queries: nothing was charged; pass the counts that "
            "belong to these ballots"
        )


_KINDS: dict[str, type[WorstCasePricing]] = {
    HISTOGRAM: WorstCasePricing,
    LABELS: LabelPricing,
    IN_MU: _InMu,
    IN_PURE: _InPure,
}


def worst_case_pricing(
    price: str, aggregator: Aggregator, electorate: Electorate, neighbours: Neighbours = ANY_CHANGE
) -> WorstCasePricing:
    """Make the worst-case prices of this name: one of :data:`PRICES`, or what a ledger promises."""
    return _KINDS[price](aggregator, electorate, neighbours)


def pricing_for(
    guarantee: str,
    aggregator: Aggregator,
    electorate: Electorate,
    orders: ArrayLike = DEFAULT_ORDERS,
    conversion: str = "canonne",
    neighbours: Neighbours = ANY_CHANGE,
    bounds: str | None = None,
    price: str = HISTOGRAM,
) -> Pricing:
    """Choose the prices that belong to a guarantee, about these neighbours.

    ``bounds`` matters to the data-dependent ones: see :class:`DataDependentPricing`; ``price`` to the
    worst-case ones.
    """
    if guarantee == WorstCasePricing.guarantee:
        return worst_case_pricing(price, aggregator, electorate, neighbours)
    if guarantee == DataDependentPricing.guarantee:
        return DataDependentPricing(aggregator, electorate, orders, conversion, neighbours, bounds)
    raise InputError(f"unknown guarantee {guarantee!r}: allowed are {', '.join(GUARANTEES)}")
