"""Exact Gaussian differential privacy: one number, mu, that composes by adding squares.

A mechanism is mu-GDP for an owner if telling apart a dataset with and without (or with other
values of) *all records of that owner* from its output is at least as hard as telling N(0, 1) from
N(mu, 1). A Gaussian mechanism with L2 sensitivity s and noise N(0, sigma^2) is (s / sigma)-GDP,
and adaptive composition of mu_1, mu_2, ... is exactly sqrt(mu_1^2 + mu_2^2 + ...)-GDP.

Everything here is directed: costs (epsilon, delta, mu of a mechanism) are rounded up, what a
budget allows (mu of a budget) is rounded down.

How delta is computed. With x = epsilon/mu - mu/2 and the Mills ratio
M(x) = Phi(-x)/phi(x) = integral of exp(-x s - s^2/2) over s > 0, the identity
phi(x) = exp(epsilon) phi(x + mu) turns the formula of Dong, Roth & Su into

    delta = phi(x) (M(x) - M(x + mu)) = phi(x) * integral of exp(-x s - s^2/2) (1 - exp(-mu s)).

The difference cancels for small mu, the integral has a positive smooth integrand and does not:
Gauss-Legendre gives it to a few units in the last place.

References
----------
J. Dong, A. Roth, W. J. Su. Gaussian Differential Privacy. JRSS B 84(1), 2022; arXiv 1905.02383v3.
Corollary 2.13 (delta of epsilon), Corollary 3.3 (composition), Theorem 2.7 (Gaussian mechanism).
"""

import math
from functools import lru_cache
from typing import NamedTuple, overload

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, erfinv, log_ndtr, ndtri_exp

from collegium.accounting._inputs import (
    FloatArray,
    as_delta,
    as_extended_scalar,
    as_floats,
)
from collegium.errors import InputError

__all__ = ["gdp_delta", "gdp_epsilon", "gdp_log_delta", "gdp_mu", "gdp_to_pure", "pure_to_gdp"]

_UNIT = float(np.finfo(np.float64).eps)
_HUGE, _MOST = 1e20, 1e307  # epsilon: by the tail alone; no more
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2
# The integrand is cut where it has fallen by exp(-45), far below one unit in the last place.
_CUT = 45.0
# Bound on the error of log delta at given x, in units in the last place of 1 + x^2 (tests measure
# less than 4), and on the relative error of scipy's inverse functions used by pure_to_gdp.
_ERROR_UNITS = 16.0
_INVERSE_ERROR = 1e-14


class _LogDelta(NamedTuple):
    """log delta with what Newton's method needs, all of shape (n,)."""

    log_delta: FloatArray
    mills: FloatArray  # M(x)
    mills_shifted: FloatArray  # M(x + mu)
    mills_difference: FloatArray  # M(x) - M(x + mu), without cancellation


def _mills(x: FloatArray) -> FloatArray:
    return np.asarray(math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2)), dtype=np.float64)


def _log_delta_at(mu: FloatArray, x: FloatArray) -> _LogDelta:
    """log delta at epsilon = mu (x + mu/2), for mu > 0 and x >= -mu/2, arrays of one shape (n,)."""
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        mills, shifted = _mills(x), _mills(x + mu)
        ratio = shifted / mills
        difference = mills - shifted
        log_delta = log_ndtr(-x) + np.log1p(-ratio)
        close = ratio > 0.5
        if close.any():
            start, step = x[close, None], mu[close, None]
            length = 2 * _CUT / (start + np.sqrt(start**2 + 2 * _CUT))
            s = length * _NODES
            integrand = np.exp(-s * (start + s / 2)) * -np.expm1(-step * s)
            integral = length[:, 0] * (integrand @ _WEIGHTS)
            difference[close] = integral
            log_delta[close] = -0.5 * x[close] ** 2 - _LOG_SQRT_2PI + np.log(integral)
    return _LogDelta(np.minimum(log_delta, 0.0), mills, shifted, difference)


def _units(size: float) -> float:
    return _ERROR_UNITS * _UNIT * size


def _evaluate(mu: float, epsilon: float) -> tuple[float, float, float]:
    """Return log delta, a bound on its error, and d(mu) / d(log delta), for finite mu > 0."""
    x = epsilon / mu - mu / 2
    if x > 1e150:
        return -math.inf, 0.0, 0.0
    parts = _log_delta_at(np.array([mu]), np.array([x]))
    log_delta = float(parts.log_delta[0])
    scale = min(1.0, 2 * abs(log_delta))
    error = _units(1 + (1 + abs(x)) * (epsilon / mu + mu / 2)) * scale if scale else 0.0
    return log_delta, error, float(parts.mills_difference[0])


def gdp_log_delta(mu: float, epsilon: float) -> float:
    """Natural logarithm of :func:`gdp_delta`, rounded up; works far below the smallest float.

    Parameters
    ----------
    mu : float
        Gaussian-DP parameter of the owner's whole loss, in [0, inf].
    epsilon : float
        In [0, inf], per owner.

    Returns
    -------
    float
        log delta(epsilon), in [-inf, 0]. The error is below 1e-12 times max(1, |log delta|).

    Raises
    ------
    InputError
        If mu or epsilon is negative, NaN or not a single number.

    Examples
    --------
    >>> round(gdp_log_delta(1.0, 60.0), 6)
    -1779.233391
    """
    mu, epsilon = as_extended_scalar("mu", mu), as_extended_scalar("epsilon", epsilon)
    if mu == 0 or (math.isinf(epsilon) and not math.isinf(mu)):
        return -math.inf
    if math.isinf(mu):
        return 0.0
    log_delta, error, _ = _evaluate(mu, epsilon)
    if math.isinf(log_delta):
        return -float(np.finfo(np.float64).max)
    return min(log_delta + error, 0.0)


def gdp_delta(mu: float, epsilon: float) -> float:
    """Smallest delta for which every mu-GDP mechanism is (epsilon, delta)-DP, rounded up.

    delta(epsilon) = Phi(-epsilon/mu + mu/2) - exp(epsilon) Phi(-epsilon/mu - mu/2)
    (Dong, Roth & Su 2022, Corollary 2.13). The neighbours are those under which mu was computed.

    Parameters
    ----------
    mu : float
        Gaussian-DP parameter of the owner's whole loss, in [0, inf].
    epsilon : float
        In [0, inf], per owner.

    Returns
    -------
    float
        delta in [0, 1]. Zero only if mu is 0 or epsilon infinite.

    Raises
    ------
    InputError
        If mu or epsilon is negative, NaN or not a single number.

    Examples
    --------
    >>> round(gdp_delta(1.0, 1.0), 9)
    0.126936738
    """
    log_delta = gdp_log_delta(mu, epsilon)
    if math.isinf(log_delta):
        return 0.0
    return min(math.nextafter(math.exp(log_delta), math.inf), 1.0)


@overload
def gdp_epsilon(mu: float, delta: float) -> float: ...
@overload
def gdp_epsilon(mu: FloatArray, delta: float) -> FloatArray: ...
def gdp_epsilon(mu: float | FloatArray, delta: float) -> float | FloatArray:
    """Smallest epsilon >= 0 for which every mu-GDP mechanism is (epsilon, delta)-DP, rounded up.

    Inverts :func:`gdp_delta`. log delta is concave and decreasing in epsilon (the Mills ratio is
    log-convex), and delta <= Phi(-x), so Newton's method started at x = -Phi^-1(delta) descends
    to the root from above.

    Parameters
    ----------
    mu : float or ndarray of any shape
        Gaussian-DP parameters in [0, inf]; 0 costs 0, inf costs inf.
    delta : float
        In (0, 1), per owner.

    Returns
    -------
    float or ndarray of the shape of mu
        epsilon per owner, never below the true value. Above it by less than a part in 1e12, except
        where delta nearly equals delta(0) and epsilon is next to 0: there by less than 1e-13 if
        delta is below 0.9, and by what the last digit of delta is worth above.

    Raises
    ------
    InputError
        If mu is negative or NaN, or delta outside (0, 1).

    Examples
    --------
    >>> round(gdp_epsilon(0.268051123211, 1e-5), 9)
    1.0
    >>> gdp_epsilon(np.array([0.0, np.inf]), 1e-5)
    array([ 0., inf])
    """
    values = as_floats("mu", mu)
    delta = as_delta(delta)
    if (values < 0).any():
        raise InputError(f"mu must be at least 0 (inf is allowed), got {values.min():g}.")
    epsilon = np.where(np.isinf(values), np.inf, 0.0)
    inside = (values > 0) & np.isfinite(values)
    if inside.any():
        epsilon[inside] = _epsilon_inside(values[inside], math.log(delta))
    return epsilon if np.ndim(mu) else float(epsilon)


def _epsilon_inside(mu: FloatArray, target: float) -> FloatArray:
    """Upper bounds on epsilon at log delta = target, for finite mu > 0 of shape (n,)."""
    x = np.full_like(mu, -ndtri_exp(target))
    free = x <= -mu / 2
    x = np.maximum(x, -mu / 2)
    for _ in range(100):
        parts = _log_delta_at(mu, x)
        slope = mu * parts.mills_shifted / parts.mills_difference
        moved = np.maximum(x + (parts.log_delta - target) / slope, -mu / 2)
        settled = np.abs(moved - x) <= _UNIT * np.maximum(np.abs(x), mu)
        x = moved
        if settled.all():
            break
    parts = _log_delta_at(mu, x)
    error = _ERROR_UNITS * _UNIT * (1 + x**2 + abs(target)) * min(1.0, 2 * abs(target))
    free |= (x <= -mu / 2) & (parts.log_delta + error <= target)
    slope = mu * parts.mills_shifted / parts.mills_difference
    with np.errstate(over="ignore"):
        rounding = 4 * _UNIT * (np.abs(x) + mu / 2)
        return np.where(free, 0.0, mu * (x + error / slope + rounding + mu / 2))


@overload
def gdp_mu(epsilon: float, delta: float) -> float: ...
@overload
def gdp_mu(epsilon: FloatArray, delta: float) -> FloatArray: ...
def gdp_mu(epsilon: float | FloatArray, delta: float) -> float | FloatArray:
    """Largest mu for which every mu-GDP mechanism is (epsilon, delta)-DP, rounded down.

    What a budget (epsilon, delta) buys: the squares of all Gaussian losses may add up to mu^2.

    Parameters
    ----------
    epsilon : float or ndarray of any shape
        In [0, inf], per owner; inf buys inf. Of an array, each different number is solved for once, all of
        them together; in their last digits results may differ from those one by one.
    delta : float
        In (0, 1), per owner.

    Returns
    -------
    float or ndarray of the shape of epsilon
        mu, never above the true value and below it by less than a part in 1e12.

    Raises
    ------
    InputError
        If epsilon is negative or NaN, or delta outside (0, 1).

    Examples
    --------
    >>> round(gdp_mu(1.0, 1e-5), 12)
    0.268051123211
    """
    if isinstance(epsilon, np.ndarray):
        return _mu_of_many(as_floats("epsilon", epsilon), as_delta(delta))
    epsilon, delta = as_extended_scalar("epsilon", epsilon), as_delta(delta)
    return math.inf if math.isinf(epsilon) else _mu_of_one(min(epsilon, _MOST), delta)


@lru_cache(maxsize=1024)  # a run asks for the same few budgets, often
def _mu_of_one(epsilon: float, delta: float) -> float:
    target = math.log(delta)

    def excess(log_mu: float) -> float:
        return max(_evaluate(math.exp(log_mu), epsilon)[0], -1e300) - target

    # Below: delta(epsilon) <= delta(0) = erf(mu / sqrt 8), and delta(epsilon) <= Phi(-x).
    quantile = -float(ndtri_exp(target))
    root = math.sqrt(quantile**2 + 2 * epsilon)
    from_tail = 2 * epsilon / (quantile + root) if quantile > 0 else root - quantile
    if epsilon > _HUGE:
        # Here mu is near sqrt(2 epsilon) > 1e10, and what the tail bound leaves out moves
        # x = epsilon/mu - mu/2 by less than 1/mu, hence mu by less than a part in mu^2; exp(log mu) could
        # not resolve x any more.
        return from_tail * (1 - 64 * _UNIT)
    low = math.log(max(math.sqrt(8) * float(erfinv(delta)), from_tail)) - 1e-9
    high = low + 0.5
    while excess(high) <= 0:
        high += 0.5
    mu = math.exp(brentq(excess, low, high, xtol=1e-15, rtol=4 * _UNIT))
    log_delta, error, gain = _evaluate(mu, epsilon)
    mu -= (log_delta - target) * gain
    return mu * (1 - 8 * _UNIT) - (error + 2 * _UNIT * abs(target)) * gain


def _mu_of_many(epsilon: FloatArray, delta: float) -> FloatArray:
    """Newton's method for all of them at once.

    log delta is concave in mu, because 1 / its slope, M(x) - M(x + mu) with x = epsilon/mu - mu/2, grows
    with mu: M falls and is convex. So Newton's method climbs from the lower bound to the root.
    """
    if (epsilon < 0).any():
        raise InputError(f"epsilon must be at least 0 (inf is allowed), got {epsilon.min():g}.")
    values, back = np.unique(epsilon, return_inverse=True)
    mu = np.empty_like(values)
    ordinary = (values > 0) & (values <= _HUGE)
    mu[~ordinary] = [gdp_mu(float(value), delta) for value in values[~ordinary]]
    if ordinary.any():
        mu[ordinary] = _mu_inside(values[ordinary], delta)
    return mu[back].reshape(epsilon.shape)


def _mu_inside(epsilon: FloatArray, delta: float) -> FloatArray:
    """Lower bounds on mu for finite epsilon > 0 of shape (n,)."""
    target = math.log(delta)
    quantile = -float(ndtri_exp(target))
    root = np.sqrt(quantile**2 + 2 * epsilon)
    from_tail = 2 * epsilon / (quantile + root) if quantile > 0 else root - quantile
    mu = np.maximum(math.sqrt(8) * float(erfinv(delta)), from_tail) * (1 - 1e-9)
    moving = np.arange(mu.size)
    for _ in range(100):
        here = mu[moving]
        parts = _log_delta_at(here, epsilon[moving] / here - here / 2)
        step = (target - parts.log_delta) * parts.mills_difference
        mu[moving] = here + step
        moving = moving[np.abs(step) > 1e-9 * here]  # the next step is the last, and is made below
        if not moving.size:
            break
    x = epsilon / mu - mu / 2
    parts = _log_delta_at(mu, x)
    gain, scale = parts.mills_difference, np.minimum(1.0, 2 * np.abs(parts.log_delta))
    error = _ERROR_UNITS * _UNIT * (1 + (1 + np.abs(x)) * (epsilon / mu + mu / 2)) * scale
    mu -= (parts.log_delta - target) * gain
    return np.asarray(mu * (1 - 8 * _UNIT) - (error + 2 * _UNIT * abs(target)) * gain)


def pure_to_gdp(epsilon0: float) -> float:
    """Smallest mu for which every (epsilon0, 0)-DP mechanism is mu-GDP, rounded up.

    mu = 2 Phi^-1(exp(epsilon0) / (1 + exp(epsilon0))).

    Proof. Write e = exp(epsilon0) and c = 1/(1 + e). The trade-off function of (epsilon0, 0)-DP is
    f(a) = max(1 - e a, (1 - a)/e) (Dong, Roth & Su 2022, Proposition 2.5, Wasserman & Zhou): the
    chord from (0, 1) to (c, c), then the chord from (c, c) to (1, 0). The trade-off function
    G(a) = Phi(Phi^-1(1 - a) - mu) of mu-GDP is convex and passes through (0, 1) and (1, 0), and
    also through (c, c): Phi^-1(1 - c) = mu/2 by the choice of mu, so G(c) = Phi(-mu/2) = c. A
    convex function lies below its chords, hence f >= G: whatever is at least as hard to test as f
    is at least as hard as G. Any smaller mu fails at a = c.

    Parameters
    ----------
    epsilon0 : float
        Pure DP parameter per owner, in [0, inf].

    Returns
    -------
    float
        mu, never below the true value and above it by less than a part in 1e12.

    Raises
    ------
    InputError
        If epsilon0 is negative, NaN or not a single number.

    Examples
    --------
    >>> round(pure_to_gdp(1.0), 9)
    1.232035385
    """
    epsilon0 = as_extended_scalar("epsilon0", epsilon0)
    if epsilon0 == 0 or math.isinf(epsilon0):
        return epsilon0
    if epsilon0 < 1:  # Phi(z) - 1/2 = tanh(epsilon0/2)/2 keeps the digits of a small epsilon0
        mu = math.sqrt(8) * float(erfinv(math.tanh(epsilon0 / 2)))
    else:
        mu = -2 * float(ndtri_exp(-epsilon0 - math.log1p(math.exp(-epsilon0))))
    return math.nextafter(mu * (1 + _INVERSE_ERROR), math.inf)


def gdp_to_pure(mu: float) -> float:
    """Largest epsilon0 for which every (epsilon0, 0)-DP mechanism is mu-GDP, rounded down.

    The inverse of :func:`pure_to_gdp`: epsilon0 = log Phi(mu/2) - log Phi(-mu/2). Of what mu^2 buys, several
    mechanisms may share epsilon0: h(epsilon0) = mu^2 is superadditive, so that their mu^2 are no more than
    that of their sum.

    Proof. With t = mu/2, epsilon0 = g(t) has g' = r(t) + r(-t), where r = 1/M is the hazard rate of the
    normal distribution, which is convex (Sampford 1953, Ann. Math. Stat. 24(1)). So g''(t) grows with t > 0,
    and g'(t) - t g''(t), whose derivative is -t times that of g'', falls, to 0: r(t) - t r'(t) is about 2/t
    for large t. So it is positive. It is the derivative of 2 g(t) - t g'(t), which is 0 at t = 0, so that
    t g' <= 2 g. Hence h/epsilon0 = 4 t^2/g(t), whose derivative has the sign of 2 g - t g', does not fall,
    and h(a) + h(b) <= (a + b) h(a + b)/(a + b).

    Parameters
    ----------
    mu : float
        Gaussian-DP parameter per owner, in [0, inf].

    Returns
    -------
    float
        epsilon0, never above the true value and below it by less than a part in 1e11.

    Raises
    ------
    InputError
        If mu is negative, NaN or not a single number.

    Examples
    --------
    >>> round(gdp_to_pure(1.232035385), 8)
    1.0
    """
    mu = as_extended_scalar("mu", mu)
    if mu == 0 or math.isinf(mu):
        return mu
    if mu < 1:  # as in pure_to_gdp
        epsilon0 = 2 * math.atanh(math.erf(mu / math.sqrt(8)))
    else:
        epsilon0 = float(log_ndtr(mu / 2) - log_ndtr(-mu / 2))
    return epsilon0 * (1 - 1e-12)
