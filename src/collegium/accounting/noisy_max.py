"""Rényi costs of asking a teacher ensemble: noisy arg max and the threshold check.

Neighbours differ in all records of one owner; `sensitivity` is that owner's Delta: how far the
owner can move the vote count of one class. An owner moves at most Delta votes from one class to
another, that is sqrt(2) Delta in L2, and the largest count by at most Delta.

Two kinds of cost live here. The *data-independent* ones hold for every vote table and may be
published. The *data-dependent* ones take `log_q`, computed from the raw votes: they, the orders
that were best for them and everything derived from them are **sensitive**. They bound the Rényi
divergence D_alpha(M(D) || M(D')) of this dataset D towards each neighbour D', and not of D' towards
D, which may be larger: with votes 24 to 0, sigma = 2, Delta = 2, alpha = 2 it is 6,000 times the
bound (both tiny). The papers' data-dependent guarantee has the same limit.

Why they hold (Papernot et al. 2018, arXiv 1802.08908v1, Theorem 6). Let i* be the likely outcome,
q >= Pr[M(D) != i*], and let M satisfy (mu_1, eps_1)- and (mu_2, eps_2)-RDP, alpha <= mu_1. With
h = (q exp(eps_2))^((mu_2 - 1)/mu_2) < 1 bounding Pr[M(D') != i*], A = (1 - q)/(1 - h) and
B = exp(eps_1) q^(-1/(mu_1 - 1)),

    cost(alpha) = log((1 - q) A^(alpha - 1) + q B^(alpha - 1)) / (alpha - 1).

As q is only an upper bound, the expression must grow in q. Writing c = (mu_2 - 1)/mu_2, its
derivative is A^(a-1) (-a + (a-1) c (h/q) A) + (mu_1 - a)/(mu_1 - 1) B^(a-1), which is at least
(a-1) A^(a-1) (c h/q - mu_1/(mu_1 - 1)) if A <= B. So it grows if
h/q >= mu_1/(mu_1 - 1) * mu_2/(mu_2 - 1), which is the condition printed in the theorem. It stays
true for smaller q, and so does A <= B. Where A > B the cost exceeds log B >= eps_1, hence the
data-independent cost, and the minimum with that (taken everywhere) hides it.

The orders of Proposition 10, mu_2 = s sqrt(log 1/q) and mu_1 = mu_2 + 1 for s = sigma/Delta,
minimise h and B separately. (The thesis prints alpha_1 = s sqrt(log 1/q), alpha_2 = alpha_1 + 1:
valid but looser, and for one order less; at s = 4, log q = -20, alpha = 10 it costs 0.1241 instead
of 0.1216.) They also make everything explicit: with x = 1/s and L = log 1/q,

    log h = -(sqrt(L) - x)^2,  log(h/q) = 2 x sqrt(L) - x^2,  log B = x^2 + 2 x sqrt(L),

and the conditions become (alpha - 1) x <= sqrt(L), x < sqrt(L) and
log(h/q) >= 2 artanh(x/sqrt(L)). All three get easier, and the cost smaller, as Delta or q fall: at
given q the cost is monotone in Delta, sigma, q and alpha. But q itself grows with sigma: with the
*same votes*, more noise can raise a data-dependent cost. Only data-independent costs are monotone
in the noise.

References
----------
N. Papernot, S. Song, I. Mironov, A. Raghunathan, K. Talwar, U. Erlingsson. Scalable Private
Learning with PATE. ICLR 2018; arXiv 1802.08908v1: Propositions 7, 8, 10, Theorem 6.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from collegium.accounting._inputs import (
    FloatArray,
    as_counts,
    as_floats,
    as_log_probability,
    as_positive_scalar,
)
from collegium.accounting._outcomes import (
    capped,
    gaps,
    per_group,
    per_query,
    smaller,
    two_outcome_rdp,
)
from collegium.accounting.laplace_max import lnmax_log_q, lnmax_pure_epsilon, lnmax_rdp
from collegium.accounting.renyi import gaussian_rdp, validate_orders
from collegium.errors import InputError

__all__ = [
    "gnmax_log_q",
    "gnmax_rdp",
    "gnmax_rdp_data_independent",
    "lnmax_log_q",
    "lnmax_pure_epsilon",
    "lnmax_rdp",
    "threshold_log_q",
    "threshold_rdp",
    "threshold_rdp_data_independent",
]


def gnmax_rdp_data_independent(
    sensitivity: ArrayLike, sigma: float, orders: ArrayLike
) -> FloatArray:
    """Cost of one GNMax answer, or of its whole noisy histogram: sensitivity^2 alpha / sigma^2.

    Papernot et al. 2018 (arXiv 1802.08908v1), Proposition 8, for an owner who moves Delta votes:
    a Gaussian mechanism of L2 sensitivity sqrt(2) Delta. Publishable.

    Parameters
    ----------
    sensitivity : array-like of shape (...)
        Delta of each group, in votes, at least 0.
    sigma : float
        Standard deviation of the noise on every count, in votes.
    orders : array-like of shape (n_orders,)

    Returns
    -------
    ndarray of shape (..., n_orders)

    Raises
    ------
    InputError
        If a sensitivity is negative or not finite, sigma not positive, or an order not above 1.

    Examples
    --------
    >>> gnmax_rdp_data_independent([0.0, 1.0], 40.0, [16])
    array([[0.  ],
           [0.01]])
    """
    return 2 * gaussian_rdp(sensitivity, sigma, orders)


def threshold_rdp_data_independent(
    sensitivity: ArrayLike, sigma_threshold: float, orders: ArrayLike
) -> FloatArray:
    """Cost of one threshold check: sensitivity^2 alpha / (2 sigma_threshold^2).

    The check noises the largest count, or the largest difference to a student's prediction: a
    Gaussian mechanism of sensitivity Delta (Mironov 2017, arXiv 1702.07476v3, Corollary 3). Every
    check costs this, whether it passes or not. Publishable.

    Parameters
    ----------
    sensitivity : array-like of shape (...)
        Delta of each group, in votes, at least 0.
    sigma_threshold : float
        Standard deviation of the noise of the check, in votes.
    orders : array-like of shape (n_orders,)

    Returns
    -------
    ndarray of shape (..., n_orders)

    Raises
    ------
    InputError
        If a sensitivity is negative or not finite, the noise not positive, or an order not above 1.

    Examples
    --------
    >>> threshold_rdp_data_independent([1.0, 2.0], 100.0, [20])
    array([[0.001],
           [0.004]])
    """
    return gaussian_rdp(sensitivity, as_positive_scalar("sigma_threshold", sigma_threshold), orders)


def gnmax_log_q(counts: ArrayLike, sigma: ArrayLike) -> FloatArray:
    """Bound log Pr[answer is not the most voted class] of GNMax. Sensitive.

    Union bound of Papernot et al. 2018 (arXiv 1802.08908v1), Proposition 7: the sum of
    erfc(gap_j / (2 sigma))/2 over the other classes; at most 1 - 1/n_classes, as no class is more
    likely than the most voted one. Computed in log space, right down to any gap.

    Parameters
    ----------
    counts : array-like of shape (n_queries, n_classes)
        Vote counts (weighted), before noise.
    sigma : float or array-like of shape (n_queries,)
        Standard deviation of the noise on every count, in votes.

    Returns
    -------
    ndarray of shape (n_queries,)
        Natural logarithms.

    Raises
    ------
    InputError
        If counts are not a finite, non-negative table with two classes or more, or sigma is not
        positive.

    Examples
    --------
    >>> gnmax_log_q([[200.0, 50.0], [125.0, 125.0]], 40.0).round(3)
    array([-5.52 , -0.693])
    """
    table = as_counts(counts)
    noise = per_query("sigma", sigma, table.shape[0])
    beaten = log_ndtr(-gaps(table) / (math.sqrt(2) * noise[:, None]))
    return capped(beaten, table.shape[1])


def gnmax_rdp(
    log_q: ArrayLike, sensitivity: ArrayLike, sigma: ArrayLike, orders: ArrayLike
) -> FloatArray:
    """Data-dependent costs of GNMax answers for each group. Sensitive.

    The smaller of Theorem 6 with the orders of Proposition 10 (Papernot et al. 2018, arXiv
    1802.08908v1) at noise scale sigma/Delta, and sensitivity^2 alpha / sigma^2. Holds for every
    real order above 1; the module's docstring has conditions, direction and monotonicity.

    Parameters
    ----------
    log_q : array-like of shape (n_queries,)
        From :func:`gnmax_log_q` at the actual votes and sigma; shared by all groups.
    sensitivity : array-like of shape (n_groups,)
        Delta of each group, in votes; 0 costs 0.
    sigma : float or array-like of shape (n_queries,)
        Standard deviation of the noise on every count, in votes.
    orders : array-like of shape (n_orders,)

    Returns
    -------
    ndarray of shape (n_queries, n_groups, n_orders)

    Raises
    ------
    InputError
        If log_q is above 0, a sensitivity negative, sigma not positive, or an order not above 1.

    Examples
    --------
    >>> gnmax_rdp([-20.0, -0.1], [1.0, 2.0], 40.0, [10])[..., 0].round(5)
    array([[0.     , 0.     ],
           [0.00625, 0.025  ]])
    """
    log_not = np.maximum(as_log_probability("log_q", log_q), -1e300)
    moves = per_group(sensitivity)
    noise = per_query("sigma", sigma, log_not.size)
    grid = validate_orders(orders)
    inverse_scale = (moves / noise[:, None])[..., None]
    root = np.sqrt(-log_not)[:, None, None]
    with np.errstate(all="ignore"):  # entries outside the conditions are replaced below
        log_growth = 2 * root * inverse_scale - inverse_scale**2
        allowed = (inverse_scale < root) & ((grid - 1) * inverse_scale <= root)
        allowed &= log_growth >= 2 * np.arctanh(inverse_scale / root)
        log_b = inverse_scale**2 + 2 * inverse_scale * root
        dependent = two_outcome_rdp(log_not[:, None, None], log_growth, log_b, grid)
    independent = inverse_scale**2 * grid
    return smaller(np.where(allowed, dependent, np.inf), independent, moves)


def threshold_log_q(max_count: ArrayLike, threshold: float, sigma_threshold: float) -> FloatArray:
    """Log-probability of the less likely outcome of the threshold check. Sensitive.

    The check passes if max_count + N(0, sigma_threshold^2) >= threshold, so the less likely outcome
    has probability Phi(-abs(max_count - threshold)/sigma_threshold), exactly.

    Parameters
    ----------
    max_count : array-like of shape (n_queries,)
        What the check noises: the largest count, or the largest difference to a student's
        prediction (which may be negative).
    threshold : float
        In votes.
    sigma_threshold : float
        Standard deviation of the noise of the check, in votes.

    Returns
    -------
    ndarray of shape (n_queries,)
        Natural logarithms, at most log(1/2).

    Raises
    ------
    InputError
        If max_count or threshold is not finite, or the noise not positive.

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

    Parameters
    ----------
    log_q : array-like of shape (n_queries,)
        From :func:`threshold_log_q` at the actual votes.
    sensitivity : array-like of shape (n_groups,)
        Delta of each group, in votes; 0 costs 0.
    sigma_threshold : float
        Standard deviation of the noise of the check, in votes.
    orders : array-like of shape (n_orders,)

    Returns
    -------
    ndarray of shape (n_queries, n_groups, n_orders)

    Raises
    ------
    InputError
        If log_q is above 0, a sensitivity negative, the noise not positive, or an order not
        above 1.

    Examples
    --------
    >>> threshold_rdp([-0.7], [1.0], 100.0, [20])
    array([[[0.001]]])
    """
    noise = as_positive_scalar("sigma_threshold", sigma_threshold)
    return gnmax_rdp(log_q, sensitivity, math.sqrt(2) * noise, orders)
