"""What an owner may lose over all releases together, and what is left of it: arithmetic only.

A ledger promises one number, in one currency, for all its life (:class:`Lifetime`): μ of Gaussian DP, where
pure mechanisms are charged by their μ, or Σε of pure DP. Proofs: ``docs/ledger.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from collegium.accounting.events import Event
from collegium.accounting.gaussian import gdp_delta, gdp_epsilon, gdp_mu
from collegium.accounting.promises import Promise
from collegium.accounting.tradeoff import right_guesses
from collegium.budgets import Budget
from collegium.checks import check_choice, check_share
from collegium.errors import InputError

DELTA_0_SHARE = 0.01
"""Share of each δ that is set aside, once and for all, for mechanisms that need a δ₀."""
HALF = 0.5
"""Share of what people have left that a release takes where nobody says how much, and nothing can tell."""
PROMISES = (Promise.GAUSSIAN, Promise.PURE)
IN_WORDS = {Promise.GAUSSIAN: "μ²", Promise.PURE: "ε"}
"""What adds up over releases."""
_LEAST = 1e-12
"""The least ε that a part of a budget has."""
_ROUNDING = 1e-9  # of μ: conversions to ε and back are off by less


@dataclass(frozen=True)
class Cost:
    """What releases cost one owner; each number is rounded up.

    Attributes
    ----------
    mu_squared : float
        Σμ² of Gaussian DP; ``inf`` if nothing is promised in it.
    pure_epsilon : float
        Σε of pure DP; ``inf`` where a release was not pure.
    delta_0 : float
        Σδ₀: how much of everything may leak outright, beside μ.
    """

    mu_squared: float
    pure_epsilon: float = math.inf
    delta_0: float = 0.0

    def __post_init__(self) -> None:
        if not all(number >= 0 for number in (self.mu_squared, self.pure_epsilon, self.delta_0)):
            raise InputError("each number of a cost must be at least 0")

    @classmethod
    def of_event(cls, event: Event, delta_0: float = 0.0) -> list[Cost]:
        """What an event costs the owners of each of its cohorts.

        Parameters
        ----------
        event : Event
            What will be, or was, noised.
        delta_0 : float, default=0.0
            That each owner pays for it beside μ; Gaussian noise on Poisson samples needs some.
        """
        if not delta_0:
            pairs = zip(event.mu_squared.tolist(), event.pure_epsilon.tolist(), strict=True)
            return [cls(mu_squared, pure_epsilon) for mu_squared, pure_epsilon in pairs]
        return [cls.of_cohort(event, cohort, delta_0) for cohort in range(len(event))]

    @classmethod
    def of_cohort(cls, event: Event, cohort: int, delta_0: float) -> Cost:
        """What an event costs the owners of one of its cohorts, who pay δ₀ for it beside μ."""
        bound, pure = event.bound(cohort, delta_0), float(event.pure_epsilon[cohort])
        return cls(math.nextafter(bound.mu**2, math.inf), pure, bound.delta_0)

    @classmethod
    def total(cls, costs: Iterable[Cost]) -> Cost:
        """Add, in whatever order: the exact sum, rounded up."""
        costs = tuple(cost for cost in costs if not cost.is_nothing)
        if len(costs) == 1:
            return costs[0]
        return cls(
            _sum_up(cost.mu_squared for cost in costs),
            _sum_up(cost.pure_epsilon for cost in costs),
            _sum_up(cost.delta_0 for cost in costs),
        )

    def covers(self, other: Cost) -> bool:
        """Whether another cost is at most this one, in each number."""
        return (
            other.mu_squared <= self.mu_squared
            and other.pure_epsilon <= self.pure_epsilon
            and other.delta_0 <= self.delta_0
        )

    @property
    def is_nothing(self) -> bool:
        """Whether it costs nothing at all."""
        return not self.pure_epsilon or not (self.mu_squared or self.delta_0)


@dataclass(frozen=True)
class Limit:
    """The most that all releases together may cost an owner: what is not promised in it has no limit.

    All of it is fixed by the budget alone, before the first release: a filter needs that.
    """

    promise: Promise
    mu_squared: float = math.inf
    pure_epsilon: float = math.inf
    delta_0: float = math.inf

    @property
    def is_unlimited(self) -> bool:
        """Whether nothing is promised."""
        return math.isinf(self.mu_squared) and math.isinf(self.pure_epsilon)

    def allows(self, cost: Cost) -> bool:
        """Whether a total stays within it."""
        return (
            cost.mu_squared <= self.mu_squared
            and cost.pure_epsilon <= self.pure_epsilon
            and cost.delta_0 <= self.delta_0
        )

    @property
    def right_guesses(self) -> float:
        """How often the best test is right about an owner's records, whatever is released, in whatever order.

        :func:`~collegium.accounting.tradeoff.right_guesses` of all that it allows.
        """
        if self.is_unlimited:
            return 1.0
        if self.promise is Promise.PURE:
            return right_guesses(epsilon=self.pure_epsilon)
        return right_guesses(mu=math.sqrt(self.mu_squared), delta=self.delta_0)

    def epsilon_of(self, cost: Cost, delta: float) -> float:
        """Compute the ε that a cost amounts to, rounded up: at δ, or Σε where that is promised.

        In μ: the least ε with Δ₀ + (1 − Δ₀)·δ_μ(ε) ≤ δ, where Δ₀ is what is set aside, used or not: so all of
        μ is all of ε.
        """
        if self.promise is Promise.PURE:
            return cost.pure_epsilon
        delta_0 = max(cost.delta_0, 0.0 if math.isinf(self.delta_0) else self.delta_0)
        if delta_0 >= delta:
            return math.inf
        mu = math.nextafter(math.sqrt(cost.mu_squared), math.inf) if cost.mu_squared else 0.0
        return float(gdp_epsilon(mu, _without(delta, delta_0)))

    def left(self, spent: Cost) -> Cost:
        """What one further release may cost: so much is always allowed. Never below 0."""
        if not self.allows(spent):
            return Cost(0.0, 0.0)  # whoever is beyond one of them gets nothing of the other
        return Cost(
            _left(self.mu_squared, spent.mu_squared),
            _left(self.pure_epsilon, spent.pure_epsilon),
            _left(self.delta_0, spent.delta_0),
        )

    def share_of(self, cost: Cost, total: Cost | None = None) -> float:
        """The share of this limit that a cost takes.

        ``total``: what it is a part of: the share of that in which this takes most, so that the parts add up.
        """
        if self.is_unlimited:
            return 0.0
        of_total = self._shares(cost if total is None else total)
        return self._shares(cost)[of_total.index(max(of_total))]

    def _shares(self, cost: Cost) -> tuple[float, ...]:
        if self.promise is Promise.PURE:
            return (cost.pure_epsilon / self.pure_epsilon,)
        leaks = cost.delta_0 and (cost.delta_0 / self.delta_0 if self.delta_0 else math.inf)
        return cost.mu_squared / self.mu_squared, leaks


@dataclass(frozen=True)
class Lifetime:
    """What a ledger promises everybody over all releases; fixed when it is made.

    Attributes
    ----------
    promise : {"gaussian", "pure"}
        In what budgets are kept.
    delta_0_share : float
        Of every δ, that is set aside for mechanisms that need a δ₀; none is used by pure ones.
    """

    promise: Promise = Promise.GAUSSIAN
    delta_0_share: float = DELTA_0_SHARE

    def __post_init__(self) -> None:
        check_choice("promise", self.promise, PROMISES)
        check_share("delta_0_share", self.delta_0_share)
        object.__setattr__(self, "promise", Promise(self.promise))
        object.__setattr__(self, "delta_0_share", float(self.delta_0_share))

    def limit(self, budget: Budget) -> Limit:
        """Turn a budget (ε, δ) per owner into a limit.

        With Δ₀ = share·δ, the most μ with Δ₀ + (1 − Δ₀)·δ_μ(ε) ≤ δ; or ε itself.
        """
        if budget.is_unlimited:
            return Limit(self.promise)
        if self.promise is Promise.PURE:
            return Limit(self.promise, pure_epsilon=budget.epsilon)
        usable = self.usable(budget)
        mu = gdp_mu(usable.epsilon, usable.delta)
        squared = math.inf if math.isinf(mu) else math.nextafter(mu * mu, 0.0)
        return Limit(self.promise, squared, delta_0=self._delta_0(budget))

    def usable(self, budget: Budget) -> Budget:
        """What releases without a δ₀ may use of a budget: all of its ε, and the rest of its δ."""
        if self.promise is Promise.PURE or budget.is_unlimited:
            return budget
        return Budget(budget.epsilon, _without(budget.delta, self._delta_0(budget)))

    def part(self, budget: Budget, share: float) -> tuple[Budget, float]:
        """Find what a share of a limit is: as a budget of releases without a δ₀, and the same share of δ₀."""
        usable = self.usable(budget)
        if share == 1 or budget.is_unlimited:
            return usable, self._delta_0(budget) * (self.promise is Promise.GAUSSIAN)
        if self.promise is Promise.PURE:
            return Budget(budget.epsilon * share, budget.delta), 0.0
        mu = math.sqrt(self.limit(budget).mu_squared * share) * (1 - _ROUNDING)
        return _of_mu(mu, usable.delta), self._delta_0(budget) * share * (1 - _ROUNDING)

    def all_of(self, part: Budget) -> Cost:
        """What a release costs that uses up all of a part: what its account allows."""
        limit = replace(self, delta_0_share=0.0).limit(part)
        return Cost(limit.mu_squared, limit.pure_epsilon)

    def _delta_0(self, budget: Budget) -> float:
        share = self.delta_0_share
        return math.nextafter(budget.delta * share, 0.0) if share else 0.0


def _of_mu(mu: float, delta: float) -> Budget:
    """Find the budget at δ that μ is; where its ε would be 0, at the δ of the least ε instead."""
    epsilon = float(gdp_epsilon(mu, delta))
    if epsilon >= _LEAST:
        return Budget(epsilon, delta)
    return Budget(_LEAST, gdp_delta(mu, _LEAST) * (1 - _ROUNDING))


def _without(delta: float, delta_0: float) -> float:
    """(δ − δ₀)/(1 − δ₀), rounded down."""
    if not delta_0:
        return delta
    return max(0.0, (delta - delta_0) / (1.0 - delta_0) * (1.0 - 2**-50))


def _sum_up(numbers: Iterable[float]) -> float:
    numbers = [number for number in numbers if number]
    if len(numbers) < 2:
        return numbers[0] if numbers else 0.0
    return math.nextafter(math.fsum(numbers), math.inf)


def _left(limit: float, spent: float) -> float:
    if math.isinf(limit):
        return math.inf
    if not spent:
        return limit
    return max(0.0, limit * (1 - 2**-50) - spent)  # as totals are rounded up
