"""Whether a generative model has collapsed, by numbers that cost nothing.

Generated rows are what was released, so whatever is computed of them, and of public rows, is free.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collegium.checks import listed

SINGLE = 0.999
"""A column of which one cell has so large a share has a single value."""
_LEAST_ROWS = 0.005
"""Effectively different rows, as a share of how many could be different: fewer are a collapse."""
_LEAST_OF_PUBLIC = 0.1
"""The same as a share of how many effectively different public rows there are."""
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
        return f"{'collapsed' if self.is_collapsed else 'not collapsed'}: {'; '.join(parts)}"


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
    distance, public_rows = None, None
    if public is not None and len(public):
        public_rows = _effective(public)
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
    )


def _effective(rows: NDArray[np.int64]) -> float:
    """How many equally frequent rows repeat as often, also where only a part of them was drawn.

    Of pairs of two different draws, a share Σ p² are equal: without bias, whatever the number of draws.
    """
    n = len(rows)
    _, counts = np.unique(rows, axis=0, return_counts=True)
    equal = float((counts * (counts - 1.0)).sum())
    return min(float(n), n * (n - 1.0) / equal) if equal else float(n)
