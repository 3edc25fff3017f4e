"""Rare cells of a column put together, so that noise on each of them alone does not drown it.

What is rare follows from a noisy marginal, or from the schema: it is public, and costs nothing. A model is
fitted to the coarse cells, and each row's own cell is drawn within its coarse one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collegium.synthesis.sampling import systematic

Floats = NDArray[np.float64]
RARE = 3.0
"""A cell of fewer standard deviations of its noise than this is put together with others like it."""
RARE_ALONE = 1.0
"""The same where nothing else is measured, so that no pair is the smaller for it."""
_FEW = 6
"""Columns of so few cells stay as they are."""


@dataclass(frozen=True, eq=False)
class Coarsening:
    """Which cells of a column are one.

    ``place`` (n_cells,): coarse cell of each. ``within`` (n_cells,): share of each in its coarse cell.
    """

    place: NDArray[np.int64]
    within: Floats

    @property
    def size(self) -> int:
        """How many coarse cells there are."""
        return int(self.place.max()) + 1

    @property
    def is_none(self) -> bool:
        """Whether every cell stays by itself."""
        return self.size == len(self.place)

    @classmethod
    def none(cls, n: int) -> Coarsening:
        """Every cell by itself."""
        return cls(np.arange(n), np.ones(n))

    @classmethod
    def at(cls, place: NDArray[np.int64], shares: Floats, sd: float) -> Coarsening:
        """Put together as is said; otherwise as :meth:`of`."""
        return cls(place, _within(place, shares, sd))

    @classmethod
    def of(
        cls, shares: Floats, sd: float, n_ordered: int = 0, rare_below: float = RARE
    ) -> Coarsening:
        """Put together what is rare.

        ``shares`` (n_cells,): noisy. ``sd``: of their noise.
        ``n_ordered``: so many of the first cells are intervals of numbers, of which only neighbours are put
        together. ``rare_below``: how many standard deviations a cell needs.
        """
        n = len(shares)
        rare = shares < rare_below * sd
        if n <= _FEW or rare.sum() < 2:
            return cls.none(n)
        if n_ordered:
            place = _runs(shares[:n_ordered], rare[:n_ordered], rare_below * sd)
            place = np.append(place, np.arange(place[-1] + 1, place[-1] + 1 + n - n_ordered))
        else:
            place = np.where(rare, 0, np.cumsum(~rare))
            place -= place.min()
        if place.max() == 0:
            return cls.none(n)
        return cls(place, _within(place, shares, sd))

    def averaged(self, values: Floats, axis: int) -> Floats:
        """Average the values of cells over each coarse cell, as rows are spread within it."""
        if self.is_none:
            return values
        moved = np.moveaxis(values, axis, 0)
        total = np.zeros((self.size, *moved.shape[1:]))
        np.add.at(total, self.place, self.within.reshape(-1, *[1] * (moved.ndim - 1)) * moved)
        return np.moveaxis(total, 0, axis)

    def drawn(self, coarse: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw a cell within each coarse one."""
        if self.is_none:
            return coarse
        weights = np.zeros((self.size, len(self.place)))
        weights[self.place, np.arange(len(self.place))] = self.within
        return systematic(weights, coarse, rng)


def _runs(shares: Floats, rare: NDArray[np.bool_], enough: float) -> NDArray[np.int64]:
    """Number runs of rare neighbours; a run ends where it holds enough."""
    place, current, held, open_run = np.empty(len(shares), dtype=np.int64), -1, 0.0, False
    for cell, (share, is_rare) in enumerate(zip(shares.tolist(), rare.tolist(), strict=True)):
        if not (is_rare and open_run):
            current, held = current + 1, 0.0
        place[cell] = current
        held += max(share, 0.0)
        open_run = is_rare and held < enough
    return place


def _within(place: NDArray[np.int64], shares: Floats, sd: float) -> Floats:
    """Split coarse cells: by what noise left of their cells, shrunk towards equal parts."""
    n = np.bincount(place)
    positive = np.maximum(shares, 0.0)
    total = np.bincount(place, weights=shares)
    found = np.bincount(place, weights=positive)
    even = 1.0 / n[place]
    own = np.divide(positive, found[place], out=even.copy(), where=found[place] > 0)
    # How much of the squares of the noisy shares is more than noise (James & Stein's shrinkage).
    mean = (total / n)[place]
    spread = np.bincount(place, weights=(shares - mean) ** 2)
    noise = np.maximum(n - 1, 1) * sd**2
    kept = np.clip(1 - noise / np.maximum(spread, 1e-300), 0.0, 1.0)[place]
    kept = np.where(n[place] > 1, kept, 1.0)
    mixed = kept * own + (1 - kept) * even
    return np.asarray(mixed / np.bincount(place, weights=mixed)[place])
