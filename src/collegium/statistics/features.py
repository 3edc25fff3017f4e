"""What a question reads off a row: a vector of norm at most 1, that depends on nothing but row and schema.

The sum of these vectors, with everybody's weight, is all that is noised. A row falls into one cell (of the
public keys that are asked for) or into none, and has a few coordinates there, so its whole vector has the
norm of these. With u = (x - lower)/width and v = 1 - u:

===================  =======================================  ==============================================
what is asked        coordinates (Gaussian; L2 norm ≤ 1)      with Laplace noise (L1 norm ≤ 1)
===================  =======================================  ==============================================
count, histogram     1                                        1
count people         1 in each cell: L2 norm √cells            1 in each cell: L1 norm of the cells
share where          u, v of yes and no, as of a mean         the same
mean, of everybody   u - v                                    u - v
mean, of some        u, v (their sum counts the rows)         u, v
sum, of some         x / max(\\|lower\\|, \\|upper\\|)            the same
variance             u², √2·u·v, v²: L2 norm u² + v²          u², 2·u·v, v²: L1 norm (u + v)²
covariances, ridge   z zᵀ/‖z‖² of z = (1, u₁ - v₁, …)         z zᵀ/‖z‖₁²
===================  =======================================  ==============================================

A blank row is in no cell, but where a share is of rows for which a condition holds: there it is a no, and as
far from a yes as any two rows are.

The u, v of a mean and the three of a variance are Bernstein's polynomials of degree 1 and 2: not negative,
and of sum 1, so that a row that is somewhere is counted by them as well.

Beside the mean and the sum, one coordinate may measure their spread: √(1-a) times the coordinates above and
√a·(u - v)² have a norm of at most 1, too, as a convex combination of squares. In the same way one coordinate
of a sum, √a for each row that has a value, counts these rows where any may lack one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.neighbours import Neighbours
from collegium.data.schema import Column, Schema
from collegium.errors import InputError
from collegium.statistics.query import Query
from collegium.weighted_sums.weighing import Arrays

Floats = NDArray[np.float64]

SPREAD_SHARE = 0.05
"""Part of the price of a mean with unequal weights, which measures how much values spread."""
PRESENCE_SHARE = 0.05
"""Part of the price of a sum that counts how many rows had a value, where any may lack one."""
MOST_CELLS = 100_000


@dataclass(frozen=True)
class Features:
    """How a question reads rows.

    Attributes
    ----------
    keys : tuple of tuple of str
        Of each cell.
    width : int
        Coordinates in a cell.
    read : function
        From the columns of some rows to each one's cell (-1: in none) and coordinates (n, width).
    signed : bool
        Whether coordinates may be negative.
    everybody : bool
        Whether each row is in a cell, so that the weight of all rows is a public denominator.
    spread : float
        Share of the price that the last coordinate, the spread's, takes; 0: there is none.
    presence : float
        Share of the rest that the second coordinate takes, which counts the rows of a sum; 0: there is none.
    distinct : bool
        Whether each cell counts people, each once, however many of their rows are in it: then a person may
        be in all cells, by one each.
    blank_counts : bool
        Whether a blank row is counted, too: whether a condition holds, it answers with no (``is missing``:
        with yes), and then it is as far from another row as any two are.
    """

    keys: tuple[tuple[str, ...], ...]
    width: int
    read: Callable[[Arrays], tuple[NDArray[np.int64], Floats]]
    signed: bool = False
    everybody: bool = False
    spread: float = 0.0
    presence: float = 0.0
    distinct: bool = False
    blank_counts: bool = False

    def diameter(self, neighbours: Neighbours, laplace: bool) -> float:
        """How far apart two of these vectors (or one and blank) are at most, in the norm of the noise.

        Of distinct people, that of all cells: each is 0 or 1, so that no two differ by more than 1 in any.
        """
        if self.distinct:
            cells = len(self.keys)
            return float(cells) if laplace or cells == 1 else math.sqrt(cells) * (1 + 2**-50)
        if neighbours is Neighbours.ADD_OR_REMOVE and not self.blank_counts:
            return 1.0
        alone = self.width == 1 or bool(
            self.presence
        )  # coordinates from 0 to c, with a norm of all c of 1
        if not self.signed and alone and len(self.keys) == 1:
            return 1.0
        if self.signed or laplace:
            return 2.0
        return math.sqrt(2) * (1 + 2**-50)


def features_of(
    asked: Query,
    schema: Schema,
    laplace: bool,
    spread: float,
    once: bool,
    counts: bool = False,
    named: bool = False,
) -> Features:
    """Decide what a question reads.

    ``spread``: share of the price of a mean or sum that measures how much values spread.
    ``once``: whether everybody counts as one row, so that the weight of all rows is public.
    ``counts``: only how many rows it is about.
    ``named``: whether people are named, and may have several rows.

    Raises InputError if it has too many cells.
    """
    columns = asked.about(schema)
    by = [schema[name] for name in asked.by]
    names = list(asked.by)
    if asked.counts:
        by, names = [*by, *columns], [*names, *asked.columns]
    cells = math.prod(len(one.keys) for one in by)
    if cells > MOST_CELLS:
        raise InputError(
            f"{asked} has {cells:,} cells, but at most {MOST_CELLS:,} can be answered: group by fewer "
            "columns"
        )
    keys = tuple(product(*(one.keys for one in by)))

    def cell_of(arrays: Arrays, n: int) -> NDArray[np.int64]:
        cell = np.zeros(n, dtype=np.int64)
        inside = np.ones(n, dtype=np.bool_)
        for name, column in zip(names, by, strict=True):
            codes = column.codes(arrays[name])
            inside &= codes >= 0
            cell = cell * len(column.keys) + codes
        if not asked.where.is_everybody:
            inside &= asked.where.mask(arrays)
        return np.where(inside, cell, -1)

    some = bool(by) or not asked.where.is_everybody
    if asked.counts:

        def count(arrays: Arrays) -> tuple[NDArray[np.int64], Floats]:
            n = len(next(iter(arrays.values())))
            return cell_of(arrays, n), np.ones((n, 1))

        return Features(keys, 1, count, distinct=asked.kind == "people" and named)

    may_lack = any(one.missing for one in columns)
    everybody = once and not some and not may_lack
    # The sum over everybody is their number, which is public, times their mean, which moves half as far.
    kind = "mean" if asked.is_mean or (asked.kind == "sum" and everybody) else asked.kind
    vector, width, signed = _VECTORS["count" if counts else kind](columns, everybody, laplace)
    spread = spread if kind in ("mean", "sum") else 0.0
    main, beside = scales(spread, laplace)
    presence = PRESENCE_SHARE if kind == "sum" and may_lack and not counts else 0.0
    of_value, of_presence = scales(presence, laplace)

    def read(arrays: Arrays) -> tuple[NDArray[np.int64], Floats]:
        if asked.holds:
            numbers = [asked.holds.mask(arrays).astype(np.float64)]
        else:
            numbers = [
                column.numbers(arrays[name])
                for name, column in zip(asked.columns, columns, strict=True)
            ]
        known = np.asarray(~np.isnan(np.stack(numbers)).any(axis=0))
        cell = np.where(known, cell_of(arrays, len(known)), -1)
        centred = np.stack(
            [
                np.clip((x - one.lower) / one.width * 2 - 1, -1, 1)
                for x, one in zip(numbers, columns, strict=True)
            ],
            axis=1,
        )
        centred[~known] = 0.0
        values = vector(centred)
        if spread:
            measured = values if kind == "sum" else centred
            spreads = [beside * measured**2]
        if presence:
            values = np.hstack([of_value * values, np.full_like(values, of_presence)])
        if spread:
            values = np.hstack([main * values, *spreads])
        return cell, np.clip(values, -1, 1)

    width += bool(spread) + bool(presence)
    return Features(
        keys, width, read, signed, everybody, spread, presence, blank_counts=asked.holds is not None
    )


def scales(spread: float, laplace: bool) -> tuple[float, float]:
    """What coordinates are multiplied by: those of the value, and that of the spread with its share."""
    if laplace:
        return 1 - spread, spread
    return math.sqrt(1 - spread), math.sqrt(spread)


def _one(columns: list[Column], everybody: bool, laplace: bool) -> tuple[Vector, int, bool]:
    return lambda x: np.ones((len(x), 1)), 1, False


def _mean(columns: list[Column], everybody: bool, laplace: bool) -> tuple[Vector, int, bool]:
    if everybody:
        return lambda x: x, 1, True
    return lambda x: np.hstack([(1 + x) / 2, (1 - x) / 2]), 2, False


def _sum(columns: list[Column], everybody: bool, laplace: bool) -> tuple[Vector, int, bool]:
    (column,) = columns
    largest = max(abs(column.lower), abs(column.upper))
    middle, half = (column.lower + column.upper) / 2 / largest, column.width / 2 / largest
    return lambda x: middle + half * x, 1, column.lower < 0


def _variance(columns: list[Column], everybody: bool, laplace: bool) -> tuple[Vector, int, bool]:
    middle = 2.0 if laplace else math.sqrt(2)

    def vector(x: Floats) -> Floats:
        u, v = (1 + x) / 2, (1 - x) / 2
        return np.hstack([u * u, middle * u * v, v * v])

    return vector, 3, False


def _products(columns: list[Column], everybody: bool, laplace: bool) -> tuple[Vector, int, bool]:
    size = len(columns) + 1
    rows, places = np.triu_indices(size)
    times = np.where(rows == places, 1.0, 2.0 if laplace else math.sqrt(2))
    norm = float(size**2 if laplace else size)

    def vector(x: Floats) -> Floats:
        z = np.hstack([np.ones((len(x), 1)), x])
        return np.asarray(z[:, rows] * z[:, places] * (times / norm))

    return vector, len(rows), True


Vector = Callable[[Floats], Floats]
_VECTORS: Mapping[str, Callable[[list[Column], bool, bool], tuple[Vector, int, bool]]] = {
    "count": _one,
    "quantile": _one,
    "mean": _mean,
    "sum": _sum,
    "var": _variance,
    "std": _variance,
    "cov": _products,
    "corr": _products,
    "ridge": _products,
}
