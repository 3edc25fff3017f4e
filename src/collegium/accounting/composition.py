"""Composition theorems: what several mechanisms cost together, each as a function of public numbers.

All hold between any two neighbours for which the amounts were stated, in both directions, and are rounded
up. Unless it is said otherwise, mechanisms may be chosen in the light of earlier answers, but their number
and amounts are fixed beforehand; an account that may stop or change amounts as it goes (a filter) is what
:class:`~collegium.accounting.accountants.GaussianAccountant` and its siblings are.

What to rely on, and how far the bounds lie apart, is in ``docs/composition.md``. Rényi curves, exact Gaussian
DP and the common currency compose in :mod:`~collegium.accounting.renyi`,
:mod:`~collegium.accounting.gaussian` and :mod:`~collegium.accounting.currency`.

References
----------
C. Dwork, A. Roth. The Algorithmic Foundations of Differential Privacy. 2014. Theorems 2.2, 3.16 and 3.20.
C. Dwork, G. Rothblum, S. Vadhan. Boosting and Differential Privacy. FOCS 2010 (advanced composition).
P. Kairouz, S. Oh, P. Viswanath. The Composition Theorem for Differential Privacy. ICML 2015; arXiv
1311.0776v4. Theorem 3.3 (optimal) and 3.5 (closed form for different amounts).
J. Murtagh, S. Vadhan. The Complexity of Computing the Optimal Composition of Differential Privacy. Theory of
Computing 14(8), 2018; arXiv 1507.03113 (optimal for different amounts, up to rounding amounts up).
M. Bun, T. Steinke. Concentrated Differential Privacy. TCC 2016; arXiv 1605.02065v1. Propositions 1.3 and
1.9, Lemma 1.7.
J. Dong, D. Durfee, R. Rogers. Optimal Differential Privacy Composition for Exponential Mechanisms. ICML
2020; arXiv 1909.13830. Theorem 3.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, minimize_scalar

from collegium.accounting._inputs import (
    FloatArray,
    as_delta,
    as_extended_scalar,
    as_floats,
    as_nonnegative,
    as_nonnegative_scalar,
)
from collegium.accounting.currency import LossDistribution
from collegium.checks import check_choice, check_whole
from collegium.errors import InputError

__all__ = [
    "Guarantee",
    "advanced_composition",
    "basic_composition",
    "bounded_range_composition",
    "group_privacy",
    "optimal_composition",
    "zcdp_epsilon",
]

_UNIT = float(np.finfo(np.float64).eps)
_ROUND_UP = 1 + 64 * _UNIT  # more than the operations of any closed form here
_MOST_EPSILON = 1e12  # beyond which adding up says as much as anything
_MOST = 1_000_000  # mechanisms whose losses are counted one by one
_MOST_POINTS, _MOST_WORK = 400_000, 2e8  # of a grid of losses
_MOST_OF_RANGE = 1_000


class Guarantee(NamedTuple):
    """Differential privacy with these epsilon and delta: both per owner, of everything together.

    Examples
    --------
    >>> basic_composition([0.5, 0.25], 1e-6)
    Guarantee(epsilon=0.75, delta=2e-06)
    """

    epsilon: float
    delta: float


def basic_composition(
    epsilons: ArrayLike, deltas: ArrayLike = 0.0, counts: ArrayLike = 1
) -> Guarantee:
    """Add up: (sum of epsilons, sum of deltas), also for amounts chosen as one goes.

    Dwork & Roth 2014, Theorem 3.16; for equal epsilons and delta 0 the lecture's Theorem 8.

    Parameters
    ----------
    epsilons, deltas : array-like of shape (n,), or a number for all
        What each mechanism promises each owner; epsilons in [0, inf), deltas in [0, 1).
    counts : array-like of shape (n,) or int, default 1
        How often each is used.

    Returns
    -------
    Guarantee
        Rounded up (sums of floats that need no rounding are exact).

    Raises
    ------
    InputError
        If an amount is out of range, or shapes disagree.

    Examples
    --------
    >>> basic_composition(0.125, counts=100)
    Guarantee(epsilon=12.5, delta=0.0)
    """
    used = _Used.of(epsilons, deltas, counts)
    return Guarantee(used.total_epsilon(), min(used.total_delta(), 1.0))


def advanced_composition(
    epsilons: ArrayLike,
    slack: float,
    deltas: ArrayLike = 0.0,
    counts: ArrayLike = 1,
    form: str = "dwork-roth",
) -> Guarantee:
    """Compose sublinearly, at the price of a delta: the closed forms.

    *dwork-roth*: epsilon' = sqrt(2 ln(1/slack) sum e_i^2) + sum e_i (exp(e_i) - 1), for equal amounts Dwork &
    Roth 2014, Theorem 3.20. For different ones the proof is the same: loss i lies in [-e_i, e_i] and its
    mean given the past is at most e_i (exp(e_i) - 1) (Lemma 3.18), so Azuma's inequality bounds the sum.
    The deltas add up. (The lecture prints Theorem 3.20 with its root over epsilon, too:
    sqrt(2 k ln(1/slack) epsilon). That is not the theorem, and is looser: 16.23 in place of 5.85 for 100
    mechanisms of epsilon 0.1 at 1e-5. It is no wrong promise: up to epsilon = 1 its root is the larger
    one, above that its second term alone exceeds basic composition.)

    *kairouz*: the smallest of three forms, sum e_i, and m + sqrt(2 s L) with m = sum e_i tanh(e_i/2),
    s = sum e_i^2 and L = ln(1/slack) or ln(e + sqrt(s)/slack): Kairouz, Oh & Viswanath 2015, Theorem 3.5. Its
    delta is 1 - (1 - slack) prod (1 - delta_i).

    Parameters
    ----------
    epsilons, deltas : array-like of shape (n,), or a number for all
        What each mechanism promises each owner; epsilons in [0, inf), deltas in [0, 1).
    slack : float
        The theorems' additional delta (delta' or delta tilde), in (0, 1).
    counts : array-like of shape (n,) or int, default 1
        How often each is used.
    form : {"dwork-roth", "kairouz"}

    Returns
    -------
    Guarantee
        Rounded up.

    Raises
    ------
    InputError
        If an amount is out of range, shapes disagree, or the form is unknown.

    Examples
    --------
    >>> round(advanced_composition(0.1, 1e-5, counts=100).epsilon, 6)
    5.850235
    >>> round(advanced_composition(0.1, 1e-5, counts=100, form="kairouz").epsilon, 6)
    5.29811
    """
    check_choice("form", form, ("dwork-roth", "kairouz"))
    used, slack = _Used.of(epsilons, deltas, counts), as_delta(slack)
    norm = used.norm()
    root = norm * math.sqrt(-2 * math.log(slack))
    with np.errstate(over="ignore"):
        if form == "dwork-roth":
            drift = used.summed(used.epsilons * np.expm1(used.epsilons))
            delta = _up(used.total_delta() + slack) if used.deltas.any() else slack
            return Guarantee(_up(root + drift), min(delta, 1.0))
    drift = used.summed(used.epsilons * np.tanh(used.epsilons / 2))
    other = norm * math.sqrt(2 * math.log(math.e + norm / slack))
    epsilon = min(used.total_epsilon(), _up(drift + min(root, other)))
    return Guarantee(epsilon, used.delta_beside(slack))


def optimal_composition(
    epsilons: ArrayLike, slack: float, deltas: ArrayLike = 0.0, counts: ArrayLike = 1
) -> Guarantee:
    """Compose optimally: no smaller epsilon holds for all mechanisms with these promises.

    Any (e_i, delta_i)-DP mechanism is what is left of randomised response that keeps the truth with
    probability exp(e_i)/(1 + exp(e_i)), and of showing everything with probability delta_i (Kairouz, Oh &
    Viswanath 2015, Theorem 3.3; for different amounts Murtagh & Vadhan 2018, Theorem 1.5). So the loss of all
    is a sum of independent +-e_i. Equal amounts: exact, up to rounding. Different ones: each e_i is rounded
    up to a multiple of a common unit, which is sound, since e_i-DP is e-DP for every larger e, and costs
    nothing where they have a common unit (0.1, 0.25, 1). Binomial probabilities are products from the
    mode outwards, and sums have positive terms only: relative errors are bounded, and added.

    Parameters
    ----------
    epsilons, deltas : array-like of shape (n,), or a number for all
        What each mechanism promises each owner; epsilons in [0, inf), deltas in [0, 1).
    slack : float
        Delta of randomised response alone, in (0, 1).
    counts : array-like of shape (n,) or int, default 1
        How often each is used; a million in all at most.

    Returns
    -------
    Guarantee
        Rounded up; delta is 1 - (1 - slack) prod (1 - delta_i).

    Raises
    ------
    InputError
        If an amount is out of range, shapes disagree, or there are more than a million mechanisms.

    Examples
    --------
    >>> round(optimal_composition(0.1, 1e-5, counts=100).epsilon, 6)
    4.306791
    >>> round(optimal_composition([0.1, 0.2], 1e-5, counts=[60, 10]).epsilon, 6)
    4.193753
    """
    used, slack = _Used.of(epsilons, deltas, counts), as_delta(slack)
    if used.counts.sum() > _MOST:
        raise InputError(
            f"{int(used.counts.sum()):,} mechanisms are more than the {_MOST:,} whose losses are counted one "
            "by one: use advanced_composition"
        )
    total = used.total_epsilon()
    epsilon = min(total, _responses(used, slack)) if total < _MOST_EPSILON else total
    return Guarantee(epsilon, used.delta_beside(slack))


def bounded_range_composition(eta: float, count: int, delta: float) -> float:
    """Compose exponential mechanisms that were fixed beforehand: the smallest epsilon, rounded up.

    Each has log-ratios in an interval of length eta (that contains 0), such as the exponential mechanism
    with exp(score) whose scores an owner moves within an interval of length eta. Dong, Durfee & Rogers
    2020, Theorem 3: the worst ones are equal pairs with log-ratios t and t - eta, and

        delta(epsilon) = max over l = 0..k of D(t_l),   t_l = (epsilon + (l + 1) eta) / (k + 1) in [0, eta],

    D(t) the profile of k of them. **Not for mechanisms chosen in the light of earlier answers**: those may
    lose more (their Section 3.3). For them rely on the common currency,
    ``pure_bound(eta / 2)`` (:class:`~collegium.accounting.events.BoundedRange`).

    Parameters
    ----------
    eta : float
        Length of the interval of log-ratios per owner, in [0, inf).
    count : int
        How many, 0 to 1,000.
    delta : float
        In (0, 1), per owner.

    Returns
    -------
    float
        At most count times eta.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> round(bounded_range_composition(0.1, 100, 1e-5), 6)
    1.988633
    """
    eta, delta = as_nonnegative_scalar("eta", eta), as_delta(delta)
    check_whole("count", count, least=0, most=_MOST_OF_RANGE)
    most = _up(count * eta)
    if not most or _range_delta(eta, count, 0.0) <= delta:
        return 0.0
    target = math.log(delta)

    def excess(epsilon: float) -> float:
        found = _range_delta(eta, count, epsilon)
        return (math.log(found) if found > 0 else -1e4) - target

    try:
        epsilon = float(brentq(excess, 0.0, most, xtol=1e-13 * most, rtol=8 * _UNIT))
    except RuntimeError:  # of the largest ranges; their sum always holds
        return most
    step = 1e-13 * most
    while _range_delta(eta, count, epsilon) > delta and epsilon < most:
        epsilon, step = epsilon + step, 2 * step
    return min(epsilon, most)


def zcdp_epsilon(rho: float, delta: float, conversion: str = "canonne") -> float:
    """Convert zero-concentrated DP to epsilon at a delta, rounded up.

    rho-zCDP bounds the Rényi divergence by rho alpha at every order alpha > 1. It composes by adding up
    (Bun & Steinke 2016, Lemma 1.7). What has it: Gaussian noise, sensitivity^2/(2 sigma^2) (Proposition
    1.6); any pure epsilon-DP, epsilon^2/2 (Proposition 1.4); a range of eta, eta^2/8 (Cesar & Rogers 2021).

    Parameters
    ----------
    rho : float
        In [0, inf], per owner, of everything together.
    delta : float
        In (0, 1), per owner.
    conversion : {"canonne", "bun-steinke"}
        "bun-steinke" is rho + 2 sqrt(rho ln(1/delta)), their Proposition 1.3; "canonne" is the best order of
        Canonne, Kamath & Steinke 2020 (arXiv 2004.00010v4), Proposition 12, and 0 where rho is at most
        2 delta^2 (Pinsker): never larger.

    Returns
    -------
    float

    Raises
    ------
    InputError
        If an argument is out of range, or the conversion unknown.

    Examples
    --------
    >>> round(zcdp_epsilon(0.5, 1e-5, "bun-steinke"), 6), round(zcdp_epsilon(0.5, 1e-5), 6)
    (5.298526, 4.728387)
    """
    check_choice("conversion", conversion, ("canonne", "bun-steinke"))
    rho, delta = as_extended_scalar("rho", rho), as_delta(delta)
    if math.isinf(rho):
        return math.inf
    plain = _up(rho + 2 * math.sqrt(-rho * math.log(delta)))
    if conversion == "bun-steinke":
        return plain
    if rho <= 2 * delta**2 * (1 - 16 * _UNIT):  # by Pinsker, as in rdp_to_epsilon
        return 0.0

    def at(log_beyond: float) -> float:
        """Epsilon by the order 1 + exp(log_beyond), rounded up: any order will do."""
        beyond = math.exp(log_beyond)
        order = 1 + beyond
        shift, tail = math.log1p(beyond) - log_beyond, -math.log(delta) / beyond
        away = math.log1p(beyond) / beyond
        size = rho * order + abs(math.log1p(beyond)) + abs(log_beyond) + tail + away
        return rho * order - shift + tail - away + 64 * _UNIT * size

    middle = 0.5 * (math.log(-math.log(delta)) - math.log(rho))
    best = minimize_scalar(
        at, bounds=(middle - 3, middle + 3), method="bounded", options={"xatol": 1e-9}
    )
    return max(0.0, min(plain, at(float(best.x))))


def group_privacy(
    size: int,
    epsilon: float | None = None,
    delta: float = 0.0,
    mu: float | None = None,
    rho: float | None = None,
) -> float | Guarantee:
    """Say what holds for a group of people of a promise to each of them; rounded up.

    Data sets that differ in all records of `size` owners are joined by a chain of neighbours (for blanked or
    absent owners and for replaced ones alike), and the promise is applied along it:

    * (epsilon, delta): (k epsilon, delta (exp(k epsilon) - 1)/(exp(epsilon) - 1)); with delta 0 the lecture's
      Theorem 7 and Dwork & Roth 2014, Theorem 2.2. With d_j the delta after j steps, P_0(S) <=
      exp(epsilon) P_1(S) + delta <= exp(epsilon) (exp((k-1) epsilon) P_k(S) + d_{k-1}) + delta, so the
      deltas are a geometric sum.
    * mu: k mu, exactly (Dong, Roth & Su 2022, Theorem 2.14).
    * rho: k^2 rho (Bun & Steinke 2016, Proposition 1.9).

    Parameters
    ----------
    size : int
        People in the group, at least 1.
    epsilon, mu, rho : float
        One of them: the promise to each person, in [0, inf).
    delta : float, default 0.0
        With epsilon; in [0, 1).

    Returns
    -------
    Guarantee, or float for mu and rho

    Raises
    ------
    InputError
        If not exactly one of the promises is given, or a number is out of range.

    Examples
    --------
    >>> group_privacy(3, epsilon=1.0, delta=0.0)
    Guarantee(epsilon=3.0, delta=0.0)
    >>> round(group_privacy(3, epsilon=1.0, delta=1e-5).delta, 10)
    0.0001110734
    >>> from collegium.accounting import gdp_epsilon, gdp_mu
    >>> round(gdp_epsilon(group_privacy(3, mu=gdp_mu(1.0, 1e-5)), 1e-5), 6)
    3.407016
    """
    check_whole("size", size, least=1, most=10**12)
    delta = as_nonnegative_scalar("delta", delta)
    if sum(one is None for one in (epsilon, mu, rho)) != 2 or (delta and epsilon is None):
        raise InputError("give one of epsilon (with its delta), mu and rho: what each is promised")
    if mu is not None:
        return _times(as_nonnegative_scalar("mu", mu), size)
    if rho is not None:
        return _times(as_nonnegative_scalar("rho", rho), size**2)
    one, leak = as_nonnegative_scalar("epsilon", 0.0 if epsilon is None else epsilon), delta
    if leak >= 1:
        raise InputError(f"delta must be below 1, got {leak:g}; correct it")
    together = _times(one, size)
    if size == 1 or not leak:
        return Guarantee(together, leak)
    # expm1(k e)/expm1(e) with exponents that are not above 0 beside exp((k - 1) e); the limit is k.
    grown = math.exp(min((size - 1) * one, 700.0))
    ratio = math.expm1(-size * one) / math.expm1(-one) if one else float(size)
    rounding = 1 + 16 * _UNIT * (1 + size * one)
    return Guarantee(together, min(_up(leak * grown * ratio * rounding), 1.0))


class _Used(NamedTuple):
    """Different mechanisms, and how often each was used; those that cost nothing are left out."""

    epsilons: FloatArray
    deltas: FloatArray
    counts: FloatArray

    @classmethod
    def of(cls, epsilons: ArrayLike, deltas: ArrayLike, counts: ArrayLike) -> "_Used":
        given = [
            np.atleast_1d(as_nonnegative("epsilons", epsilons)),
            np.atleast_1d(as_nonnegative("deltas", deltas)),
            np.atleast_1d(as_nonnegative("counts", counts)),
        ]
        try:
            amounts, leaks, often = np.broadcast_arrays(*given)
        except ValueError:
            shapes = [one.shape for one in given]
            raise InputError(
                f"epsilons, deltas and counts have shapes {shapes}: give one of each per mechanism"
            ) from None
        if amounts.ndim != 1:
            raise InputError(f"epsilons must be a list of numbers, got shape {amounts.shape}")
        if (leaks >= 1).any():
            raise InputError(f"deltas must be below 1, got {leaks.max():g}; correct it")
        if (often != np.round(often)).any():
            raise InputError("counts must be whole numbers: say how often each mechanism is used")
        pairs, back = np.unique(np.stack([amounts, leaks]), axis=1, return_inverse=True)
        times = np.bincount(back.reshape(-1), weights=often, minlength=pairs.shape[1])
        kept = (times > 0) & (pairs.sum(axis=0) > 0)
        return cls(pairs[0][kept], pairs[1][kept], times[kept])

    def summed(self, amounts: FloatArray) -> float:
        return math.fsum((amounts * self.counts).tolist())

    def norm(self) -> float:
        """Root of the sum of squares; neither overflows nor underflows."""
        largest = float(self.epsilons.max(initial=0.0))
        return largest * math.sqrt(self.summed((self.epsilons / largest) ** 2)) if largest else 0.0

    def total_epsilon(self) -> float:
        return _sum_up(self.epsilons, self.counts)

    def total_delta(self) -> float:
        return _sum_up(self.deltas, self.counts)

    def delta_beside(self, slack: float) -> float:
        """1 - (1 - slack) * prod (1 - delta_i), rounded up."""
        if not self.deltas.any():
            return slack
        return _up(-math.expm1(math.log1p(-slack) + self.summed(np.log1p(-self.deltas))))


def _responses(used: _Used, slack: float) -> float:
    """Epsilon of randomised responses at delta = slack, rounded up."""
    paid = used.epsilons > 0
    epsilons, counts = used.epsilons[paid], used.counts[paid].astype(np.int64)
    if not epsilons.size:
        return 0.0
    unlikely = slack * 1e-9 / counts.sum()  # what is cut off, and taken to be an infinite loss
    unit, steps = _common_unit(epsilons, counts, unlikely)
    amounts = steps * unit * (1 + 2 * _UNIT)  # not below what the mechanisms promise
    of_all, least, rounding = np.ones(1), 0, 32 * _UNIT
    leak = counts.sum() * np.finfo(np.float64).tiny
    for amount, step, count in zip(amounts.tolist(), steps.tolist(), counts.tolist(), strict=True):
        of_one, error = _binomial(math.exp(-amount), count)
        rounding += error + 4 * count * _UNIT
        kept = np.flatnonzero(of_one > unlikely)
        first, last = int(kept[0]), int(kept[-1])
        leak += math.fsum([*of_one[:first].tolist(), *of_one[last + 1 :].tolist()])
        moved = np.zeros(of_all.size + (last - first) * step)
        for lies in range(last - first + 1):
            moved[lies * step : lies * step + of_all.size] += of_one[first + lies] * of_all
        of_all, least = moved, least + first * step
    lied = np.flatnonzero(of_all)  # in steps: a lie turns its +steps into -steps
    losses = (int(steps @ counts) - 2 * (least + lied)) * unit * (1 + 8 * _UNIT)
    # Rounded up, probabilities add up to a little more than 1, which only raises the profile.
    return LossDistribution(
        as_floats("losses", losses), of_all[lied] * (1 + rounding), leak * (1 + rounding)
    ).epsilon(slack)


def _common_unit(
    epsilons: FloatArray, counts: NDArray[np.int64], unlikely: float
) -> tuple[float, NDArray[np.int64]]:
    """Choose a unit of losses, and round amounts up to multiples of it: the unit that adds least.

    By Hoeffding's inequality, fewer than `widths` numbers of lies have a probability above `unlikely`.
    """
    widths = np.minimum(counts, np.sqrt(2 * counts * math.log(2 / unlikely)) + 2)
    most = min(_MOST_POINTS, _MOST_WORK / float((widths + 1).sum()))
    parts = np.arange(1, 2_001)
    even = float(epsilons @ widths) / most * (1 + parts / 100)
    units = np.concatenate([epsilons[0] / parts, even, epsilons[-1:]]) * (1 + 1e-13)
    steps = np.ceil(epsilons[:, None] / units)
    added = counts @ (steps * units - epsilons[:, None])
    added[:-1][(widths @ steps)[:-1] > most] = np.inf  # the last: one unit for all always fits
    best = int(np.argmin(added))
    return float(units[best]), steps[:, best].astype(np.int64)


def _binomial(odds: float, count: int) -> tuple[FloatArray, float]:
    """Probabilities of 0..count successes at given odds, and a bound on their relative error.

    Each is a product of ratios of neighbours, from the mode outwards, divided by the sum of all: every ratio
    is off by at most 6 units in the last place, and so is every product of m of them by 6 m. What
    underflows far from the mode is below the smallest float times the count.
    """
    mode = min(int((count + 1) * odds / (1 + odds)), count)
    above = np.arange(mode, count, dtype=np.float64)
    below = np.arange(mode, 0, -1, dtype=np.float64)
    up = np.cumprod((count - above) / (above + 1) * odds)
    down = np.cumprod(below / (count - below + 1) / odds)
    parts = np.concatenate([down[::-1], np.ones(1), up])
    return parts / math.fsum(parts.tolist()), (16 * count + 16) * _UNIT


@lru_cache(maxsize=8)
def _log_binomials(count: int) -> FloatArray:
    return np.array([math.log(math.comb(count, i)) for i in range(count + 1)])


def _range_delta(eta: float, count: int, epsilon: float) -> float:
    """Largest delta at epsilon of `count` pairs with log-ratios t and t - eta, rounded up."""
    rank = np.arange(count + 1, dtype=np.float64)
    tops = (epsilon + (rank + 1) * eta) / (count + 1)
    tops = tops[(tops > 0) & (tops < eta)]  # at both ends nothing is lost at all
    if not tops.size:
        return 0.0
    log_high = np.log(np.expm1(tops - eta) / math.expm1(-eta))[:, None]
    log_low = (tops - eta + np.log(np.expm1(-tops) / math.expm1(-eta)))[:, None]
    choices = _log_binomials(count)
    exponent = choices + (count - rank) * log_high + rank * log_low
    size = choices + (count - rank) * np.abs(log_high) + rank * np.abs(log_low) + 8 * count
    losses = count * tops[:, None] - rank * eta
    beyond = losses - epsilon + 8 * _UNIT * (2 * count * eta + epsilon)
    likely = np.exp(np.minimum(exponent + 8 * _UNIT * size, 0.0))
    delta = np.where(beyond > 0, likely * -np.expm1(-np.maximum(beyond, 0.0)), 0.0)
    return _up(float(delta.sum(axis=1).max()) * (1 + count * _UNIT))


def _sum_up(amounts: FloatArray, counts: FloatArray) -> float:
    """Sum of amounts * counts, exact where floats can hold it, else rounded up."""
    exact = sum(
        (Fraction(a) * int(c) for a, c in zip(amounts.tolist(), counts.tolist(), strict=True)),
        Fraction(0),
    )
    return _not_below(exact)


def _times(amount: float, count: int) -> float:
    return _not_below(Fraction(amount) * count)


def _not_below(exact: Fraction) -> float:
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return nearest if nearest >= exact else math.nextafter(nearest, math.inf)


def _up(value: float) -> float:
    return math.nextafter(value * _ROUND_UP, math.inf) if value else 0.0
