"""How far the marginals of one table are from another's, beside what sampling alone would explain.

A marginal is the share of records in each cell of some columns. The total variation between two is half the
sum of the absolute differences of their shares: the largest difference in the probability of any event that
one could name in these columns.

Two samples of one population differ, too, the more the smaller they are and the more cells there are. How
much is measured with the held-out records alone, which are split at random, and carried from the sizes of
these parts to those that are compared: two shares of a cell of probability p differ by
√(2p(1 − p)(1/n₁ + 1/n₂)/π) on average where it is well filled, and by at most 2p.

References
----------
W. Bergsma. A bias-correction for Cramér's V and Tschuprow's T. Journal of the Korean Statistical Society
42(3), 2013, pages 323-328: the correction in :func:`associations`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Clique = tuple[int, ...]

MOST_PAIRS, MOST_TRIPLES = 2_000, 300
"""Of more than these a seeded sample is measured."""
_MOST_CELLS = 1 << 20  # counted in one array; of more, only those that occur
_SPLITS = 8
_LEAST_IN_SPLIT = 20


@dataclass(frozen=True)
class Distance:
    """Total variation over all marginals of one order.

    ``mean``, ``largest``: over the marginals. ``worst``: the columns of the largest one.
    ``sampling_mean``, ``sampling_largest``: what two samples of one population of these sizes would have;
    None where there are too few held-out records to tell.
    """

    ways: int
    mean: float
    largest: float
    worst: tuple[str, ...]
    sampling_mean: float | None
    sampling_largest: float | None

    @property
    def beyond_sampling(self) -> float | None:
        """How much of the mean sampling does not explain; at least 0."""
        return None if self.sampling_mean is None else max(0.0, self.mean - self.sampling_mean)


@dataclass(frozen=True, eq=False)
class Measured:
    """Which marginals are measured, and in which cells.

    ``cliques``: the columns of each marginal, by order. ``n_all``: how many there would be, by order.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    cliques: tuple[tuple[Clique, ...], ...]
    n_all: tuple[int, ...]

    @classmethod
    def of(cls, names: Sequence[str], sizes: Sequence[int], rng: np.random.Generator) -> Measured:
        """Take all marginals of one, two and three columns; of too many a sample."""
        d = len(names)
        n_all = tuple(math.comb(d, ways) for ways in (1, 2, 3) if d >= ways)
        pairs = _sampled(d, 2, MOST_PAIRS, rng) if d >= 2 else ()
        triples = _sampled(d, 3, MOST_TRIPLES, rng) if d >= 3 else ()
        cliques = (tuple((place,) for place in range(d)), pairs, triples)
        return cls(tuple(names), tuple(sizes), cliques[: len(n_all)], n_all)

    def variations(self, one: Codes, other: Codes) -> list[Floats]:
        """Total variation of each marginal between two tables, by order."""
        left, right = (np.ascontiguousarray(codes.T) for codes in (one, other))
        return [
            np.array([self._variation(left, right, clique) for clique in order])
            for order in self.cliques
        ]

    def _variation(self, left: Codes, right: Codes, clique: Clique) -> float:
        first, second = (cell_numbers(columns, clique, self.sizes) for columns in (left, right))
        n_cells = math.prod(self.sizes[place] for place in clique)
        if n_cells > _MOST_CELLS:  # counting those that occur takes memory for them alone
            found, places = np.unique(np.concatenate([first, second]), return_inverse=True)
            first, second, n_cells = places[: len(first)], places[len(first) :], len(found)
        shares = [
            np.bincount(numbers, minlength=n_cells) / len(numbers) for numbers in (first, second)
        ]
        return float(np.abs(shares[0] - shares[1]).sum() / 2)

    def expected_ratio(
        self, columns: Codes, order: Sequence[Clique], size: float, beside: float
    ) -> float:
        """How much further two samples are apart at one value of 1/n₁ + 1/n₂ than at another one."""
        sums = [0.0, 0.0]
        for clique in order:
            _, counts = np.unique(cell_numbers(columns, clique, self.sizes), return_counts=True)
            shares = counts / columns.shape[1]
            spread = np.sqrt(2 / math.pi * shares * (1 - shares))
            for place, one in enumerate((size, beside)):
                sums[place] += float(np.minimum(spread * math.sqrt(one), 2 * shares).sum())
        return sums[0] / sums[1] if sums[1] else 0.0


def cell_numbers(columns: Codes, clique: Clique, sizes: Sequence[int]) -> Codes:
    """Number the cells of some columns. ``columns`` (d, n). Returns (n,), the last column running fastest."""
    numbers: Codes = columns[clique[0]]
    for place in clique[1:]:
        numbers = numbers * sizes[place] + columns[place]
    return numbers


def distances(
    measured: Measured, codes: Codes, held_out: Codes, rng: np.random.Generator
) -> tuple[Distance, ...]:
    """Measure a table against held-out records, beside what sampling explains.

    ``codes`` (n, d), ``held_out`` (m, d): cells, as :meth:`Cells.codes` gives them.
    """
    floors = sampling_floor(measured, held_out, len(codes), rng)
    found = measured.variations(codes, held_out)
    told = []
    for number, (order, values) in enumerate(zip(measured.cliques, found, strict=True)):
        mean, largest = floors[number] if floors is not None else (None, None)
        told.append(
            Distance(
                ways=number + 1,
                mean=float(values.mean()),
                largest=float(values.max()),
                worst=tuple(measured.names[place] for place in order[int(values.argmax())]),
                sampling_mean=mean,
                sampling_largest=largest,
            )
        )
    return tuple(told)


def without_relations(held_out: Codes, n: int, rng: np.random.Generator) -> Codes:
    """Draw a table of the held-out records' columns, each by itself: nothing has to do with anything."""
    return np.stack([rng.choice(column, n) for column in held_out.T], axis=1)


def sampling_floor(
    measured: Measured, held_out: Codes, n: int, rng: np.random.Generator
) -> list[tuple[float, float]] | None:
    """Tell what total variation ``n`` further records of the population would have, by order.

    Returns mean and largest, from splits of the held-out records; None where these are too few.
    """
    m = len(held_out)
    small = min(n, m // 2)
    if small < _LEAST_IN_SPLIT:
        return None
    found: list[list[tuple[float, float]]] = []
    for _ in range(_SPLITS):
        rows = rng.permutation(m)
        apart = measured.variations(held_out[rows[:small]], held_out[rows[small:]])
        found.append([(float(of.mean()), float(of.max())) for of in apart])
    size, carried_to = 1 / small + 1 / (m - small), 1 / n + 1 / m
    columns = np.ascontiguousarray(held_out.T)
    return [
        (mean * ratio, largest * ratio)
        for (mean, largest), ratio in zip(
            np.mean(found, axis=0).tolist(),
            (
                measured.expected_ratio(columns, order, carried_to, size)
                for order in measured.cliques
            ),
            strict=True,
        )
    ]


def associations(measured: Measured, codes: Codes) -> Floats:
    """Tell how strongly each two columns go together: bias-corrected Cramér's V of their cells.

    Returns (d, d): from 0 (nothing to do with one another) to 1 (each follows from the other); NaN of
    pairs that are not measured, or of columns that are one value throughout.
    """
    columns, d = np.ascontiguousarray(codes.T), len(measured.names)
    shown = np.full((d, d), np.nan)
    np.fill_diagonal(shown, 1.0)
    alone = [
        np.bincount(column, minlength=size)
        for column, size in zip(columns, measured.sizes, strict=True)
    ]
    for one, other in measured.cliques[1] if len(measured.cliques) > 1 else ():
        numbers = cell_numbers(columns, (one, other), measured.sizes)
        shown[one, other] = shown[other, one] = _cramers_v(
            numbers, measured.sizes[other], alone[one], alone[other]
        )
    return shown


def _cramers_v(numbers: Codes, size: int, rows: Codes, columns: Codes) -> float:
    n = len(numbers)
    found, counts = np.unique(numbers, return_counts=True)
    place, other = np.divmod(found, size)
    squared = float((counts**2 / (rows[place] * columns[other])).sum()) - 1
    r, k = int((rows > 0).sum()), int((columns > 0).sum())
    corrected = max(0.0, squared - (r - 1) * (k - 1) / max(1, n - 1))
    least = min(r - (r - 1) ** 2 / max(1, n - 1), k - (k - 1) ** 2 / max(1, n - 1)) - 1
    return min(1.0, math.sqrt(corrected / least)) if least > 1e-9 else math.nan


def _sampled(d: int, ways: int, most: int, rng: np.random.Generator) -> tuple[Clique, ...]:
    n_all = math.comb(d, ways)
    if n_all <= 50 * most:
        every = list(combinations(range(d), ways))
        if n_all <= most:
            return tuple(every)
        return tuple(every[place] for place in np.sort(rng.choice(n_all, most, replace=False)))
    found: set[Clique] = set()
    while len(found) < most:  # of so many hardly any is drawn twice
        found.add(tuple(sorted(rng.choice(d, ways, replace=False).tolist())))
    return tuple(sorted(found))
