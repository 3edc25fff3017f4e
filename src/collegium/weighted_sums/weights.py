"""How much everybody weighs in a mean or a count, and how far off the answer will be: public numbers.

Somebody in group g weighs w_g ≤ b_g, where b_g is what the budget allows in units of the noise: a sum of
values that one person moves by w_g at most, plus noise of variance ν², costs that person w_g. Weights far
apart hear a few people only; equal weights waste what the generous grant. The best lie in between.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.checks import shown
from collegium.errors import InputError

Floats = NDArray[np.float64]

RULES = ("saturating", "proportional", "uniform")
GAUSSIAN_NOISE = 1.0
"""Variance of the noise on what costs μ = 1."""
LAPLACE_NOISE = 2.0
"""Variance of the noise on what costs ε = 1."""


@dataclass(frozen=True)
class Errors:
    """Mean squared errors of a weighted mean, in units of the values squared.

    Attributes
    ----------
    noise : float
        Of the noise: ν²/W², W = Σ w.
    people : float
        Of hearing some more than others: s²(Σ w²/W² - 1/n), towards the plain mean of the people in the
        table, where values do not go with budgets.
    sample : float
        s²/n: of the people in the table towards those they were drawn from.
    """

    noise: float
    people: float
    sample: float

    @property
    def table(self) -> float:
        """Root mean squared error towards what the table's own mean is."""
        return math.sqrt(self.noise + self.people)

    @property
    def population(self) -> float:
        """Root mean squared error towards the mean of those from whom the people were drawn."""
        return math.sqrt(self.noise + self.people + self.sample)


def saturation(
    bounds: ArrayLike, sizes: ArrayLike, noise_variance: float, spread_variance: float
) -> float:
    """Find the weight τ above which a budget buys no more influence: w = min(b, τ) errs least.

    Parameters
    ----------
    bounds : array-like of float, shape (n_groups,)
        Largest weight of each group's people: μ with Gaussian noise, ε with Laplace noise, on a sum that a
        person of weight 1 moves by 1 at most.
    sizes : array-like of int, shape (n_groups,)
        People in each.
    noise_variance : float
        ν² in units of the values that a person may move by: 1 (Gaussian) or 2 (Laplace), times range squared.
    spread_variance : float
        s²: how much values differ from person to person, in the same unit squared: divided by n - 1.

    Returns
    -------
    float
        ``inf`` where weights in proportion to budgets are best.

    Notes
    -----
    The error E(w) = (s² Σ n_g w_g² + ν²)/(Σ n_g w_g)² is to be smallest over 0 ≤ w_g ≤ b_g (the term -s²/n
    does not depend on w). Its derivative by w_g is 2 n_g s²/W² · (w_g - τ) with
    τ = (Σ n w² + ν²/s²)/W: negative below τ, so w_g is b_g or τ, whichever is smaller (E is quasi-convex:
    its square root is a norm over a positive linear form, so that the first-order condition is enough). With
    B = {g: b_g < τ}, the people at τ cancel in τ·W = Σ n w² + ν²/s², and

        τ = (ν²/s² + Σ_B n b²) / Σ_B n b.

    With two groups this is b₁ + ν²/(s² n₁ b₁): ε₁ + 8/(n₁ ε₁) for Laplace noise and μ₁ + 4/(n₁ μ₁) for
    Gaussian noise on values of range 1 and s² = ¼. Heterogeneous means are studied in arXiv 2305.09668
    (Chaudhuri & Courtade 2023), where the optimum saturates as well.

    Examples
    --------
    >>> round(saturation([0.01, 0.2, 1.0], [540, 370, 90], 2.0, 0.25), 5)
    0.28783
    """
    bound, people = _checked(bounds, sizes)
    if not spread_variance:
        return math.inf
    ratio = noise_variance / spread_variance
    order = np.argsort(bound, kind="stable")
    b, n = bound[order], people[order]
    first, second = np.cumsum(n * b), np.cumsum(n * b * b)
    for below in range(len(b) - 1):
        tau = (ratio + second[below]) / first[below]
        if tau <= b[below + 1]:
            return float(tau)
    return math.inf


def weights_of(
    rule: str,
    bounds: ArrayLike,
    sizes: ArrayLike,
    noise_variance: float = GAUSSIAN_NOISE,
    spread_variance: float = 0.25,
) -> Floats:
    """Weigh each group's people by a rule.

    Parameters
    ----------
    rule : {"saturating", "proportional", "uniform"}
        min(b, τ); b; or the smallest b for everybody.
    bounds, sizes, noise_variance, spread_variance
        As for :func:`saturation`.

    Returns
    -------
    ndarray, shape (n_groups,)
        None above its bound.

    Examples
    --------
    >>> weights_of("saturating", [0.01, 0.2, 1.0], [540, 370, 90], 2.0).round(5).tolist()
    [0.01, 0.2, 0.28783]
    """
    bound, people = _checked(bounds, sizes)
    if rule == "uniform":
        return np.full(len(bound), bound.min())
    if rule == "proportional":
        return bound.copy()
    if rule == "saturating":
        return np.minimum(bound, saturation(bound, people, noise_variance, spread_variance))
    raise InputError(f"weights must be one of {', '.join(RULES)}, got {shown(rule)}")


def errors_of(
    weights: ArrayLike, sizes: ArrayLike, noise_variance: float, spread_variance: float
) -> Errors:
    """Predict the errors of a weighted mean; parameters as for :func:`saturation`.

    Examples
    --------
    >>> sizes = [540, 370, 90]
    >>> round(errors_of([0.01] * 3, sizes, 2.0, 0.25).population, 6)
    0.142302
    >>> spread = 0.3 * 0.7 * 1000 / 999  # 300 of 1,000 people
    >>> round(1000 * errors_of([0.01, 0.2, 1.0], sizes, 2.0, spread).table, 2)
    25.05
    """
    weight, people = _checked(weights, sizes)
    total = float(people @ weight)
    heard = float(people @ (weight * weight)) / total**2
    n = float(people.sum())
    return Errors(
        noise_variance / total**2,
        spread_variance * max(0.0, heard - 1 / n),
        spread_variance / n,
    )


def effective_people(weights: ArrayLike, sizes: ArrayLike) -> float:
    """Count as how many equally heard people these are: (Σ w)²/Σ w²."""
    weight, people = _checked(weights, sizes)
    return float((people @ weight) ** 2 / (people @ (weight * weight)))


def staircase(bounds: Sequence[float] | Floats) -> list[Floats]:
    """Split budgets so that everybody counts equally first, and the more generous once more, step by step.

    With b₁ < b₂ < … the j-th sum is over the people of b_j and more, with the weight √(b_j² - b_{j-1}²);
    somebody of b_g pays Σ_{j≤g} (b_j² - b_{j-1}²) = b_g² in μ². The first sum is of everybody alike:
    unbiased, however values go with budgets, at noise ν/b₁ per person, and no linear unbiased answer has
    less: of a noisy vector to which a person of group g contributes a_g·x with ‖a_g‖ ≤ b_g, the answer c
    needs c·a_g = 1 for each g, so ‖c‖ ≥ 1/b₁. (A noisy sum for each group, added up, has Σ ν²/b_g² instead of
    ν²/b₁².) The other sums show what each group has alone.

    Returns
    -------
    list of ndarray, each of shape (n_groups,)
        Weights in each sum.

    Examples
    --------
    >>> [step.round(3).tolist() for step in staircase([3.0, 5.0])]
    [[3.0, 3.0], [0.0, 4.0]]
    """
    bound = np.asarray(bounds, dtype=np.float64)
    steps, before = [], 0.0
    for level in np.unique(bound):
        weight = math.sqrt((level - before) * (level + before)) * (1 - 2**-50 if before else 1.0)
        steps.append(np.where(bound >= level, weight, 0.0))
        before = float(level)
    return steps


def _checked(bounds: ArrayLike, sizes: ArrayLike) -> tuple[Floats, Floats]:
    bound, people = np.asarray(bounds, np.float64), np.asarray(sizes, np.float64)
    if bound.shape != people.shape or bound.ndim != 1 or not bound.size:
        raise InputError("weights need one bound and one size for each group")
    if not ((bound > 0) & np.isfinite(bound) & (people > 0)).all():
        raise InputError("bounds and sizes must be above 0 and finite, of groups that have members")
    return bound, people
