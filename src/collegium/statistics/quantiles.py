"""Weighted quantiles by keys, with intervals: drawn from public candidates by the exponential mechanism.

The value and both ends of its interval are draws at three levels. An end's level is so far from the value's
that the weights' sampling error of a rank (normal, q(1-q)·(Σ w²/W² - 1/n)) and the mechanism's own error
(about Laplace of scale 2·max(q, 1-q)/W in ranks) miss the true quantile as often as the interval allows: no
density is needed. Where it is not public how much weight is in a cell, a noisy count comes first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from collegium.accounting.events import BoundedRange, Event
from collegium.accounting.neighbours import Neighbours
from collegium.data.schema import Column
from collegium.errors import InputError
from collegium.mechanisms.quantiles import quantile_range, quantile_scores
from collegium.mechanisms.selection import choose
from collegium.noise.grid import GRID
from collegium.noise.sources import SecureNoise, SeededNoise
from collegium.statistics.estimates import NOTHING, Estimate, half_width
from collegium.statistics.features import Features
from collegium.statistics.sums import Batch, Weighing

Floats = NDArray[np.float64]

STEPS = 1024
"""Equal steps between the bounds that are candidates, where the schema has no step of its own."""
MOST_CANDIDATES = 1 << 16
_MOST_PLACES = 1 << 24
COUNTED = 0.1
"""Part of the price that counts the rows of each cell, where that is not public."""
AT_ENDS = 0.25
"""Part of the (rest of the) price that each end of the interval takes."""


def range_for(price: Floats, laplace: bool) -> Floats:
    """The η that a price buys: ε itself, or the η that costs μ: 2·logit(Φ(μ/2)), rounded down.

    An η-bounded range costs the μ of (η/2, 0)-DP, 2Φ⁻¹(e^{η/2}/(1 + e^{η/2})).
    """
    if laplace:
        return price * (1 - 2.0**-40)
    # The logit by logarithms: Φ itself is 1 for a large μ.
    return np.asarray(2 * (log_ndtr(price / 2) - log_ndtr(-price / 2)) * (1 - 2.0**-30))


def candidates_of(column: Column, name: str) -> Floats:
    """What may come out: public.

    Raises InputError if the schema's steps are too many.
    """
    step = column.grid
    if not step:
        return np.asarray(np.linspace(column.lower, column.upper, STEPS + 1), dtype=np.float64)
    number = math.floor(column.width / step * (1 + 1e-12)) + 1
    if number > MOST_CANDIDATES:
        raise InputError(
            f"column {name!r} has {number:,} steps between its bounds, and at most {MOST_CANDIDATES:,} can "
            "be told apart: give it a larger step in the schema"
        )
    return np.asarray(column.lower + step * np.arange(number), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Ranks:
    """Weight of the rows at each candidate, by cell: sensitive.

    ``steps`` (n_cells, n_candidates): in steps of the grid.
    """

    sensitive_steps: NDArray[np.int64]
    candidates: Floats

    @classmethod
    def of(
        cls,
        batches: Iterable[Batch],
        features: Features,
        column: str,
        about: Column,
        weighing: Weighing,
    ) -> Ranks:
        """Add up the weights of all rows, each at the candidate that is nearest to its value."""
        candidates = candidates_of(about, column)
        n_cells, n = len(features.keys), len(candidates)
        if n_cells * n > _MOST_PLACES:
            raise InputError(
                f"{n_cells:,} groups of {n:,} candidates each are too many: give column {column!r} a larger "
                "step in the schema, or fewer keys"
            )
        step = about.width / (n - 1) if not about.grid else about.grid
        total = np.zeros(n_cells * n, dtype=np.int64)
        for batch in batches:
            cells, _ = features.read(batch.arrays)
            values = about.numbers(batch.arrays[column])
            inside = (cells >= 0) & ~np.isnan(values)
            place = np.rint((values[inside] - about.lower) / step).astype(np.int64)
            place = np.clip(place, 0, n - 1) + cells[inside] * n
            caps = weighing.caps(batch, 1)[inside]
            total += np.bincount(place, weights=caps, minlength=len(total)).astype(np.int64)
        return cls(total.reshape(n_cells, n), candidates)

    def draw(
        self, level: float, step: float, noise: SecureNoise | SeededNoise, query: int, purpose: str
    ) -> NDArray[np.intp]:
        """One candidate for each cell."""
        below = np.cumsum(self.sensitive_steps, axis=1)
        above = below[:, -1:] - below
        below = below - self.sensitive_steps
        scores, unit = quantile_scores(below, above, level, step)
        return np.atleast_1d(choose(scores, unit=unit, noise=noise, query=query, purpose=purpose))


@dataclass(frozen=True, eq=False)
class Levels:
    """The three draws of a quantile, and what they cost.

    ``eta``: of the draw in the middle, and of each end, for the heaviest group. ``weighing``: in units of η.
    ``cells``: from how many a row may be in one; draws from all of them are one event.
    """

    level: float
    eta: float
    end: float
    weighing: Weighing
    neighbours: Neighbours
    cells: int

    @property
    def events(self) -> list[Event]:
        """Of the three draws, each over the cells of one partition."""
        return [
            self._event(self.eta, self.level),
            self._event(self.end, 0.5),
            self._event(self.end, 0.5),
        ]

    def step(self, eta: float, level: float) -> float:
        """Weight of one step of the grid, at which the heaviest group pays η."""
        moved = float(quantile_range([1.0], level, self.neighbours)[0])
        if self.cells > 1 and self.neighbours is not Neighbours.ADD_OR_REMOVE:
            # Whose rows move to another cell leaves one, for a range of w, and comes to another, for w more.
            # With a and b of the weight in a cell before and after, its range is at most a + b.
            moved = 2.0
        moved *= self.weighing.most_rows
        return eta * GRID / moved * (1 - 2.0**-40)

    def _event(self, eta: float, level: float) -> Event:
        moves = eta * self.weighing.weights
        return BoundedRange(moves * (1 + 2.0**-45), neighbours=self.neighbours)

    def ends(self, rows: float, unequal: float, confidence: float) -> tuple[float, float]:
        """Levels of the interval's ends, where so much weight (the heaviest group's is 1) is in the cell."""
        q, tail = self.level, (1 - confidence) / 2
        people = q * (1 - q) * unequal
        found = []
        for sign in (-1, 1):
            at = q
            for _ in range(6):  # the level decides on the noise at it
                weight = rows * self.step(self.end, at) / GRID
                scale = 2 * max(at, 1 - at) / max(weight, 1e-12)
                at = min(max(q + sign * half_width(tail, 2 * scale**2, people), 0.001), 0.999)
            found.append(at)
        return found[0], found[1]


def estimate(
    ranks: Ranks,
    levels: Levels,
    rows: Floats,
    unequal: Floats,
    known: NDArray[np.bool_],
    column: Column,
    confidence: float,
    noise: SecureNoise | SeededNoise,
    query: int,
) -> list[Estimate]:
    """Draw the quantile of each cell, and its interval.

    ``rows``: weight in each cell, as known in public or released. ``known``: whether it is enough to answer.
    """
    middle = ranks.draw(levels.level, levels.step(levels.eta, levels.level), noise, query, "value")
    found = []
    single = len(rows) == 1
    for cell, place in enumerate(middle.tolist()):
        if not known[cell]:
            found.append(NOTHING)
            continue
        own = Ranks(ranks.sensitive_steps[cell : cell + 1], ranks.candidates)
        ends = []
        for side, level in enumerate(
            levels.ends(float(rows[cell]), float(unequal[cell]), confidence)
        ):
            # Levels beyond the outermost that can be asked for are the bounds themselves.
            if level <= 0.001 or level >= 0.999:
                ends.append(column.lower if side == 0 else column.upper)
                continue
            purpose = f"end {side}" if single else f"end {side} of cell {cell}"
            drawn = own.draw(level, levels.step(levels.end, level), noise, query, purpose)
            ends.append(float(ranks.candidates[int(drawn[0])]))
        value = float(ranks.candidates[place])
        lower, upper = min(ends[0], value), max(ends[1], value)
        found.append(Estimate(value, math.nan, math.nan, math.nan, lower, upper))
    return found
