"""What steps of Gaussian noise on Poisson samples cost an owner: epsilon by several accounts.

Neighbours: the records of one owner are there or not (add or remove). In each of T steps the owner takes part
with probability q, independently of everybody and of other steps, and moves a sum by at most 1/sigma of the
noise's standard deviation. Rate, noise and T are fixed beforehand; the function that is summed may depend on
everything released before, since loss distributions and Rényi costs of fixed steps compose under adaptivity.

* ``pld``: dp_accounting's pessimistic privacy loss distribution, both directions, on a grid of losses. What
  is proved there, and what is not, is said in :mod:`~collegium.accounting.currency`: here, too, 1e-11 of
  delta is set aside for the rounding of its convolutions.
* ``rdp``: the moments accountant, at integer orders, with the improved conversion.
* For q = 1, whatever is asked for, exact Gaussian DP: mu = sqrt(T)/sigma.

References
----------
M. Abadi et al. Deep Learning with Differential Privacy. CCS 2016; arXiv 1607.00133v2 (moments accountant).
I. Mironov, K. Talwar, L. Zhang. Rényi Differential Privacy of the Sampled Gaussian Mechanism. arXiv
1908.10530v1, Theorem 4 and Section 3.3 (integer orders).
A. Koskela, J. Jälkö, A. Honkela. Computing Tight Differential Privacy Guarantees Using FFT. AISTATS 2020;
arXiv 1906.03049. V. Doroshenko et al. Connect the Dots. PoPETs 2022; arXiv 2207.04380.
"""

import math
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from collegium.accounting._inputs import (
    FloatArray,
    as_delta,
    as_extended_scalar,
    as_positive_scalar,
)
from collegium.accounting.currency import gaussian_bound, poisson_gaussian_losses
from collegium.accounting.renyi import poisson_gaussian_rdp, rdp_to_epsilon
from collegium.checks import check_choice, check_whole
from collegium.errors import InputError

__all__ = ["ACCOUNTS", "poisson_gaussian_epsilon"]

ACCOUNTS = ("pld", "rdp")
INTERVAL = 1e-4
# Probability by which dp_accounting's convolutions may be wrong in a tail (see currency.py).
_CONVOLUTION_ERROR = 1e-11
_ROUND_UP = 1 + 1e-12
_MOST_ORDER = 2**14
MOST_SHOWN = 600.0
"""The largest ε that loss distributions show: e^-ε, times probabilities, has to be a float."""


def poisson_gaussian_epsilon(
    rate: float,
    noise_multiplier: float,
    steps: int,
    delta: float,
    account: str = "pld",
    interval: float = INTERVAL,
) -> float:
    """Epsilon of steps of Gaussian noise on Poisson samples, towards who is there or not; rounded up.

    Parameters
    ----------
    rate : float
        Probability with which the owner takes part in a step, in [0, 1].
    noise_multiplier : float
        Standard deviation of the noise divided by the owner's L2 sensitivity, in (0, inf).
    steps : int
        At least 0.
    delta : float
        In (0, 1), per owner; above 2e-11 for loss distributions.
    account : {"pld", "rdp"}, default="pld"
        See the module. With rate 1 both are exact Gaussian DP.
    interval : float, default=1e-4
        Width of the grid of losses: the finer, the smaller epsilon, and the longer it takes.

    Returns
    -------
    float
        By loss distributions infinite where it is above 600, which is more than they can show.

    Raises
    ------
    InputError
        If an argument is out of range, or dp-accounting is not installed.

    Examples
    --------
    >>> round(poisson_gaussian_epsilon(0.1, 5.0, 100, 1e-5, interval=1e-3), 4)
    0.7584
    >>> round(poisson_gaussian_epsilon(0.1, 5.0, 100, 1e-5, account="rdp"), 4)
    0.8349
    >>> round(poisson_gaussian_epsilon(1.0, 100.0, 100, 1e-5), 4)
    0.3407
    """
    if not 0 <= as_extended_scalar("rate", rate) <= 1:
        raise InputError(f"rate must lie in [0, 1], got {rate:g}; it is a probability.")
    check_choice("account", account, ACCOUNTS)
    check_whole("steps", steps, least=0)
    noise = as_positive_scalar("noise_multiplier", noise_multiplier)
    delta = as_delta(delta)
    if rate == 0 or steps == 0:
        return 0.0
    if rate == 1:
        return gaussian_bound(noise, steps).epsilon(delta)
    if account == "rdp":
        return _by_rdp(float(rate), noise, int(steps), delta)
    return _by_pld(float(rate), noise, int(steps), delta, as_positive_scalar("interval", interval))


@lru_cache(maxsize=4096)
def _by_pld(rate: float, noise: float, steps: int, delta: float, interval: float) -> float:
    if delta <= 2 * _CONVOLUTION_ERROR:
        raise InputError(
            f"delta must be above {2 * _CONVOLUTION_ERROR:g} for loss distributions, got {delta:g}: use "
            "'rdp', or take everybody in every step"
        )
    losses = poisson_gaussian_losses(rate, noise, steps, interval)
    left = delta * (1 - 1e-12) - _CONVOLUTION_ERROR
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        epsilon = float(losses.get_epsilon_for_delta(left)) * _ROUND_UP
    return epsilon if epsilon <= MOST_SHOWN else math.inf


@lru_cache(maxsize=4096)
def _by_rdp(rate: float, noise: float, steps: int, delta: float) -> float:
    """At the orders around the best one: each order gives a bound, so that none needs to be there."""
    best = rough_epsilon(rate, noise, steps, delta).order
    orders = _ORDERS[max(0, best - 2) : best + 3]
    cost = steps * poisson_gaussian_rdp(rate, noise, orders) * _ROUND_UP
    return float(rdp_to_epsilon(cost, orders, delta)[0])


class Rough(NamedTuple):
    """Epsilon by Rényi DP in plain floating point, and its slopes; to look for solutions with only."""

    log_epsilon: float
    by_log_rate: float
    by_log_noise: float
    order: int


def _integer_orders() -> FloatArray:
    beyond = np.geomspace(64, _MOST_ORDER, 33)[1:]
    return np.concatenate([np.arange(2, 65), np.round(beyond)]).astype(np.float64)


_ORDERS = _integer_orders()


_BLOCKS = 63, 71, 79, 87, _ORDERS.size
"""Where blocks of orders end: at 64, 256, 1,024, 4,096 and 16,384. An order α has α - 1 terms."""


class _Terms(NamedTuple):
    """The terms k >= 2 of Σ C(α, k) (1-q)^(α-k) q^k exp(k(k-1)/2σ²) for some orders, one after the other."""

    orders: FloatArray
    starts: NDArray[np.intp]
    order: FloatArray
    k: FloatArray
    log_binomial: FloatArray


@lru_cache(maxsize=len(_BLOCKS))
def _terms(first: int, end: int) -> _Terms:
    orders = _ORDERS[first:end]
    k = np.concatenate([np.arange(2, order + 1) for order in orders])
    counts = (orders - 1).astype(np.intp)
    order = np.repeat(orders, counts)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.intp)
    log_binomial = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    return _Terms(orders, starts, order, k, log_binomial)


def rough_epsilon(rate: float, noise: float, steps: int, delta: float) -> Rough:
    """Rényi DP at integer orders α (Mironov, Talwar & Zhang 2019), for rates in (0, 1).

    The moment is 1 + Σ_{k>=2} C(α, k) (1-q)^(α-k) q^k (exp(k(k-1)/2σ²) - 1): nothing cancels. The divergence
    grows with the order, so larger orders are left out where no conversion could make up for what the
    largest order that was looked at loses already.
    """
    tail = np.log1p(-1 / _ORDERS) - (math.log(delta) + np.log(_ORDERS)) / (_ORDERS - 1)
    found: list[tuple[float, Rough]] = []
    for first, end in pairwise((0, *_BLOCKS)):
        epsilon, rough, divergence = _best_of_block(rate, noise, steps, tail, first, end)
        found.append((epsilon, rough))
        best, rough = min(found, key=itemgetter(0))
        if best <= (1 - 1e-9) * divergence + tail[end:].min(initial=math.inf) - 1e-12:
            break
    return rough


def _best_of_block(
    rate: float, noise: float, steps: int, tail: FloatArray, first: int, end: int
) -> tuple[float, Rough, float]:
    """Best epsilon of the orders from ``first`` to below ``end``, and the divergence at the last of them."""
    orders, starts, order, k, log_binomial = _terms(first, end)
    moved = k * (k - 1) / (2 * noise**2)
    with np.errstate(over="ignore", divide="ignore"):
        grown = np.where(moved > 30, moved, np.log(np.expm1(np.minimum(moved, 30.0))))
    logs = log_binomial + k * math.log(rate) + (order - k) * math.log1p(-rate) + grown
    largest = np.maximum.reduceat(logs, starts)
    ends = np.append(starts[1:], k.size)
    weights = np.exp(logs - np.repeat(largest, ends - starts))
    total = np.add.reduceat(weights, starts)
    log_moment = np.logaddexp(0.0, largest + np.log(total))
    divergences = steps * log_moment / (orders - 1)
    epsilons = divergences + tail[first:end]
    best = int(np.argmin(epsilons))
    epsilon = max(float(epsilons[best]), 1e-300)
    here = slice(int(starts[best]), int(ends[best]))
    share = weights[here] / total[best] * -math.expm1(-log_moment[best])
    by_rate = share @ (k[here] - (order[here] - k[here]) * rate / (1 - rate))
    by_noise = share @ (-2 * moved[here] / -np.expm1(-moved[here]))
    scale = steps / (orders[best] - 1) / epsilon
    slopes = float(scale * by_rate), float(scale * by_noise)
    rough = Rough(math.log(epsilon), *slopes, first + best)
    return float(epsilons[best]), rough, float(divergences[-1])
