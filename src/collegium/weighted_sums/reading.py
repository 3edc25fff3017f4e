"""What is read off each row before it is added up: said once, and done in memory or in a database.

A row falls into one cell or into none, and has a few coordinates there, each between -1 and 1. What they are
made of (columns of a public schema, a condition, a polynomial of numbers scaled to [-1, 1]) is declared in a
:class:`Reading`, with operators that arrays and a database's expressions both have. So a row adds the same
whole number of steps wherever it is added up:

    steps = floor(cap·φ + ½),

with +, -, ×, ÷ and comparisons of doubles alone, each of which IEEE 754 rounds in one way only, and one
rounding rule: engines round halves differently, and all have floor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from collegium.conditions.conditions import EVERYBODY, Arrays, InArrays, Where
from collegium.data.schema_column import Column

Floats = NDArray[np.float64]
Vector = Callable[[Sequence[Any]], list[Any]]
"""From numbers in [-1, 1] to coordinates, with operators alone."""


class Algebra(Protocol):
    """What operators do not say: of arrays, or of expressions of a database."""

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        """One or the other."""
        ...

    def within(self, x: Any, low: float, high: float) -> Any:
        """What is outside becomes the nearest bound."""
        ...

    def floor(self, x: Any) -> Any:
        """The largest whole number that is not above."""
        ...


class OfArrays:
    """The algebra of NumPy."""

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        """One or the other."""
        return np.where(condition, yes, no)

    def within(self, x: Any, low: float, high: float) -> Any:
        """What is outside becomes the nearest bound."""
        return np.clip(x, low, high)

    def floor(self, x: Any) -> Any:
        """As a float, which holds whole numbers below 2**53 exactly."""
        return np.floor(x)


ARRAYS = OfArrays()


def rounded(x: Any, algebra: Algebra = ARRAYS) -> Any:
    """Round to whole numbers, halves up: of \\|x\\| ≤ N, a whole number, to no more than N either way."""
    return algebra.floor(x + 0.5)


@dataclass(frozen=True)
class Grid:
    """Public steps that a number is taken to the nearest of: ``lower`` + ``step``·(0, 1, …, ``size`` - 1)."""

    lower: float
    step: float
    size: int

    def place(self, x: Any, algebra: Algebra = ARRAYS) -> Any:
        """The number of the nearest step."""
        return algebra.within(rounded((x - self.lower) / self.step, algebra), 0.0, self.size - 1.0)


@dataclass(frozen=True)
class Reading:
    """How rows are read.

    Attributes
    ----------
    by : tuple of (str, Column)
        Columns whose public keys, combined, are the cells.
    where : Where
        Which rows are in a cell at all.
    about : tuple of (str, Column)
        Columns of numbers, of which coordinates are made; a row that lacks one is in no cell.
    holds : Where or None
        Instead: whether this holds is the number, 1 or 0.
    vector : Vector or None
        Coordinates of numbers scaled so that -1 is the lower bound and 1 the upper one. None: one
        coordinate, which is 1.
    width : int
        How many coordinates there are.
    grid : Grid or None
        Each cell has one for each step of this grid, and a row is in that which is nearest to its number.
    distinct : bool
        Whether each cell counts people, each once, however many of their rows are in it.
    """

    by: tuple[tuple[str, Column], ...] = ()
    where: Where = EVERYBODY
    about: tuple[tuple[str, Column], ...] = ()
    holds: Where | None = None
    vector: Vector | None = None
    width: int = 1
    grid: Grid | None = None
    distinct: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the cells: keys of each column, and steps of the grid."""
        steps = () if self.grid is None else (self.grid.size,)
        return (*(len(column.keys) for _, column in self.by), *steps)

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return math.prod(self.shape)

    @property
    def counts(self) -> bool:
        """Whether all that matters of a row is in which cell it is."""
        return self.vector is None

    @property
    def needs(self) -> tuple[str, ...]:
        """All columns that are looked at, sorted."""
        names = {name for name, _ in (*self.by, *(() if self.holds else self.about))}
        conditions = self.where.columns | (self.holds.columns if self.holds else frozenset())
        return tuple(sorted(names | conditions))

    def centred(self, numbers: Sequence[Any], algebra: Algebra = ARRAYS) -> list[Any]:
        """Scale numbers within bounds to [-1, 1]."""
        return [
            algebra.within((x - one.lower) / one.width * 2.0 - 1.0, -1.0, 1.0)
            for x, (_, one) in zip(numbers, self.about, strict=True)
        ]

    def coordinates(self, centred: Sequence[Any], algebra: Algebra = ARRAYS) -> list[Any]:
        """Coordinates of a row's numbers in [-1, 1]; a float is one that all rows have."""
        if self.vector is None:
            raise TypeError("a reading that counts has no coordinates but 1")
        return [
            one if isinstance(one, float) else algebra.within(one, -1.0, 1.0)
            for one in self.vector(centred)
        ]

    def read(self, arrays: Arrays) -> tuple[NDArray[np.int64], Floats]:
        """Read rows in memory.

        ``arrays``: from :meth:`collegium.data.schema.Schema.arrays`, of at least one column.
        Returns each row's cell (n,), -1: in none, and its coordinates (n, width).
        """
        columns = InArrays(arrays)
        n = len(next(iter(arrays.values())))
        cell = np.zeros(n, dtype=np.int64)
        inside = np.ones(n, dtype=np.bool_)
        for name, column in self.by:
            codes = column.codes(arrays[name])
            inside &= codes >= 0
            cell = cell * len(column.keys) + codes
        if not self.where.is_everybody:
            inside &= self.where.holds(columns)
        if not self.about:
            return np.where(inside, cell, -1), np.ones((n, 1))
        if self.holds:
            numbers = [self.holds.mask(arrays).astype(np.float64)]
        else:
            numbers = [column.numbers(arrays[name]) for name, column in self.about]
        known = np.asarray(~np.isnan(np.stack(numbers)).any(axis=0))
        numbers = [
            np.where(known, x, one.lower) for x, (_, one) in zip(numbers, self.about, strict=True)
        ]
        if self.grid is not None:
            cell = cell * self.grid.size + self.grid.place(numbers[0]).astype(np.int64)
        cell = np.where(inside & known, cell, -1)
        if self.vector is None:
            return cell, np.ones((n, 1))
        coordinates = self.coordinates(self.centred(numbers))
        return cell, np.stack([np.broadcast_to(one, n) for one in coordinates], axis=1)
