"""From noisy sums to answers with errors: post-processing, which costs nothing.

Errors add three parts: the noise (known exactly); that some people weigh more than others, s²(Σ w²/W² - 1/n)
towards the plain value over the people in the table, where values do not go with budgets; and s²/n towards
those they were drawn from. s² is measured along with the answer, or known in public, or at most what values
between bounds with this mean can have: (upper - mean)(mean - lower), Bhatia & Davis 2000.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri

from collegium.data.schema import Column
from collegium.statistics.features import Features, scales
from collegium.weighted_sums.weighing import Weighing

Floats = NDArray[np.float64]
TOO_FEW = 3.0  # a noisy number of rows below so many standard deviations is no denominator


@dataclass(frozen=True)
class Estimate:
    """One number, and how far off it is.

    Attributes
    ----------
    value : float
        NaN where there are too few people to say.
    noise, people, sample : float
        Variances: of the noise; of unequal weights; of who is in the table.
    lower, upper : float
        Interval for what the table's own value is; the value lies in it.
    readable : (float, float) or None
        How many rows had what is asked about, and the standard error of that; None: it is not counted.
    """

    value: float
    noise: float
    people: float
    sample: float
    lower: float
    upper: float
    readable: tuple[float, float] | None = None

    @property
    def standard_error(self) -> float:
        """Towards the table's own value."""
        return math.sqrt(self.noise + self.people)


NOTHING = Estimate(math.nan, math.nan, math.nan, math.nan, math.nan, math.nan)


def half_width(tail: float, laplace: float, normal: float) -> float:
    """The t that the sum of Laplace and normal noise, of these variances, exceeds with a probability.

    P(L + N > t) = Φ(-t/s) + ½·(e^{s²/2b² - t/b}·Φ(t/s - s/b) - e^{s²/2b² + t/b}·Φ(-t/s - s/b)).
    """
    s, b = math.sqrt(normal), math.sqrt(laplace / 2)
    if b <= 1e-6 * s:
        return float(-ndtri(tail) * s)
    if s <= 1e-6 * b:
        return -b * math.log(2 * tail)

    def beyond(t: float) -> float:
        near = math.exp(s * s / (2 * b * b) - t / b + float(log_ndtr(t / s - s / b)))
        far = math.exp(s * s / (2 * b * b) + t / b + float(log_ndtr(-t / s - s / b)))
        return float(ndtr(-t / s)) + (near - far) / 2 - tail

    return float(brentq(beyond, 0.0, 40 * (s + b)))


@dataclass(frozen=True)
class Heard:
    """How everybody was heard: public.

    ``noise``: variance of the noise on each coordinate. ``total``: Σ n_g w_g. ``n``: people. ``unequal``:
    Σ n w²/W² - 1/n. ``most``: rows that one person counts for. ``main``: what coordinates of the value are
    multiplied by. ``beside``: what that of the spread is, and ``beside_unequal``: Σ n w²/W² - 1/n there; 0:
    there is none.
    """

    noise: float
    total: float
    n: int
    unequal: float
    most: int
    laplace: bool
    confidence: float
    main: float = 1.0
    beside: float = 0.0
    beside_unequal: float = 0.0

    @classmethod
    def of(
        cls, weighing: Weighing, sizes: NDArray[np.int64], confidence: float, spread: float = 0.0
    ) -> Heard:
        """Say how people of so large groups are heard, where the spread takes a share of the price."""
        apart = unequal(weighing.weights, sizes)
        main, beside = scales(spread, weighing.laplace)
        return cls(
            weighing.noise_variance,
            float(sizes @ weighing.weights),
            int(sizes.sum()),
            apart,
            weighing.most_rows,
            weighing.laplace,
            confidence,
            main,
            beside,
            apart,
        )

    def margin(self, noise: float, people: float) -> float:
        """How far an interval goes to each side."""
        tail = (1 - self.confidence) / 2
        return (
            half_width(tail, noise, people)
            if self.laplace
            else half_width(tail, 0.0, noise + people)
        )

    def around(
        self,
        value: float,
        noise: float,
        spread: float,
        share: float = 1.0,
        lower: float = -math.inf,
        upper: float = math.inf,
        wide: float | None = None,
        between: tuple[float, float] | None = None,
    ) -> Estimate:
        """Put a normal interval around a value.

        ``spread``: variance between people, of which a share of all takes part. ``wide``: the one that the
        interval is made with, where it had to be measured. ``between``: ends of what is added up, where the
        spread is the largest that a mean between them allows: the interval has all means v for which the
        value is within the margin of v's own spread (Wilson 1927), since a value near an end says little of
        how far others are.
        """
        share = min(1.0, max(share, 1 / self.n))
        heard = self.n * share
        apart = heard / max(heard - 1, 1.0) * self.unequal / share
        people = spread * apart
        margin = self.margin(noise, people if wide is None else people * wide / max(spread, 1e-300))
        ends = value - margin, value + margin
        if between is not None and people + noise > 0:
            squared = margin**2 / (people + noise)
            ends = _solved(
                1 + squared * apart,
                value + squared * apart * sum(between) / 2,
                value**2 + squared * (apart * between[0] * between[1] - noise),
            )
        low, high = max(lower, ends[0]), min(upper, ends[1])
        if low >= high:  # nothing that is possible is near: that says nothing
            low, high = lower, upper
        # The nearest possible value: no other is shown, and none outside its own interval.
        value = min(max(value, low), high)
        return Estimate(value, noise, people, spread / heard, low, high)


def _solved(first: float, second: float, third: float) -> tuple[float, float]:
    """Where first·v² - 2·second·v + third is 0; the same number twice where it is above 0 everywhere."""
    root = math.sqrt(max(0.0, second**2 - first * third))
    return (second - root) / first, (second + root) / first


def unequal(weights: Floats, sizes: NDArray[np.int64]) -> float:
    """Say how much less people so weighted tell than all of them counted equally: Σ n w²/W² - 1/n."""
    heard = float(sizes @ (weights * weights)) / float(sizes @ weights) ** 2
    return max(0.0, heard - 1 / int(sizes.sum()))


def count(sums: Floats, heard: Heard) -> Estimate:
    """How many rows (each person's at most ``most``) are in a cell."""
    mean = float(sums[0]) / heard.total
    noise = heard.noise / heard.total**2
    inside, unsure = map(float, likely(mean, math.sqrt(noise), float(heard.most)))
    times = float(heard.n) ** 2
    return heard.around(
        heard.n * mean,
        times * noise,
        times * max(0.0, inside * (heard.most - inside) - unsure),
        lower=0.0,
        upper=float(heard.n * heard.most),
        between=(0.0, float(heard.n * heard.most)),
    )


def mean(sums: Floats, heard: Heard, features: Features, column: Column) -> Estimate:
    """Mean of a column, over everybody or over those in a cell."""
    main = heard.main
    half, middle = column.width / 2, (column.lower + column.upper) / 2
    if features.everybody:
        at = float(np.clip(sums[0] / main / heard.total, -1, 1))
        noise = (half / main / heard.total) ** 2 * heard.noise
        spread, wide = _spread(at, noise / half**2, (-1, 1), sums, heard.total, heard, column)
        value = middle + half * float(sums[0]) / main / heard.total
        return heard.around(
            value,
            noise,
            half**2 * spread,
            1.0,
            column.lower,
            column.upper,
            half**2 * wide,
            None if _tells(heard, column) else (column.lower, column.upper),
        )
    a, b = float(sums[0]) / main, float(sums[1]) / main
    rows, one = a + b, heard.noise / main**2
    if rows < TOO_FEW * math.sqrt(2 * one):
        return NOTHING
    f = min(max(a / rows, 0.0), 1.0)
    share = rows / heard.total
    noise = (column.width / rows) ** 2 * one * ((1 - f) ** 2 + f**2)
    spread, wide = _spread(2 * f - 1, noise / half**2, (-1, 1), sums, rows, heard, column)
    estimate = heard.around(column.lower + column.width * f, noise, half**2 * spread, share)
    people = estimate.people * wide / max(spread, 1e-300)
    squared = heard.margin(estimate.noise, people) ** 2 / (estimate.noise + people)
    if rows**2 <= 2 * squared * one:
        return NOTHING
    if _tells(heard, column):
        own = people / column.width**2 * rows**2
        low, high = of_ratio(a, rows, (one, one, 2 * one), own, squared)
    else:  # the spread is that of each f, f·(1 - f)
        apart = rows**2 * heard.unequal / min(1.0, max(share, 1 / heard.n))
        low, high = of_ratio(a, rows, (one, one - apart / 2, 2 * one - apart), 0.0, squared)
    ends = [column.lower + column.width * min(max(end, 0.0), 1.0) for end in (low, high)]
    read = readable(share, 2 * one / heard.total**2, heard)
    return replace(estimate, lower=ends[0], upper=ends[1], readable=read)


def readable(share: float, noise: float, heard: Heard) -> tuple[float, float]:
    """How many rows had a value, and the error of that, from their noisy share and its variance."""
    inside = min(max(share, 0.0), float(heard.most))
    people = inside * (heard.most - inside) * heard.unequal
    return heard.n * inside, heard.n * math.sqrt(noise + people)


def of_ratio(
    above: float, below: float, noise: tuple[float, float, float], people: float, squared: float
) -> tuple[float, float]:
    """Fieller's interval: all x for which above - x·below is within its own error.

    ``noise``: variance of above, covariance, variance of below. ``people``: more variance of the difference.
    ``squared``: how many variances are near. Returns (-inf, inf) where below may be zero.
    """
    first = below**2 - squared * noise[2]
    second, third = above * below - squared * noise[1], above**2 - squared * (noise[0] + people)
    if first <= 0:
        return -math.inf, math.inf
    return _solved(first, second, third)


def with_rows(sums: Floats, heard: Heard, features: Features) -> Floats:
    """Add to the sums of a mean so many rows of the middle that there are enough to say something."""
    if features.everybody:
        return sums
    least = TOO_FEW * math.sqrt(2 * heard.noise) * (1 + 1e-9)
    found = sums.copy()
    found[:2] += max(0.0, least - float(sums[0] + sums[1])) / 2
    return found


def total(sums: Floats, heard: Heard, features: Features, column: Column) -> Estimate:
    """Sum of a column over everybody, or over those in a cell."""
    n = heard.n
    if features.everybody:
        one = mean(sums, heard, features, column)
        return Estimate(
            n * one.value,
            n * n * one.noise,
            n * n * one.people,
            n * n * one.sample,
            n * one.lower,
            n * one.upper,
        )
    main, beside = (heard.main * one for one in scales(features.presence, heard.laplace))
    largest = max(abs(column.lower), abs(column.upper))
    at = float(sums[0]) / main / heard.total
    # Rows that it is not about add nothing.
    low = heard.most * min(column.lower, 0.0) / largest
    high = heard.most * max(column.upper, 0.0) / largest
    inside = min(max(at, low), high)
    noise = heard.noise / (main * heard.total) ** 2
    spread, wide = _spread(inside, noise, (low, high), sums, heard.total, heard, None)
    unit = largest * heard.n
    found = heard.around(
        unit * at,
        unit**2 * noise,
        unit**2 * spread,
        wide=unit**2 * wide,
        between=None if _tells(heard, None) else (unit * low, unit * high),
    )
    if not beside:
        return found
    whole = beside * heard.total
    return replace(found, readable=readable(float(sums[1]) / whole, heard.noise / whole**2, heard))


def variance(
    sums: Floats, heard: Heard, features: Features, column: Column, laplace: bool, root: bool
) -> Estimate:
    """Variance (or its root) of a column."""
    times = 2.0 if laplace else math.sqrt(2)
    ones = np.array([1.0, 2 / times, 1.0])
    covariance = np.eye(3) * heard.noise
    at = sums.copy()
    if features.everybody:  # all of them add up to what is known
        at += ones * (heard.total - ones @ at) / (ones @ ones)
        covariance -= np.outer(ones, ones) / (ones @ ones) * heard.noise
    rows = float(ones @ at)
    if rows < TOO_FEW * math.sqrt(heard.noise * float(ones @ ones)):
        return NOTHING

    def of(values: Floats) -> float:
        in_all = float(ones @ values)
        first = (values[0] + values[1] / times) / in_all
        return float(values[0] / in_all - first * first)

    slope = np.array([(of(at + h) - of(at - h)) / (2e-4 * rows) for h in np.eye(3) * 1e-4 * rows])
    found = min(max(of(at), 0.0), 0.25)
    first = min(max((at[0] + at[1] / times) / rows, 0.0), 1.0)
    largest = max(first, 1 - first) ** 2
    squared = column.width**2
    one = heard.around(
        squared * found,
        squared**2 * float(slope @ covariance @ slope),
        squared**2 * found * max(0.0, largest - found),
        rows / heard.total,
        0.0,
        squared / 4,
    )
    if not features.everybody:
        of_rows = heard.noise * float(ones @ ones) / heard.total**2
        one = replace(one, readable=readable(rows / heard.total, of_rows, heard))
    if not root:
        return one
    value = math.sqrt(one.value)
    per = 1 / (4 * max(one.value, one.noise**0.5, 1e-300))
    ends = math.sqrt(one.lower), math.sqrt(one.upper)
    return Estimate(value, one.noise * per, one.people * per, one.sample * per, *ends, one.readable)


def likely(found: ArrayLike, error: float, largest: ArrayLike) -> tuple[Floats, Floats]:
    """Mean and variance of numbers from 0 to ``largest`` that were found to be so much, with a normal error.

    If each possible one was as likely before.
    """
    at, most = np.asarray(found, np.float64), np.asarray(largest, np.float64)
    low, high = -at / error, (most - at) / error
    inside = ndtr(high) - ndtr(low)
    far = inside < 1e-9
    inside = np.where(far, 1.0, inside)
    density = [np.exp(-end * end / 2) / math.sqrt(2 * math.pi) for end in (low, high)]
    shift = (density[0] - density[1]) / inside
    bent = (low * density[0] - high * density[1]) / inside
    variance = np.maximum(0.0, error * error * (1 + bent - shift * shift))
    mean = np.clip(np.where(far, at, at + error * shift), 0.0, most)
    return mean, np.where(far, 0.0, variance)


def _tells(heard: Heard, column: Column | None) -> bool:
    """Whether anything but the mean says how much values spread."""
    return bool(heard.beside) or (column is not None and column.sd is not None)


def _spread(
    at: float,
    noise: float,
    between: tuple[float, float],
    sums: Floats,
    rows: float,
    heard: Heard,
    column: Column | None,
) -> tuple[float, float]:
    """Variance between people of what lies between two numbers and has this mean, with noise so large.

    Returns it as known, or measured: what is to be expected of it, if each possible one was as likely before;
    and beside it one for intervals. A normal interval whose variance v is known up to the standard error e is
    Student's with 2v²/e² degrees of freedom, about as wide as with the variance v(1 + (z² + 1)e²/4v²), z = 2;
    v is at least what was found, for where it is the largest possible, to expect less is to say too much.

    What is measured is at most the largest that a mean within two standard errors of this one allows, as
    Wilson's interval has it: where a few are far from all others and are not heard, neither mean nor spread
    know of them. And squares of differences from the mean, none of which is above K, vary by v·K at most: so
    do they among those who are heard, with v as large as what is found and once that error.
    """
    low, high = between
    largest = max(0.0, (high - at) * (at - low))
    if column is not None and column.sd is not None:
        known = min(largest, (column.sd / (column.width / 2)) ** 2)
        return known, known
    if not heard.beside:
        return largest, largest
    middle, half = (low + high) / 2, (high - low) / 2
    apart = 4 * heard.unequal * heard.total / rows
    ends = _solved(1 + apart, at + apart * middle, at**2 + apart * low * high - 4 * noise)
    near = min(max(middle, ends[0]), ends[1])
    largest = max(0.0, (high - near) * (near - low))
    if not largest:
        return 0.0, 0.0
    found = float(sums[-1]) / heard.beside / rows - at * at
    plain = min(max(found, 0.0), largest)
    few = (abs(at - middle) + half) ** 2 * heard.beside_unequal * heard.total / rows
    error = math.sqrt(heard.noise / (heard.beside * rows) ** 2 + (plain + few) * few)
    mean, variance = map(float, likely(found, error, largest))
    if not variance:
        return plain, max(plain, min(largest, error))
    mean = max(mean, 1e-12)
    return mean, min(largest, max(mean, plain) + 1.25 * variance / mean)
