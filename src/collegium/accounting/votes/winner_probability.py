"""How likely the noisy winner is not the most voted class: exact for independent Gaussian noises.

The papers bound q = Pr[answer != j*] by a union over the other classes (Papernot et al. 2018,
Proposition 7). The noises are independent, so given the noise sigma z of j* the others fail to beat it
independently, and with g_j = gap_j/sigma and m classes

    q = integral of f(z) dz,   f(z) = phi(z) (1 - product over j != j* of Phi(z + g_j)).

For two classes the union bound is exact: q = Phi(-g/sqrt 2). For more, the trapezoidal rule of step h
on the whole line is exact up to an error that is known:

*Discretisation.* f is entire. If the integral of abs(f(x + ib)) over real x is at most M for all abs(b) < d,
the rule is off by at most 2 M/(exp(2 pi d/h) - 1) (Trefethen & Weideman 2014, Theorem 5.1). Here
abs(phi(x + ib)) = phi(x) exp(b^2/2), and abs(Phi(x + ib)) <= exp(b^2/2) Phi(x), since Phi(z) is the integral
of phi(z - t) over t > 0; the same for 1 - Phi(z) = Phi(-z). Telescoping 1 - product into a sum over j of
Phi(-z - g_j) times at most m - 2 other factors gives
M <= exp(m d^2/2) U, where U is the union bound: the integral of phi(x) Phi(-x - g_j) is Phi(-g_j/sqrt 2).
With d = 2 pi/(h m) the error is at most 2 U/(exp(4 pi^2/(h^2 m)) - 1) exp(2 pi^2/(h^2 m)).

*Cutting the line.* f <= phi, and f(z) <= (m - 1) phi(z) Phi(-z - g) with g the smallest gap. The rule's
terms left of its first point A < 0 sum to Phi(A) at most, because phi increases there. Right of its last
point B > -g/2, phi(z) Phi(-z - g) decreases (its logarithm has slope -z - hazard(z + g) < -2 z - g),
so they sum to its integral from B at most; as Phi(-t) <= exp(-t^2/2)/2, that is at most
(m - 1) exp(-g^2/4) Phi(-sqrt 2 (B + g/2))/(2 sqrt 2). A and B make both tiny compared with
Phi(-g/sqrt 2) <= U, and they are added.

The returned log q contains all three bounds and an allowance for rounding, so it is an upper bound,
above the exact value by less than a part in 1e10, and never above the union bound.

References
----------
L. N. Trefethen, J. A. C. Weideman. The Exponentially Convergent Trapezoidal Rule. SIAM Review
56(3), 2014, Theorem 5.1.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, logsumexp

from collegium.accounting._inputs import FloatArray, as_counts, as_nonnegative
from collegium.accounting.votes._outcomes import capped, gaps, per_query

__all__ = ["gnmax_log_q_exact"]

# Each of the three errors is below exp(-_DIGITS) times m U.
_DIGITS = 32.0
# Allowance for floats: the tests measure less than 1e-12 against mpmath.
_ROUNDING = 1e-11
# Below exp(-600) the union bound is returned: q cannot be smaller than 1/(m - 1) of it.
_SMALLEST_LOG_UNION = -600.0
_BLOCK_ELEMENTS = 2**20


def gnmax_log_q_exact(
    counts: ArrayLike, sigma: ArrayLike, *, resolution: float = 0.0
) -> FloatArray:
    """Log Pr[answer is not the most voted class] of GNMax, exact and rounded up. Sensitive.

    Sharper than the union bound of :func:`~collegium.accounting.votes.gaussian_max.gnmax_log_q` where three
    or more classes compete, and equal to it for two classes. At most 1 - 1/n_classes.

    ``counts`` (n_queries, n_classes): vote counts (weighted), before noise.
    ``sigma`` (n_queries,): standard deviation of the noise on every count, in votes.
    ``resolution``: step of the grid, in votes, to which noisy counts are rounded before they are compared;
        ties may go to any class. Rounding moves a count by half a step, so whoever wins on the grid would
        have won without it if the gaps were a whole step shorter: they are taken so.
    Returns (n_queries,): natural logarithms.
    Raises InputError if counts are not a finite, non-negative table with two classes or more, sigma is not
        positive, or the resolution is negative.

    Examples
    --------
    >>> gnmax_log_q_exact([[90.0, 80.0, 80.0], [200.0, 50.0, 0.0]], 40.0).round(3)
    array([-0.521, -5.48 ])
    """
    table = as_counts(counts)
    noise = per_query("sigma", sigma, table.shape[0])
    shorter = np.maximum(gaps(table) - float(as_nonnegative("resolution", resolution)), 0.0)
    distance = shorter / noise[:, None]
    n_classes = table.shape[1]
    union = logsumexp(log_ndtr(-distance / math.sqrt(2)), axis=1)
    log_q = union.copy()
    rows = np.flatnonzero(union > _SMALLEST_LOG_UNION) if n_classes > 2 else np.empty(0, np.intp)
    step = math.pi * math.sqrt(2 / (_DIGITS * n_classes))
    per_row = (n_classes - 1) * math.ceil(20 / step)
    block = max(1, _BLOCK_ELEMENTS // per_row)
    for start in range(0, rows.size, block):
        chosen = rows[start : start + block]
        log_q[chosen] = _integrated(distance[chosen], union[chosen], step)
    return capped(np.minimum(log_q, union)[:, None], n_classes)


def _integrated(distance: FloatArray, log_union: FloatArray, step: float) -> FloatArray:
    """Upper bounds on log q by the trapezoidal rule, for distances (n, m - 1) in units of sigma."""
    n_classes = distance.shape[1] + 1
    nearest = distance.min(axis=1)
    start = -np.sqrt(nearest**2 / 2 + 2 * _DIGITS + 8)
    stop = math.sqrt(_DIGITS) + 1 - nearest / 2
    n_points = math.ceil(float((stop - start).max()) / step) + 1
    points = start[:, None] + step * np.arange(n_points)
    log_lose = np.zeros_like(points)
    for j in range(n_classes - 1):
        log_lose += log_ndtr(points + distance[:, j, None])
    with np.errstate(divide="ignore"):  # log 0 where even the nearest cannot win
        log_terms = np.log(-np.expm1(log_lose)) - points**2 / 2
    log_sum = logsumexp(log_terms, axis=1) + math.log(step / math.sqrt(2 * math.pi))
    last = points[:, -1]
    below = log_ndtr(start)
    above = log_ndtr(-math.sqrt(2) * (last + nearest / 2)) - nearest**2 / 4
    above = above + math.log((n_classes - 1) / (2 * math.sqrt(2)))
    inside = log_union - _DIGITS + math.log(2) - math.log1p(-math.exp(-2 * _DIGITS))
    bounds = np.stack([log_sum, below, above, inside])
    return np.asarray(logsumexp(bounds, axis=0) + _ROUNDING, dtype=np.float64)
