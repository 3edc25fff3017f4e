"""What GNMax, LNMax and the threshold check share: one likely outcome, and the rest."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from collegium.accounting._inputs import FloatArray, as_nonnegative, as_positive
from collegium.errors import InputError

# A cost is exactly 0 only for an owner without influence; below the smallest float it is this.
_SMALLEST = float(np.finfo(np.float64).tiny)


def two_outcome_rdp(
    log_q: FloatArray, log_growth: FloatArray, log_b: FloatArray, orders: FloatArray
) -> FloatArray:
    """log((1-q) A^l + q B^l)/l for l = alpha - 1, A = (1-q)/(1-h), h = q exp(log_growth).

    Written as log1p((1-q) (A^l - 1) + q (B^l - 1)), a sum of positive terms, in log space: no
    digits are lost however small q or the growth are.
    """
    moment = orders - 1
    log_not_q = np.log(-np.expm1(log_q))
    log_not_h = np.log(-np.expm1(log_q + log_growth))
    log_a = np.log1p(np.exp(log_q + _log_expm1(log_growth) - log_not_h))
    log_excess = np.logaddexp(
        log_not_q + _log_expm1(moment * log_a), log_q + _log_expm1(moment * log_b)
    )
    return np.asarray(np.logaddexp(0.0, log_excess) / moment, dtype=np.float64)


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
