"""Noise and rates for given budgets, where steps of Gaussian noise see Poisson samples of owners.

Everything is solved for in logarithms, by secants. Losses on a fine grid are dear, so a solution is looked for
with accounts that become better: Rényi DP in plain floating point, within brackets; then losses on two coarse
grids, whose error falls with the square of the interval and is extrapolated; then the account that counts,
which finds itself a part in 1e5 away from its solution, knows the slopes, and is done after two or three
rounds. What is returned was verified with that account, at the very floats that are returned: no epsilon is
above its budget, and each is below it by less than a part in 1e7.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from collegium.accounting._inputs import FloatArray, as_positive_scalar
from collegium.accounting.gaussian import gdp_mu
from collegium.accounting.subsampled import (
    ACCOUNTS,
    INTERVAL,
    poisson_gaussian_epsilon,
    rough_epsilon,
)
from collegium.checks import check_choice, check_number, check_whole
from collegium.errors import InputError

__all__ = ["noise_for", "rate_for", "rates_and_noise"]

_TIGHT = 1e-7  # of epsilon: how much of a budget may be left unused
_NEAR = 1e-5  # of epsilon: where the coarse grids have done their part
_FAR = 1.5  # largest step of a logarithm
_ALMOST_1 = -1e-9  # log of the largest rate below 1
_RATE_SLOPES, _NOISE_SLOPES = (0.1, 10.0), (-30.0, -0.1)  # what a slope is taken to be within

Epsilon = Callable[[float, float, float], float]


class Solution(NamedTuple):
    """Rates and noise that belong together.

    ``noise``: standard deviation divided by the sensitivity of those who are sampled.
    ``rates`` (n_groups,): in (0, 1]; a group whose rate is 1 has budget left at this noise.
    """

    noise: float
    rates: FloatArray


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
    return rates_and_noise([epsilon], [delta], [1.0], rate, steps, account).noise


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
    search = _Search([epsilon], [delta], [1.0], None, steps, account)
    search.log_noise = math.log(noise)
    first = math.log(mu) - 0.5 * math.log(steps * math.expm1(min(noise**-2, 700.0)))
    search.log_rates = np.array([min(first, _ALMOST_1)])
    return float(search.found().rates[0])


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
    search = _Search(epsilons, deltas, shares, mean_rate, steps, account)
    mean = float(search.shares @ search.mu)
    # The Gaussian limit of many steps: mu = q sqrt(T (exp(1/σ²) - 1)).
    search.log_noise = -0.5 * math.log(math.log1p((mean / mean_rate) ** 2 / steps))
    search.log_rates = np.minimum(np.log(mean_rate * search.mu / mean), _ALMOST_1)
    return search.found()


class _Search:
    """Looks for one noise and a rate for each group, which together keep all budgets and a mean rate.

    ``mean_rate``: None where the noise is given.
    """

    log_noise: float
    log_rates: FloatArray

    def __init__(
        self,
        epsilons: Sequence[float],
        deltas: Sequence[float],
        shares: Sequence[float],
        mean_rate: float | None,
        steps: int,
        account: str,
    ) -> None:
        self.limits, self.deltas = np.log(epsilons), list(deltas)
        self.shares, self.mean_rate = np.asarray(shares, dtype=np.float64), mean_rate
        self.steps, self.account = steps, account
        self.mu = np.array([gdp_mu(e, d) for e, d in zip(epsilons, deltas, strict=True)])
        # With so much noise, rate 1 is affordable.
        self.always = np.log(math.sqrt(steps) / self.mu * (1 + 2.0**-44))
        self.coarse = 10 * INTERVAL * min(1.0, *epsilons)

    def found(self) -> Solution:
        """Search, from where ``log_noise`` and ``log_rates`` are."""
        goal = self.limits + math.log1p(-_TIGHT / 2)
        self._nested(self._rough, goal)
        by_rate, by_noise = self._slopes()
        if self.account == "pld" and self.coarse >= 3 * INTERVAL:
            if not self._together(self._extrapolated, goal, _NEAR, by_rate, by_noise):
                self._nested(self._extrapolated, goal)
        if not self._together(self._exact, goal, _TIGHT / 2, by_rate, by_noise):
            self._nested(self._exact, goal)
            if (self._values(self._exact, self.limits) > self.limits).any():
                raise _nothing_found(self.account)
        return Solution(math.exp(self.log_noise), np.exp(self.log_rates))

    def _rough(self, log_rate: float, log_noise: float, delta: float) -> float:
        rate, noise = math.exp(log_rate), math.exp(log_noise)
        return rough_epsilon(rate, noise, self.steps, delta).log_epsilon

    def _extrapolated(self, log_rate: float, log_noise: float, delta: float) -> float:
        point = math.exp(log_rate), math.exp(log_noise), self.steps, delta
        one = poisson_gaussian_epsilon(*point, interval=self.coarse)
        two = poisson_gaussian_epsilon(*point, interval=2 * self.coarse)
        rest = 1 - (INTERVAL / self.coarse) ** 2
        return math.log(max(one - (two - one) / 3 * rest, one / 2, 1e-12))

    def _exact(self, log_rate: float, log_noise: float, delta: float) -> float:
        point = math.exp(log_rate), math.exp(log_noise), self.steps, delta
        return math.log(max(poisson_gaussian_epsilon(*point, account=self.account), 1e-12))

    def _slopes(self) -> tuple[FloatArray, FloatArray]:
        noise, rates = math.exp(self.log_noise), np.exp(np.minimum(self.log_rates, _ALMOST_1))
        pairs = zip(rates.tolist(), self.deltas, strict=True)
        rough = [rough_epsilon(rate, noise, self.steps, delta) for rate, delta in pairs]
        by_rate = np.clip([one.by_log_rate for one in rough], *_RATE_SLOPES)
        return by_rate, np.clip([one.by_log_noise for one in rough], *_NOISE_SLOPES)

    def _values(self, by: Epsilon, where_always: FloatArray) -> FloatArray:
        """Log epsilon of each group; for those with rate 1, who have budget left, what is given."""
        values = where_always.copy()
        for g in np.flatnonzero(self.log_rates < 0):
            values[g] = by(float(self.log_rates[g]), self.log_noise, self.deltas[g])
        return values

    def _together(
        self, by: Epsilon, goal: FloatArray, near: float, by_rate: FloatArray, by_noise: FloatArray
    ) -> bool:
        """Newton's method for all at once, with slopes that Broyden's update makes better, in place."""
        before: tuple[FloatArray, FloatArray, float] | None = None
        for _ in range(12):
            values = self._values(by, goal)
            if before is not None:
                self._learn(values, *before, by_rate, by_noise)
            if (np.abs(values - goal) <= near).all():
                return True
            before = values, self.log_rates, self.log_noise
            self._step(values - goal, by_rate, by_noise)
        return False

    def _learn(
        self,
        values: FloatArray,
        values_before: FloatArray,
        rates_before: FloatArray,
        noise_before: float,
        by_rate: FloatArray,
        by_noise: FloatArray,
    ) -> None:
        moved, shifted = self.log_rates - rates_before, self.log_noise - noise_before
        size = moved**2 + shifted**2
        known = (size > 1e-16) & (self.log_rates < 0) & (rates_before < 0)
        rest = values - values_before - by_rate * moved - by_noise * shifted
        rest = np.where(known, rest / np.where(known, size, 1.0), 0.0)
        by_rate[:] = np.clip(by_rate + rest * moved, *_RATE_SLOPES)
        by_noise[:] = np.clip(by_noise + rest * shifted, *_NOISE_SLOPES)

    def _step(self, miss: FloatArray, by_rate: FloatArray, by_noise: FloatArray) -> None:
        def rates(shift: float) -> FloatArray:
            left = self.log_noise + shift - self.always
            moved = np.clip(-(miss + by_noise * shift) / by_rate, -_FAR, _FAR)
            # A group that had rate 1 has about that where its budget just suffices for it.
            new = np.where(self.log_rates < 0, self.log_rates + moved, -by_noise / by_rate * left)
            return np.where(left >= 0, 0.0, np.minimum(new, _ALMOST_1))

        shift = 0.0
        if self.mean_rate is not None:
            mean = self.mean_rate

            def excess(shift: float) -> float:
                return math.log(float(self.shares @ np.exp(rates(shift))) / mean)

            ends = excess(-_FAR), excess(_FAR)
            if ends[0] < 0 < ends[1]:
                shift = float(brentq(excess, -_FAR, _FAR, xtol=1e-14))
            else:
                shift = _FAR if ends[1] <= 0 else -_FAR
        self.log_rates = rates(shift)
        self.log_noise += shift

    def _nested(self, by: Epsilon, goal: FloatArray) -> None:
        """For each noise, a rate for each group: slow, and never lost."""

        def rates(log_noise: float) -> FloatArray:
            found = np.zeros_like(self.log_rates)
            for g in np.flatnonzero(log_noise < self.always):
                aim, delta, start = float(goal[g]), self.deltas[g], float(self.log_rates[g])
                found[g] = _root(
                    lambda r, aim=aim, delta=delta: by(r, log_noise, delta) - aim,  # type: ignore[misc]
                    start,
                    highest=_ALMOST_1,
                    account=self.account,
                )
            self.log_rates = found
            return found

        if self.mean_rate is not None:
            mean = self.mean_rate
            self.log_noise = _root(
                lambda s: math.log(float(self.shares @ np.exp(rates(s))) / mean),
                self.log_noise,
                account=self.account,
            )
        rates(self.log_noise)


def _root(
    of: Callable[[float], float], start: float, *, highest: float = math.inf, account: str
) -> float:
    """Root of a growing function of a logarithm, by secants within a bracket; or `highest`."""
    low, high, at, slope = -math.inf, highest, min(start, highest), 1.0
    before: tuple[float, float] | None = None
    for _ in range(100):
        value = of(at)
        if abs(value) < _TIGHT / 4 or (at == highest and value < 0):
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
    raise _nothing_found(account)


def _nothing_found(account: str) -> InputError:
    return InputError(
        f"the account {account!r} found no solution for these budgets: they may be smaller than it can show "
        "(Rényi orders end at 16,384, and the grid of losses at 1e-4); use another account, or full batch"
    )


def _check(rate: float, steps: int, account: str) -> None:
    check_number("rate", rate, above=0, most=1)
    check_whole("steps", steps)
    check_choice("account", account, ACCOUNTS)
