"""What each group says by itself, from the steps of a calibrated answer, and whether all say the same.

Step j of a staircase (:func:`~collegium.weighted_sums.weights.staircase`) is a noisy sum over everybody who
grants as much as level j or more: the difference of two neighbouring ones is what one level's people add up
to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import chi2

from collegium.data.schema import Column

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PerPerson:
    """How sums over some people become a value per person.

    ``column``: whose mean it is; None: the share of people that is counted.
    ``first``: what coordinates are multiplied by. ``ratio``: whether the sums are (u, v), whose own sum
    counts the rows. ``centred``: whether coordinate 0 is u - v.
    """

    column: Column | None
    first: float
    ratio: bool
    centred: bool

    def of(self, sums: Floats, people: float) -> tuple[float, Floats]:
        """Return the value, and its derivative by the sums."""
        slope = np.zeros_like(sums)
        if self.column is None:
            slope[0] = 1 / people
            return float(sums[0] / people), slope
        column = self.column
        if self.ratio:
            a, b = sums[:2] / self.first
            rows = max(float(a + b), 1e-9)
            slope[:2] = column.width * np.array([b, -a]) / rows**2 / self.first
            return column.lower + column.width * float(a) / rows, slope
        shift, scale = 0.0, max(abs(column.lower), abs(column.upper))
        if self.centred:
            shift, scale = (column.lower + column.upper) / 2, column.width / 2
        slope[0] = scale / people / self.first
        return shift + float(slope[0] * sums[0]), slope


def by_group(
    names: Sequence[str],
    sizes: NDArray[np.int64],
    prices: Floats,
    sums: Sequence[Floats],
    noise: Sequence[float],
    value: PerPerson,
    spread: float,
) -> pd.DataFrame:
    """Each level's own value per person, its standard error, and in ``attrs`` the p-value of "all the same".

    Parameters
    ----------
    names, sizes, prices
        Of the groups.
    sums : sequence of ndarray of shape (width,)
        Noisy, of each step; in units of one person.
    noise : sequence of float
        Its variance.
    value : PerPerson
        What is made of sums.
    spread : float
        Variance of the value from person to person, over the share of people it is about.

    Notes
    -----
    Where budgets do not go with values, the mean over step j's people differs from that over all whom they
    come from by s²/n_j, and two steps' by the covariance s²/n of the larger one, which holds the other. Noise
    of different steps is independent. With V the sum of both, (m - c)ᵀV⁻¹(m - c), c the best common value, is
    χ² with one degree of freedom fewer than there are steps.
    """
    levels = np.unique(prices)
    people = np.array([sizes[prices >= level].sum() for level in levels], dtype=np.float64)
    rows = []
    for step, level in enumerate(levels):
        own = prices == level
        last = step + 1 == len(levels)
        alone = sums[step] if last else sums[step] - sums[step + 1]
        variance = noise[step] + (0.0 if last else noise[step + 1])
        n = int(sizes[own].sum())
        found, slope = value.of(alone, n)
        said = ", ".join(np.asarray(list(names), dtype=object)[own])
        rows.append((said, n, found, math.sqrt(variance) * float(np.linalg.norm(slope))))
    table = pd.DataFrame(rows, columns=["group", "people", "per_person", "standard_error"])
    table = table.set_index("group")
    each = [value.of(one, n) for one, n in zip(sums, people, strict=True)]
    means = np.array([one for one, _ in each])
    covariance = spread / np.maximum.outer(people, people)
    covariance += np.diag(
        [v * float(slope @ slope) for v, (_, slope) in zip(noise, each, strict=True)]
    )
    table.attrs["p_same"] = _p_same(means, covariance)
    return table


def _p_same(means: Floats, covariance: Floats) -> float:
    if len(means) < 2:
        return 1.0
    inverse = np.linalg.pinv(covariance)
    ones = np.ones(len(means))
    centre = float(ones @ inverse @ means / (ones @ inverse @ ones))
    apart = means - centre
    return float(chi2.sf(float(apart @ inverse @ apart), len(means) - 1))
