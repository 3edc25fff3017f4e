"""Prices: what the check and the answer of each query cost each cohort.

One class per guarantee. Both look at an aggregator and a ballot; only the data-dependent one looks at
votes, and everything that it computes is sensitive.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.accounting.accountant import (
    Accountant,
    DataDependentAccountant,
    WorstCaseAccountant,
    WorstCaseCost,
)
from collegium.accounting.gaussian import pure_to_gdp
from collegium.accounting.laplace_max import lnmax_log_q, lnmax_pure_epsilon, lnmax_rdp
from collegium.accounting.noisy_max import (
    gnmax_log_q,
    gnmax_rdp,
    threshold_log_q,
    threshold_rdp,
    threshold_rdp_data_independent,
)
from collegium.accounting.renyi import DEFAULT_ORDERS
from collegium.errors import InputError
from collegium.personalisation.electorate import Ballot, Electorate
from collegium.voting.aggregators import (
    Aggregator,
    CheckedAggregator,
    GaussianAggregator,
    InteractiveGNMax,
    LNMax,
)

Floats = NDArray[np.float64]
GUARANTEES = ("worst-case", "data-dependent")


class Pricing(ABC):
    """Prices of one job, with the accountant that they are charged to.

    Attributes
    ----------
    accountant : Accountant
        Who has spent how much.
    reserves_answer : bool
        Whether a query may only be started if its answer can be afforded too.
    """

    guarantee: ClassVar[str]
    reserves_answer: ClassVar[bool]
    accountant: Accountant[Any]

    @abstractmethod
    def begin(self, first: int, ballots: list[Ballot], sensitive_counts: Floats) -> None:
        """Prepare the prices of a chunk of queries.

        Parameters
        ----------
        first : int
            Position of the chunk's first query.
        ballots : list of Ballot, length n
            One for each query of the chunk.
        sensitive_counts : ndarray, shape (n, n_classes)
            Their weighted counts.
        """

    @abstractmethod
    def check(self, position: int) -> Any:
        """Cost of the check of a query in the chunk."""

    @abstractmethod
    def answer(self, position: int) -> Any:
        """Cost of the answer to a query in the chunk."""


class WorstCasePricing(Pricing):
    """Costs that hold whatever the votes are: they depend on ballot and noise alone.

    Check: μ² = Δ²/(s·σ_T)². Gaussian answer: μ² = 2Δ²/(s·σ)². Laplace answer: ε = 2γΔ/s, and
    the μ of randomized response at that ε. s is the ballot's scale.
    """

    guarantee = "worst-case"
    reserves_answer = True

    def __init__(self, aggregator: Aggregator, electorate: Electorate) -> None:
        self._aggregator = aggregator
        budgets = electorate.cohort_budgets
        self.accountant: WorstCaseAccountant = WorstCaseAccountant(
            [budget.epsilon for budget in budgets],
            [budget.delta for budget in budgets],
            electorate.cohort_groups,
        )
        self._first = 0
        self._ballots: list[Ballot] = []
        self._known: tuple[Ballot, WorstCaseCost, WorstCaseCost] | None = None

    def begin(self, first: int, ballots: list[Ballot], sensitive_counts: Floats) -> None:
        """Keep the ballots; the votes are not looked at."""
        self._first, self._ballots = first, ballots

    def check(self, position: int) -> WorstCaseCost:
        """Cost of a check."""
        return self._both(position)[1]

    def answer(self, position: int) -> WorstCaseCost:
        """Cost of an answer."""
        return self._both(position)[2]

    def _both(self, position: int) -> tuple[Ballot, WorstCaseCost, WorstCaseCost]:
        ballot = self._ballots[position - self._first]
        if self._known is None or self._known[0] is not ballot:
            self._known = (ballot, *worst_case_prices(self._aggregator, ballot))
        return self._known


def worst_case_prices(
    aggregator: Aggregator, ballot: Ballot
) -> tuple[WorstCaseCost, WorstCaseCost]:
    """Cost of the check and of the answer, per cohort, rounded up.

    Parameters
    ----------
    aggregator : Aggregator
        The mechanism.
    ballot : Ballot
        Who votes, and how far each cohort's owners can move a count.

    Returns
    -------
    check, answer : WorstCaseCost
        The check costs 0 where the aggregator has none.
    """
    delta = ballot.sensitivity
    impure = np.where(delta > 0, np.inf, 0.0)
    nothing = WorstCaseCost(np.zeros_like(delta), np.zeros_like(delta))
    if isinstance(aggregator, LNMax):
        pure = _up(np.asarray(lnmax_pure_epsilon(delta, aggregator.gamma / ballot.scale)))
        values, back = np.unique(pure, return_inverse=True)
        mu = np.array([pure_to_gdp(float(value)) for value in values])[back]
        return nothing, WorstCaseCost(_up(mu**2), pure)
    if not isinstance(aggregator, GaussianAggregator):
        raise InputError(f"aggregator {aggregator.name!r} has no worst-case price")
    answer = WorstCaseCost(_up(2.0 * (delta / (aggregator.sigma * ballot.scale)) ** 2), impure)
    if not isinstance(aggregator, CheckedAggregator):
        return nothing, answer
    sigma_threshold = aggregator.sigma_threshold * ballot.scale
    return WorstCaseCost(_up((delta / sigma_threshold) ** 2), impure), answer


def _up(values: Floats) -> Floats:
    """Round a handful of floating-point operations up: by four units in the last place."""
    return np.where(values > 0, values * (1 + 2.0**-50), 0.0)


class DataDependentPricing(Pricing):
    """The papers' costs, computed from the raw votes. **Sensitive.**

    Answers: GNMax by Theorem 6 of Papernot et al. 2018, LNMax by Theorem 3 of Papernot et al.
    2017, each no more than its data-independent cost. Checks: data-dependent for Confident-GNMax when
    ``sharp_checks``, data-independent otherwise and for Interactive-GNMax.
    """

    guarantee = "data-dependent"
    reserves_answer = False

    def __init__(
        self,
        aggregator: Aggregator,
        electorate: Electorate,
        orders: ArrayLike = DEFAULT_ORDERS,
        conversion: str = "canonne",
        sharp_checks: bool = True,
    ) -> None:
        self._aggregator = aggregator
        self._sharp_checks = sharp_checks
        budgets = electorate.cohort_budgets
        self.accountant: DataDependentAccountant = DataDependentAccountant(
            [budget.epsilon for budget in budgets],
            [budget.delta for budget in budgets],
            orders,
            conversion,
            electorate.cohort_groups,
        )
        self._levels, self._level_of = np.unique(electorate.sensitivity, return_inverse=True)
        self._first = 0
        self._ballots: list[Ballot] = []
        self._sensitive_checks: Floats = np.empty(0)
        self._sensitive_answers: Floats = np.empty(0)

    def begin(self, first: int, ballots: list[Ballot], sensitive_counts: Floats) -> None:
        """Compute the costs of a chunk, for each different sensitivity."""
        orders = self.accountant.orders
        scale = np.array([ballot.scale for ballot in ballots])
        self._first, self._ballots = first, ballots
        self._sensitive_answers = self._answers(sensitive_counts, scale, orders)
        self._sensitive_checks = self._checks(sensitive_counts, scale, orders)

    def check(self, position: int) -> Floats:
        """Cost of a check, shape (n_cohorts, n_orders). **Sensitive.**"""
        return self._for_cohorts(self._sensitive_checks, position)

    def answer(self, position: int) -> Floats:
        """Cost of an answer, shape (n_cohorts, n_orders). **Sensitive.**"""
        return self._for_cohorts(self._sensitive_answers, position)

    def _for_cohorts(self, per_level: Floats, position: int) -> Floats:
        row = position - self._first
        present = self._ballots[row].sensitivity > 0
        return np.asarray(per_level[row][self._level_of] * present[:, None])

    def _answers(self, counts: Floats, scale: Floats, orders: Floats) -> Floats:
        aggregator = self._aggregator
        if isinstance(aggregator, LNMax):
            gamma = aggregator.gamma

            def laplace(rows: NDArray[np.intp], s: float) -> Floats:
                log_q = lnmax_log_q(counts[rows], gamma / s)
                return lnmax_rdp(log_q, self._levels, gamma / s, orders)

            return _by_scale(scale, laplace)
        if not isinstance(aggregator, GaussianAggregator):
            raise InputError(f"aggregator {aggregator.name!r} has no data-dependent price")
        sigma = aggregator.sigma

        def gaussian(rows: NDArray[np.intp], s: float) -> Floats:
            log_q = gnmax_log_q(counts[rows], sigma * s)
            return gnmax_rdp(log_q, self._levels, sigma * s, orders)

        return _by_scale(scale, gaussian)

    def _checks(self, counts: Floats, scale: Floats, orders: Floats) -> Floats:
        aggregator = self._aggregator
        if not isinstance(aggregator, CheckedAggregator):
            return np.zeros((len(counts), self._levels.size, orders.size))
        sigma, threshold = aggregator.sigma_threshold, aggregator.threshold
        if not self._sharp_checks or isinstance(aggregator, InteractiveGNMax):
            independent = threshold_rdp_data_independent(self._levels, sigma, orders)
            return np.asarray(independent[None] / (scale**2)[:, None, None])

        def check(rows: NDArray[np.intp], s: float) -> Floats:
            log_q = threshold_log_q(counts[rows].max(axis=1), threshold * s, sigma * s)
            return threshold_rdp(log_q, self._levels, sigma * s, orders)

        return _by_scale(scale, check)


def _by_scale(scale: Floats, price: Callable[[NDArray[np.intp], float], Floats]) -> Floats:
    """Call ``price(rows, scale)`` once for each different scale, and put the rows together."""
    parts = [(np.flatnonzero(scale == value), float(value)) for value in np.unique(scale)]
    priced = [price(rows, value) for rows, value in parts]
    result = np.empty((len(scale), *priced[0].shape[1:]))
    for (rows, _), part in zip(parts, priced, strict=True):
        result[rows] = part
    return result


def pricing_for(
    guarantee: str,
    aggregator: Aggregator,
    electorate: Electorate,
    orders: ArrayLike = DEFAULT_ORDERS,
    conversion: str = "canonne",
) -> Pricing:
    """Choose the prices that belong to a guarantee.

    Raises
    ------
    InputError
        If the guarantee is unknown.
    """
    if guarantee == "worst-case":
        return WorstCasePricing(aggregator, electorate)
    if guarantee == "data-dependent":
        return DataDependentPricing(aggregator, electorate, orders, conversion)
    raise InputError(f"unknown guarantee {guarantee!r}: allowed are {', '.join(GUARANTEES)}")
