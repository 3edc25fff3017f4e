"""Rényi differential privacy: curves of cost over orders, and their conversion to (epsilon, delta).

A cost curve says, for every order alpha > 1, how large the Rényi divergence
D_alpha(M(D) || M(D')) can be, for neighbours D and D' that differ in all records of one owner.
Curves of (adaptively) composed mechanisms add up order by order (Mironov 2017, Proposition 1).
The last axis of every curve is the order.

References
----------
I. Mironov. Rényi Differential Privacy. CSF 2017; arXiv 1702.07476v3.
C. Canonne, G. Kamath, T. Steinke. The Discrete Gaussian for Differential Privacy. NeurIPS 2020;
arXiv 2004.00010, Proposition 12 (v4; the numbering differs in other versions).
M. Bun, T. Steinke. Concentrated Differential Privacy. TCC 2016; arXiv 1605.02065v1, Proposition 3.3.
B. Balle, G. Barthe, M. Gaboardi, J. Hsu, T. Sato. Hypothesis Testing Interpretations and Rényi
Differential Privacy. AISTATS 2020; arXiv 1905.09982v2, Theorem 21.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from collegium.accounting._inputs import (
    FloatArray,
    as_delta,
    as_extended_scalar,
    as_floats,
    as_nonnegative,
    as_positive_scalar,
)
from collegium.errors import InputError

__all__ = [
    "CONVERSIONS",
    "DEFAULT_ORDERS",
    "SEED_ORDERS",
    "affordable_rdp",
    "gaussian_rdp",
    "laplace_rdp",
    "poisson_gaussian_rdp",
    "pure_rdp",
    "rdp_to_epsilon",
    "validate_orders",
]


def _frozen(orders: ArrayLike) -> FloatArray:
    array = np.asarray(orders, dtype=np.float64)
    array.setflags(write=False)
    return array


#: The orders of the thesis and of the PoPETs paper: 2, 3, ..., 50.
SEED_ORDERS: Final = _frozen(np.arange(2, 51))

#: Orders from 1.01 to 20,001, those of the seeds among them: never worse than the seeds' grid.
DEFAULT_ORDERS: Final = _frozen(np.union1d(SEED_ORDERS, 1 + np.geomspace(0.01, 2e4, 81)))

#: Ways from a Rényi curve to epsilon: the default, and the seeds' looser one for reproduction.
CONVERSIONS: Final = ("canonne", "mironov")

_ROUND_UP = 16 * float(np.finfo(np.float64).eps)


def validate_orders(orders: ArrayLike) -> FloatArray:
    """Return the orders as floats, or name the first one that is not allowed.

    ``orders`` (n_orders,): Rényi orders, all finite and above 1. They need not be sorted or integers.
    Returns (n_orders,).
    Raises InputError if there is no order, or one that is not finite and above 1.

    Examples
    --------
    >>> validate_orders([1.5, 2, 32])
    array([ 1.5,  2. , 32. ])
    """
    array = as_floats("orders", orders)
    if array.ndim != 1 or not array.size:
        raise InputError(
            f"orders must be a non-empty list, got shape {array.shape}; "
            "pass for example DEFAULT_ORDERS."
        )
    refused = array[~((array > 1) & np.isfinite(array))]
    if refused.size:
        raise InputError(f"orders must be finite and above 1, got {refused[0]:g}; leave it out.")
    return array


def gaussian_rdp(sensitivity: ArrayLike, sigma: float, orders: ArrayLike) -> FloatArray:
    """Rényi cost of a Gaussian mechanism: sensitivity^2 alpha / (2 sigma^2).

    Mironov 2017 (arXiv 1702.07476v3), Proposition 7 / Corollary 3. Independent of the data.

    Parameters
    ----------
    sensitivity : array-like of shape (...)
        L2 sensitivity towards each owner or group: how far one owner moves the noised vector.
    sigma : float
        Standard deviation of the noise on every coordinate, in the unit of the sensitivity.
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
    >>> gaussian_rdp([1.0, 2.0], 10.0, [2, 3])
    array([[0.01 , 0.015], [0.04 , 0.06 ]])
    """
    moves = as_nonnegative("sensitivity", sensitivity)
    noise = as_positive_scalar("sigma", sigma)
    grid = validate_orders(orders)
    return np.asarray((moves / noise)[..., None] ** 2 * grid / 2, dtype=np.float64)


def laplace_rdp(ratio: ArrayLike, orders: ArrayLike) -> FloatArray:
    """Rényi cost of Laplace noise on one number, rounded up: Mironov 2017, Proposition 6, exactly.

    ``ratio`` (...): sensitivity divided by the scale b of the noise, which is the pure epsilon.
    Returns (..., n_orders).

    Examples
    --------
    >>> laplace_rdp([0.1, 1.0], [2.0]).round(6)
    array([[0.009644], [0.619124]])
    """
    moves = as_nonnegative("ratio", ratio)[..., None]
    grid = validate_orders(orders)
    up, down = np.log(grid / (2 * grid - 1)), np.log((grid - 1) / (2 * grid - 1))
    log_moment = np.logaddexp(up + (grid - 1) * moves, down - grid * moves)
    rounding = _ROUND_UP * (1 + grid * moves - down)
    exact = (log_moment + rounding) / (grid - 1)
    return np.where(moves > 0, np.minimum(exact, _pure_by_zcdp(moves, grid)), 0.0)


def pure_rdp(epsilon: ArrayLike, orders: ArrayLike) -> FloatArray:
    """Rényi cost of any (epsilon, 0)-DP mechanism, rounded up: that of randomised response.

    Its two outcomes with log-ratios +-epsilon dominate every pure mechanism (Mironov 2017, Proposition 5 for
    its curve); never above epsilon^2 alpha/2 (Bun & Steinke 2016, Proposition 3.3).

    ``epsilon`` (...): in [0, inf].
    Returns (..., n_orders).

    Examples
    --------
    >>> pure_rdp([0.1, 1.0], [2.0]).round(6)
    array([[0.009959], [0.735326]])
    """
    pure = as_floats("epsilon", epsilon)[..., None]
    if (pure < 0).any():
        raise InputError("epsilon must be at least 0; correct it.")
    grid = validate_orders(orders)
    finite = np.where(np.isinf(pure), 0.0, pure)
    log_moment = np.logaddexp(grid * finite, (1 - grid) * finite) - np.logaddexp(0.0, finite)
    exact = (log_moment + _ROUND_UP * (1 + grid * finite)) / (grid - 1)
    cost = np.minimum(np.minimum(exact, _pure_by_zcdp(finite, grid)), finite)
    return np.where(np.isinf(pure), np.inf, np.where(pure > 0, cost, 0.0))


def _pure_by_zcdp(epsilon: FloatArray, grid: FloatArray) -> FloatArray:
    return np.asarray(epsilon**2 * grid / 2 * (1 + _ROUND_UP))


def poisson_gaussian_rdp(rate: float, noise_multiplier: float, orders: ArrayLike) -> FloatArray:
    """Rényi cost of one Gaussian step on a Poisson sample, from dp_accounting.

    Neighbours: the records of one owner are there or not. dp_accounting's floating point has no proven
    bound: a part in 1e9 is added, and, since its errors are parts of the rate, 1e-12 of that. (For rates from
    1e-8 up, errors of 5e-14 of the rate were seen.)

    ``rate``: probability with which an owner takes part, in [0, 1].
    ``noise_multiplier``: standard deviation of the noise divided by the owner's L2 sensitivity.
    Returns (n_orders,).
    Raises InputError if dp-accounting is not installed, or an argument is out of range.
    """
    grid = validate_orders(orders)
    if not 0 <= as_extended_scalar("rate", rate) <= 1:
        raise InputError(f"rate must lie in [0, 1], got {rate:g}; it is a probability.")
    if rate in (0, 1):
        return rate * gaussian_rdp(1.0, noise_multiplier, grid)
    noise = as_positive_scalar("noise_multiplier", noise_multiplier)
    try:
        dp, rdp = import_module("dp_accounting"), import_module("dp_accounting.rdp")
    except ImportError:
        raise InputError(
            "Poisson samples need the package dp-accounting: "
            "install collegium with its extra 'dp-accounting'."
        ) from None
    account = rdp.RdpAccountant(grid.tolist(), dp.NeighboringRelation.ADD_OR_REMOVE_ONE)
    account.compose(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(noise)))
    # There is no public way to the curve.
    curve = np.maximum(account._rdp, 0.0) * (1 + 1e-9) + 1e-12 * rate
    return np.asarray(curve, dtype=np.float64)


def rdp_to_epsilon(
    rdp: ArrayLike, orders: ArrayLike, delta: float, conversion: str = "canonne"
) -> tuple[FloatArray, FloatArray]:
    """Convert Rényi curves to epsilon at a given delta, rounded up, at the best order.

    ``mironov`` is rdp + log(1/delta)/(alpha - 1) (Mironov 2017, Proposition 3). ``canonne`` is
    rdp + log((alpha - 1)/alpha) - (log delta + log alpha)/(alpha - 1) (Canonne, Kamath & Steinke
    2020, Proposition 12; Balle et al. 2020, Theorem 21); it is never larger.

    No work costs nothing: either formula would charge about log(1/delta)/(max order - 1) for a
    mechanism that releases nothing. Epsilon is 0 where rdp <= 2 delta^2 at some order, because
    Rényi divergence grows with the order and starts at Kullback-Leibler for order 1, so by
    Pinsker the total variation is at most sqrt(rdp/2) <= delta, and that is (0, delta)-DP. Zero
    rdp is the extreme case: both distributions are equal.

    Parameters
    ----------
    rdp : array-like of shape (..., n_orders)
        Costs at the orders; an infinite cost says nothing, its order is ignored.
    orders : array-like of shape (n_orders,)
    delta : float
        In (0, 1), per owner.
    conversion : {"canonne", "mironov"}

    Returns
    -------
    epsilon : ndarray of shape (...)
        At least 0; infinite where every cost is. For the neighbours of the curves. If a curve is
        data-dependent, so is its epsilon: both are sensitive.
    best_order : ndarray of shape (...)
        The order that gave epsilon (NaN where it is infinite). Sensitive like epsilon.

    Raises
    ------
    InputError
        If a cost is negative or NaN, shapes disagree, delta is outside (0, 1), or the conversion
        is unknown.

    Examples
    --------
    >>> rdp = gaussian_rdp(1.0, 4.0, DEFAULT_ORDERS)
    >>> epsilon, best_order = rdp_to_epsilon(rdp, DEFAULT_ORDERS, 1e-5)
    >>> round(float(epsilon), 2)
    1.01
    """
    costs = as_floats("rdp", rdp)
    grid = validate_orders(orders)
    delta = as_delta(delta)
    if not costs.ndim or costs.shape[-1] != grid.size:
        raise InputError(
            f"rdp must have one cost per order on its last axis, got shape {costs.shape} for "
            f"{grid.size} orders; pass the orders that the costs were computed for."
        )
    if (costs < 0).any():
        raise InputError("rdp must be at least 0; a negative cost is a bug where it was computed.")
    candidates = _conversion(grid, delta, conversion)(costs)
    best = np.argmin(candidates, axis=-1, keepdims=True)
    epsilon = np.maximum(np.take_along_axis(candidates, best, axis=-1)[..., 0], 0.0)
    best_order = np.where(np.isinf(epsilon), np.nan, grid[best[..., 0]])
    indistinguishable = costs.min(axis=-1) <= _indistinguishable(delta)
    return np.where(indistinguishable, 0.0, epsilon), best_order


def affordable_rdp(
    epsilon: float, orders: ArrayLike, delta: float, conversion: str = "canonne"
) -> FloatArray:
    """Largest Rényi cost at each order that alone proves (epsilon, delta)-DP.

    :func:`rdp_to_epsilon` of a curve is at most epsilon exactly if the curve is at or below this at
    some order, to the last bit: deciding so needs no conversion for each query.

    ``epsilon``: budget per owner, in [0, inf].
    ``delta``: in (0, 1), per owner.
    ``conversion``: "canonne" or "mironov".
    Returns (n_orders,): at least 0. Publishable: it depends on the budget only.
    Raises InputError if epsilon is negative or NaN, delta is outside (0, 1), or the conversion is unknown.

    Examples
    --------
    >>> affordable_rdp(1.0, [20], 1e-5).round(4)
    array([0.603])
    """
    budget, delta = as_extended_scalar("epsilon", epsilon), as_delta(delta)
    return _affordable(budget, validate_orders(orders).tobytes(), delta, conversion).copy()


@lru_cache(maxsize=1024)  # thousands of teachers' accounts have few budgets
def _affordable(budget: float, orders: bytes, delta: float, conversion: str) -> FloatArray:
    grid = np.frombuffer(orders)
    epsilon_of = _conversion(grid, delta, conversion)
    free = _indistinguishable(delta)
    # Non-negative floats are ordered as their bits are, so this bisects to neighbouring floats.
    low = np.zeros(grid.size, dtype=np.int64)
    high = np.full(grid.size, np.inf).view(np.int64) + 1
    while (high - low > 1).any():
        middle = low + (high - low) // 2
        costs = middle.view(np.float64)
        with np.errstate(over="ignore"):
            allowed = epsilon_of(costs) <= budget
        allowed |= costs <= free
        low, high = np.where(allowed, middle, low), np.where(allowed, high, middle)
    return low.view(np.float64)


def _conversion(
    grid: FloatArray, delta: float, conversion: str
) -> Callable[[FloatArray], FloatArray]:
    """Make the function from costs to epsilon at each order, rounded up; may be negative.

    No formula of it falls as costs grow.
    """
    if conversion not in CONVERSIONS:
        raise InputError(f"conversion {conversion!r} is unknown; use one of {CONVERSIONS}.")
    if conversion == "mironov":
        shift = np.zeros_like(grid)
        tail = -math.log(delta) / (grid - 1)
    else:
        shift = np.log1p(-1 / grid)
        tail = -(math.log(delta) + np.log(grid)) / (grid - 1)
    added, away, beyond = shift + tail, np.abs(shift), (np.log(grid) - math.log(delta)) / (grid - 1)

    def epsilon(costs: FloatArray) -> FloatArray:
        rounding = _ROUND_UP * (costs + away + beyond)
        return np.asarray(costs + added + rounding, dtype=np.float64)

    return epsilon


def _indistinguishable(delta: float) -> float:
    """Rényi cost below which nothing can be told at delta: see :func:`rdp_to_epsilon`."""
    return 2 * delta**2 * (1 - _ROUND_UP)
