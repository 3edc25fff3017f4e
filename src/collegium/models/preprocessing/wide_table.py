"""Tables of many columns: a public rule says how many numbers a record is described by, so that all fit.

A number that is described in full takes up to 59 columns, and 3,000 such numbers 177,000: their covariance
alone has 233 GiB. So of more than :data:`USUAL` columns a number stands by itself and in one of four bins of
equal public size, of more than :data:`MANY` by itself alone, and the more columns there are, the fewer
categories they keep. The number of columns decides, and nothing that anybody has in them.

Measured (``benchmarks/wide_tables.py --bins``; AUC at 150 and 300 columns): numbers alone .706 and .687, two
bins .678 and .660, four .711 and .700, ten .714 and .702. Columns that have much in common mend each other's
edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.errors import InputError
from collegium.models.preprocessing.columns import ALIKE, check_columns, numeric_columns
from collegium.models.preprocessing.tabular_encoder import TabularEncoder

Floats = NDArray[np.float32]
USUAL, MANY = 100, 2000
"""Columns up to which a table is described in full, and up to which numbers have bins."""
_EDGES = 3  # of numbers of fewer than MANY columns
_CATEGORIES, _FEWEST_CATEGORIES = 12_000, 2  # of all columns together at most, and of each at least
_CELLS, _FEWEST_ROWS = 2**24, 1000  # of public records that are learnt from, at most and at least
_FARTHEST = 10.0  # public standard deviations
_LARGEST = float(np.finfo(np.float32).max) / 4
_NOTHING = 1e-6  # of a column's mean: what is left where all public numbers are alike, in 32 bits
_RARITY = 0.5  # as of PrincipalTable


def is_wide(n_columns: int) -> bool:
    """Tell whether a table has so many columns that it is described in short."""
    return n_columns > USUAL


def edges_of_each(n_columns: int) -> int:
    """Choose at how many places each number of a wide table is cut.

    Examples
    --------
    >>> edges_of_each(300), edges_of_each(10_000)
    (3, 0)
    """
    return _EDGES if n_columns <= MANY else 0


def categories_of_each(n_columns: int, most: int | None) -> int:
    """Choose how many categories each column of a wide table keeps, of at most so many.

    Examples
    --------
    >>> categories_of_each(300, None), categories_of_each(300, 30), categories_of_each(10_000, None)
    (40, 30, 2)
    """
    few = max(_FEWEST_CATEGORIES, _CATEGORIES // n_columns)
    return few if most is None else min(few, most)


def width_of(n_columns: int, n_numbers: int) -> int:
    """Count by how many numbers the numbers of a record are described.

    Examples
    --------
    >>> width_of(300, 300), width_of(3000, 2999)
    (2400, 2999)
    """
    edges = edges_of_each(n_columns)
    return n_numbers * (2 + 2 * edges if edges else 1)


def most_rows(width: int) -> int:
    """Tell from how many public records of a wide table components are learnt at most."""
    return max(_FEWEST_ROWS, _CELLS // width)


def rows_to_learn_from(n_rows: int, width: int) -> NDArray[np.intp] | slice:
    """Choose public records at random where all of them, described, would not fit."""
    most = most_rows(width)
    if n_rows <= most:
        return slice(None)
    return np.sort(np.random.default_rng(0).permutation(n_rows)[:most])


@dataclass(frozen=True, eq=False)
class WideTable:
    """Describes each record of a wide table by itself; made of public records alone.

    ``encoder``: of numbers as they are, and of categories.
    ``edges`` (n_edges, n_numbers): where each number is cut.
    ``low``, ``high`` (n_numbers,): where numbers end, ten public standard deviations from their mean.
    ``middle`` (width,): public mean.
    ``factor`` (width,): 1 over what a column is divided by; 0 where public records do not differ.
    """

    encoder: TabularEncoder
    edges: Floats
    low: Floats
    high: Floats
    middle: Floats
    factor: Floats

    @classmethod
    def learnt(cls, X: pd.DataFrame, max_categories: int | None) -> tuple[WideTable, Floats]:
        """Learn from public records, and describe those from which components can be learnt.

        Numbers, and categories by their rarity, have the same public variance together as all bins.
        """
        check_columns(X)
        n_numbers, n_columns = len(numeric_columns(X)), X.shape[1]
        most = categories_of_each(n_columns, max_categories)
        width = width_of(n_columns, n_numbers) + (n_columns - n_numbers) * (most + 1)
        X = X.iloc[rows_to_learn_from(len(X), width)]
        encoder = TabularEncoder("onehot", "none", most).fit(X)
        encoded = encoder.transform(X)
        numbers = encoded[:, :n_numbers]
        mean = numbers.mean(axis=0, dtype=np.float64)
        far = _FARTHEST * numbers.std(axis=0, dtype=np.float64)
        low, high = (np.clip(mean + way * far, -_LARGEST, _LARGEST) for way in (-1, 1))
        n_edges = edges_of_each(n_columns)
        shares = np.arange(1, n_edges + 1) / (n_edges + 1)
        edges = np.quantile(numbers, shares, axis=0, method="higher")
        table = _columns(encoded, *(part.astype(np.float32) for part in (edges, low, high)))
        middle = table.mean(axis=0, dtype=np.float64)
        deviation = table.std(axis=0, dtype=np.float64)
        is_bin = np.zeros(table.shape[1], dtype=bool)
        is_bin[n_numbers : table.shape[1] - (encoded.shape[1] - n_numbers)] = True
        divisor = deviation**_RARITY
        divisor[:n_numbers] = deviation[:n_numbers]
        divisor[is_bin] = 1.0  # rare ones count little
        differs = deviation > _NOTHING * np.abs(middle)
        factor = np.divide(1.0, divisor, out=np.zeros_like(divisor), where=differs)
        if not differs.any():
            raise InputError(ALIKE)
        for some in (is_bin, ~is_bin):
            total = float(np.sqrt(((deviation[some] * factor[some]) ** 2).sum()))
            factor[some] /= total if total > 0 else 1.0
        parts = (part.astype(np.float32) for part in (edges, low, high, middle, factor))
        made = cls(encoder, *parts)
        return made, made._scaled(table)

    @property
    def width(self) -> int:
        """By how many numbers a record is described."""
        return len(self.middle)

    def described(self, X: pd.DataFrame) -> Floats:
        """Describe records by numbers, bins and categories, with public mean 0."""
        encoded = self.encoder.transform(X)
        return self._scaled(_columns(encoded, self.edges, self.low, self.high))

    def _scaled(self, table: Floats) -> Floats:
        table -= self.middle
        table *= self.factor
        return table


def _columns(encoded: Floats, edges: Floats, low: Floats, high: Floats) -> Floats:
    """Put beside numbers which edges they are above, and in which bins they are."""
    numbers, categories = np.clip(encoded[:, : len(low)], low, high), encoded[:, len(low) :]
    above = [numbers >= edge for edge in edges]
    bins = []
    if above:
        bins = [~above[0], *(a & ~b for a, b in pairwise(above)), above[-1]]
    return np.hstack([numbers, *above, *bins, categories], dtype=np.float32)
