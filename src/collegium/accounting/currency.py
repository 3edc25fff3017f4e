"""The common currency of accounts: what any mechanism costs an owner, as a pair (mu, delta_0).

A mechanism costs (mu, delta_0) if, between neighbours and in both directions, its privacy profile
delta(epsilon) = sup_S Pr[M(D) in S] - exp(epsilon) Pr[M(D') in S] satisfies, for every real epsilon,

    delta(epsilon) <= delta_0 + (1 - delta_0) delta_mu(epsilon),

where delta_mu is the profile of N(mu, 1) against N(0, 1). The right side is the profile of "with
probability delta_0 everything leaks, otherwise mu-GDP". Pairs compose, also when later ones are chosen
after seeing earlier outputs: mu^2 and delta_0 add up. All proofs are in ``docs/composition.md``.

What is proved and what is not. The fit (:func:`fit_bound`) is in closed form; its result dominates the
*given* discrete distributions exactly, at every real epsilon, grid point or not: every step is
rounded in the safe direction, with bounds on the errors of the sums and an assumed relative error of
1e-14 for scipy's inverse normal distribution function (tests against mpmath see less than 1e-15). That
a distribution made by dp_accounting is pessimistic is proved there for exact arithmetic. The rounding of
its Fourier transforms has no proven bound; against 80-bit transforms its tail sums were off by less than
1.5e-12, and :func:`loss_distributions` takes 1e-11 of the probability to be an infinite loss to cover it.

References
----------
Y. Zhu, J. Dong, Y.-X. Wang. Optimal Accounting of Differential Privacy via Characteristic Function.
AISTATS 2022; arXiv 2106.08567. Definition 7 (dominating pairs), Theorem 10 (adaptive composition).
J. Dong, A. Roth, W. J. Su. Gaussian Differential Privacy. JRSS B 84(1), 2022; arXiv 1905.02383v3.
Theorem 2.10 (Blackwell).
A. Smith, A. Thakurta. Fully Adaptive Composition for Gaussian Differential Privacy. arXiv 2210.17520.
V. Doroshenko et al. Connect the Dots. PoPETs 2022; arXiv 2207.04380 (pessimistic distributions).
"""

import contextlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import erfinv, ndtri, ndtri_exp

from collegium.accounting._inputs import (
    FloatArray,
    as_delta,
    as_extended_scalar,
    as_floats,
    as_nonnegative,
    as_positive_scalar,
)
from collegium.accounting.bookkeeping import MOST_CHARGES
from collegium.accounting.gaussian import gdp_delta, gdp_epsilon, pure_to_gdp
from collegium.checks import check_whole
from collegium.errors import InputError

__all__ = [
    "GaussianBound",
    "LossDistribution",
    "fit_bound",
    "gaussian_bound",
    "laplace_bound",
    "loss_distributions",
    "poisson_gaussian_bound",
    "pure_bound",
]

_UNIT = float(np.finfo(np.float64).eps)
_UNIT_OF_SUMS = float(np.finfo(np.longdouble).eps)
_SMALLEST = math.ulp(0.0)
# Assumed bound on the relative error of scipy's inverse functions (as in gaussian.py).
_INVERSE_ERROR = 1e-14
# Probability by which dp_accounting's convolutions may be wrong in a tail, see above.
_MOST_POINTS = 2e7  # of a grid of losses: some seconds, and a gigabyte
_CONVOLUTION_ERROR = 1e-11
# Tail events whose tangent touches the Gaussian profile at epsilon >= 0, up to rounding.
_TOUCH_SLACK = 1e-9
_MOST_SINGLE = 100_000  # releases that are added up one by one
_MISSING, _EXCESS = 1e-12, 1e-3


def _up(value: float, units: float = 4.0) -> float:
    """A positive float above `value` by `units` in the last place; 0 and inf stay."""
    return math.nextafter(value * (1 + units * _UNIT), math.inf) if value > 0 else value


@dataclass(frozen=True)
class GaussianBound:
    """What a mechanism costs one owner: (mu, delta_0), mu-GDP but for probability delta_0.

    Attributes
    ----------
    mu : float
        Gaussian-DP parameter, in [0, inf].
    delta_0 : float, default 0.0
        Probability with which everything may leak, in [0, 1].

    Examples
    --------
    >>> study = GaussianBound.composed([GaussianBound(0.3, 1e-7), GaussianBound(0.4)])
    >>> round(study.mu, 12), round(study.epsilon(1e-5), 6)
    (0.5, 1.994296)
    """

    mu: float
    delta_0: float = 0.0

    def __post_init__(self) -> None:
        as_extended_scalar("mu", self.mu)
        if not 0 <= as_extended_scalar("delta_0", self.delta_0) <= 1:
            raise InputError(f"delta_0 must lie in [0, 1], got {self.delta_0:g}; correct it.")

    def delta(self, epsilon: float) -> float:
        """Smallest delta that (mu, delta_0) gives at any real epsilon, rounded up.

        Below 0 by delta(-e) = 1 - exp(-e) + exp(-e) delta(e).

        Parameters
        ----------
        epsilon : float
            In [-inf, inf].

        Returns
        -------
        float
            In [0, 1].
        """
        if epsilon < 0:
            other_way = -math.expm1(epsilon) + math.exp(epsilon) * self.delta(-epsilon)
            return min(_up(other_way), 1.0)
        gaussian = gdp_delta(self.mu, epsilon)
        if not gaussian:
            return self.delta_0
        if not self.delta_0:
            return gaussian
        return min(_up(self.delta_0 + (1 - self.delta_0) * gaussian), 1.0)

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon >= 0 that (mu, delta_0) gives at `delta`, rounded up.

        Parameters
        ----------
        delta : float
            In (0, 1).

        Returns
        -------
        float
            Infinite if `delta` is at most delta_0 (below it, if mu is 0).
        """
        delta = as_delta(delta)
        if self.mu == 0:
            return 0.0 if delta >= self.delta_0 else math.inf
        if not self.delta_0:
            return gdp_epsilon(self.mu, delta)
        if delta <= self.delta_0:
            return math.inf
        # The difference is off by half a unit in its last place, the quotient by two more.
        left = (delta - self.delta_0) / (1 - self.delta_0) * (1 - 4 * _UNIT)
        return gdp_epsilon(self.mu, left) if left > 0 else math.inf

    @classmethod
    def composed(cls, bounds: Iterable[Self]) -> Self:
        """Cost of all of them together: mu^2 and delta_0 add up, rounded up.

        They may be chosen one after the other, in the light of what was released before, as long as
        the two sums stay below limits fixed in advance.

        Parameters
        ----------
        bounds : iterable of GaussianBound
            One per release; none costs nothing.

        Returns
        -------
        GaussianBound
        """
        paid = [bound for bound in bounds if bound.mu or bound.delta_0]
        mus = [bound.mu for bound in paid if bound.mu]
        leaks = [bound.delta_0 for bound in paid if bound.delta_0]
        # hypot neither overflows nor underflows; its error is below one unit in the last place.
        mu = mus[0] if len(mus) == 1 else _up(math.hypot(*mus))
        delta_0 = leaks[0] if len(leaks) == 1 else _up(math.fsum(leaks))
        return cls(mu, min(delta_0, 1.0))

    def repeated(self, count: int) -> list[Self]:
        """What composes to this cost, `count` times over: rounded up in one where there are many."""
        if count <= _MOST_SINGLE:
            return [self] * count
        return [type(self)(_up(self.mu * math.sqrt(count)), min(_up(self.delta_0 * count), 1.0))]


@dataclass(frozen=True, eq=False)
class LossDistribution:
    """A discrete privacy loss distribution in one direction: log(P/Q) under P.

    It has to be exact or pessimistic: its profile must not be below the mechanism's anywhere.

    ``losses`` (n,): finite values of the privacy loss, in any order.
    ``probabilities`` (n,): their probabilities under P.
    ``infinity_mass``: probability under P of what cannot happen under Q.
    """

    losses: FloatArray
    probabilities: FloatArray
    infinity_mass: float = 0.0

    def __post_init__(self) -> None:
        losses = as_floats("losses", self.losses)
        probabilities = as_nonnegative("probabilities", self.probabilities)
        if losses.ndim != 1 or losses.shape != probabilities.shape:
            raise InputError(
                "losses and probabilities must have one shape (n,), "
                f"got {losses.shape} and {probabilities.shape}."
            )
        if not np.isfinite(losses).all():
            raise InputError("losses must be finite; put what is infinite into infinity_mass.")
        infinity_mass = as_extended_scalar("infinity_mass", self.infinity_mass)
        total = math.fsum([*probabilities.tolist(), infinity_mass])
        if not 1 - _MISSING <= total <= 1 + _EXCESS:
            raise InputError(
                f"probabilities and infinity_mass must add up to 1, got {total:.15g}; "
                "what was cut off belongs into infinity_mass."
            )
        object.__setattr__(self, "losses", losses)
        object.__setattr__(self, "probabilities", probabilities)

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon >= 0 at `delta` in this direction, rounded up.

        The profile is the largest of the lines A - exp(epsilon) B over the tails of the loss, with A the
        tail's probability under P and B under Q. All of them are at most delta from the largest of
        log((A - delta) / B) on. Sums under Q are scaled by exp(a), a the largest loss whose tail is
        more likely than delta: where this underflows, or overflows, no line is the largest.

        ``delta``: in (0, 1).
        Returns: infinite if an infinite loss is more likely than `delta`.

        Examples
        --------
        >>> loss = np.log(3.0)
        >>> response = LossDistribution(np.array([loss, -loss]), np.array([0.75, 0.25]))
        >>> round(math.exp(response.epsilon(0.25)), 9)  # (0.75 - 0.25) / 0.25
        2.0
        """
        delta = as_delta(delta)
        if self.infinity_mass > delta:
            return math.inf
        positive = (self.losses > 0) & (self.probabilities > 0)
        order = np.argsort(-self.losses[positive], kind="stable")
        losses, under_p = self.losses[positive][order], self.probabilities[positive][order]
        rounding = (losses.size + 8) * _UNIT_OF_SUMS + 8 * _UNIT
        likely = self.infinity_mass + np.cumsum(under_p, dtype=np.longdouble)
        likely = (likely * (1 + rounding)).astype(np.float64)
        over = likely > delta
        if not over.any():
            return 0.0
        anchor = float(losses[np.argmax(over)])
        with np.errstate(over="ignore"):
            # exp and the product, and losses that are off by one unit in the last place themselves.
            under_q = under_p * np.exp(anchor - losses) * (1 - (anchor + losses + 8) * _UNIT)
            unlikely = np.cumsum(under_q, dtype=np.longdouble) * (1 - rounding)
            ratio = (likely[over] - delta) / unlikely[over].astype(np.float64)
        beyond = math.log(float(ratio.max()))
        epsilon = anchor + beyond
        return max(0.0, epsilon + 8 * _UNIT * (1 + anchor + abs(beyond)))


class _Tails(NamedTuple):
    """Events "the loss is at least l" for the distinct parts l > 0, from the largest l down."""

    likely: FloatArray  # their probability under P, rounded up
    unlikely: FloatArray  # their probability under Q, rounded down
    advantage: float  # the profile at epsilon = 0, rounded up


def _tails(distribution: LossDistribution) -> _Tails:
    positive = (distribution.losses > 0) & (distribution.probabilities > 0)
    order = np.argsort(-distribution.losses[positive], kind="stable")
    losses = distribution.losses[positive][order]
    under_p = distribution.probabilities[positive][order]
    # exp and the product, and losses that are off by one unit in the last place themselves.
    under_q = under_p * np.exp(-losses) * (1 - (losses + 8) * _UNIT)
    rounding = (losses.size + 8) * _UNIT_OF_SUMS + 8 * _UNIT
    likely = distribution.infinity_mass + np.cumsum(under_p, dtype=np.longdouble)
    unlikely = np.cumsum(under_q, dtype=np.longdouble) - 4 * losses.size * _SMALLEST
    advantage = float(np.sum(under_p * -np.expm1(-losses), dtype=np.longdouble))
    return _Tails(
        (likely * (1 + rounding)).astype(np.float64),
        (unlikely * (1 - rounding)).astype(np.float64),
        (advantage + distribution.infinity_mass) * (1 + 2 * rounding),
    )


def _without_leak(probability: FloatArray, delta_0: float) -> FloatArray:
    """(p - delta_0) / (1 - delta_0), rounded up."""
    return (probability - delta_0) / (1 - delta_0) * (1 + 8 * _UNIT)


def _smallest_mu(distribution: LossDistribution, delta_0: float) -> float:
    """Smallest mu for which (mu, delta_0) dominates one direction at every epsilon >= 0, rounded up.

    The profile is the largest of the lines A - x S, x = exp(epsilon), one for each tail event, with A
    its probability under P and S under Q. The Gaussian profile lies above such a line on all of x > 0
    exactly if Phi^-1(A') - Phi^-1(S') <= mu with A' = (A - delta_0)/(1 - delta_0), S' = S/(1 - delta_0),
    and touches it at x >= 1 exactly if A' + S' <= 1. Where it would touch at x < 1, x = 1 decides.
    """
    if distribution.infinity_mass > delta_0:
        raise InputError(
            f"delta_0 = {delta_0:g} is below the probability of an infinite loss, "
            f"{distribution.infinity_mass:.3g}: choose delta_0 above it."
        )
    tails = _tails(distribution)
    at_zero = float(_without_leak(np.array(tails.advantage), delta_0))
    mu = math.sqrt(8) * float(erfinv(min(at_zero, 1.0))) if at_zero > 0 else 0.0
    likely = _without_leak(tails.likely, delta_0)
    unlikely = tails.unlikely / (1 - delta_0) * (1 - 8 * _UNIT)
    decisive = (likely > 0) & (likely + unlikely <= 1 + _TOUCH_SLACK)
    if decisive.any():
        above = ndtri(np.minimum(likely[decisive], 1.0))
        below = ndtri(np.maximum(unlikely[decisive], 0.0))
        error = _INVERSE_ERROR * (np.abs(above) + np.abs(below))
        mu = max(mu, float(np.max(above - below + error)))
    return _up(mu * (1 + _INVERSE_ERROR))


def fit_bound(remove: LossDistribution, add: LossDistribution, delta_0: float) -> GaussianBound:
    """Find the smallest mu for which (mu, delta_0) dominates a mechanism, rounded up.

    Both directions are needed, for epsilon >= 0 only: at -epsilon one direction's profile follows
    from the other's at epsilon, and the bound's from its own in the same way.

    ``remove``: of the output with the owner's records against that without.
    ``add``: of the output without against that with; `remove` again if the mechanism is symmetric.
    ``delta_0``: in [0, 1), at least the probability of an infinite loss in either direction. A hundredth to
        a tenth of the delta that will be reported costs little; the larger it is, the smaller is mu.
    Returns: with this delta_0. Smaller by more than a part in 1e9, mu would not dominate the given
        distributions. Infinite where floats cannot tell the mechanism from a total leak.
    Raises InputError if delta_0 is outside [0, 1) or below the probability of an infinite loss.

    Examples
    --------
    Randomised response with a truth of 3 to 1 is as private as its Gaussian:

    >>> loss = np.log(3.0)
    >>> response = LossDistribution(np.array([loss, -loss]), np.array([0.75, 0.25]))
    >>> round(fit_bound(response, response, 0.0).mu, 9), round(pure_to_gdp(loss), 9)
    (1.3489795, 1.3489795)
    """
    if not 0 <= as_extended_scalar("delta_0", delta_0) < 1:
        raise InputError(f"delta_0 must lie in [0, 1), got {delta_0:g}; for example 1e-7.")
    directions = {id(one): one for one in (remove, add)}.values()
    return GaussianBound(max(_smallest_mu(one, delta_0) for one in directions), delta_0)


def loss_distributions(pld: Any) -> tuple[LossDistribution, LossDistribution]:
    """Take both directions, (remove, add), out of a dp_accounting privacy loss distribution.

    What convolution left below 0 is set to 0, which raises the profile. What is missing from 1, and
    1e-11 for the rounding of the convolution, is taken to be an infinite loss.

    ``pld``: a pessimistic one.
    Returns: the same object twice if the mechanism is symmetric.
    Raises InputError if it is an optimistic one.
    """
    # There is no public way to the probabilities.
    remove = _from_pmf(pld._pmf_remove)
    return remove, remove if pld._symmetric else _from_pmf(pld._pmf_add)


def _from_pmf(pmf: Any) -> LossDistribution:
    if not pmf._pessimistic_estimate:
        raise InputError(
            "the privacy loss distribution must be pessimistic, this one is optimistic."
        )
    dense = pmf.to_dense_pmf()
    probabilities = np.maximum(np.asarray(dense._probs, dtype=np.float64), 0.0)
    losses = (dense._lower_loss + np.arange(dense.size)) * dense._discretization
    infinity_mass = float(dense._infinity_mass)
    missing = max(0.0, 1 - math.fsum([*probabilities.tolist(), infinity_mass]))
    return LossDistribution(losses, probabilities, infinity_mass + missing + _CONVOLUTION_ERROR)


def gaussian_bound(noise_multiplier: float, steps: int = 1) -> GaussianBound:
    """Cost of Gaussian noise, exact: mu = sqrt(steps) / noise_multiplier, delta_0 = 0.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise divided by the owner's L2 sensitivity, in (0, inf).
    steps : int, default 1
        How often.
    """
    noise_multiplier = as_positive_scalar("noise_multiplier", noise_multiplier)
    return GaussianBound(_up(math.sqrt(_as_count(steps)) / noise_multiplier))


def pure_bound(epsilon: float) -> GaussianBound:
    """Cost of any (epsilon, 0)-DP mechanism: see :func:`~collegium.accounting.gaussian.pure_to_gdp`."""
    return GaussianBound(pure_to_gdp(epsilon))


def laplace_bound(noise_multiplier: float) -> GaussianBound:
    """Cost of Laplace noise, exact: mu = -2 Phi^-1(exp(-1 / (2 noise_multiplier)) / 2), delta_0 = 0.

    Below what a mechanism of the same pure epsilon = 1 / noise_multiplier may cost at worst: by a sixth
    at epsilon = 1, hardly where epsilon is small. The proof is in ``docs/composition.md``.

    Parameters
    ----------
    noise_multiplier : float
        Scale b of the noise divided by the owner's sensitivity, in (0, inf).

    Examples
    --------
    >>> round(laplace_bound(1.0).mu, 9), round(pure_bound(1.0).mu, 9)
    (1.030063998, 1.232035385)
    """
    noise_multiplier = as_positive_scalar("noise_multiplier", noise_multiplier)
    half = 0.5 / noise_multiplier
    if half < 0.5:  # Phi(z) - 1/2 = (1 - exp(-half))/2 keeps the digits of a small loss
        mu = math.sqrt(8) * float(erfinv(-math.expm1(-half)))
    else:
        mu = -2 * float(ndtri_exp(-half - math.log(2)))
    return GaussianBound(_up(mu * (1 + _INVERSE_ERROR)))


def poisson_gaussian_bound(
    rate: float, noise_multiplier: float, steps: int, delta_0: float, interval: float = 1e-4
) -> GaussianBound:
    """Cost of Gaussian noise on Poisson samples, from dp_accounting's pessimistic distributions.

    Neighbours: the records of one owner are there or not (add or remove).

    Parameters
    ----------
    rate : float
        Probability with which the owner takes part in a step, independently of others, in [0, 1].
    noise_multiplier : float
        Standard deviation of the noise divided by the owner's L2 sensitivity, in (0, inf).
    steps : int
        How many, each with a fresh sample; fixed in advance, as are rate and noise.
    delta_0 : float
        In (1e-11, 1); not used (and 0 in the result) where rate or steps are 0, or rate is 1.
    interval : float, default 1e-4
        Width of the grid of losses: the finer, the smaller mu, and the longer it takes.

    Returns
    -------
    GaussianBound

    Raises
    ------
    InputError
        If dp-accounting is not installed, or an argument is out of range.
    """
    if not 0 <= as_extended_scalar("rate", rate) <= 1:
        raise InputError(f"rate must lie in [0, 1], got {rate:g}; it is a probability.")
    if rate == 1 or rate == 0 or _as_count(steps) == 0:
        return gaussian_bound(noise_multiplier, steps if rate else 0)
    losses = poisson_gaussian_losses(rate, noise_multiplier, steps, interval)
    return fit_bound(*loss_distributions(losses), delta_0)


def poisson_gaussian_losses(
    rate: float, noise_multiplier: float, steps: int, interval: float
) -> Any:
    """Make dp_accounting's pessimistic privacy loss distribution of steps at a rate in (0, 1)."""
    noise = as_positive_scalar("noise_multiplier", noise_multiplier)
    interval = as_positive_scalar("interval", interval)
    points = (1 / noise + 20) / noise / interval  # 20: where Gaussian tails are cut off, and more
    if points > _MOST_POINTS:
        raise InputError(
            f"noise_multiplier {noise:g} is too little for a grid of losses of {interval:g}: give more noise"
        )
    with _one_line(noise, steps):
        step = _dp_accounting().from_gaussian_mechanism(
            noise, sampling_prob=rate, value_discretization_interval=interval
        )
        return self_composed(step, steps)


def self_composed(losses: Any, count: int) -> Any:
    """Compose a dp_accounting privacy loss distribution with itself, if a grid can hold the result."""
    pmf = losses._pmf_remove.to_dense_pmf()
    if pmf.size * count > _MOST_POINTS:
        # As dp_accounting will find them, from a few of its orders.
        common = import_module("dp_accounting.pld.common")
        orders = (np.array([-20.0, -5.0, -1.0, 1.0, 5.0, 20.0]) / pmf.size).tolist()
        least, most = common.compute_self_convolve_bounds(pmf._probs, count, 1e-15, orders)
        if most - least > _MOST_POINTS:
            raise InputError(
                f"losses of {count:,} steps are too many for a grid of {pmf._discretization:g}: use fewer "
                "steps, or Rényi DP"
            )
    return losses.self_compose(count)


@contextlib.contextmanager
def _one_line(noise: float, steps: int) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except (ArithmeticError, MemoryError, ValueError) as error:
        raise InputError(
            f"losses of {steps:,} steps with noise_multiplier {noise:g} cannot be computed "
            f"({type(error).__name__}): use Rényi DP"
        ) from None


def _as_count(steps: int) -> int:
    check_whole("steps", steps, least=0, most=MOST_CHARGES)
    return int(steps)


def _dp_accounting() -> Any:
    try:
        return import_module("dp_accounting.pld.privacy_loss_distribution")
    except ImportError:
        raise InputError(
            "Poisson samples need the package dp-accounting: "
            "install collegium with its extra 'dp-accounting'."
        ) from None
