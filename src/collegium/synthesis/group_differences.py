"""Whose distribution is this? How far the people of each budget are from all people.

With a staircase (:func:`~collegium.weighted_sums.weights.staircase`) the j-th noisy counts are of everybody
who grants at least the j-th budget, with the weight w_j. Those of one group alone are S_g/w_g -
S_{g+1}/w_{g+1}, and those of all people alike S_1/w_1: both are linear in what was drawn, so that their
difference has a known standard deviation. To it adds that people who were dealt into groups at random would
differ as well: p(1 - p)(1/n_g - 1/n) in a cell of share p.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import chi2

from collegium.data.cells import Cells
from collegium.synthesis.junction_tree import Clique
from collegium.synthesis.max_entropy import Marginal

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Step:
    """Noisy counts with certain weights of the groups, and the sum of the weights of all rows."""

    weights: Floats
    total: float
    cliques: tuple[Clique, ...]
    counts: tuple[Floats, ...]
    sd: float

    @property
    def marginals(self) -> list[Marginal]:
        """As shares."""
        sd = np.asarray(self.sd / self.total)
        return [
            Marginal(clique, one / self.total, sd)
            for clique, one in zip(self.cliques, self.counts, strict=True)
        ]


def group_differences(
    steps: Sequence[Step], people: NDArray[np.int64], groups: Sequence[str], cells: Cells
) -> pd.DataFrame:
    """Compare each group with all people, column by column.

    ``people`` (n_groups,): of each. Groups of one budget are one. Returns a frame with columns ``group``,
    ``column``,
    ``apart``, ``explained`` and ``p_same``.
    """
    weights = np.array([step.weights for step in steps])
    scale = weights.max(axis=1)  # of the people who are in a step
    level = (weights > 0).sum(axis=0) - 1  # the last step of each group
    total = float(steps[0].total / scale[0])  # of all rows, each of weight 1
    rows = []
    for one in sorted(set(level.tolist())):
        members = np.flatnonzero(level == one)
        size = float(people[members].sum()) / float(people.sum()) * total
        a = np.zeros(len(steps))
        a[one] = 1 / scale[one] / size
        if one + 1 < len(steps):
            a[one + 1] = -1 / scale[one + 1] / size
        a[0] -= 1 / scale[0] / total
        name = ", ".join(groups[place] for place in members.tolist())
        whole = np.zeros(len(steps))
        whole[0] = 1 / scale[0] / total
        shares = {column: found for column, (found, _) in _by_column(steps, whole).items()}
        by_chance = max(1 / size - 1 / total, 0.0)  # people who were dealt into groups differ, too
        for column, (apart, noise) in _by_column(steps, a).items():
            p = np.clip(shares[column], 0.0, 1.0)
            sd = np.sqrt(noise**2 + p * (1 - p) * by_chance)
            z = apart / sd
            n = len(apart)
            rows.append(
                {
                    "group": name,
                    "column": cells.names[column],
                    "apart": min(1.0, float(np.abs(apart).sum() / 2)),
                    "explained": float(np.sqrt(2 / np.pi) * sd.sum() / 2),
                    "p_same": float(chi2.sf(float(z @ z), n)),
                }
            )
    return pd.DataFrame(rows, columns=["group", "column", "apart", "explained", "p_same"])


def _by_column(steps: Sequence[Step], factors: Floats) -> dict[int, tuple[Floats, Floats]]:
    """Combine the noisy counts of each column's cells, from the first marginal that has it."""
    found: dict[int, tuple[Floats, Floats]] = {}
    for place, clique in enumerate(steps[0].cliques):
        value = sum(
            factor * step.counts[place] for factor, step in zip(factors, steps, strict=True)
        )
        table = np.asarray(value)
        error = steps[0].sd * float(np.sqrt(factors @ factors))
        for axis, column in enumerate(clique):
            if column in found:
                continue
            others = tuple(a for a in range(table.ndim) if a != axis)
            own = table.sum(axis=others)
            found[column] = own, np.full(own.shape, error * np.sqrt(table.size / own.size))
    return found
