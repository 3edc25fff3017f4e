"""Rényi costs of the threshold check, the exact one among them.

The check releases one bit: whether value + N(0, sigma_threshold^2) >= threshold, where the value is the
largest count, or the largest difference of the counts to a student's prediction. Neighbours differ
in all records of one owner, who moves the value by at most Delta: `sensitivity`, in votes. What is
computed from the value is **sensitive**.

Why the exact cost is exact. Write a = (value - threshold)/sigma_threshold and x = Delta/sigma_threshold.
The bit is Bernoulli(Phi(a)) here, and Bernoulli(Phi(a + s)) for a neighbour, with s in [-x, x].

*The worst neighbour is at an end point.* Rényi divergence is quasi-convex in each argument at
every order (van Erven & Harremoës 2014, arXiv 1206.2459v2, Theorem 13), and zero where both arguments
agree. A quasi-convex function of one number with its minimum 0 at Phi(a) is monotone on either side
of it, and Phi(a + s) is monotone in s. So the largest divergence over s in [-x, x], in either
direction, is the larger of those at s = -x and s = x. Both occur if the owner's votes allow them
(only then is the cost attained; it is an upper bound in any case, as for fewer neighbours).

*Two outcomes, without cancellation.* With l = alpha - 1, p = Phi(a), p' = Phi(a + s),
u = log(p/p') and v = log((1-p)/(1-p')), the divergence is log(1 + e)/l with

    e = p (exp(l u) - 1) + (1-p) (exp(l v) - 1),

whose terms have opposite signs. But p (exp(-u) - 1) + (1-p) (exp(-v) - 1) = 0, and adding l times it

    e = p g(u) + (1-p) g(v),   g(t) = exp(l t) - 1 + l (exp(-t) - 1),

leaves two terms that are never negative: g is convex with minimum 0 at t = 0. The towards-here
divergence is the same with p' in place of p and -u, -v in place of u, v. The log-ratios themselves are
integrals of the hazard phi/Phi, which Gauss-Legendre gives to full relative precision for x <= 1
(the nearest zeros of Phi in the complex plane are 2.8 from the real line).

References
----------
T. van Erven, P. Harremoës. Rényi Divergence and Kullback-Leibler Divergence. IEEE Transactions on
Information Theory 60(7), 2014; arXiv 1206.2459v2.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, log_ndtr

from collegium.accounting._inputs import FloatArray, as_floats, as_positive_scalar
from collegium.accounting.renyi import gaussian_rdp, validate_orders
from collegium.accounting.votes._outcomes import per_group, smaller
from collegium.accounting.votes.gaussian_max import gnmax_rdp
from collegium.errors import InputError

__all__ = [
    "threshold_log_q",
    "threshold_rdp",
    "threshold_rdp_data_independent",
    "threshold_rdp_exact",
]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2
# The tests measure relative errors below 2^-42 against mpmath; costs are rounded up by more.
_ROUND_UP = 1 + 2.0**-40
# Below this, g is summed as a series of so many terms; above it, the closed form keeps 12 digits.
_SERIES_UP_TO, _SERIES_TERMS = 0.25, 12


def threshold_rdp_data_independent(
    sensitivity: ArrayLike, sigma_threshold: float, orders: ArrayLike
) -> FloatArray:
    """Cost of one threshold check: sensitivity^2 alpha / (2 sigma_threshold^2).

    The check noises the largest count, or the largest difference to a student's prediction: a
    Gaussian mechanism of sensitivity Delta (Mironov 2017, arXiv 1702.07476v3, Corollary 3). Every
    check costs this, whether it passes or not. Publishable.

    ``sensitivity`` (...): delta of each group, in votes, at least 0.
    ``sigma_threshold``: standard deviation of the noise of the check, in votes.
    Returns (..., n_orders).
    Raises InputError if a sensitivity is negative or not finite, the noise not positive, or an order not
        above 1.

    Examples
    --------
    >>> threshold_rdp_data_independent([1.0, 2.0], 100.0, [20])
    array([[0.001],
           [0.004]])
    """
    return gaussian_rdp(sensitivity, as_positive_scalar("sigma_threshold", sigma_threshold), orders)


def threshold_log_q(max_count: ArrayLike, threshold: float, sigma_threshold: float) -> FloatArray:
    """Log-probability of the less likely outcome of the threshold check. Sensitive.

    The check passes if max_count + N(0, sigma_threshold^2) >= threshold, so the less likely outcome
    has probability Phi(-abs(max_count - threshold)/sigma_threshold), exactly.

    ``max_count`` (n_queries,): what the check noises: the largest count, or the largest difference to a
        student's prediction (which may be negative).
    ``threshold``: in votes.
    ``sigma_threshold``: standard deviation of the noise of the check, in votes.
    Returns (n_queries,): natural logarithms, at most log(1/2).
    Raises InputError if max_count or threshold is not finite, or the noise not positive.

    Examples
    --------
    >>> threshold_log_q([200.0, 50.0], 200.0, 150.0).round(3)
    array([-0.693, -1.841])
    """
    largest = np.atleast_1d(as_floats("max_count", max_count))
    limit = as_floats("threshold", threshold)
    noise = as_positive_scalar("sigma_threshold", sigma_threshold)
    if largest.ndim != 1 or not np.isfinite(largest).all():
        raise InputError("max_count must be finite, of shape (n_queries,); pass one per query.")
    if limit.ndim or not np.isfinite(limit):
        raise InputError(f"threshold must be one finite number, got {threshold}.")
    return np.asarray(log_ndtr(-np.abs(largest - limit) / noise), dtype=np.float64)


def threshold_rdp(
    log_q: ArrayLike, sensitivity: ArrayLike, sigma_threshold: float, orders: ArrayLike
) -> FloatArray:
    """Data-dependent costs of threshold checks for each group. Sensitive.

    Derivation: Theorem 6 asks only for a mechanism with an outcome i* of probability at least
    1 - q and with two RDP guarantees. The check post-processes a Gaussian mechanism of sensitivity
    Delta to two outcomes; i* is the likelier one, q the other's exact probability, and the check
    satisfies (alpha, Delta^2 alpha/(2 sigma_threshold^2))-RDP at every alpha. That is the curve
    of GNMax with sigma = sqrt(2) sigma_threshold, so Theorem 6, Proposition 10 and the minimum
    with the data-independent cost apply with this sigma.

    ``log_q`` (n_queries,): from :func:`threshold_log_q` at the actual votes.
    ``sensitivity`` (n_groups,): delta of each group, in votes; 0 costs 0.
    ``sigma_threshold``: standard deviation of the noise of the check, in votes.
    Returns (n_queries, n_groups, n_orders).
    Raises InputError if log_q is above 0, a sensitivity negative, the noise not positive, or an order not
        above 1.

    Examples
    --------
    >>> threshold_rdp([-0.7], [1.0], 100.0, [20])
    array([[[0.001]]])
    """
    noise = as_positive_scalar("sigma_threshold", sigma_threshold)
    return gnmax_rdp(log_q, sensitivity, math.sqrt(2) * noise, orders)


def threshold_rdp_exact(
    value: ArrayLike,
    threshold: float,
    sensitivity: ArrayLike,
    sigma_threshold: float,
    orders: ArrayLike,
    *,
    two_sided: bool = False,
) -> FloatArray:
    """Exact data-dependent costs of threshold checks for each group. Sensitive.

    The largest Rényi divergence between the two-outcome distributions of this vote table and of any
    that an owner can make of it (proof in the module's docstring), rounded up. Never above
    :func:`threshold_rdp` or the data-independent cost, which bound the same divergence.

    ``value`` (n_queries,): what the check noises, in votes: the largest count, or the largest difference of
        the counts to a prediction that is the same for both neighbours (it may be negative).
    ``threshold``: in votes.
    ``sensitivity`` (n_groups,): delta of each group, in votes; 0 costs 0.
    ``sigma_threshold``: standard deviation of the noise of the check, in votes.
    ``two_sided``: false: D(this table || neighbour) as in the papers. True: the larger of both directions.
    Returns (n_queries, n_groups, n_orders).
    Raises InputError if value or threshold is not finite, a sensitivity negative, the noise not positive, or
        an order not above 1.

    Examples
    --------
    >>> threshold_rdp_exact([200.0, 500.0], 200.0, [1.0], 100.0, [20]).round(6)[..., 0]
    array([[6.34e-04],
           [1.80e-05]])
    """
    noise = as_positive_scalar("sigma_threshold", sigma_threshold)
    position = _position(value, threshold, noise)[:, None]
    moves = per_group(sensitivity)
    grid = validate_orders(orders)
    cost = np.zeros((position.size, moves.size, grid.size))
    with np.errstate(all="ignore"):  # overflow to inf is hidden by the minimum with the independent
        for step in (moves / noise, -moves / noise):
            passing = log_ndtr(position), _log_ratio(position, step)
            failing = log_ndtr(-position), _log_ratio(-position, -step)
            ways = [(passing, failing)]
            if two_sided:
                there = [(log_p - ratio, -ratio) for log_p, ratio in (passing, failing)]
                ways.append((there[0], there[1]))
            for (log_p, u), (log_not, v) in ways:
                log_excess = np.logaddexp(
                    log_p[..., None] + _log_growth(u[..., None], grid - 1),
                    log_not[..., None] + _log_growth(v[..., None], grid - 1),
                )
                divergence = np.logaddexp(0.0, log_excess) / (grid - 1)
                # A NaN (inf - inf far out in the tails) says nothing: the independent cost holds.
                np.fmax(cost, np.where(np.isnan(divergence), np.inf, divergence), out=cost)
    return smaller(cost * _ROUND_UP, gaussian_rdp(moves, noise, grid), moves)


def _position(value: ArrayLike, threshold: float, noise: float) -> FloatArray:
    """(value - threshold)/noise, of shape (n_queries,)."""
    values = np.atleast_1d(as_floats("value", value))
    limit = as_floats("threshold", threshold)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise InputError("value must be finite, of shape (n_queries,); pass one per query.")
    if limit.ndim or not np.isfinite(limit):
        raise InputError(f"threshold must be one finite number, got {threshold}.")
    return np.asarray((values - limit) / noise)


def _log_ratio(position: FloatArray, step: FloatArray) -> FloatArray:
    """log(Phi(position)/Phi(position + step)), precise however small the step is."""
    far = log_ndtr(position) - log_ndtr(position + step)
    points = position[..., None] + step[..., None] * _NODES
    hazard = math.sqrt(2 / math.pi) / erfcx(-points / math.sqrt(2))
    near = -step * (hazard @ _WEIGHTS)
    return np.asarray(np.where(np.abs(step) <= 1, near, far))


def _log_growth(ratio: FloatArray, moment: FloatArray) -> FloatArray:
    """log g(t) with g(t) = exp(l t) - 1 + l (exp(-t) - 1) for t = ratio, l = moment."""
    exponent = moment * ratio
    plain = np.log(np.expm1(exponent) + moment * np.expm1(-ratio))
    # Far out one exponential is all there is to float precision: overflow needs no other term.
    huge = np.where(ratio > 0, exponent, np.log(moment) - ratio)
    closed = np.where(np.maximum(exponent, -ratio) < 300, plain, huge)
    series = np.zeros_like(exponent)
    for k in range(_SERIES_TERMS, 1, -1):  # (l^(k-1) + (-1)^k) t^(k-2) / k!, by Horner's rule
        series = series * ratio + (moment ** (k - 1) + (-1) ** k) / math.factorial(k)
    small = np.maximum(np.abs(exponent), np.abs(ratio)) <= _SERIES_UP_TO
    return np.where(small, np.log(moment * series) + 2 * np.log(np.abs(ratio)), closed)
