"""Whether a generative model has collapsed, by numbers that cost nothing.

Generated rows are what was released, so whatever is computed of them, and of public rows, is free.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from collegium.checks import listed

SINGLE = 0.999
"""A column of which one cell has so large a share has a single value."""
_LEAST_ROWS = 0.005
"""Effectively different rows, as a share of how many could be different: fewer are a collapse."""
_LEAST_OF_PUBLIC = 0.1
"""The same as a share of how many effectively different public rows there are."""
_LEAST_PUBLIC = 100
_LEAST_DEPENDENCE = 0.25
_LARGEST_DISTANCE = 0.25
"""Mean total variation between columns of generated and of public rows: more is a collapse."""


@dataclass(frozen=True)
class Collapse:
    """How varied generated rows are, and what follows.

    Attributes
    ----------
    n_rows : int
        Generated rows that were looked at.
    effective_rows : float
        How many equally frequent rows repeat as often as these: 1 / Σ p², with p a row's probability.
    possible_rows : float
        How many rows could be different: as many as there are, or as the schema has.
    public_rows : float or None
        How many public rows are effectively different; None without public rows.
    single_valued : tuple of str
        Columns of which one cell has at least 99.9 %.
    n_columns : int
        Columns in all.
    dependence : float or None
        How much of the dependence between pairs of columns of public rows is found in generated ones:
        about 1 if all of it is, about 0 if columns are right one by one at best. None with fewer than 100
        public rows.
    distance : float or None
        Mean over columns of the total variation between generated and public rows, in [0, 1]; None without
        public rows.

    Examples
    --------
    >>> varied = np.random.default_rng(1).integers(0, 4, (1000, 3))
    >>> found = collapse_of(varied, (4, 4, 4), ("a", "b", "c"))
    >>> found.is_collapsed, len(found.single_valued)
    (False, 0)
    >>> print(collapse_of(np.zeros((1000, 3), dtype=int), (4, 4, 4), ("a", "b", "c")))
    collapsed: 1,000 generated rows repeat like 1 different one; 3 of 3 columns have a single value (a, b, c)
    """

    n_rows: int
    effective_rows: float
    possible_rows: float
    single_valued: tuple[str, ...]
    n_columns: int
    public_rows: float | None = None
    distance: float | None = None
    dependence: float | None = None

    @property
    def is_collapsed(self) -> bool:
        """Whether rows hardly differ, half of the columns have one value, or public rows look otherwise."""
        far = self.distance is not None and self.distance > _LARGEST_DISTANCE
        least = _LEAST_ROWS * self.possible_rows
        if self.public_rows is not None:
            least = _LEAST_OF_PUBLIC * self.public_rows
        few = self.effective_rows < least
        return far or few or 2 * len(self.single_valued) >= self.n_columns

    def __str__(self) -> str:
        same, different = len(self.single_valued), round(self.effective_rows)
        which = f" ({listed(self.single_valued, 5)})" if same else ""
        parts = [
            f"{self.n_rows:,} generated rows repeat like {different:,} different one{'s' * (different != 1)}",
            f"{same} of {self.n_columns} columns have a single value{which}",
        ]
        if self.distance is not None:
            parts.append(
                f"total variation from public rows {self.distance:.3f} on average over columns"
            )
        if self.dependence is not None:
            share = 100 * min(max(self.dependence, 0.0), 1.0)
            parts.append(
                f"{share:.0f} % of the dependence between columns of public rows was found"
            )
        if self.distance is None and not self.is_collapsed:
            parts.append("give public rows to see whether they are right")
        return f"{self.verdict}: {'; '.join(parts)}"

    @property
    def verdict(self) -> str:
        """Say it in two words: "collapsed", "columns alone" (how they depend is lost) or "not collapsed".

        Without public rows nothing is known but that rows differ: "varied rows".
        """
        if self.is_collapsed:
            return "collapsed"
        if self.distance is None:
            return "varied rows"
        is_alone = self.dependence is not None and self.dependence < _LEAST_DEPENDENCE
        return "columns alone" if is_alone else "not collapsed"


def collapse_of(
    generated: NDArray[np.int64],
    sizes: Sequence[int],
    names: Sequence[str],
    public: NDArray[np.int64] | None = None,
) -> Collapse:
    """Look at generated rows, and at public ones where there are some.

    Parameters
    ----------
    generated, public : ndarray of int64, shape (n, n_columns)
        Cells.
    sizes : sequence of int
        Cells of each column.
    names : sequence of str
        Of the columns.
    """
    n = len(generated)
    shares = [
        np.bincount(column, minlength=size) / n
        for column, size in zip(generated.T, sizes, strict=True)
    ]
    distance, public_rows, dependence = None, None, None
    if public is not None and len(public):
        public_rows = _effective(public)
        if len(public) >= _LEAST_PUBLIC and len(sizes) > 1:
            dependence = _found(generated, public, sizes)
        theirs = (
            np.bincount(column, minlength=size) / len(public)
            for column, size in zip(public.T, sizes, strict=True)
        )
        apart = [abs(a - b).sum() / 2 for a, b in zip(shares, theirs, strict=True)]
        distance = float(np.mean(apart))
    return Collapse(
        n_rows=n,
        effective_rows=_effective(generated),
        possible_rows=float(min(n, math.prod(sizes))),
        single_valued=tuple(
            name for name, one in zip(names, shares, strict=True) if one.max() >= SINGLE
        ),
        n_columns=len(sizes),
        public_rows=public_rows,
        distance=distance,
        dependence=dependence,
    )


def _found(
    generated: NDArray[np.int64], public: NDArray[np.int64], sizes: Sequence[int]
) -> float | None:
    """Project the dependence of generated rows on that of public ones, by halves, so that chance cancels."""
    halves = public[::2], public[1::2]
    found = there = 0.0
    for i, j in combinations(range(len(sizes)), 2):
        shape = sizes[i], sizes[j]
        mine, one, other = (_beyond(rows[:, i], rows[:, j], shape) for rows in (generated, *halves))
        found += float((mine * (one + other)).sum()) / 2
        there += float((one * other).sum())
    return found / there if there > 0 else None


def _beyond(
    first: NDArray[np.int64], second: NDArray[np.int64], shape: tuple[int, int]
) -> NDArray[np.float64]:
    """How far a pair's shares are from those of independent columns. Shape as given."""
    counts = np.bincount(first * shape[1] + second, minlength=shape[0] * shape[1])
    joint = counts.reshape(shape) / len(first)
    return np.asarray(joint - np.outer(joint.sum(axis=1), joint.sum(axis=0)))


def _effective(rows: NDArray[np.int64]) -> float:
    """How many equally frequent rows repeat as often, also where only a part of them was drawn.

    Of pairs of two different draws, a share Σ p² are equal: without bias, whatever the number of draws.
    """
    n = len(rows)
    _, counts = np.unique(rows, axis=0, return_counts=True)
    equal = float((counts * (counts - 1.0)).sum())
    return min(float(n), n * (n - 1.0) / equal) if equal else float(n)
