"""Noise and rates for given budgets, where steps of Gaussian noise see Poisson samples of owners.

Everything is solved for in logarithms, by secants. Losses on a fine grid are dear, so that solutions are
looked for with accounts that become better: Rényi DP in plain floating point, within brackets; then losses on
two coarse grids, whose error falls with the square of the interval and is extrapolated; then the account that
counts, which finds itself about a part in 1e5 away from its solution, knows the slopes, and is done after two
or three rounds. What is returned was verified with that account, at the very floats that are returned: no
epsilon is above its budget, and each is below it by less than a part in 1e7.
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
    MOST_SHOWN,
    poisson_gaussian_epsilon,
    rough_epsilon,
)
from collegium.checks import check_choice, check_number, check_whole
from collegium.errors import InputError

__all__ = ["noise_for", "rates_and_noise"]

_TIGHT = 1e-7  # of epsilon: how much of a budget may be left unused
_NEAR = 1e-5  # of epsilon: where the coarse grids have done their part
_FAR = 1.5  # largest step of a logarithm
_ALMOST_1 = -1e-9  # log of the largest rate below 1
_LOWEST = -60.0  # log of a rate or noise that nobody needs
_LEAST = 1e-12  # epsilon, before its logarithm is taken
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
        If an argument is out of range, or the account cannot show so small or so large an epsilon.

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
    _require_shown(epsilon, account)
    accounts, log_rate = _Accounts(steps, account, [epsilon]), math.log(rate)
    # The Gaussian limit of many steps: mu = q sqrt(T (exp(1/σ²) - 1)).
    start = -0.5 * math.log(math.log1p((mu / rate) ** 2 / steps))

    def excess(by: Epsilon) -> Callable[[float], float]:
        return lambda log_noise: -by(log_rate, log_noise, delta)

    return math.exp(_climbed(accounts, excess, _TIGHT / 2 - math.log(epsilon), start, 1.5))


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
    if len(epsilons) == 1:
        noise = noise_for(epsilons[0], deltas[0], mean_rate, steps, account)
        return Solution(noise, np.array([mean_rate]))
    _require_shown(max(epsilons), account)
    return _Search(epsilons, deltas, shares, mean_rate, steps, account).found()


class _Accounts:
    """Log epsilon of steps at a log rate and log noise, by accounts that become better and dearer."""

    def __init__(self, steps: int, account: str, epsilons: Sequence[float]) -> None:
        self.steps, self.account = steps, account
        self.interval = 10 * INTERVAL * min(1.0, max(0.3, min(epsilons)))
        self.between = account == "pld"

    def rough(self, log_rate: float, log_noise: float, delta: float) -> float:
        """Rényi DP in plain floating point."""
        rate, noise = math.exp(log_rate), math.exp(log_noise)
        return rough_epsilon(rate, noise, self.steps, delta).log_epsilon

    def coarse(self, log_rate: float, log_noise: float, delta: float) -> float:
        """Losses on a coarse grid."""
        point = math.exp(log_rate), math.exp(log_noise), self.steps, delta
        return _log(poisson_gaussian_epsilon(*point, interval=self.interval))

    def extrapolated(self, log_rate: float, log_noise: float, delta: float) -> float:
        """Losses on two coarse grids."""
        point = math.exp(log_rate), math.exp(log_noise), self.steps, delta
        one = poisson_gaussian_epsilon(*point, interval=self.interval)
        two = poisson_gaussian_epsilon(*point, interval=2 * self.interval)
        rest = 1 - (INTERVAL / self.interval) ** 2
        return _log(max(one - (two - one) / 3 * rest, one / 2) if two < math.inf else two)

    def exact(self, log_rate: float, log_noise: float, delta: float) -> float:
        """What counts."""
        point = math.exp(log_rate), math.exp(log_noise), self.steps, delta
        return _log(poisson_gaussian_epsilon(*point, account=self.account))


def _log(epsilon: float) -> float:
    """Take a logarithm to search with: finite, and past every budget where epsilon is infinite."""
    return math.log(max(epsilon, _LEAST)) if epsilon < math.inf else math.log(2 * MOST_SHOWN)


def _climbed(
    accounts: _Accounts,
    value: Callable[[Epsilon], Callable[[float], float]],
    goal: float,
    start: float,
    slope: float,
) -> float:
    """Where one growing function is at its goal, from account to account."""
    levels = [(accounts.rough, 1e-3), (accounts.extrapolated, _NEAR), (accounts.exact, _TIGHT / 2)]
    at = start
    for by, near in levels if accounts.between else [levels[0], levels[2]]:
        of = value(by)
        root = _root(lambda x, of=of: of(x) - goal, at, slope, near, math.inf)  # type: ignore[misc]
        at, slope = root.at, root.slope
        if accounts.account == "rdp" and abs(root.value) > 0.1:
            break  # the rough account is nearly the one that counts
    if abs(root.value) > _TIGHT / 2:
        raise _nothing_found(accounts.account)
    return at


class _Search:
    """Looks for one noise and a rate for each group, which together keep all budgets and a mean rate."""

    def __init__(
        self,
        epsilons: Sequence[float],
        deltas: Sequence[float],
        shares: Sequence[float],
        mean_rate: float,
        steps: int,
        account: str,
    ) -> None:
        self.limits, self.deltas = np.log(epsilons), list(deltas)
        self.shares, self.mean_rate = np.asarray(shares, dtype=np.float64), mean_rate
        self.accounts = _Accounts(steps, account, epsilons)
        mu = np.array([gdp_mu(e, d) for e, d in zip(epsilons, deltas, strict=True)])
        # With so much noise, rate 1 is affordable.
        self.always = np.log(math.sqrt(steps) / mu * (1 + 2.0**-44))
        # The Gaussian limit of many steps, as in noise_for.
        mean = float(self.shares @ mu)
        self.log_noise = -0.5 * math.log(math.log1p((mean / mean_rate) ** 2 / steps))
        self.log_rates = np.minimum(np.log(mean_rate * mu / mean), _ALMOST_1)
        self.by_rate, self.by_noise = np.ones_like(mu), -np.ones_like(mu)

    def found(self) -> Solution:
        """Search."""
        accounts, goal = self.accounts, self.limits - _TIGHT / 2
        self._nested(accounts.rough, goal, 1e-3)
        self._measure_slopes(accounts.rough)
        if accounts.between and not self._together(accounts.extrapolated, goal, _NEAR):
            # Rényi DP is far off where noise and rates are small.
            self._nested(accounts.coarse, goal, 1e-3)
            self._measure_slopes(accounts.coarse)
            self._together(accounts.extrapolated, goal, _NEAR)
        if not self._together(accounts.exact, goal, _TIGHT / 2):
            self._settle_rates(goal)
        return Solution(math.exp(self.log_noise), np.exp(self.log_rates))

    def _settle_rates(self, goal: FloatArray) -> None:
        """Keep the noise, and find each group's rate for it: their mean is then only nearly as asked for."""
        self.log_rates = np.where(self.log_noise >= self.always, 0.0, self.log_rates)
        for g in np.flatnonzero(self.log_rates < 0):
            found = self._rate(self.accounts.exact, int(g), goal, _TIGHT / 2)
            self.log_rates[g] = found.at
            if not -1e-3 < found.value <= _TIGHT / 2:
                raise _nothing_found(self.accounts.account)

    def _rate(self, by: Epsilon, group: int, goal: FloatArray, near: float) -> "_Root":
        noise, aim, delta = self.log_noise, float(goal[group]), self.deltas[group]
        start, slope = float(self.log_rates[group]), float(self.by_rate[group])
        return _root(lambda rate: by(rate, noise, delta) - aim, start, slope, near, _ALMOST_1)

    def _values(self, by: Epsilon, where_always: FloatArray) -> FloatArray:
        """Log epsilon of each group; for those with rate 1, who have budget left, what is given."""
        values = where_always.copy()
        for g in np.flatnonzero(self.log_rates < 0):
            values[g] = by(float(self.log_rates[g]), self.log_noise, self.deltas[g])
        return values

    def _measure_slopes(self, by: Epsilon, apart: float = 1e-3) -> None:
        for g, delta in enumerate(self.deltas):
            rate, noise = min(float(self.log_rates[g]), _ALMOST_1 - apart), self.log_noise
            here = by(rate, noise, delta)
            self.by_rate[g] = (by(rate + apart, noise, delta) - here) / apart
            self.by_noise[g] = (by(rate, noise + apart, delta) - here) / apart
        self._keep_slopes_sane()

    def _keep_slopes_sane(self) -> None:
        np.clip(self.by_rate, *_RATE_SLOPES, out=self.by_rate)
        np.clip(self.by_noise, *_NOISE_SLOPES, out=self.by_noise)

    def _together(self, by: Epsilon, goal: FloatArray, near: float) -> bool:
        """Newton's method for all at once, with slopes that Broyden's update makes better."""
        before: tuple[FloatArray, FloatArray, float] | None = None
        for _ in range(12):
            values = self._values(by, goal)
            if before is not None:
                self._learn(values, *before)
            if (np.abs(values - goal) <= near).all():
                return True
            before = values, self.log_rates, self.log_noise
            self._step(values - goal)
        return False

    def _learn(
        self, values: FloatArray, values_before: FloatArray, rates_before: FloatArray, noise: float
    ) -> None:
        moved, shifted = self.log_rates - rates_before, self.log_noise - noise
        size = moved**2 + shifted**2
        known = (size > 1e-16) & (self.log_rates < 0) & (rates_before < 0)
        rest = values - values_before - self.by_rate * moved - self.by_noise * shifted
        rest = np.where(known, rest / np.where(known, size, 1.0), 0.0)
        self.by_rate += rest * moved
        self.by_noise += rest * shifted
        self._keep_slopes_sane()

    def _step(self, miss: FloatArray) -> None:
        ratio = self.by_noise / self.by_rate

        def rates(shift: float) -> FloatArray:
            left = self.log_noise + shift - self.always
            moved = np.clip(-miss / self.by_rate - ratio * shift, -_FAR, _FAR)
            # A group that had rate 1 has about that where its budget just suffices for it.
            new = np.where(self.log_rates < 0, self.log_rates + moved, -ratio * left)
            return np.where(left >= 0, 0.0, np.minimum(new, _ALMOST_1))

        def excess(shift: float) -> float:
            return math.log(float(self.shares @ np.exp(rates(shift))) / self.mean_rate)

        low, high = excess(-_FAR), excess(_FAR)
        if low < 0 < high:
            shift = float(brentq(excess, -_FAR, _FAR, xtol=1e-14))
        else:
            shift = _FAR if high <= 0 else -_FAR
        self.log_rates = rates(shift)
        self.log_noise += shift

    def _nested(self, by: Epsilon, goal: FloatArray, near: float) -> None:
        """For each noise, a rate for each group: slow, but within brackets."""

        def excess(log_noise: float) -> float:
            self.log_noise = log_noise
            self.log_rates = np.where(log_noise >= self.always, 0.0, self.log_rates)
            for g in np.flatnonzero(log_noise < self.always):
                self.log_rates[g] = self._rate(by, int(g), goal, near / 2).at
            return math.log(float(self.shares @ np.exp(self.log_rates)) / self.mean_rate)

        _root(excess, self.log_noise, 1.0, near)


class _Root(NamedTuple):
    at: float
    value: float
    slope: float


def _root(
    of: Callable[[float], float],
    start: float,
    slope: float,
    near: float,
    highest: float = math.inf,
) -> _Root:
    """Look for the root of a growing function of a logarithm: by secants, within a bracket.

    Ends at `highest`, or far down, where the root is not before: its value says so.
    """
    low, high, at = _LOWEST, highest, max(min(start, highest), _LOWEST)
    before: tuple[float, float] | None = None
    for _ in range(100):
        value = of(at)
        if before is not None and at != before[0]:
            secant = (value - before[1]) / (at - before[0])
            slope = secant if secant > 1e-2 else slope
        if abs(value) <= near or (value < 0 and at == highest) or (value > 0 and at == _LOWEST):
            break
        low, high = (at, high) if value < 0 else (low, at)
        before = at, value
        moved = at - min(max(value / slope, -_FAR), _FAR)
        if moved >= high:
            moved = high if before[0] < high == highest else (low + high) / 2
        elif moved <= low:
            moved = low if low == _LOWEST else (low + high) / 2
        if moved == at:
            break
        at = moved
    return _Root(at, value, slope)


def _nothing_found(account: str) -> InputError:
    return InputError(
        f"the account {account!r} found no rates and noise that use these budgets: they are too far apart, "
        "or smaller than it can show (Rényi orders end at 16,384, the grid of losses at 1e-4); use another "
        "account, clips instead of rates, or full batch"
    )


def _require_shown(epsilon: float, account: str) -> None:
    if account == "pld" and epsilon >= MOST_SHOWN:
        raise InputError(
            f"loss distributions (accountant 'pld') show an epsilon below {MOST_SHOWN:g} where owners are "
            f"sampled, got {epsilon:g}: use the accountant 'rdp', or take everybody in every step"
        )


def _check(rate: float, steps: int, account: str) -> None:
    check_number("rate", rate, above=0, most=1)
    check_whole("steps", steps)
    check_choice("account", account, ACCOUNTS)
