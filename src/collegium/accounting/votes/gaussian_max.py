"""Rényi costs of GNMax: noisy arg max with Gaussian noise.

Neighbours, sensitivity, what is sensitive, why the data-dependent bound holds and its one direction
are explained in :mod:`collegium.accounting.votes.noisy_max`, which offers these functions too. A sharper
log q than :func:`gnmax_log_q` is in :mod:`collegium.accounting.votes.winner_probability`.

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
    as_log_probability,
)
from collegium.accounting.renyi import gaussian_rdp, validate_orders
from collegium.accounting.votes._outcomes import (
    capped,
    gaps,
    per_group,
    per_query,
    smaller,
    two_outcome_rdp,
)

__all__ = ["gnmax_log_q", "gnmax_rdp", "gnmax_rdp_data_independent"]


def gnmax_rdp_data_independent(
    sensitivity: ArrayLike, sigma: float, orders: ArrayLike
) -> FloatArray:
    """Cost of one GNMax answer, or of its whole noisy histogram: sensitivity^2 alpha / sigma^2.

    Papernot et al. 2018 (arXiv 1802.08908v1), Proposition 8, for an owner who moves Delta votes:
    a Gaussian mechanism of L2 sensitivity sqrt(2) Delta. Publishable.

    ``sensitivity`` (...): delta of each group, in votes, at least 0.
    ``sigma``: standard deviation of the noise on every count, in votes.
    Returns (..., n_orders).
    Raises InputError if a sensitivity is negative or not finite, sigma not positive, or an order not above
        1.

    Examples
    --------
    >>> gnmax_rdp_data_independent([0.0, 1.0], 40.0, [16])
    array([[0.  ],
           [0.01]])
    """
    return 2 * gaussian_rdp(sensitivity, sigma, orders)


def gnmax_log_q(counts: ArrayLike, sigma: ArrayLike) -> FloatArray:
    """Bound log Pr[answer is not the most voted class] of GNMax. Sensitive.

    Union bound of Papernot et al. 2018 (arXiv 1802.08908v1), Proposition 7: the sum of
    erfc(gap_j / (2 sigma))/2 over the other classes; at most 1 - 1/n_classes, as no class is more
    likely than the most voted one. Computed in log space, right down to any gap.

    ``counts`` (n_queries, n_classes): vote counts (weighted), before noise.
    ``sigma`` (n_queries,): standard deviation of the noise on every count, in votes.
    Returns (n_queries,): natural logarithms.
    Raises InputError if counts are not a finite, non-negative table with two classes or more, or sigma is
        not positive.

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
    real order above 1; the docstring of ``noisy_max`` has conditions, direction and monotonicity.

    ``log_q`` (n_queries,): from :func:`gnmax_log_q` at the actual votes and sigma; shared by all groups.
    ``sensitivity`` (n_groups,): delta of each group, in votes; 0 costs 0.
    ``sigma`` (n_queries,): standard deviation of the noise on every count, in votes.
    Returns (n_queries, n_groups, n_orders).
    Raises InputError if log_q is above 0, a sensitivity negative, sigma not positive, or an order not above
        1.

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
        dependent = two_outcome_rdp(log_not[:, None, None], log_growth, log_b, grid, allowed)
    independent = inverse_scale**2 * grid
    return smaller(dependent, independent, moves)
