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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.neighbours import Neighbours
from collegium.data.schema import Column, Schema
from collegium.errors import InputError
from collegium.statistics.query import Query
from collegium.weighted_sums.reading import Reading, Vector

Floats = NDArray[np.float64]

SPREAD_SHARE = 0.05
"""Part of the price of a mean with unequal weights, which measures how much values spread."""
PRESENCE_SHARE = 0.05
"""Part of the price of a sum that counts how many rows had a value, where any may lack one."""
MOST_CELLS = 100_000


@dataclass(frozen=True)
class Features(Reading):
    """How a question reads rows, and what follows for its price.

    Attributes
    ----------
    signed : bool
        Whether coordinates may be negative.
    everybody : bool
        Whether each row is in a cell, so that the weight of all rows is a public denominator.
    spread : float
        Share of the price that the last coordinate, the spread's, takes; 0: there is none.
    presence : float
        Share of the rest that the second coordinate takes, which counts the rows of a sum; 0: there is none.

    With ``distinct`` a person may be in all cells, by one each. With ``holds`` a blank row is counted, too:
    it answers with no (``is missing``: with yes), and then it is as far from another row as any two are.
    """

    signed: bool = False
    everybody: bool = False
    spread: float = 0.0
    presence: float = 0.0

    @cached_property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """Of each cell."""
        return tuple(product(*(column.keys for _, column in self.by)))

    def diameter(self, neighbours: Neighbours, laplace: bool) -> float:
        """How far apart two of these vectors (or one and blank) are at most, in the norm of the noise.

        Of distinct people, that of all cells: each is 0 or 1, so that no two differ by more than 1 in any.
        """
        if self.distinct:
            cells = self.n_cells
            return float(cells) if laplace or cells == 1 else math.sqrt(cells) * (1 + 2**-50)
        if neighbours is Neighbours.ADD_OR_REMOVE and self.holds is None:
            return 1.0
        alone = self.width == 1 or bool(
            self.presence
        )  # coordinates from 0 to c, with a norm of all c of 1
        if not self.signed and alone and self.n_cells == 1:
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
    names = [*asked.by, *(asked.columns if asked.counts else ())]
    by = tuple((name, schema[name]) for name in names)
    cells = math.prod(len(one.keys) for _, one in by)
    if cells > MOST_CELLS:
        raise InputError(
            f"{asked} has {cells:,} cells, but at most {MOST_CELLS:,} can be answered: group by fewer "
            "columns"
        )
    if asked.counts:
        return Features(by, asked.where, distinct=asked.kind == "people" and named)
    some = bool(by) or not asked.where.is_everybody
    may_lack = any(one.missing for one in columns)
    everybody = once and not some and not may_lack
    about = tuple(zip(asked.columns or ("",), columns, strict=True))
    if counts or asked.kind == "quantile":
        return Features(by, asked.where, about, asked.holds, everybody=everybody)
    # The sum over everybody is their number, which is public, times their mean, which moves half as far.
    kind = "mean" if asked.is_mean or (asked.kind == "sum" and everybody) else asked.kind
    vector, width, signed = _VECTORS[kind](columns, everybody, laplace)
    spread = spread if kind in ("mean", "sum") else 0.0
    presence = PRESENCE_SHARE if kind == "sum" and may_lack else 0.0
    main, beside = scales(spread, laplace)
    of_value, of_presence = scales(presence, laplace)

    def coordinates(x: Sequence[Any]) -> list[Any]:
        values = vector(x)
        (measured, *_) = values if kind == "sum" else x
        if presence:
            values = [*(of_value * one for one in values), of_presence]
        if spread:
            values = [*(main * one for one in values), beside * (measured * measured)]
        return values

    width += bool(spread) + bool(presence)
    return Features(
        by, asked.where, about, asked.holds, coordinates, width,
        signed=signed, everybody=everybody, spread=spread, presence=presence,
    )  # fmt: skip


def scales(spread: float, laplace: bool) -> tuple[float, float]:
    """What coordinates are multiplied by: those of the value, and that of the spread with its share."""
    if laplace:
        return 1 - spread, spread
    return math.sqrt(1 - spread), math.sqrt(spread)


def _mean(columns: list[Column], everybody: bool, laplace: bool) -> tuple[Vector, int, bool]:
    if everybody:
        return lambda x: [x[0]], 1, True
    return lambda x: [(1.0 + x[0]) / 2.0, (1.0 - x[0]) / 2.0], 2, False


def _sum(columns: list[Column], everybody: bool, laplace: bool) -> tuple[Vector, int, bool]:
    (column,) = columns
    largest = max(abs(column.lower), abs(column.upper))
    middle, half = (column.lower + column.upper) / 2 / largest, column.width / 2 / largest
    return lambda x: [middle + half * x[0]], 1, column.lower < 0


def _variance(columns: list[Column], everybody: bool, laplace: bool) -> tuple[Vector, int, bool]:
    middle = 2.0 if laplace else math.sqrt(2)

    def vector(x: Sequence[Any]) -> list[Any]:
        u, v = (1.0 + x[0]) / 2.0, (1.0 - x[0]) / 2.0
        return [u * u, middle * u * v, v * v]

    return vector, 3, False


def _products(columns: list[Column], everybody: bool, laplace: bool) -> tuple[Vector, int, bool]:
    size = len(columns) + 1
    pairs = list(zip(*(one.tolist() for one in np.triu_indices(size)), strict=True))
    twice, norm = 2.0 if laplace else math.sqrt(2), float(size**2 if laplace else size)

    def vector(x: Sequence[Any]) -> list[Any]:
        # Of z = (1, x…); the first product is that of 1 with itself.
        return [
            (x[j - 1] * x[i - 1] if i else x[j - 1]) * ((1.0 if i == j else twice) / norm)
            if j
            else 1.0 / norm
            for i, j in pairs
        ]

    return vector, len(pairs), True


_VECTORS: Mapping[str, Callable[[list[Column], bool, bool], tuple[Vector, int, bool]]] = {
    "mean": _mean,
    "sum": _sum,
    "var": _variance,
    "std": _variance,
    "cov": _products,
    "corr": _products,
    "ridge": _products,
}
