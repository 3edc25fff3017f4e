"""Accountants: who has spent how much, and whether the next query may be asked.

An accountant ties budgets, costs and spending by cohort. ``affords`` and every reading change nothing;
``charge`` first checks, then changes, so a refusal leaves the account as it was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.accounting.gaussian import gdp_epsilon, gdp_mu
from collegium.accounting.renyi import rdp_to_epsilon, validate_orders
from collegium.errors import BudgetExceededError, InputError

Floats = NDArray[np.float64]
Cost = TypeVar("Cost")


@dataclass(frozen=True, eq=False)
class WorstCaseCost:
    """What one mechanism costs each cohort, whatever the data are.

    Attributes
    ----------
    mu_squared : ndarray of float64, shape (n_cohorts,)
        The mechanism is μ-Gaussian-DP for each owner of the cohort.
    pure_epsilon : ndarray of float64, shape (n_cohorts,)
        The mechanism is also (ε, 0)-DP for each owner; ``inf`` where it is not.
    """

    mu_squared: Floats
    pure_epsilon: Floats

    def __add__(self, other: WorstCaseCost) -> WorstCaseCost:
        return WorstCaseCost(
            _add_up(self.mu_squared, other.mu_squared),
            _add_up(self.pure_epsilon, other.pure_epsilon),
        )


class Accountant(ABC, Generic[Cost]):
    """Filter and odometer for one labelling job.

    Parameters
    ----------
    epsilon, delta : array-like of float, shape (n_cohorts,)
        Budget of each cohort's owners; ``epsilon`` may be infinite.
    names : sequence of str, optional
        Name of each cohort's group, for messages.
    """

    guarantee: ClassVar[str]

    def __init__(
        self, epsilon: ArrayLike, delta: ArrayLike, names: Sequence[str] | None = None
    ) -> None:
        self.epsilon: Floats = np.atleast_1d(np.array(epsilon, dtype=np.float64))
        self.delta: Floats = np.broadcast_to(
            np.asarray(delta, dtype=np.float64), self.epsilon.shape
        ).copy()
        if self.epsilon.ndim != 1 or not self.epsilon.size:
            raise InputError("an account needs at least one cohort: give one epsilon per cohort")
        if np.isnan(self.epsilon).any() or (self.epsilon <= 0).any():
            raise InputError("every cohort's epsilon must be greater than 0 (or infinite)")
        if not ((self.delta > 0) & (self.delta < 1)).all():
            raise InputError("every cohort's delta must lie strictly between 0 and 1")
        self.names = tuple(names) if names is not None else tuple(map(str, range(len(self))))
        if len(self.names) != len(self):
            raise InputError(f"{len(self)} cohorts, but {len(self.names)} names: give one each")

    def __len__(self) -> int:
        return int(self.epsilon.size)

    def affords(self, cost: Cost) -> bool:
        """Whether nobody would overspend; changes nothing."""
        return not self.overspent(cost).any()

    def charge(self, cost: Cost) -> None:
        """Charge a cost to everybody, or to nobody.

        Raises
        ------
        BudgetExceededError
            If the cost would overspend some cohort; the account is as before.
        """
        over = self.overspent(cost)
        if over.any():
            first = int(np.flatnonzero(over)[0])
            raise BudgetExceededError(
                f"refused: the query would overspend group {self.names[first]!r}, whose budget is "
                f"ε = {self.epsilon[first]:g} at δ = {self.delta[first]:g} per owner "
                f"({self.guarantee}): stop here, or plan with more noise"
            )
        self._add(cost)

    @abstractmethod
    def overspent(self, cost: Cost) -> NDArray[np.bool_]:
        """Which cohorts a cost would overspend, shape (n_cohorts,); changes nothing."""

    @abstractmethod
    def epsilon_spent(self) -> Floats:
        """Compute ε spent by the owners of each cohort at their δ, rounded up, shape (n_cohorts,)."""

    @abstractmethod
    def _add(self, cost: Cost) -> None: ...


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

    Neighbours: all records of one owner added, removed or replaced, see the mechanism's docstring.

    Parameters
    ----------
    epsilon, delta : array-like of float, shape (n_cohorts,)
        Budget per owner.
    names : sequence of str, optional
        Group of each cohort, for messages.

    Examples
    --------
    >>> import numpy as np
    >>> account = WorstCaseAccountant([1.0, 2.0], 1e-5)
    >>> cost = WorstCaseCost(np.array([0.01, 0.02]), np.full(2, np.inf))
    >>> while account.affords(cost):
    ...     account.charge(cost)
    >>> account.epsilon_spent().round(3)
    array([0.986, 1.444])
    """

    guarantee = "worst-case"

    def __init__(
        self, epsilon: ArrayLike, delta: ArrayLike, names: Sequence[str] | None = None
    ) -> None:
        super().__init__(epsilon, delta, names)
        pairs = zip(self.epsilon.tolist(), self.delta.tolist(), strict=True)
        limit = {pair: gdp_mu(*pair) for pair in set(pairs)}
        mu = np.array(
            [limit[p] for p in zip(self.epsilon.tolist(), self.delta.tolist(), strict=True)]
        )
        self._limit: Floats = np.nextafter(mu * mu, 0.0)
        self._limit[np.isinf(mu)] = np.inf
        self.mu_squared: Floats = np.zeros(len(self))
        self.pure_epsilon: Floats = np.zeros(len(self))

    def overspent(self, cost: WorstCaseCost) -> NDArray[np.bool_]:
        """Which cohorts a cost would overspend, shape (n_cohorts,); changes nothing."""
        _check_cost(cost.mu_squared, (len(self),))
        _check_cost(cost.pure_epsilon, (len(self),))
        over_mu = _add_up(self.mu_squared, cost.mu_squared) > self._limit
        over_pure = _add_up(self.pure_epsilon, cost.pure_epsilon) > self.epsilon
        untouched = (cost.mu_squared == 0) & (cost.pure_epsilon == 0)
        return np.asarray(over_mu & over_pure & ~untouched)

    def _add(self, cost: WorstCaseCost) -> None:
        self.mu_squared = _add_up(self.mu_squared, cost.mu_squared)
        self.pure_epsilon = _add_up(self.pure_epsilon, cost.pure_epsilon)

    def epsilon_spent(self) -> Floats:
        """Compute ε spent by the owners of each cohort at their δ, rounded up, shape (n_cohorts,)."""
        mu = np.nextafter(
            np.sqrt(self.mu_squared), np.inf, where=self.mu_squared > 0, out=np.zeros(len(self))
        )
        spent = np.empty(len(self))
        for delta in np.unique(self.delta):
            chosen = self.delta == delta
            values, back = np.unique(mu[chosen], return_inverse=True)
            spent[chosen] = np.asarray(gdp_epsilon(values, float(delta)))[back]
        # The filter promises ε itself; the limit's conversion and this one round outwards, 1e-12 apart.
        spent = np.where(self.mu_squared <= self._limit, np.minimum(spent, self.epsilon), spent)
        return np.minimum(spent, self.pure_epsilon)


class DataDependentAccountant(Accountant[Floats]):
    """Account of the papers' data-dependent Rényi costs. **Sensitive.**

    What it holds is a statement about this one data set, computed from raw votes: it must stay in the
    vault, and so must anything derived from it. Stopping by it makes the number of labels sensitive,
    too. Costs are arrays (n_cohorts, n_orders) of Rényi-DP ε at each order.

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
    """

    guarantee = "data-dependent"

    def __init__(
        self,
        epsilon: ArrayLike,
        delta: ArrayLike,
        orders: ArrayLike,
        conversion: str = "canonne",
        names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(epsilon, delta, names)
        self.orders: Floats = validate_orders(orders)
        self.conversion = conversion
        self.sensitive_rdp: Floats = np.zeros((len(self), self.orders.size))
        self._deltas = np.unique(self.delta)
        self._epsilon_of(
            self.sensitive_rdp
        )  # refuses an unknown conversion before anything is charged

    def overspent(self, cost: Floats) -> NDArray[np.bool_]:
        """Which cohorts a cost would overspend, shape (n_cohorts,); changes nothing."""
        _check_cost(cost, self.sensitive_rdp.shape)
        touched = cost.any(axis=1)
        after = self._epsilon_of(_add_up(self.sensitive_rdp, cost))
        return np.asarray((after > self.epsilon) & touched)

    def _add(self, cost: Floats) -> None:
        self.sensitive_rdp = _add_up(self.sensitive_rdp, cost)

    def epsilon_spent(self) -> Floats:
        """Compute ε spent by the owners of each cohort at their δ, shape (n_cohorts,). **Sensitive.**"""
        return self._epsilon_of(self.sensitive_rdp)

    def _epsilon_of(self, rdp: Floats) -> Floats:
        epsilon = np.empty(len(self))
        for delta in self._deltas:
            chosen = self.delta == delta
            epsilon[chosen] = rdp_to_epsilon(
                rdp[chosen], self.orders, float(delta), self.conversion
            )[0]
        return epsilon


def _add_up(total: Floats, cost: Floats) -> Floats:
    """Add, rounded up: a sum of floats is never below the sum of the numbers."""
    summed = total + cost
    return np.where(cost > 0, np.nextafter(summed, np.inf), summed)


def _check_cost(cost: Floats, shape: tuple[int, ...]) -> None:
    if cost.shape != shape:
        raise InputError(f"a cost of shape {cost.shape} was given to an account of shape {shape}")
    if np.isnan(cost).any() or (cost < 0).any():
        raise InputError("a cost must be 0 or more at every cohort, got a negative number or NaN")
