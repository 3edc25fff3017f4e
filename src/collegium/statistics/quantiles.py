"""Weighted quantiles by keys: drawn from public candidates by the exponential mechanism, or permute-and-flip.

**What is drawn.** A candidate r is a q-quantile where at most q of all weight W lies below it and at most 1
- q above. Its score is by how much that holds, or fails,

    s(r) = min(q·W - W_<r, (1-q)·W - W_>r) = min(q·W_=r - D(r), (1-q)·W_=r + D(r)),  D = (1-q)·W_<r - q·W_>r,

positive for quantiles and negative for all others. (The distance -\\|D(r)\\| of the literature treats rows
at r as if half of them were below it, so that a place between two lumps of rows, where nobody is, can score
higher than the quantile itself, at any budget.)

**What it costs.** Rows of weight w that come to x add to q·W - W_<r: q·w for r ≤ x and -(1-q)·w for r > x;
and to (1-q)·W - W_>r: (1-q)·w for r ≥ x and -q·w for r < x. So s moves by at most m·w either way, m =
max(q, 1-q), and s/2m by a range of w at most. A row that is replaced moves each of the two by -w, 0 or w: a
range of w/m. These are the bounds of :func:`~collegium.mechanisms.quantiles.quantile_range`. Candidates
drawn with probabilities proportional to e^(η·s/2m) therefore have a bounded range of η for whom w = 1
(Gaussian budgets). With pure ε, permute-and-flip at the same exponent costs ε = η, and is never worse: it
reports the largest of s + e with exponential noise e, whose tail falls by at most e^-t where it is moved by
t.

**What an interval costs** is in ``quantile_intervals``: one noisy vector, for both ends and all cells,
which takes the part ``FOR_INTERVAL`` of the price. Nothing else is released: neither draw nor interval
needs to know how many rows a cell has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from collegium.accounting.events import BoundedRange, Event, PureNoise
from collegium.accounting.neighbours import Neighbours
from collegium.data.schema import Column
from collegium.errors import InputError
from collegium.mechanisms.quantiles import as_level, quantile_range
from collegium.mechanisms.selection import choose, choose_by_coins
from collegium.noise.exact_choice import MAX_SCORE
from collegium.noise.grid import GRID
from collegium.noise.sources import WordSource
from collegium.noise.sums import LocalSum
from collegium.statistics.estimates import Estimate, Heard
from collegium.statistics.features import Features
from collegium.statistics.quantile_intervals import Cut
from collegium.statistics.query import STEPS
from collegium.weighted_sums.reading import Grid
from collegium.weighted_sums.tables import Table
from collegium.weighted_sums.weighing import Weighing

Floats = NDArray[np.float64]

FOR_INTERVAL = 0.3
"""Part of the price that an interval takes."""


def range_for(price: Floats, laplace: bool) -> Floats:
    """The η that a price buys: ε itself, or the η that costs μ: 2·logit(Φ(μ/2)), rounded down.

    An η-bounded range costs the μ of (η/2, 0)-DP, 2Φ⁻¹(e^{η/2}/(1 + e^{η/2})).
    """
    if laplace:
        return price * (1 - 2.0**-40)
    # The logit by logarithms: Φ itself is 1 for a large μ.
    return np.asarray(2 * (log_ndtr(price / 2) - log_ndtr(-price / 2)) * (1 - 2.0**-30))


def candidates_of(column: Column) -> Floats:
    """What may come out: public."""
    if not column.grid:
        return np.asarray(np.linspace(column.lower, column.upper, STEPS + 1), dtype=np.float64)
    return np.asarray(column.lower + column.grid * np.arange(column.n_steps), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Ranks:
    """Weight of the rows at each candidate, by cell: sensitive.

    ``steps`` (n_cells, n_candidates): in steps of the grid.
    """

    sensitive_steps: NDArray[np.int64]
    candidates: Floats

    @classmethod
    def of(
        cls, table: Table, features: Features, about: Column, weighings: Sequence[Weighing]
    ) -> list[Ranks]:
        """Weigh all rows, each at the candidate that is nearest to its value: once with each of these."""
        candidates = candidates_of(about)
        n = len(candidates)
        grid = Grid(about.lower, about.grid or about.width / (n - 1), n)
        found = table.summed(replace(features, grid=grid), weighings)
        return [cls(steps.reshape(-1, n), candidates) for steps in found]

    def draw(
        self, priced: Priced, noise: WordSource, query: int, part: str = ""
    ) -> NDArray[np.intp]:
        """One candidate for each cell."""
        scores, unit = scores_of(self.sensitive_steps, priced.level, priced.step)
        drawn = choose_by_coins if priced.laplace else choose
        return np.atleast_1d(
            drawn(scores, unit=unit, noise=noise, query=query, purpose=f"value{part}")
        )


def scores_of(
    sensitive_steps: NDArray[np.int64], level: float, step: float
) -> tuple[NDArray[np.int64], float]:
    """Score each candidate of each cell; ``step`` is what a step of weight is worth.

    Returns (n_cells, n_candidates), whole numbers of a unit, and the unit: at most step / 2m / denominator of
    the level.
    """
    q = as_level(level)
    below = np.cumsum(sensitive_steps, axis=1)
    total = below[:, -1:]
    if total.max(initial=0) >= MAX_SCORE // q.denominator:
        raise InputError(
            f"the weights are too many for so fine a quantile (1/{q.denominator}): ask for a rounder "
            "one, such as 0.9"
        )
    part, rest = q.numerator, q.denominator - q.numerator
    above = total - below
    below = below - sensitive_steps
    scores = np.minimum(part * total - q.denominator * below, rest * total - q.denominator * above)
    exact = Fraction(step) / (2 * max(part, rest))
    unit = float(exact)
    return scores, unit if Fraction(unit) <= exact else math.nextafter(unit, 0.0)


@dataclass(frozen=True, eq=False)
class Priced:
    """A quantile's draw and its interval's noise: public, and all that a price depends on.

    Attributes
    ----------
    level : float
        The quantile's.
    eta : float
        η of the draw, for the heaviest group.
    laplace : bool
        Whether prices are pure ε.
    weighing : Weighing
        Who weighs how much, in both.
    interval : Weighing or None
        The same weights, with the noise of the interval's vector; None: there is no interval.
    diameter : float
        How far one row moves that vector.
    neighbours : Neighbours
        What may differ.
    cells : int
        From how many a row may be in one; draws from all of them are one event.
    """

    level: float
    eta: float
    laplace: bool
    weighing: Weighing
    interval: Weighing | None
    diameter: float
    neighbours: Neighbours
    cells: int

    @property
    def events(self) -> list[Event]:
        """Of the draw, and of the interval if there is one, each over the cells of one partition."""
        moves = self.eta * self.weighing.weights * (1 + 2.0**-45)
        drawn: Event = (
            PureNoise(moves, neighbours=self.neighbours)
            if self.laplace
            else BoundedRange(moves, neighbours=self.neighbours)
        )
        if self.interval is None:
            return [drawn]
        return [drawn, self.interval.event(self.diameter, self.neighbours)]

    @property
    def step(self) -> float:
        """Weight of one step of the grid, at which the heaviest group pays η."""
        moved = float(quantile_range([1.0], self.level, self.neighbours)[0])
        if self.cells > 1 and self.neighbours is not Neighbours.ADD_OR_REMOVE:
            # Whose rows move to another cell leaves one, for a range of w, and comes to another, for w more.
            # With a and b of the weight in a cell before and after, its range is at most a + b.
            moved = 2.0
        moved *= self.weighing.most_rows
        return self.eta * GRID / moved * (1 - 2.0**-40)


def estimate(
    ranks: Ranks,
    priced: Priced,
    column: Column,
    heard: Heard,
    noise: LocalSum,
    query: int,
    part: str = "",
) -> list[Estimate]:
    """Draw the quantile of each cell, and its interval; the caller has charged what ``priced`` says.

    ``part``: tells the noise of one question's quantiles apart.
    """
    places = ranks.draw(priced, noise, query, part)
    values = ranks.candidates[places]
    lower, upper = np.full_like(values, math.nan), np.full_like(values, math.nan)
    if priced.interval is not None:
        # Of weights that are dealt out: Var(w) for each row, whose mean weight is W/n.
        spread = heard.unequal * heard.total * heard.most
        cut = Cut.around(places, ranks.sensitive_steps, priced.laplace)
        ends = cut.ends(
            priced.level,
            priced.interval,
            spread,
            heard.total * heard.most,
            heard.confidence,
            noise,
            query,
            part,
        )
        # Without a step of its own a value is rounded to the nearest candidate.
        half = 0.0 if column.grid else column.width / (len(ranks.candidates) - 1) / 2
        first, last = np.minimum(ends[0], places), np.maximum(ends[1], places)
        lower = np.maximum(ranks.candidates[first] - half, column.lower)
        upper = np.minimum(ranks.candidates[last] + half, column.upper)
    return [
        Estimate(value, math.nan, math.nan, math.nan, low, high)
        for value, low, high in zip(values.tolist(), lower.tolist(), upper.tolist(), strict=True)
    ]
