"""Accountants: who has spent how much, and whether the next query may be asked.

One class per guarantee; what they share is in :mod:`collegium.accounting.odometer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.accounting.bookkeeping import Remaining, as_json, left_over
from collegium.accounting.costs import ANY_CHANGE, RenyiCost, WorstCaseCost, check_amounts
from collegium.accounting.gaussian import gdp_epsilon, gdp_mu
from collegium.accounting.odometer import Accountant
from collegium.accounting.renyi import affordable_rdp, rdp_to_epsilon, validate_orders
from collegium.errors import InputError

__all__ = ["Accountant", "DataDependentAccountant", "WorstCaseAccountant", "WorstCaseCost"]

Floats = NDArray[np.float64]
_ULP = float(np.finfo(np.float64).eps)


class WorstCaseAccountant(Accountant[WorstCaseCost]):
    """Exact Gaussian-DP account of fully adaptive queries, with a pure-DP account beside it.

    Each owner's loss after mechanisms that are μ_i-GDP for that owner is √(Σ μ_i²)-GDP, also when
    each μ_i depends on what was released before (Smith & Thakurta 2022, arXiv 2210.17520; for
    individual costs Koskela, Tobaben & Honkela 2023, arXiv 2209.15596). The filter allows a query while
    Σ μ_i² ≤ μ(ε, δ)², the largest μ whose δ(ε) is at most δ (Dong, Roth & Su 2022, Cor. 2.13).

    Where all mechanisms are also (ε_i, 0)-DP (LNMax), it allows a query as well while Σ ε_i ≤ ε.
    Either filter alone is sound, and so is their disjunction: the hockey-stick divergence at ε is a
    sum over all sequences of outputs. A sequence that ends with Σ ε_i ≤ ε has a privacy loss of at
    most ε at every point and adds nothing. All others end with Σ μ_i² within its limit, hence are
    also sequences of the strategy that stops wherever the first filter would; they add at most δ.

    Neighbours: see ``adjacency``, and the mechanism's docstring.

    Parameters
    ----------
    epsilon, delta : array-like of float, shape (n_cohorts,)
        Budget per owner.
    names : sequence of str, optional
        Group of each cohort, for messages.
    adjacency : str, optional
        Which neighbours the account is about, in words.

    Examples
    --------
    >>> import numpy as np
    >>> account = WorstCaseAccountant([1.0, 2.0], 1e-5)
    >>> cost = WorstCaseCost(np.array([0.01, 0.02]), np.full(2, np.inf))
    >>> account.how_many(cost), account.preview(cost).round(3)
    (7, array([0.341, 0.497]))
    >>> while account.affords(cost):
    ...     account.charge(cost)
    >>> account.epsilon_spent().round(3)
    array([0.986, 1.444])
    """

    guarantee = "worst-case"

    def __init__(
        self,
        epsilon: ArrayLike,
        delta: ArrayLike,
        names: Sequence[str] | None = None,
        adjacency: str = ANY_CHANGE,
    ) -> None:
        super().__init__(epsilon, delta, names, adjacency)
        pairs = list(zip(self.epsilon.tolist(), self.delta.tolist(), strict=True))
        limit = {pair: gdp_mu(*pair) for pair in set(pairs)}
        mu = np.array([limit[pair] for pair in pairs])
        self._limit: Floats = np.where(np.isinf(mu), np.inf, np.nextafter(mu * mu, 0.0))
        self._both_limits: Floats = np.stack([self._limit, self.epsilon])
        self._total = np.zeros((2, len(self)))

    @property
    def mu_squared(self) -> Floats:
        """Sum of μ² that was charged to each cohort, shape (n_cohorts,)."""
        return np.array(self._total[0])

    @property
    def pure_epsilon(self) -> Floats:
        """Sum of pure ε that was charged to each cohort, shape (n_cohorts,); ``inf`` if not pure."""
        return np.array(self._total[1])

    def remaining(self) -> Remaining:
        """What is left to the owners of each cohort, in ε and in μ; changes nothing."""
        with np.errstate(invalid="ignore"):
            squared = self._limit * (1 - 8 * _ULP) - self.mu_squared
            mu = np.sqrt(np.maximum(squared, 0.0)) * (1 - 4 * _ULP)
        mu = np.where(np.isinf(self._limit), np.inf, mu)
        return Remaining(left_over(self.epsilon, self.epsilon_spent()), mu)

    def _checked(self, cost: WorstCaseCost) -> Floats:
        self._require_kind(
            getattr(cost, "guarantee", "data-dependent"), getattr(cost, "adjacency", self.adjacency)
        )
        return cost.stacked(len(self))

    def _touched(self, part: Floats) -> NDArray[np.bool_]:
        return np.asarray(part.any(axis=0))

    def _exceeds(self, total: Floats) -> NDArray[np.bool_]:
        return np.asarray((total > self._both_limits).all(axis=0))

    def _epsilon_of(self, total: Floats) -> Floats:
        mu_squared, pure_epsilon = total
        mu = np.nextafter(
            np.sqrt(mu_squared), np.inf, where=mu_squared > 0, out=np.zeros(len(self))
        )
        spent = np.empty(len(self))
        for delta in np.unique(self.delta):
            chosen = self.delta == delta
            values, back = np.unique(mu[chosen], return_inverse=True)
            spent[chosen] = np.asarray(gdp_epsilon(values, float(delta)))[back]
        # The filter promises ε itself; the limit's conversion and this one round outwards, 1e-12 apart.
        spent = np.where(mu_squared <= self._limit, np.minimum(spent, self.epsilon), spent)
        return np.asarray(np.minimum(spent, pure_epsilon))


class DataDependentAccountant(Accountant["Floats | RenyiCost"]):
    """Account of the papers' data-dependent Rényi costs. **Sensitive.**

    What it holds is a statement about this one data set, computed from raw votes: it must stay in the
    vault, and so must anything derived from it: spending, previews, what is left, and its state.
    Stopping by it makes the number of labels sensitive, too. Costs are arrays (n_cohorts, n_orders) of
    Rényi-DP ε at each order, or :class:`~collegium.accounting.costs.RenyiCost`.

    Parameters
    ----------
    epsilon, delta : array-like of float, shape (n_cohorts,)
        Budget per owner.
    orders : array-like of float, shape (n_orders,)
        Orders α > 1.
    conversion : {"canonne", "mironov"}
        From Rényi DP to (ε, δ): see :func:`~collegium.accounting.renyi.rdp_to_epsilon`.
    names : sequence of str, optional
        Group of each cohort, for messages.
    adjacency : str, optional
        Which neighbours the account is about, in words.
    """

    guarantee = "data-dependent"

    def __init__(
        self,
        epsilon: ArrayLike,
        delta: ArrayLike,
        orders: ArrayLike,
        conversion: str = "canonne",
        names: Sequence[str] | None = None,
        adjacency: str = ANY_CHANGE,
    ) -> None:
        super().__init__(epsilon, delta, names, adjacency)
        self.orders: Floats = validate_orders(orders)
        self.conversion = conversion
        self._total = np.zeros((len(self), self.orders.size))
        self._deltas = np.unique(self.delta)
        self._affordable = self._limits()  # also refuses an unknown conversion

    @property
    def sensitive_rdp(self) -> Floats:
        """Rényi cost that was charged, shape (n_cohorts, n_orders). **Sensitive.**"""
        return np.array(self._total)

    def _limits(self) -> Floats:
        pairs = list(zip(self.epsilon.tolist(), self.delta.tolist(), strict=True))
        limit = {
            (epsilon, delta): affordable_rdp(epsilon, self.orders, delta, self.conversion)
            for epsilon, delta in set(pairs)
        }
        return np.array([limit[pair] for pair in pairs])

    def _identity(self) -> dict[str, Any]:
        orders = as_json(self.orders)
        return {**super()._identity(), "orders": orders, "conversion": self.conversion}

    def _checked(self, cost: Floats | RenyiCost) -> Floats:
        self._require_kind(
            getattr(cost, "guarantee", self.guarantee), getattr(cost, "adjacency", self.adjacency)
        )
        if isinstance(cost, RenyiCost):
            if not np.array_equal(cost.orders, self.orders):
                raise InputError("a cost at other orders than the account's: nothing was charged")
            cost = cost.sensitive_rdp
        check_amounts(cost, self._total.shape)
        return cost

    def _touched(self, part: Floats) -> NDArray[np.bool_]:
        return np.asarray(part.any(axis=1))

    def _exceeds(self, total: Floats) -> NDArray[np.bool_]:
        return np.asarray(~(total <= self._affordable).any(axis=1))

    def _epsilon_of(self, total: Floats) -> Floats:
        epsilon = np.empty(len(self))
        for delta in self._deltas:
            chosen = self.delta == delta
            epsilon[chosen] = rdp_to_epsilon(
                total[chosen], self.orders, float(delta), self.conversion
            )[0]
        return epsilon
