"""Publishing data-dependent costs: Gaussian noise scaled to smooth sensitivity, at its own cost.

For every group one number is published, at one order chosen in advance:

    published = total cost + sigma S (z + Z),   Z ~ N(0, 1),   z = Phi^-1(1 - failure),

with S the smooth bound of :func:`~reproduction.smooth.smooth_sensitivity.smooth_sensitivity`. It
is below the total cost with probability `failure`, whatever the data are. The offset z sigma S is
data-dependent, so it counts as part of what is published; S itself never leaves.

Its own Rényi cost (derived in ``reproduction/docs/smooth-sensitivity.md``; exact for the worst pair). For an
owner who counts as c steps, with b = beta c and kappa = alpha - (alpha - 1) exp(2 b) > 0,

    alpha (c + z sigma (exp(b) - 1))^2 / (2 sigma^2 kappa) - b - log(kappa) / (2 (alpha - 1)).

It holds in both directions and does not depend on the data. Theorem 23 of Papernot et al. 2018 (arXiv
1802.08908v1) has, for z = 0, alpha exp(2 b)/sigma^2 + (b alpha - log(1 - 2 alpha b)/2)/(alpha - 1):
about twice as much for small b. As their released code applies it, for all alpha < 1/(2 b), it is
*below* the divergence of an allowed pair where alpha b comes close to 1/2 (a test shows it): not used.

Three things this does **not** do: make the labels' data-dependent guarantee hold in the other
direction (see :mod:`collegium.accounting.votes.noisy_max`), allow the order, beta, sigma or the decision
to publish to be chosen by looking at votes, or pay for a stop that depends on costs.

References
----------
N. Papernot, S. Song, I. Mironov, A. Raghunathan, K. Talwar, U. Erlingsson. Scalable Private
Learning with PATE. ICLR 2018; arXiv 1802.08908v1: Appendix B, Theorem 23.
M. Bun, T. Steinke. Average-case averages: private algorithms for smooth sensitivity and mean
estimation. NeurIPS 2019; arXiv 1906.02830: other noises for smooth sensitivity.
R. Redberg, Y. Zhu, Y.-X. Wang. Generalized PTR. AISTATS 2023; arXiv 2301.00301: publishing an upper
confidence bound of PATE's cost, and releasing only if it is within the budget.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from collegium.accounting import rdp_to_epsilon
from collegium.accounting.renyi import CONVERSIONS, validate_orders
from collegium.errors import InputError
from reproduction.smooth.inputs import Floats, nonnegative, numbers, positive
from reproduction.smooth.smooth_sensitivity import CostProfile, smooth_sensitivity

__all__ = [
    "RESOLUTION",
    "ReleasePlan",
    "SanitisedEpsilon",
    "noise_scale",
    "release_epsilon",
    "release_rdp",
]

#: Published Rényi costs, and the noise on them, are multiples of this (see ``docs/noise.md``).
RESOLUTION: Final = 2.0**-30

#: S is never taken to be smaller, so that rounding to RESOLUTION moves it by 2^-13 of S at most.
_SMALLEST_BOUND = 2.0**-17
_ROUNDING = RESOLUTION / _SMALLEST_BOUND
# Added to beta times steps, for the rounding errors of S (a few parts in 1e12).
_SMOOTHNESS_ERROR = 1e-9


@dataclass(frozen=True)
class ReleasePlan:
    """How costs will be published. Public, and fixed before any vote is seen.

    Attributes
    ----------
    beta : float
        Smoothness per step.
    sigma : float
        Noise, in units of the smooth bound.
    failure : float
        Probability with which a published cost is too low, in (0, 1/2]; 1/2 publishes without
        offset, as Papernot et al. do.
    delta : float
        Of the published (epsilon, delta), per owner.
    conversion : {"canonne", "mironov"}
        See :func:`~collegium.accounting.renyi.rdp_to_epsilon`.

    Raises
    ------
    InputError
        If a number is out of range or the conversion unknown.

    Examples
    --------
    >>> ReleasePlan(beta=0.01, sigma=4.0).failure
    1e-06
    """

    beta: float
    sigma: float
    failure: float = 1e-6
    delta: float = 1e-5
    conversion: str = "canonne"

    def __post_init__(self) -> None:
        positive("beta", self.beta)
        positive("sigma", self.sigma)
        if not 0 < self.delta < 1:
            raise InputError(f"delta must lie between 0 and 1, got {self.delta}; try 1e-5.")
        if not 0 < self.failure <= 0.5:
            raise InputError(f"failure must lie in (0, 1/2], got {self.failure}; try 1e-6.")
        if self.conversion not in CONVERSIONS:
            raise InputError(
                f"conversion {self.conversion!r} is unknown; use one of {CONVERSIONS}."
            )

    @property
    def offset(self) -> float:
        """Upper quantile z of the noise, in units of sigma S."""
        return abs(float(ndtri(self.failure)))


@dataclass(frozen=True, eq=False)
class SanitisedEpsilon:
    """Published costs, safe to publish: their own cost is in them.

    Attributes
    ----------
    epsilon : ndarray, shape (n_groups,)
        At ``plan.delta``, per owner of each group: labels and published numbers together.
        Data-dependent guarantee: bounds the divergence of this dataset towards each neighbour.
        Too low with probability at most ``plan.failure`` for each group.
    rdp : ndarray, shape (n_groups,)
        Upper bound on the labels' Rényi cost at the order of each group.
    release_rdp : ndarray, shape (n_groups,)
        Rényi cost of publishing the numbers of *all* groups, to an owner of each group.
    orders : ndarray, shape (n_groups,)
    plan : ReleasePlan
    """

    epsilon: Floats
    rdp: Floats
    release_rdp: Floats
    orders: Floats
    plan: ReleasePlan


def release_rdp(order: float, steps: ArrayLike, plan: ReleasePlan) -> Floats:
    """Rényi cost, at one order, of publishing one number; independent of the data.

    Parameters
    ----------
    order : float
        Above 1.
    steps : array-like of int, shape (...)
        Steps that an owner counts as; 0 costs 0.
    plan : ReleasePlan

    Returns
    -------
    ndarray of shape (...)
        Both directions; neighbours differ in all records of one owner.

    Raises
    ------
    InputError
        If beta times steps is too large for the order: at least log(order/(order - 1))/2.

    Examples
    --------
    >>> release_rdp(20.0, [0, 1, 2], ReleasePlan(beta=0.005, sigma=8.0, failure=0.5)).round(4)
    array([0.    , 0.1938, 1.0172])
    """
    alpha = float(validate_orders([order])[0])
    moved = nonnegative("steps", steps)
    smoothness = plan.beta * moved + _SMOOTHNESS_ERROR
    limit = -math.log1p(-1 / alpha) / 2
    if (smoothness >= limit).any():
        raise InputError(
            f"beta = {plan.beta:g} times {moved.max():g} steps must be below {limit:g} at order "
            f"{alpha:g}; take a smaller beta or a smaller order."
        )
    kappa = 1 - (alpha - 1) * np.expm1(2 * smoothness)
    shift = moved + _ROUNDING + plan.offset * plan.sigma * np.expm1(smoothness)
    cost = alpha * shift**2 / (2 * plan.sigma**2 * kappa)
    cost += -smoothness - np.log(kappa) / (2 * (alpha - 1))
    return np.where(moved == 0, 0.0, cost * (1 + 1e-12))


def noise_scale(profile: CostProfile, plan: ReleasePlan) -> Floats:
    """Standard deviation of the noise on each group's published cost. **Sensitive.**

    Draw it exactly, rounded to RESOLUTION, fresh and independently for each group; for example
    ``source.gaussian(scale * 2**10, 1, query=0, purpose=...) / 2**10`` with a noise source of
    :mod:`collegium.noise.sources`, whose grid is 2^-20.

    Parameters
    ----------
    profile : CostProfile
        Of all checks and answers of the job.
    plan : ReleasePlan

    Returns
    -------
    ndarray of shape (n_groups,)

    Examples
    --------
    >>> from reproduction.smooth.cost_profiles import answer_profile
    >>> from reproduction.smooth.smooth_sensitivity import Owners
    >>> profile = answer_profile([[150.0, 100.0]], Owners([1.0], 20.0), 40.0, total=250.0)
    >>> noise_scale(profile, ReleasePlan(beta=0.01, sigma=8.0)).round(4)
    array([0.0039])
    """
    return plan.sigma * np.maximum(smooth_sensitivity(profile, plan.beta), _SMALLEST_BOUND)


def release_epsilon(profile: CostProfile, plan: ReleasePlan, noise: ArrayLike) -> SanitisedEpsilon:
    """Publish each group's epsilon, with the cost of publishing included.

    Parameters
    ----------
    profile : CostProfile
        Of all checks and answers of the job.
    plan : ReleasePlan
    noise : array-like of shape (n_groups,)
        Fresh, independent N(0, noise_scale^2), rounded to multiples of RESOLUTION.

    Returns
    -------
    SanitisedEpsilon

    Raises
    ------
    InputError
        If the noise has another shape or is no multiple of RESOLUTION (drawn without an exact
        sampler), or beta is too large for an order.

    Notes
    -----
    The published cost is cut to the range from 0 to the data-independent cost, which is public and
    always valid: post-processing. All groups' numbers together cost an owner the sum of as many
    release costs (Mironov 2017, arXiv 1702.07476v3, Proposition 1), also added to the labels' cost.
    """
    drawn = numbers("noise", noise)
    if drawn.shape != profile.orders.shape:
        raise InputError(
            f"noise must be one number per group, shape {profile.orders.shape}, got {drawn.shape}."
        )
    if not (np.isfinite(drawn) & (drawn / RESOLUTION == np.rint(drawn / RESOLUTION))).all():
        raise InputError("noise must be multiples of RESOLUTION; draw it with an exact sampler.")
    raised = profile.sensitive_cost + plan.offset * noise_scale(profile, plan)
    noised = np.ceil(raised / RESOLUTION) * RESOLUTION + drawn
    published = np.clip(noised, 0.0, profile.worst_case)
    own = np.array(
        [
            profile.orders.size * float(release_rdp(order, steps, plan))
            for order, steps in zip(profile.orders.tolist(), profile.steps.tolist(), strict=True)
        ]
    )
    total = np.where(profile.steps == 0, 0.0, published + own)
    epsilon = [
        float(rdp_to_epsilon([cost], [order], plan.delta, plan.conversion)[0])
        for cost, order in zip(total.tolist(), profile.orders.tolist(), strict=True)
    ]
    return SanitisedEpsilon(np.array(epsilon), published, own, profile.orders, plan)
