"""Rényi and pure costs of LNMax: noisy arg max with Laplace noise, as in the first PATE.

Neighbours, sensitivity, what is sensitive, and the one direction of the data-dependent bound are as
in :mod:`collegium.accounting.votes.noisy_max`, which offers these functions too. At given q the cost is
monotone in Delta, gamma, q and alpha; q itself falls as gamma grows, so with the same votes more
noise can raise a data-dependent cost.

The epsilon that the 2017 paper publishes follow from noise Lap(1/gamma) with gamma = 0.1 (as in its
released analysis): one answer is 2 gamma = 0.2-DP for an owner of one teacher.

References
----------
N. Papernot, M. Abadi, U. Erlingsson, I. Goodfellow, K. Talwar. Semi-supervised Knowledge Transfer
for Deep Learning from Private Training Data. ICLR 2017; arXiv 1610.05755v4: Theorems 2, 3, Lemma 4.
M. Bun, T. Steinke. Concentrated Differential Privacy: Simplifications, Extensions, and Lower
Bounds. TCC 2016; arXiv 1605.02065v1, Proposition 3.3.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from collegium.accounting._inputs import (
    FloatArray,
    as_counts,
    as_log_probability,
    as_nonnegative,
    as_positive_scalar,
)
from collegium.accounting.renyi import validate_orders
from collegium.accounting.votes._outcomes import capped, gaps, per_group, smaller, two_outcome_rdp

__all__ = ["lnmax_log_q", "lnmax_pure_epsilon", "lnmax_rdp"]


def lnmax_pure_epsilon(sensitivity: ArrayLike, gamma: float) -> FloatArray:
    """Pure epsilon of one LNMax answer per group: 2 gamma sensitivity. Publishable.

    Papernot et al. 2017 (arXiv 1610.05755v4), Theorem 2, for noise Lap(1/gamma) on every count
    and an owner who moves Delta votes: L1 sensitivity 2 Delta.

    ``sensitivity`` (...): delta of each group, in votes, at least 0.
    ``gamma``: inverse scale of the Laplace noise, per vote.
    Returns (...).
    Raises InputError if a sensitivity is negative or not finite, or gamma not positive.

    Examples
    --------
    >>> lnmax_pure_epsilon([1.0, 2.0], 0.05)
    array([0.1, 0.2])
    """
    inverse_scale = as_positive_scalar("gamma", gamma)
    return np.asarray(2 * inverse_scale * as_nonnegative("sensitivity", sensitivity))


def lnmax_log_q(counts: ArrayLike, gamma: float) -> FloatArray:
    """Bound log Pr[answer is not the most voted class] of LNMax. Sensitive.

    Papernot et al. 2017 (arXiv 1610.05755v4), Lemma 4: the sum of
    (2 + gamma gap_j)/(4 exp(gamma gap_j)) over the other classes; at most 1 - 1/n_classes.

    ``counts`` (n_queries, n_classes): vote counts (weighted), before noise.
    ``gamma``: inverse scale of the Laplace noise, per vote.
    Returns (n_queries,): natural logarithms.
    Raises InputError if counts are not a finite, non-negative table with two classes or more, or gamma is
        not positive.

    Examples
    --------
    >>> lnmax_log_q([[200.0, 50.0], [125.0, 125.0]], 0.05).round(3)
    array([-6.635, -0.693])
    """
    table = as_counts(counts)
    scaled = as_positive_scalar("gamma", gamma) * gaps(table)
    return capped(np.log1p(scaled / 2) - math.log(2) - scaled, table.shape[1])


def lnmax_rdp(
    log_q: ArrayLike, sensitivity: ArrayLike, gamma: float, orders: ArrayLike
) -> FloatArray:
    """Data-dependent costs of LNMax answers for each group. Sensitive.

    With e = 2 gamma Delta, the smallest of e, e^2 alpha/2 (Papernot et al. 2017, arXiv
    1610.05755v4, Theorem 2; Bun & Steinke 2016, Proposition 3.3) and, for q < 1/(exp(e) + 1),
    Theorem 3: log((1 - q) R^l + q exp(e l))/l with R = (1 - q)/(1 - exp(e) q). The moment of order
    l is l times the Rényi cost of order alpha = l + 1.

    Theorem 3 holds for every real l > 0, not only for integers: the terms of E[(P/P')^l] are
    bounded outcome by outcome, by R and by exp(e); and the expression grows in q, its derivative
    being at least l R^l (exp(e) R - 1) while R <= exp(e), that is under the condition on q.

    ``log_q`` (n_queries,): from :func:`lnmax_log_q` at the actual votes and gamma; shared by all groups.
    ``sensitivity`` (n_groups,): delta of each group, in votes; 0 costs 0.
    ``gamma``: inverse scale of the Laplace noise, per vote.
    Returns (n_queries, n_groups, n_orders).
    Raises InputError if log_q is above 0, a sensitivity negative, gamma not positive, or an order not above
        1.

    Examples
    --------
    >>> lnmax_rdp([-20.0, -0.1], [1.0], 0.05, [2.0])[:, 0, 0].round(9)
    array([0.   , 0.01])
    """
    log_not = np.maximum(as_log_probability("log_q", log_q), -1e300)[:, None, None]
    moves = per_group(sensitivity)
    pure = lnmax_pure_epsilon(moves, gamma)[:, None]
    grid = validate_orders(orders)
    with np.errstate(all="ignore"):  # entries outside the condition are replaced below
        allowed = np.repeat(log_not < -np.logaddexp(0.0, pure), grid.size, axis=2)
        dependent = two_outcome_rdp(log_not, pure, pure, grid, allowed)
        independent = np.minimum(pure**2 * grid / 2, pure)
    return smaller(dependent, independent, moves)
