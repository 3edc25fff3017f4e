"""Quantiles of weighted records, chosen from public candidates by the exponential mechanism."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.accounting.accountant import Accountant
from collegium.accounting.events import BoundedRange, rounded_up
from collegium.accounting.neighbours import Neighbours
from collegium.checks import check_number
from collegium.errors import InputError
from collegium.mechanisms.people import as_column, in_steps, refuse_other_lengths
from collegium.mechanisms.released import Released, charge
from collegium.mechanisms.selection import choose
from collegium.noise.exact_choice import MAX_SCORE
from collegium.noise.grid import GRID
from collegium.noise.sources import WordSource

MOST_PARTS = 1000
"""Levels of quantiles are fractions with a denominator up to this."""

STEP: float = 2.0**-30
"""Step of the weights of :func:`weighted_quantile`; they add up to less than 2**31."""

Floats = NDArray[np.float64]


def as_level(q: float) -> Fraction:
    """Return the level as the nearest fraction with a denominator of at most 1,000: 0.9 is nine tenths."""
    check_number("the quantile's level q", q, above=0, below=1)
    level = Fraction(float(q)).limit_denominator(MOST_PARTS)
    if not 0 < level < 1:
        raise InputError(f"the quantile's level q must lie between 0.001 and 0.999, got {q:g}")
    return level


def quantile_scores(
    below: ArrayLike, above: ArrayLike, q: float, step: float = GRID
) -> tuple[NDArray[np.int64], float]:
    """Score candidates by how nearly a share q of all weight lies below them.

    score(r) = -\\|(1-q)·W_<r - q·W_>r\\| / (2 max(q, 1-q)), which is -½\\|W_<r - W_>r\\| for the median.

    Parameters
    ----------
    below, above : array-like of int, shape (..., n_candidates)
        W_<r and W_>r: the weight of all records below and above each candidate, in steps.
    q : float
        Between 0.001 and 0.999; taken as the nearest fraction with a denominator of at most 1,000.
    step : float, default=GRID
        Of the weights.

    Returns
    -------
    scores : ndarray of int, shape (..., n_candidates)
        In steps of ``unit``, exactly.
    unit : float
        For :func:`~collegium.mechanisms.selection.choose`: not above step / (2 max(q, 1-q)·denominator).

    Raises
    ------
    InputError
        If ``q`` is outside its range, or weights are too large together.

    Examples
    --------
    >>> weights = (np.array([0.1, 0.1, 1, 1, 0.5]) / STEP).astype(np.int64)
    >>> below = np.cumsum(weights) - weights
    >>> above = weights.sum() - np.cumsum(weights)
    >>> scores, unit = quantile_scores(below, above, 0.5, STEP)
    >>> chances = np.exp(scores * unit)
    >>> (chances / chances.sum()).round(6).tolist()
    [0.127749, 0.141185, 0.244709, 0.330323, 0.156033]
    """
    level = as_level(q)
    left, right = np.asarray(below), np.asarray(above)
    if left.dtype.kind not in "iu" or right.dtype.kind not in "iu" or left.shape != right.shape:
        raise InputError(
            "weights below and above must be whole numbers of steps, one of each for every candidate"
        )
    times, part = level.denominator - level.numerator, level.numerator
    if max(left.max(initial=0), right.max(initial=0)) >= MAX_SCORE // level.denominator:
        raise InputError(
            f"weights add up to 2**62 / {level.denominator} steps or more: use smaller ones, or a rounder q"
        )
    scores = -np.abs(times * left.astype(np.int64) - part * right.astype(np.int64))
    exact = Fraction(step) / (2 * max(times, part))
    unit = float(exact)
    return scores, unit if Fraction(unit) <= exact else math.nextafter(unit, 0.0)


def quantile_range(weight: ArrayLike, q: float, neighbours: Neighbours) -> Floats:
    """Bound how far an owner moves the log-odds of two candidates: η of the bounded range.

    Parameters
    ----------
    weight : array-like of float, shape (n_cohorts,)
        Weight of all records of an owner together, a multiple of GRID.
    q : float
        The quantile's level.
    neighbours : Neighbours
        What may differ.

    Returns
    -------
    ndarray, shape (n_cohorts,)
        ``weight`` where an owner is there or not; weight / max(q, 1-q) where records are replaced.

    Notes
    -----
    Let D(r) = (1-q)·W_<r - q·W_>r and m = max(q, 1-q). An owner who comes adds c(r) to it, where c rises from
    -q·w to (1-q)·w, so \\|c\\| <= m·w: the score changes by at most m·w/(2m) either way, and two scores move
    apart by at most w. It is tight: D(r) <= 0 and D(r') >= m·w for r < r' on one side of the record. An owner
    whose records are replaced adds the difference of two such c, within ±w: w/(2m) either way.

    Examples
    --------
    >>> quantile_range([1.0], 0.5, Neighbours.ADD_OR_REMOVE), quantile_range([1.0], 0.5, Neighbours.REPLACE)
    (array([1.]), array([2.]))
    """
    level = as_level(q)
    weights = np.atleast_1d(np.asarray(weight, dtype=np.float64))
    if neighbours is Neighbours.ADD_OR_REMOVE:
        return weights
    most = max(level, 1 - level)
    return weights * 2 if most == Fraction(1, 2) else rounded_up(weights / float(most))


def weighted_quantile(
    values: ArrayLike,
    weights: ArrayLike,
    candidates: ArrayLike,
    q: float = 0.5,
    *,
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE,
    noise: WordSource | None = None,
    query: int = 0,
    account: Accountant | None = None,
) -> Released[float]:
    """Draw a quantile in which everybody weighs as much as their ε allows.

    With the weight ε_i for person i and q = 1/2 this is the personalised exponential mechanism of Jorgensen,
    Yu & Cormode [1]_ (Definition 10) for the median: Pr(r) ∝ exp(-½·\\|W_<r - W_>r\\|), where the distance is
    that of weights (:func:`~collegium.mechanisms.personalised.personalised_exponential` says what distances
    are, and why any of them is private).

    Parameters
    ----------
    values : array-like of float, shape (n_people,)
        One record per person. Infinite ones count as the largest or smallest of all.
    weights : array-like of float, shape (n_people,)
        ε of each person, rounded down to a multiple of 2**-30. People of one weight are a cohort; the
        event's cohorts are in ascending order of these weights.
    candidates : array-like of float, shape (n_candidates,)
        What may be released. Public: never read off the values.
    q : float, default=0.5
        The quantile's level, between 0.001 and 0.999.
    neighbours : Neighbours, default=ADD_OR_REMOVE
        A person is there or not, and loses the weight at most. Where a record may be replaced, the loss is
        up to twice as much (:func:`quantile_range`).
    noise, query : SecureNoise or SeededNoise, int
        As in :func:`~collegium.mechanisms.selection.choose`.
    account : Accountant, optional
        Charged before anything is drawn.

    Returns
    -------
    Released
        One of the candidates, and a :class:`~collegium.accounting.events.BoundedRange`.

    Raises
    ------
    InputError
        If lengths differ, a weight is negative or not finite, or something is no number.
    BudgetExceededError
        If the account refuses. Nothing is drawn then.

    Warnings
    --------
    The distance treats the people at a candidate as if half of them were below it. So a candidate between two
    lumps of equal values, where nobody is, can be nearer than the quantile itself, whatever the budgets (see
    below). :meth:`collegium.Statistics.quantile` has a score of the same range that does not.

    References
    ----------
    .. [1] Z. Jorgensen, T. Yu, G. Cormode, "Conservative or liberal? Personalized differential privacy",
       ICDE 2015, Definition 10.

    Examples
    --------
    >>> from collegium.noise.sources import SeededNoise
    >>> drawn = weighted_quantile(range(1000), [1.0] * 1000, range(1000), noise=SeededNoise(1))
    >>> drawn.value, drawn.event.eta
    (500.0, array([1.]))
    >>> between = weighted_quantile([20] * 51 + [40] * 49, [9.0] * 100, range(61), noise=SeededNoise(1))
    >>> 20 < between.value < 40  # the median is 20
    True
    """
    people, options = as_column("values", values, finite=False), as_column("candidates", candidates)
    steps = in_steps("weights", weights, STEP)
    refuse_other_lengths(values=people, weights=steps)
    kinds = np.unique(steps)
    event = BoundedRange(quantile_range(kinds * STEP, q, neighbours), neighbours=neighbours)
    order = np.argsort(people, kind="stable")
    total = np.concatenate([[0], np.cumsum(steps[order])])
    below = total[np.searchsorted(people[order], options, side="left")]
    above = total[-1] - total[np.searchsorted(people[order], options, side="right")]
    scores, unit = quantile_scores(below, above, q, STEP)
    charge(account, event)
    place = choose(scores, unit=unit, noise=noise, query=query, purpose="quantile")
    return Released(float(options[int(place)]), event)
