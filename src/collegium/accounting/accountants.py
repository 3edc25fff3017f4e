"""Accountants: who has spent how much, and whether the next event may happen. One class per notion.

What they share is in :mod:`collegium.accounting.accountant`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.accounting.accountant import PUBLIC, SENSITIVE, Accountant, Cost, Remaining
from collegium.accounting.bookkeeping import as_json, left_over
from collegium.accounting.events import Event, SensitiveCurve
from collegium.accounting.gaussian import gdp_epsilon, gdp_mu
from collegium.accounting.neighbours import Neighbours
from collegium.accounting.promises import Promise
from collegium.accounting.renyi import (
    DEFAULT_ORDERS,
    affordable_rdp,
    rdp_to_epsilon,
    validate_orders,
)
from collegium.errors import InputError

__all__ = ["GUARANTEES", "GaussianAccountant", "PureAccountant", "RenyiAccountant"]

Floats = NDArray[np.float64]
_NOTIONS = {
    Promise.EITHER: "gaussian",
    Promise.GAUSSIAN: "gaussian, in mu",
    Promise.PURE: "gaussian, pure",
}
_ULP = float(np.finfo(np.float64).eps)

GUARANTEES = (PUBLIC, SENSITIVE)


class GaussianAccountant(Accountant):
    """Exact Gaussian-DP account of fully adaptive events, with a pure-DP account beside it.

    Each owner's loss after mechanisms that are μ_i-GDP for that owner is √(Σ μ_i²)-GDP, also when
    each μ_i depends on what was released before (Smith & Thakurta 2022, arXiv 2210.17520; for
    individual costs Koskela, Tobaben & Honkela 2023, arXiv 2209.15596). The filter allows an event while
    Σ μ_i² ≤ μ(ε, δ)², the largest μ whose δ(ε) is at most δ (Dong, Roth & Su 2022, Cor. 2.13).

    Where all mechanisms are also (ε_i, 0)-DP, it allows an event as well while Σ ε_i ≤ ε.
    Either filter alone is sound, and so is their disjunction: the hockey-stick divergence at ε is a
    sum over all sequences of outputs. A sequence that ends with Σ ε_i ≤ ε has a privacy loss of at
    most ε at every point and adds nothing. All others end with Σ μ_i² within its limit, hence are
    also sequences of the strategy that stops wherever the first filter would; they add at most δ.
    A ledger promises one of them (:class:`~collegium.accounting.promises.Promise`), and its releases
    keep that.

    Parameters
    ----------
    epsilon, delta : array-like of float, shape (n_cohorts,)
        Budget per owner.
    names : sequence of str, optional
        Group of each cohort, for messages.
    neighbours : Neighbours, optional
        What the account hides about an owner.
    promise : Promise, default=EITHER
        Which of the two filters allows an event, and says what was spent.

    Examples
    --------
    >>> from collegium.accounting.events import Gaussian
    >>> account = GaussianAccountant([1.0, 2.0], 1e-5)
    >>> event = Gaussian([1.0, 1.5], scale=10.0)
    >>> account.how_many(event), account.preview(event).round(3)
    (7, array([0.341, 0.53 ]))
    >>> while account.affords(event):
    ...     account.charge(event)
    >>> account.epsilon_spent().round(3)
    array([0.986, 1.541])
    """

    notion = "gaussian"

    def __init__(
        self,
        epsilon: ArrayLike,
        delta: ArrayLike,
        names: Sequence[str] | None = None,
        neighbours: Neighbours = Neighbours.ANY_CHANGE,
        promise: Promise = Promise.EITHER,
    ) -> None:
        super().__init__(epsilon, delta, names, neighbours)
        self.promise = promise
        pairs = list(zip(self.epsilon.tolist(), self.delta.tolist(), strict=True))
        limit = {pair: gdp_mu(*pair) for pair in set(pairs)}
        mu = np.array([limit[pair] for pair in pairs])
        self._limit: Floats = np.where(np.isinf(mu), np.inf, np.nextafter(mu * mu, 0.0))
        never = np.full(len(self), -1.0)
        self._both_limits: Floats = np.stack(
            [
                never if promise is Promise.PURE else self._limit,
                never if promise is Promise.GAUSSIAN else self.epsilon,
            ]
        )
        self._total = np.zeros((2, len(self)))

    @property
    def mu_squared(self) -> Floats:
        """Sum of μ² that was charged to each cohort, shape (n_cohorts,)."""
        return np.array(self._total[0])

    @property
    def pure_epsilon(self) -> Floats:
        """Sum of pure ε that was charged to each cohort, shape (n_cohorts,); ``inf`` if not pure."""
        return np.array(self._total[1])

    @property
    def is_gaussian(self) -> bool:
        """Whether everything charged was allowed by μ: as promised, or as none of it is pure."""
        if self.promise is not Promise.EITHER:
            return self.promise is Promise.GAUSSIAN
        charged = self._total[0] > 0
        return bool(charged.any() and np.isinf(self._total[1][charged]).all())

    def remaining(self) -> Remaining:
        """What is left to the owners of each cohort, in ε and in μ; changes nothing."""
        with np.errstate(invalid="ignore"):
            squared = self._limit * (1 - 8 * _ULP) - self.mu_squared
            mu = np.sqrt(np.maximum(squared, 0.0)) * (1 - 4 * _ULP)
        mu = np.where(np.isinf(self._limit), np.inf, mu)
        if self.promise is Promise.PURE:
            mu = np.zeros(len(self))  # nothing that has no pure ε
        return Remaining(left_over(self.epsilon, self.epsilon_spent()), mu)

    def without_limits(self) -> Self:
        """Make an odometer: the same account, of people who grant anything."""
        odometer = super().without_limits()
        odometer._limit = np.full(len(self), np.inf)
        odometer._both_limits = np.full((2, len(self)), np.inf)
        return odometer

    def _identity(self) -> dict[str, Any]:
        return {**super()._identity(), "notion": _NOTIONS[self.promise]}

    def _price(self, cost: Event) -> Floats:
        return np.stack([cost.mu_squared, cost.pure_epsilon])

    def _touched(self, part: Floats) -> NDArray[np.bool_]:
        return np.asarray(part.any(axis=0))

    def _exceeds(self, total: Floats) -> NDArray[np.bool_]:
        return np.asarray((total > self._both_limits).all(axis=0))

    def _epsilon_of(self, total: Floats) -> Floats:
        mu_squared, pure_epsilon = total
        if self.promise is Promise.PURE:
            return np.array(pure_epsilon)
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
        if self.promise is Promise.GAUSSIAN:
            return np.asarray(spent)
        return np.asarray(np.minimum(spent, pure_epsilon))


class PureAccountant(Accountant):
    """Basic composition of (ε_i, 0)-DP events: Σ ε_i, without any δ.

    Also as a filter, for events chosen in the light of earlier ones: every sequence of outputs has a
    privacy loss of at most Σ ε_i. An event with a δ, such as Gaussian noise, costs ``inf``.

    Parameters
    ----------
    epsilon : array-like of float, shape (n_cohorts,)
        Budget per owner.
    names : sequence of str, optional
        Group of each cohort, for messages.
    neighbours : Neighbours, optional
        What the account hides about an owner.

    Examples
    --------
    >>> from collegium.accounting.events import Laplace
    >>> account = PureAccountant([1.0, 3.0])
    >>> account.how_many(Laplace([1.0, 2.0], inverse_scale=0.25))
    3
    """

    notion = "pure"

    def __init__(
        self,
        epsilon: ArrayLike,
        names: Sequence[str] | None = None,
        neighbours: Neighbours = Neighbours.ANY_CHANGE,
    ) -> None:
        super().__init__(epsilon, 0.0, names, neighbours)
        self._total = np.zeros(len(self))

    @property
    def pure_epsilon(self) -> Floats:
        """Sum of ε that was charged to each cohort, shape (n_cohorts,)."""
        return np.array(self._total)

    def _check_delta(self) -> None:
        """There is none."""

    def _price(self, cost: Event) -> Floats:
        return cost.pure_epsilon

    def _touched(self, part: Floats) -> NDArray[np.bool_]:
        return part > 0

    def _exceeds(self, total: Floats) -> NDArray[np.bool_]:
        return total > self.epsilon

    def _epsilon_of(self, total: Floats) -> Floats:
        return np.array(total)


class RenyiAccountant(Accountant):
    """Rényi account: curves of cost over orders, added up order by order.

    **Sensitive** with ``sensitive=True``: it then also takes the papers' data-dependent costs
    (:class:`~collegium.accounting.events.SensitiveCurve`). What it holds is then a statement about this one
    data set, computed from raw votes: it must stay in the vault, and so must anything derived from it:
    spending, previews, what is left, and its state. Stopping by it makes the number of labels sensitive,
    too. Public events are charged by their worst-case curves in both.

    With an order fixed beforehand a Rényi filter is sound, also for costs that depend on earlier outputs
    (Feldman & Zrnic 2021, arXiv 2008.11193; Lécuyer 2021, arXiv 2103.01379); that the best of several orders
    may be chosen in the end is proved for costs fixed beforehand, and not known for others. So an account
    fixes one order for each limited budget, from public numbers alone: the one at which the cost that is
    usual, if it is said, or any Gaussian mechanism, can be charged most often (:attr:`fixed_order`). With
    ``any_order=True`` it goes on while *any* order is within the budget, as the papers do, for reproduction:
    nobody has proved that filter.

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
    neighbours : Neighbours, optional
        What the account hides about an owner.
    sensitive : bool, default=False
        Whether data-dependent costs are taken.
    any_order : bool, default=False
        Whether any order may be within the budget; only where it is sensitive.
    usual : Event or SensitiveCurve, optional
        For which the order is chosen; any other may be charged, too. **Public**: not computed from private
        votes. Default: Gaussian noise.

    Examples
    --------
    >>> from collegium.accounting.events import Laplace
    >>> account = RenyiAccountant([1.0], 1e-5)
    >>> account.how_many(Laplace([1.0], inverse_scale=0.05))
    27
    """

    notion = "renyi"

    def __init__(
        self,
        epsilon: ArrayLike,
        delta: ArrayLike,
        orders: ArrayLike = DEFAULT_ORDERS,
        conversion: str = "canonne",
        names: Sequence[str] | None = None,
        neighbours: Neighbours = Neighbours.ANY_CHANGE,
        sensitive: bool = False,
        any_order: bool = False,
        usual: Cost | None = None,
    ) -> None:
        super().__init__(epsilon, delta, names, neighbours)
        if any_order and not sensitive:
            raise InputError(
                "any_order is the papers' rule for sensitive accounts: a public one fixes its order; leave "
                "any_order out"
            )
        self.sensitive = sensitive
        self.any_order = any_order
        self.orders: Floats = validate_orders(orders)
        self.conversion = conversion
        self._total = np.zeros((len(self), self.orders.size))
        self._deltas = np.unique(self.delta)
        self._affordable = self._limits()  # also refuses an unknown conversion
        self._counts = np.ones(self._affordable.shape, dtype=bool)  # orders that count
        if not any_order:
            limited = np.isfinite(self.epsilon)
            curve = np.tile(self.orders, (len(self), 1))
            if usual is not None:
                of_usual = self._price(usual)
                curve = np.where(of_usual > 0, of_usual, curve)
            best = np.argmax(self._affordable / curve, axis=1)
            self._counts[limited] = np.arange(self.orders.size) == best[limited, None]

    @property
    def fixed_order(self) -> Floats:
        """The one order that counts for each cohort, shape (n_cohorts,); NaN where any may."""
        one = self._counts.sum(axis=1) == 1
        return np.where(one, self.orders[self._counts.argmax(axis=1)], np.nan)

    @property
    def sensitive_rdp(self) -> Floats:
        """Rényi cost that was charged, shape (n_cohorts, n_orders). **Sensitive** like the account."""
        return np.array(self._total)

    def _limits(self) -> Floats:
        pairs = list(zip(self.epsilon.tolist(), self.delta.tolist(), strict=True))
        limit = {
            (epsilon, delta): affordable_rdp(epsilon, self.orders, delta, self.conversion)
            for epsilon, delta in set(pairs)
        }
        return np.array([limit[pair] for pair in pairs])

    def without_limits(self) -> Self:
        """Make an odometer: the same account, with the same fixed orders, of people who grant anything."""
        odometer = super().without_limits()
        odometer._affordable = np.full(self._affordable.shape, np.inf)
        return odometer

    def _identity(self) -> dict[str, Any]:
        orders = as_json(self.orders)
        return {**super()._identity(), "orders": orders, "conversion": self.conversion}

    def _price(self, cost: Cost) -> Floats:
        if isinstance(cost, SensitiveCurve):
            if not np.array_equal(cost.orders, self.orders):
                raise InputError("a cost at other orders than the account's: nothing was charged")
            return cost.sensitive_rdp
        return cost.rdp(self.orders)

    def _touched(self, part: Floats) -> NDArray[np.bool_]:
        return np.asarray(part.any(axis=1))

    def _exceeds(self, total: Floats) -> NDArray[np.bool_]:
        return np.asarray(~((total <= self._affordable) & self._counts).any(axis=1))

    def _epsilon_of(self, total: Floats) -> Floats:
        epsilon = np.empty(len(self))
        counted = np.where(self._counts, total, np.inf)
        for delta in self._deltas:
            chosen = self.delta == delta
            epsilon[chosen] = rdp_to_epsilon(
                counted[chosen], self.orders, float(delta), self.conversion
            )[0]
        return epsilon
