"""Noise and rates for given budgets, where steps of Gaussian noise see Poisson samples of owners.

Everything is solved for in logarithms, by the secant method within a bracket. Distributions on a fine grid
are dear, so solutions are found with a cheap account (Rényi DP in plain floating point; then losses on two
coarse grids, whose error falls with the square of the interval and is extrapolated), and the fine one only
says by how much the cheap one has to be corrected. What is returned was verified with the fine, pessimistic
account: no epsilon is above its budget, and each is below it by less than a part in 1e7.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from collegium.accounting._inputs import FloatArray, as_positive_scalar
from collegium.accounting.gaussian import gdp_mu
from collegium.accounting.subsampled import INTERVAL, poisson_gaussian_epsilon, rough_epsilon
from collegium.checks import check_choice, check_whole
from collegium.errors import InputError

__all__ = ["noise_for", "rate_for", "rates_and_noise"]

_TIGHT = 1e-7  # of epsilon: how much of a budget may be left unused
_FAR = 1.5  # largest step of a logarithm
_ALMOST_1 = -1e-9  # log of the largest rate below 1


class Solution(NamedTuple):
    """Rates and noise that belong together.

    ``noise``: standard deviation divided by the sensitivity of those who are sampled.
    ``rates`` (n_groups,): in (0, 1]; a group whose rate is 1 has budget left at this noise.
    """

    noise: float
    rates: FloatArray


class _Account:
    """Log epsilon of one owner by a cheap account to look for solutions with, and by the one that counts."""

    def __init__(self, account: str, steps: int, smallest: float) -> None:
        self.account, self.steps = account, steps
        self.coarse = 10 * INTERVAL * min(1.0, smallest)

    def rough(self, log_rate: float, log_noise: float, delta: float) -> float:
        """By Rényi DP in plain floating point."""
        rate, noise = math.exp(min(log_rate, _ALMOST_1)), math.exp(log_noise)
        return rough_epsilon(rate, noise, self.steps, delta).log_epsilon

    def cheap(self, log_rate: float, log_noise: float, delta: float) -> float:
        """Nearly what counts."""
        if self.account == "rdp":
            return self.rough(log_rate, log_noise, delta)
        if self.coarse < 3 * INTERVAL:
            return self.exact(log_rate, log_noise, delta)
        point = math.exp(min(log_rate, _ALMOST_1)), math.exp(log_noise), self.steps, delta
        one = poisson_gaussian_epsilon(*point, interval=self.coarse)
        two = poisson_gaussian_epsilon(*point, interval=2 * self.coarse)
        rest = 1 - (INTERVAL / self.coarse) ** 2
        extrapolated = one - (two - one) / 3 * rest
        return math.log(max(extrapolated, one / 2, 1e-12))

    def exact(self, log_rate: float, log_noise: float, delta: float) -> float:
        """What counts."""
        point = math.exp(min(log_rate, _ALMOST_1)), math.exp(log_noise), self.steps, delta
        return math.log(max(poisson_gaussian_epsilon(*point, account=self.account), 1e-12))


Epsilon = Callable[[float, float, float], float]
Found = TypeVar("Found")


def noise_for(epsilon: float, delta: float, rate: float, steps: int, account: str = "pld") -> float:
    """Find the least noise with which steps at a given rate stay within a budget, rounded up.

    Parameters
    ----------
    epsilon, delta : float
        The budget of one owner, towards who is there or not.
    rate : float
        In (0, 1]; 1 is exact and in closed form.
    steps : int
        At least 1.
    account : {"pld", "rdp"}, default="pld"
        See :mod:`collegium.accounting.subsampled`.

    Returns
    -------
    float
        Standard deviation divided by the owner's L2 sensitivity; epsilon is used but for a part in 1e7.

    Raises
    ------
    InputError
        If an argument is out of range, or the account cannot show so small an epsilon.

    Examples
    --------
    >>> round(noise_for(1.0, 1e-5, rate=0.01, steps=1000, account="rdp"), 4)
    1.5131
    >>> round(noise_for(1.0, 1e-5, rate=1.0, steps=100), 4)
    37.3063
    """
    epsilon = as_positive_scalar("epsilon", epsilon)
    mu = gdp_mu(epsilon, delta)
    _check(rate, steps, account)
    if rate == 1:
        return math.sqrt(steps) / mu * (1 + 2.0**-44)
    accounts = _Account(account, steps, epsilon)
    log_rate = math.log(rate)
    start = -0.5 * math.log(math.log1p((mu / rate) ** 2 / steps))

    def find(by: Epsilon, aim: float, start: float) -> float:
        return _root(lambda s: aim - by(log_rate, s, delta), start, 1.5, what=account)

    start = find(accounts.rough, math.log(epsilon), start)

    def solve(aims: FloatArray) -> float:
        nonlocal start
        start = find(accounts.cheap, float(aims[0]), start)
        return start

    def exact(log_noise: float) -> FloatArray:
        return np.array([accounts.exact(log_rate, log_noise, delta)])

    return math.exp(_corrected(solve, exact, np.log([epsilon])))


def rate_for(
    epsilon: float, delta: float, noise_multiplier: float, steps: int, account: str = "pld"
) -> float:
    """Find the largest rate with which steps of given noise stay within a budget, rounded down.

    Parameters
    ----------
    epsilon, delta : float
        The budget of one owner, towards who is there or not.
    noise_multiplier : float
        Standard deviation divided by the owner's L2 sensitivity.
    steps : int
        At least 1.
    account : {"pld", "rdp"}, default="pld"
        See :mod:`collegium.accounting.subsampled`.

    Returns
    -------
    float
        In (0, 1]; epsilon is used but for a part in 1e7, or the rate is 1: then some of it may be left, and
        only less noise would use it.

    Raises
    ------
    InputError
        If an argument is out of range, or the account cannot show so small an epsilon.

    Examples
    --------
    >>> round(rate_for(1.0, 1e-5, 1.5131, steps=1000, account="rdp"), 4)
    0.01
    >>> rate_for(1.0, 1e-5, 40.0, steps=100)
    1.0
    """
    epsilon = as_positive_scalar("epsilon", epsilon)
    noise = as_positive_scalar("noise_multiplier", noise_multiplier)
    mu = gdp_mu(epsilon, delta)
    _check(1.0, steps, account)
    if noise * mu >= math.sqrt(steps) * (1 + 2.0**-44):
        return 1.0
    accounts = _Account(account, steps, epsilon)
    log_noise = math.log(noise)
    start = _first_rate(mu, noise, steps)

    def find(by: Epsilon, aim: float, start: float) -> float:
        return _rate(by, aim, log_noise, delta, start, account)

    start = find(accounts.rough, math.log(epsilon), start)

    def solve(aims: FloatArray) -> float:
        nonlocal start
        start = find(accounts.cheap, float(aims[0]), start)
        return start

    def exact(log_rate: float) -> FloatArray:
        return np.array([accounts.exact(log_rate, log_noise, delta)])

    return math.exp(_corrected(solve, exact, np.log([epsilon])))


def rates_and_noise(
    epsilons: Sequence[float],
    deltas: Sequence[float],
    shares: Sequence[float],
    mean_rate: float,
    steps: int,
    account: str = "pld",
) -> Solution:
    """Find one noise, and a rate for each group, with which all budgets run out at the last step.

    The rates have a given mean over owners. A group that has budget left with rate 1 keeps rate 1: the rates
    of the others make up for it, and its owners may move the sum further than others.

    ``epsilons``, ``deltas`` (n_groups,): finite budgets.
    ``shares`` (n_groups,): of the owners, adding up to 1.
    ``mean_rate``: in (0, 1).
    """
    _check(mean_rate, steps, account)
    accounts = _Account(account, steps, min(epsilons))
    mu = np.array([gdp_mu(e, d) for e, d in zip(epsilons, deltas, strict=True)])
    weight = np.asarray(shares, dtype=np.float64)
    mean = float(weight @ mu)
    # The Gaussian limit of many steps: mu = q sqrt(T (exp(1/σ²) - 1)).
    log_noise = -0.5 * math.log(math.log1p((mean / mean_rate) ** 2 / steps))
    log_rates = np.minimum(np.log(mean_rate * mu / mean), _ALMOST_1)
    always = np.log(math.sqrt(steps) / mu * (1 + 2.0**-44))  # with this noise, rate 1 is affordable

    def rates_at(by: Epsilon, aims: FloatArray, s: float) -> FloatArray:
        for g, (aim, delta) in enumerate(zip(aims.tolist(), deltas, strict=True)):
            start = min(float(log_rates[g]), _ALMOST_1)
            log_rates[g] = 0.0 if s >= always[g] else _rate(by, aim, s, delta, start, account)
        return log_rates

    def find(by: Epsilon, aims: FloatArray, start: float) -> float:
        def excess(s: float) -> float:
            return math.log(float(weight @ np.exp(rates_at(by, aims, s))) / mean_rate)

        return _root(excess, start, 1.5, what=account)

    log_noise = find(accounts.rough, np.log(epsilons), log_noise)

    def solve(aims: FloatArray) -> tuple[float, FloatArray]:
        nonlocal log_noise
        log_noise = find(accounts.cheap, aims, log_noise)
        return log_noise, log_rates.copy()

    def exact(found: tuple[float, FloatArray]) -> FloatArray:
        s, rates = found
        return np.array(
            [
                -math.inf if rate == 0 else accounts.exact(rate, s, delta)
                for rate, delta in zip(rates.tolist(), deltas, strict=True)
            ]
        )

    s, rates = _corrected(solve, exact, np.log(epsilons))
    return Solution(math.exp(s), np.exp(rates))


def _first_rate(mu: float, noise: float, steps: int) -> float:
    moved = min(noise**-2, 700.0)
    return min(math.log(mu) - 0.5 * math.log(steps * math.expm1(moved)), _ALMOST_1)


def _rate(
    by: Epsilon, aim: float, log_noise: float, delta: float, start: float, account: str
) -> float:
    return _root(
        lambda r: by(r, log_noise, delta) - aim, start, 1.0, highest=_ALMOST_1, what=account
    )


def _root(
    of: Callable[[float], float],
    start: float,
    slope: float,
    *,
    highest: float = math.inf,
    what: str,
) -> float:
    """Root of a growing function of a logarithm, by secants within a bracket; or `highest`."""
    low, high, at = -math.inf, highest, min(start, highest)
    before: tuple[float, float] | None = None
    for _ in range(100):
        value = of(at)
        if abs(value) < 1e-9 or (at == highest and value < 0):
            return at
        low, high = (at, high) if value < 0 else (low, at)
        if before is not None and at != before[0]:
            secant = (value - before[1]) / (at - before[0])
            slope = secant if secant > 1e-3 else slope
        before = at, value
        moved = at - min(max(value / slope, -_FAR), _FAR)
        if not low < moved < high:
            moved = highest if moved >= high == highest else (low + high) / 2
        if moved == at:
            return at
        at = moved
    raise InputError(
        f"the account {what!r} found no solution for these budgets: they may be smaller than it can show "
        "(Rényi orders end at 16,384, and the grid of losses at 1e-4): use another account, or full batch"
    )


def _corrected(
    solve: Callable[[FloatArray], Found],
    exact: Callable[[Found], FloatArray],
    limits: FloatArray,
) -> Found:
    """Aim the cheap account so that the exact one is just below each limit (logs of epsilon).

    An exact value of -inf has no say: its group has what it may have.
    """
    goal = limits + math.log1p(-_TIGHT / 2)
    aims, before = goal.copy(), (goal, np.full_like(goal, np.nan))
    best: tuple[float, Found] | None = None
    for _ in range(20):
        found = solve(aims)
        value = exact(found)
        binding = np.isfinite(value)
        left = float(np.max(np.where(binding, limits - value, 0.0), initial=0.0))
        if (value <= limits).all():
            if best is None or left < best[0]:
                best = left, found
            if left <= _TIGHT:
                return found
        error = np.where(binding, value - aims, 0.0)
        apart = aims - before[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            slope = np.where(np.abs(apart) > 1e-11, (error - before[1]) / apart, 0.0)
        slope = np.clip(np.nan_to_num(slope), -0.7, 2.0)
        before = aims, error
        aims = (goal - error + slope * aims) / (1 + slope)
    if best is not None:
        return best[1]
    raise InputError(
        "no rates and noise were found that keep these budgets: give budgets that are nearer to each "
        "other, or more steps"
    )


def _check(rate: float, steps: int, account: str) -> None:
    if not 0 < rate <= 1:
        raise InputError(f"rate must be above 0 and at most 1, got {rate:g}: it is a probability")
    check_whole("steps", steps)
    check_choice("account", account, ("pld", "rdp"))
