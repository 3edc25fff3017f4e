"""Prices: what the check and the answer of each query cost each cohort.

One class per guarantee. Both look at an aggregator and a ballot; only the data-dependent one looks at
votes, and everything that it computes is sensitive.
"""

from __future__ import annotations

import math
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
from collegium.accounting.costs import ANY_CHANGE
from collegium.accounting.gaussian import pure_to_gdp
from collegium.accounting.renyi import DEFAULT_ORDERS, SEED_ORDERS
from collegium.accounting.votes.laplace_max import lnmax_log_q, lnmax_pure_epsilon, lnmax_rdp
from collegium.accounting.votes.noisy_max import (
    gnmax_log_q,
    gnmax_rdp,
    threshold_log_q,
    threshold_rdp,
    threshold_rdp_data_independent,
    threshold_rdp_exact,
)
from collegium.accounting.votes.pure_max import (
    exponential_log_q,
    exponential_rdp,
    permute_and_flip_log_q,
    range_to_gdp,
)
from collegium.accounting.votes.stream import refuse_excess
from collegium.accounting.votes.winner_probability import gnmax_log_q_exact
from collegium.errors import InputError
from collegium.noise.grid import GRID
from collegium.pate.voting.aggregators import (
    Aggregator,
    CheckedAggregator,
    ExponentialMax,
    GaussianAggregator,
    InteractiveGNMax,
    PureAggregator,
)
from collegium.personalisation.electorate import Ballot, Electorate

Floats = NDArray[np.float64]
GUARANTEES = ("worst-case", "data-dependent")
#: Data-dependent bounds: the papers' (for reproduction), both exact ones, or only one of these.
BOUNDS = ("papers", "sharp", "sharp-check", "sharp-q")


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

    def reserve(self, position: int) -> Any:
        """What everybody must be able to afford before a query in the chunk is started."""
        check = self.check(position)
        return check + self.answer(position) if self.reserves_answer else check


class WorstCasePricing(Pricing):
    """Costs that hold whatever the votes are: they depend on ballot and noise alone.

    Check: μ² = Δ²/(s·σ_T)². Gaussian answer: μ² = 2Δ²/(s·σ)². Laplace or exponential
    answer: ε = 2γΔ/s, and the μ of randomized response at that ε. Gumbel answer: ε = 2γ(Δ + 2 grid
    steps)/s, and the μ of randomized response at ε/2. s is the ballot's scale.
    """

    guarantee = "worst-case"
    reserves_answer = True

    def __init__(
        self, aggregator: Aggregator, electorate: Electorate, adjacency: str = ANY_CHANGE
    ) -> None:
        self._aggregator = aggregator
        budgets = electorate.cohort_budgets
        self.accountant: WorstCaseAccountant = WorstCaseAccountant(
            [budget.epsilon for budget in budgets],
            [budget.delta for budget in budgets],
            electorate.cohort_groups,
            adjacency,
        )
        self._first = 0
        self._ballots: list[Ballot] = []
        self._known: tuple[Ballot, WorstCaseCost, WorstCaseCost, WorstCaseCost] | None = None

    def begin(self, first: int, ballots: list[Ballot], sensitive_counts: Floats) -> None:
        """Keep the ballots; the votes are not looked at."""
        self._first, self._ballots = first, ballots

    def check(self, position: int) -> WorstCaseCost:
        """Cost of a check."""
        return self._prices(position)[1]

    def answer(self, position: int) -> WorstCaseCost:
        """Cost of an answer."""
        return self._prices(position)[2]

    def reserve(self, position: int) -> WorstCaseCost:
        """Cost of a check and an answer: a query is started only if both can be afforded."""
        return self._prices(position)[3]

    def _prices(self, position: int) -> tuple[Ballot, WorstCaseCost, WorstCaseCost, WorstCaseCost]:
        ballot = self._ballots[position - self._first]
        if self._known is None or self._known[0] is not ballot:
            check, answer = worst_case_prices(self._aggregator, ballot, self.accountant.adjacency)
            self._known = (ballot, check, answer, check + answer)
        return self._known


def worst_case_prices(
    aggregator: Aggregator, ballot: Ballot, adjacency: str = ANY_CHANGE
) -> tuple[WorstCaseCost, WorstCaseCost]:
    """Cost of the check and of the answer, per cohort, rounded up.

    Parameters
    ----------
    aggregator : Aggregator
        The mechanism.
    ballot : Ballot
        Who votes, and how far each cohort's owners can move a count.
    adjacency : str, optional
        Which neighbours these sensitivities are about, in words.

    Returns
    -------
    check, answer : WorstCaseCost
        The check costs 0 where the aggregator has none.
    """
    delta = ballot.sensitivity
    impure = np.where(delta > 0, np.inf, 0.0)
    nothing = WorstCaseCost(np.zeros_like(delta), np.zeros_like(delta), adjacency)
    if isinstance(aggregator, PureAggregator):
        to_mu = range_to_gdp if isinstance(aggregator, ExponentialMax) else pure_to_gdp
        moves, gamma = _on_the_grid(aggregator, delta), aggregator.gamma / ballot.scale
        pure = _up(np.asarray(lnmax_pure_epsilon(moves, gamma)))
        values, back = np.unique(pure, return_inverse=True)
        mu = np.array([to_mu(float(value)) for value in values])[back]
        return nothing, WorstCaseCost(_up(mu**2), pure, adjacency)
    if not isinstance(aggregator, GaussianAggregator):
        raise InputError(f"aggregator {aggregator.name!r} has no worst-case price")
    answer_mu_squared = _up(2.0 * (delta / (aggregator.sigma * ballot.scale)) ** 2)
    answer = WorstCaseCost(answer_mu_squared, impure, adjacency)
    if not isinstance(aggregator, CheckedAggregator):
        return nothing, answer
    sigma_threshold = aggregator.sigma_threshold * ballot.scale
    return WorstCaseCost(_up((delta / sigma_threshold) ** 2), impure, adjacency), answer


def _on_the_grid(aggregator: Aggregator, moves: Floats) -> Floats:
    """Sensitivities with what rounding costs: two grid steps for Gumbel noise (docs/bounds.md)."""
    if not isinstance(aggregator, ExponentialMax):
        return moves
    return np.where(moves > 0, moves + 2 * GRID, 0.0)


def _up(values: Floats) -> Floats:
    """Round a handful of floating-point operations up: by four units in the last place."""
    return np.where(values > 0, values * (1 + 2.0**-50), 0.0)


class DataDependentPricing(Pricing):
    """Costs computed from the raw votes. **Sensitive.**

    Answers: GNMax by Theorem 6 of Papernot et al. 2018, the others by Theorem 3 of Papernot et al.
    2017, each no more than its data-independent cost. Checks: data-dependent for Confident-GNMax when
    ``sharp_checks``, data-independent otherwise and for Interactive-GNMax.

    ``bounds`` chooses between the papers' bounds and the exact ones of this package: the union bound or
    the exact q of a Gaussian answer, and Theorem 6 or the exact divergence of a check. Not given, it is
    "papers" where the papers' orders or conversion are asked for, and "sharp" otherwise. The exact ones
    are for the noise as it is rounded to the grid; up to that (a part in a million) they are never
    worse.
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
        adjacency: str = ANY_CHANGE,
        bounds: str | None = None,
    ) -> None:
        if bounds is None:
            seeds = conversion == "mironov" or np.array_equal(np.asarray(orders), SEED_ORDERS)
            bounds = "papers" if seeds else "sharp"
        if bounds not in BOUNDS:
            raise InputError(f"unknown bounds {bounds!r}: allowed are {', '.join(BOUNDS)}")
        self.bounds = bounds
        self._aggregator = aggregator
        self._sharp_checks = sharp_checks
        budgets = electorate.cohort_budgets
        self.accountant: DataDependentAccountant = DataDependentAccountant(
            [budget.epsilon for budget in budgets],
            [budget.delta for budget in budgets],
            orders,
            conversion,
            electorate.cohort_groups,
            adjacency,
        )
        self._levels, self._level_of = np.unique(electorate.sensitivity, return_inverse=True)
        self._first = 0
        self._ballots: list[Ballot] = []
        self._sensitive_checks: Floats = np.empty(0)
        self._sensitive_answers: Floats = np.empty(0)

    def begin(self, first: int, ballots: list[Ballot], sensitive_counts: Floats) -> None:
        """Compute the costs of a chunk, for each different sensitivity."""
        orders = self.accountant.orders
        refuse_excess(sensitive_counts, np.array([ballot.total for ballot in ballots]))
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
        if isinstance(aggregator, PureAggregator):
            gamma, moves = aggregator.gamma, _on_the_grid(aggregator, self._levels)
            price = exponential_rdp if isinstance(aggregator, ExponentialMax) else lnmax_rdp
            log_q_of = _PURE_LOG_Q[aggregator.noise]

            def pure(rows: NDArray[np.intp], s: float) -> Floats:
                return price(log_q_of(counts[rows], gamma / s), moves, gamma / s, orders)

            return _by_scale(scale, pure)
        if not isinstance(aggregator, GaussianAggregator):
            raise InputError(f"aggregator {aggregator.name!r} has no data-dependent price")
        sigma, sharp = aggregator.sigma, self.bounds in ("sharp", "sharp-q")

        def gaussian(rows: NDArray[np.intp], s: float) -> Floats:
            if sharp:
                log_q = gnmax_log_q_exact(counts[rows], sigma * s, resolution=GRID)
            else:
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
            value = counts[rows].max(axis=1)
            if self.bounds in ("sharp", "sharp-check"):
                passes_from = (math.ceil(threshold * s / GRID) - 0.5) * GRID  # before rounding
                return threshold_rdp_exact(value, passes_from, self._levels, sigma * s, orders)
            log_q = threshold_log_q(value, threshold * s, sigma * s)
            return threshold_rdp(log_q, self._levels, sigma * s, orders)

        return _by_scale(scale, check)


_PURE_LOG_Q: dict[str, Callable[[Floats, float], Floats]] = {
    "laplace": lnmax_log_q,
    "exponential": permute_and_flip_log_q,
    "gumbel": exponential_log_q,
}


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
    adjacency: str = ANY_CHANGE,
    bounds: str | None = None,
) -> Pricing:
    """Choose the prices that belong to a guarantee, about the neighbours that ``adjacency`` names.

    ``bounds`` matters to the data-dependent ones: see :class:`DataDependentPricing`.

    Raises
    ------
    InputError
        If the guarantee is unknown.
    """
    if guarantee == "worst-case":
        return WorstCasePricing(aggregator, electorate, adjacency)
    if guarantee == "data-dependent":
        return DataDependentPricing(
            aggregator, electorate, orders, conversion, adjacency=adjacency, bounds=bounds
        )
    raise InputError(f"unknown guarantee {guarantee!r}: allowed are {', '.join(GUARANTEES)}")
