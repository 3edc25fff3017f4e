"""Costs of permute-and-flip and of the exponential mechanism: noisy maxima with pure ε.

Neighbours, sensitivity and what is sensitive are as in :mod:`collegium.accounting.votes.noisy_max`. An owner
moves Delta votes from one class to another: one count rises and another falls by at most Delta, and no
count moves by more (L-infinity sensitivity Delta, not monotone). Write e = 2 gamma Delta.

*Permute-and-flip*, arg max of n_j + Expo(1/gamma), is (e, 0)-DP and nothing smaller; between two tied
classes its log-ratios are +-e to first order, so its Rényi curve is that of randomised response and
only the pure account is worth having.

*The exponential mechanism*, arg max of n_j + Gumbel(1/gamma), that is Pr[j] proportional to
exp(gamma n_j), has log-ratios gamma (n_j - n'_j) + constant: they lie in an interval of length e that
contains 0. So it is (e, 0)-DP, and with such *bounded range* (e^2/8)-zCDP, a quarter of what pure
e-DP implies, and mu-GDP with the mu of (e/2, 0)-DP. Proofs: ``docs/vote-accounts.md``.

References
----------
R. McKenna, D. Sheldon. Permute-and-Flip. NeurIPS 2020; arXiv 2010.12603. Z. Ding et al. The
Permute-and-Flip Mechanism Is Identical to Report-Noisy-Max with Exponential Noise; arXiv 2105.07260.
J. Dong, D. Durfee, R. Rogers. Optimal Differential Privacy Composition for Exponential Mechanisms.
ICML 2020; arXiv 1909.13830. M. Cesar, R. Rogers. Bounding, Concentrating, and Truncating. ALT 2021;
arXiv 2004.07223.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from collegium.accounting._inputs import (
    FloatArray,
    as_counts,
    as_nonnegative,
    as_positive_scalar,
)
from collegium.accounting.renyi import validate_orders
from collegium.accounting.votes._outcomes import capped, gaps, per_group
from collegium.accounting.votes.laplace_max import lnmax_rdp

__all__ = [
    "exponential_log_q",
    "exponential_rdp",
    "permute_and_flip_log_q",
]


def permute_and_flip_log_q(counts: ArrayLike, gamma: float) -> FloatArray:
    """Bound log Pr[answer is not the most voted class] of permute-and-flip. Sensitive.

    Union over the other classes: the difference of two exponential noises exceeds gap_j with probability
    exp(-gamma gap_j)/2. At most 1 - 1/n_classes. Exact for two classes.

    ``counts`` (n_queries, n_classes): vote counts (weighted), before noise.
    ``gamma``: inverse scale of the noise, per vote.
    Returns (n_queries,): natural logarithms.

    Examples
    --------
    >>> permute_and_flip_log_q([[200.0, 50.0], [125.0, 125.0]], 0.05).round(3)
    array([-8.193, -0.693])
    """
    table = as_counts(counts)
    scaled = as_positive_scalar("gamma", gamma) * gaps(table)
    return capped(-scaled - math.log(2), table.shape[1])


def exponential_log_q(counts: ArrayLike, gamma: float) -> FloatArray:
    """Log Pr[answer is not the most voted class] of the exponential mechanism. Sensitive.

    Exactly S/(1 + S) with S the sum of exp(-gamma gap_j) over the other classes.

    ``counts`` (n_queries, n_classes): vote counts (weighted), before noise.
    ``gamma``: inverse scale of the noise, per vote.
    Returns (n_queries,): natural logarithms.

    Examples
    --------
    >>> exponential_log_q([[200.0, 50.0], [125.0, 125.0]], 0.05).round(3)
    array([-7.501, -0.693])
    """
    table = as_counts(counts)
    others = logsumexp(-as_positive_scalar("gamma", gamma) * gaps(table), axis=1)
    return capped((others - np.logaddexp(0.0, others))[:, None], table.shape[1])


def exponential_rdp(
    log_q: ArrayLike, sensitivity: ArrayLike, gamma: float, orders: ArrayLike
) -> FloatArray:
    """Data-dependent costs of answers of the exponential mechanism for each group. Sensitive.

    The smaller of (e^2/8) alpha for bounded range (data-independent) and
    :func:`~collegium.accounting.votes.laplace_max.lnmax_rdp`, whose theorem holds for any (e, 0)-DP mechanism
    whose likely answer has probability at least 1 - q.

    ``log_q`` (n_queries,): from :func:`exponential_log_q` at the actual votes and gamma; shared by all
        groups.
    ``sensitivity`` (n_groups,): delta of each group, in votes; 0 costs 0.
    ``gamma``: inverse scale of the noise, per vote.
    Returns (n_queries, n_groups, n_orders).

    Examples
    --------
    >>> exponential_rdp([-20.0, -0.1], [1.0], 0.05, [2.0])[:, 0, 0].round(9)
    array([0.    , 0.0025])
    """
    moves = per_group(as_nonnegative("sensitivity", sensitivity))
    ranges = 2 * as_positive_scalar("gamma", gamma) * moves
    independent = ranges[:, None] ** 2 * validate_orders(orders) / 8
    return np.asarray(np.minimum(lnmax_rdp(log_q, moves, gamma, orders), independent))
