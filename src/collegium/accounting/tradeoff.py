"""What a budget means for whoever wants to find out about a person: error rates of the best test.

Somebody sees everything that was released, knows all other records, and decides whether a person's records
are these, or others (or blanks). A *false alarm* says "these" where they are not; a *miss* says "not these"
where they are. Privacy is a lower bound on misses, given how many false alarms are put up with: no test
does better, whatever is computed from the release.

References
----------
J. Dong, A. Roth, W. J. Su. Gaussian Differential Privacy. JRSS B 84(1), 2022; arXiv 1905.02383v3:
Definition 2.1 (trade-off function), Definition 2.6 (mu-GDP), Proposition 2.5 (of (epsilon, delta)-DP;
Wasserman & Zhou 2010; Kairouz, Oh & Viswanath 2015).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from scipy.special import ndtr, ndtri

from collegium.accounting.gaussian import gdp_mu
from collegium.budgets import Budget
from collegium.errors import InputError

_ROUNDING = 1e-12  # above the error of ndtr and ndtri; added to what an attacker finds


def right_guesses(*, mu: float = math.inf, epsilon: float = math.inf, delta: float = 0.0) -> float:
    """How often the best test is right about an owner's records, where guessing is right half of the time.

    The test sees all that is released and everybody else's records, and decides whether the owner's records
    are there or blank (or others), each as likely as the other: right with probability (1 + δ(0))/2, where
    δ(0), the profile at ε = 0, is the total variation distance.

    Parameters
    ----------
    mu : float
        Everything is μ-GDP, but for a leak: δ(0) ≤ δ + (1 − δ)(2Φ(μ/2) − 1).
    epsilon : float
        Or it is (ε, δ)-DP: δ(0) ≤ (e^ε − 1 + 2δ)/(e^ε + 1) (Kairouz, Oh & Viswanath 2015, arXiv 1311.0776v3,
        Theorem 2.1 and Remark A.1).
    delta : float
        The leak, or δ.

    Returns
    -------
    float
        From 0.5 to 1, rounded up. The only place where it is computed.

    Examples
    --------
    >>> round(right_guesses(mu=0.268051123211), 4), round(right_guesses(epsilon=1.0), 4)
    (0.5533, 0.7311)
    """
    apart = math.tanh(epsilon / 2) if math.isinf(mu) else math.erf(mu / math.sqrt(8))
    apart += delta * (1 - apart)
    return min(1.0, (0.5 + apart / 2) * (1 + _ROUNDING)) if apart else 0.5


def of_100(right: float) -> int:
    """Write a share of right guesses as times in 100, rounded up.

    Examples
    --------
    >>> of_100(right_guesses(mu=0.268051123211)), of_100(right_guesses(epsilon=1.0))
    (56, 74)
    """
    return math.ceil(100 * right)


@dataclass(frozen=True)
class TradeOff:
    """How well the best test can tell an owner's records from others, within the owner's budget.

    Parameters
    ----------
    budget : Budget
        What the owner granted.
    gaussian : bool
        Whether everything within the budget is μ(ε, δ)-GDP: so if all noise is Gaussian and the account is
        the worst case's. Otherwise only what (ε, δ) says itself is used.
    one_way : bool
        Whether only the divergence from the data set with the owner's records to the other is bounded, as
        by the data-dependent bounds of the papers.
    mu_beside : float, optional
        Everything within the budget is also μ-GDP with this μ, which may be larger than the budget's: so if
        labels alone are charged (``docs/vote-accounts.md``).
    leak_beside : float, default=0
        Probability δ₀ but for which that holds, as :class:`~collegium.accounting.GaussianBound` means it: so
        if owners are sampled.

    Examples
    --------
    >>> round(TradeOff(Budget(1.0, 1e-5), gaussian=True).most_found(0.05), 6)
    0.084287
    >>> round(TradeOff(Budget(1.0, 1e-5)).most_found(0.05), 6)
    0.135924
    """

    budget: Budget
    gaussian: bool = False
    one_way: bool = False
    mu_beside: float = math.inf
    leak_beside: float = 0.0

    @cached_property
    def mu(self) -> float:
        """The largest μ that the budget allows, rounded down as the filter does."""
        return gdp_mu(self.budget.epsilon, self.budget.delta)

    @property
    def right_guesses(self) -> float:
        """How often the best test is right, both being equally likely beforehand (:func:`right_guesses`).

        Where only one direction is bounded, P ≤ e^ε·Q + δ says that P − Q ≤ 1 − e^−ε·(1 − δ) on every set.
        """
        if self.budget.is_unlimited:
            return 1.0
        if self.gaussian:
            return right_guesses(mu=self.mu)
        epsilon, delta = self.budget.epsilon, self.budget.delta
        if self.one_way:
            apart = -math.expm1(-epsilon) + math.exp(-epsilon) * delta
            return min(1.0, (0.5 + apart / 2) * (1 + _ROUNDING))
        both_ways = right_guesses(epsilon=epsilon, delta=delta)
        if math.isinf(self.mu_beside):
            return both_ways
        return min(both_ways, right_guesses(mu=self.mu_beside, delta=self.leak_beside))

    def most_found(self, false_alarms: float) -> float:
        """Bound how often the best test finds out that the records are these, rounded up.

        Parameters
        ----------
        false_alarms : float
            Probability α in [0, 1] with which it says so where they are not.

        Returns
        -------
        float
            1 − β(α), with β(α) = Φ(Φ⁻¹(1 − α) − μ), or max(0, 1 − δ − e^ε·α, e^−ε·(1 − δ − α)), or the larger
            of both. But for δ₀, it is δ₀ + (1 − δ₀)·(1 − β(α/(1 − δ₀))): what leaks is told without a false
            alarm, and leaves all of them to the rest, in which they are α/(1 − δ₀).
        """
        alpha = false_alarms
        if not 0 <= alpha <= 1:
            raise InputError(f"false_alarms must lie between 0 and 1, got {alpha:g}")
        if self.budget.is_unlimited:
            return 1.0
        if self.gaussian:
            found = float(ndtr(ndtri(alpha) + self.mu))
        else:
            epsilon, delta = self.budget.epsilon, self.budget.delta
            found = delta + math.exp(min(epsilon, 700.0)) * alpha
            if not self.one_way:
                found = min(found, 1 - math.exp(-epsilon) * (1 - delta - alpha))
            if math.isfinite(self.mu_beside):
                kept = 1 - self.leak_beside
                rest = float(ndtr(ndtri(min(alpha / kept, 1.0)) + self.mu_beside))
                found = min(found, self.leak_beside + kept * rest)
        upward = found * (1 + _ROUNDING) + (0.0 if found == 0 else 1e-300)
        return min(1.0, max(alpha, upward))  # whoever guesses finds a share α

    def loss_beyond(self) -> float | None:
        """Probability that the privacy loss is larger than ε when Gaussian noise has used the budget up.

        Much larger than δ: the loss is then N(μ²/2, μ²), so it is Φ(μ/2 − ε/μ), of which δ is only the part
        by which outcomes exceed their limit. None where noise is not Gaussian, or there is no limit.
        """
        if not self.gaussian or self.budget.is_unlimited:
            return None
        return min(1.0, float(ndtr(self.mu / 2 - self.budget.epsilon / self.mu)) * (1 + 1e-9))
