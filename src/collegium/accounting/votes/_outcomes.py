"""What GNMax, LNMax and the threshold check share: one likely outcome, and the rest."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from collegium.accounting._inputs import FloatArray, as_nonnegative, as_positive
from collegium.errors import InputError

# A cost is exactly 0 only for an owner without influence; below the smallest float it is this.
_SMALLEST = float(np.finfo(np.float64).tiny)


# Down to here q and the growth of its outcome are computed as they are, below in log space.
_SMALLEST_LOG_Q, _LARGEST_EXPONENT = -230.0, 700.0


def two_outcome_rdp(
    log_q: FloatArray,
    log_growth: FloatArray,
    log_b: FloatArray,
    orders: FloatArray,
    allowed: NDArray[np.bool_],
) -> FloatArray:
    """log((1-q) A^l + q B^l)/l for l = alpha - 1, A = (1-q)/(1-h), h = q exp(log_growth).

    Written as log1p((1-q) (A^l - 1) + q (B^l - 1)), a sum of positive terms, in log space where q is
    tiny or B^l huge: no digits are lost however small q or the growth are. Infinite, and not computed,
    where not ``allowed``; what does not depend on the order is computed once for all orders.
    """
    log_not_h = np.log(-np.expm1(log_q + log_growth))
    log_a = np.log1p(np.exp(log_q + _log_expm1(log_growth) - log_not_h))
    parts = (orders - 1, log_a, log_b, log_q, np.exp(log_q), -np.expm1(log_q))
    moment, log_a, log_b, log_q, q, not_q = (
        np.broadcast_to(part, allowed.shape)[allowed] for part in parts
    )
    exponent = moment * log_b
    excess = not_q * np.expm1(moment * log_a) + q * np.expm1(exponent)
    cost = np.log1p(excess) / moment
    extreme = (log_q < _SMALLEST_LOG_Q) | (exponent > _LARGEST_EXPONENT)
    if extreme.any():
        first = np.log(not_q[extreme]) + _log_expm1(moment[extreme] * log_a[extreme])
        second = log_q[extreme] + _log_expm1(exponent[extreme])
        cost[extreme] = np.logaddexp(0.0, np.logaddexp(first, second)) / moment[extreme]
    result = np.full(allowed.shape, np.inf)
    result[allowed] = cost
    return result


def _log_expm1(value: FloatArray) -> FloatArray:
    return np.asarray(value + np.log(-np.expm1(-value)), dtype=np.float64)


def smaller(dependent: FloatArray, independent: FloatArray, moves: FloatArray) -> FloatArray:
    """Take the smaller cost; zero exactly for the groups whose owners move nothing."""
    cost = np.maximum(np.fmin(dependent, independent), _SMALLEST)
    return np.where(moves[:, None] == 0, 0.0, cost)


def gaps(table: FloatArray) -> FloatArray:
    """Distances to the most voted class, of the other classes: shape (n_queries, n_classes - 1)."""
    ordered = np.sort(table, axis=1)
    return np.asarray(ordered[:, -1:] - ordered[:, :-1], dtype=np.float64)


def capped(log_terms: FloatArray, n_classes: int) -> FloatArray:
    """Sum probabilities in log space, capped at 1 - 1/n_classes: shape (n_queries,)."""
    total = logsumexp(log_terms, axis=1)
    return np.asarray(np.minimum(total, math.log1p(-1 / n_classes)), dtype=np.float64)


def per_group(sensitivity: ArrayLike) -> FloatArray:
    """Return one sensitivity per group, of shape (n_groups,)."""
    moves = np.atleast_1d(as_nonnegative("sensitivity", sensitivity))
    if moves.ndim != 1:
        raise InputError(f"sensitivity must have shape (n_groups,), got shape {moves.shape}.")
    return moves


def per_query(name: str, value: ArrayLike, n_queries: int) -> FloatArray:
    """Return one positive noise scale per query, of shape (n_queries,)."""
    array = as_positive(name, value)
    if array.shape not in {(), (n_queries,)}:
        raise InputError(
            f"{name} must be one number or one per query ({n_queries}), got shape {array.shape}."
        )
    return np.broadcast_to(array, (n_queries,))
