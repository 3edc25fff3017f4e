"""What an owner may lose over all releases together, and what is left of it: arithmetic only.

Proofs: ``docs/ledger.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from collegium.accounting.events import Event
from collegium.accounting.gaussian import gdp_epsilon, gdp_mu
from collegium.budgets import Budget
from collegium.errors import InputError

DELTA_0_SHARE = 0.01
"""Share of each δ that is set aside, once and for all, for mechanisms that need a δ₀."""


@dataclass(frozen=True)
class Cost:
    """What releases cost one owner, in the common currency; each number is rounded up.

    Attributes
    ----------
    mu_squared : float
        Σμ² of Gaussian DP; ``inf`` if nothing is promised in it.
    pure_epsilon : float
        Σε of pure DP; ``inf`` where a release was not pure.
    delta_0 : float
        Σδ₀: how much of everything may leak outright.
    alone : Budget or None
        That of the owner, where this is one release that keeps it by itself, and was to take all of it
        whatever comes out. Of several releases together there is none.
    """

    mu_squared: float
    pure_epsilon: float = math.inf
    delta_0: float = 0.0
    alone: Budget | None = None

    def __post_init__(self) -> None:
        if not all(number >= 0 for number in (self.mu_squared, self.pure_epsilon, self.delta_0)):
            raise InputError("each number of a cost must be at least 0")
        if self.alone is not None and (self.alone.is_unlimited or not self.mu_squared):
            raise InputError(
                "alone is for a cost above 0 that takes a whole finite budget: leave alone out"
            )

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
        bounds = [event.bound(cohort, delta_0) for cohort in range(len(event))]
        pure = event.pure_epsilon.tolist()
        return [
            cls(math.nextafter(bound.mu**2, math.inf), epsilon, bound.delta_0)
            for bound, epsilon in zip(bounds, pure, strict=True)
        ]

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
        """Whether another cost is at most this one, in each number.

        What was to take all of a budget takes all of it, or nothing was drawn: that it came out cheap may not
        decide on what follows.
        """
        if self.alone is not None:
            return other == self or other.is_nothing
        return (
            other.alone is None
            and other.mu_squared <= self.mu_squared
            and other.pure_epsilon <= self.pure_epsilon
            and other.delta_0 <= self.delta_0
        )

    @property
    def is_nothing(self) -> bool:
        """Whether it costs nothing at all."""
        return not self.pure_epsilon or not (self.mu_squared or self.delta_0)


@dataclass(frozen=True)
class Limit:
    """The most that all releases together may cost an owner.

    ``mu_squared`` and ``delta_0`` are fixed by the budget alone, before the first release: a filter
    needs that.
    """

    mu_squared: float
    pure_epsilon: float
    delta_0: float
    delta: float

    @classmethod
    def of(cls, budget: Budget, share: float = DELTA_0_SHARE) -> Limit:
        """Turn a budget (ε, δ) per owner into a limit.

        With Δ₀ = share·δ, the most μ with Δ₀ + (1 − Δ₀)·δ_μ(ε) ≤ δ.
        """
        delta_0 = math.nextafter(budget.delta * share, 0.0) if share else 0.0
        if budget.is_unlimited:
            return cls(math.inf, math.inf, math.inf, budget.delta)
        mu = gdp_mu(budget.epsilon, _without(budget.delta, delta_0))
        squared = math.inf if math.isinf(mu) else math.nextafter(mu * mu, 0.0)
        return cls(squared, budget.epsilon, delta_0, budget.delta)

    def allows(self, cost: Cost) -> bool:
        """Whether a total stays within it: in (μ, δ₀), or in pure ε, or as one release by itself."""
        if cost.pure_epsilon <= self.pure_epsilon or self._is_kept_by(cost.alone):
            return True
        return cost.mu_squared <= self.mu_squared and cost.delta_0 <= self.delta_0

    def _is_kept_by(self, alone: Budget | None) -> bool:
        return (
            alone is not None and alone.epsilon <= self.pure_epsilon and alone.delta <= self.delta
        )

    def right_guesses(self, first: Cost) -> float:
        """How often the best test may be right once everything is used (:func:`right_guesses`).

        ``first``: what the first release has cost. If that is beyond pure ε, so is every total, whatever
        came out, and (μ, δ₀) is the limit. Otherwise everything may be by pure ε, or by either in the light
        of what came out: then all that holds is (ε, δ)-DP, and a total variation of at most
        (e^ε − 1 + 2δ)/(e^ε + 1) (Kairouz, Oh & Viswanath 2015, arXiv 1311.0776v3, Remark A.1).
        """
        if math.isinf(self.mu_squared):
            return 1.0
        if first.pure_epsilon > self.pure_epsilon:
            if self._is_kept_by(first.alone) and first.mu_squared > self.mu_squared:
                return right_guesses(first)  # nothing follows it
            return right_guesses(Cost(self.mu_squared, math.inf, self.delta_0))
        apart = _apart(Budget(self.pure_epsilon, self.delta))
        return min(1.0, (0.5 + apart / 2) * (1 + 1e-12))

    def left(self, spent: Cost) -> Cost:
        """What one further release may cost: so much is always allowed. Never below 0."""
        pure = _left(self.pure_epsilon, spent.pure_epsilon)
        if spent.mu_squared > self.mu_squared or spent.delta_0 > self.delta_0:
            return Cost(0.0, pure)  # whoever is beyond one of them gets nothing of the other
        mu_squared = _left(self.mu_squared, spent.mu_squared)
        return Cost(mu_squared, pure, _left(self.delta_0, spent.delta_0))

    def share_of(self, cost: Cost, total: Cost | None = None) -> float:
        """The share of this limit that a cost takes, in whichever of its two currencies is less.

        ``total``: what it is a part of: then in whichever is less for that, so that the parts add up.
        """
        if math.isinf(self.mu_squared):
            return 0.0
        whole = cost if total is None else total
        gaussian, pure = self._shares(whole)
        if min(gaussian, pure) > 1 and self._is_kept_by(whole.alone):
            return float(cost == whole)
        return self._shares(cost)[pure < gaussian]

    def _shares(self, cost: Cost) -> tuple[float, float]:
        leaks = cost.delta_0 and (cost.delta_0 / self.delta_0 if self.delta_0 else math.inf)
        gaussian = max(cost.mu_squared / self.mu_squared, leaks)
        return gaussian, cost.pure_epsilon / self.pure_epsilon


def right_guesses(cost: Cost) -> float:
    """How often the best test is right about an owner's records, where guessing is right half of the time.

    The test sees all releases and everybody else's records, and decides whether the owner's records are
    there or blank, each as likely as the other: right with probability (1 + δ(0))/2, where δ(0), the
    profile at ε = 0, is the total variation distance. At most δ₀ + (1 − δ₀)(2Φ(μ/2) − 1), and
    (e^ε − 1 + 2δ)/(e^ε + 1) where everything is (ε, δ)-DP (Kairouz, Oh & Viswanath 2015, arXiv 1311.0776v3,
    Theorem 2.1 and Remark A.1). Rounded up.
    """
    mu = math.sqrt(cost.mu_squared)
    gaussian = cost.delta_0 + (1 - cost.delta_0) * math.erf(mu / math.sqrt(8))
    apart = min(gaussian, math.tanh(cost.pure_epsilon / 2))
    if cost.alone is not None:
        apart = min(apart, _apart(cost.alone))
    return min(1.0, (0.5 + apart / 2) * (1 + 1e-12)) if apart else 0.5


def epsilon_of(cost: Cost, delta: float) -> float:
    """Compute the ε at δ that a cost amounts to, rounded up.

    The least ε with δ₀ + (1 − δ₀)·δ_μ(ε) ≤ δ, or the pure one, or that of one release by itself, where that
    is less.
    """
    otherwise = cost.pure_epsilon
    if cost.alone is not None and cost.alone.delta <= delta:
        otherwise = min(otherwise, cost.alone.epsilon)
    if cost.delta_0 >= delta:
        return otherwise
    mu = math.nextafter(math.sqrt(cost.mu_squared), math.inf) if cost.mu_squared else 0.0
    spent = float(gdp_epsilon(mu, _without(delta, cost.delta_0)))
    return min(spent, otherwise)


def _apart(budget: Budget) -> float:
    """Total variation that (ε, δ)-DP allows."""
    pure = math.tanh(budget.epsilon / 2)
    return pure + budget.delta * (1 - pure)


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
