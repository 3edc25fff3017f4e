"""What follows from noisy cells at no further price: shares, differences between groups, and the largest.

**Shares** of categories within a group are ratios of one noisy sum to the sum of all of them; their intervals
are Fieller's (1954), with the spread of a share.

**A difference** of two groups, whose noise is independent, has the interval of Zou & Donner (2008, Statistics
in Medicine 27, 1693): with values a, b and intervals [l, u], from a - b - √((a - l_a)² + (u_b - b)²) to
a - b + √((u_a - a)² + (b - l_b)²), which keeps the lopsided ends of either; where both move against each
other, their correlation times twice the product of the two parts is taken off under the root.

**The largest k** of C cells are taken after the noise, and their intervals hold for all C at once (each at
1 - α/C), so also for those that are shown because they came out large.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.statistics.estimates import NOTHING, TOO_FEW, Estimate, Heard, of_ratio, readable

Floats = NDArray[np.float64]


def shares(sums: Floats, heard: Heard, everybody: bool) -> list[Estimate]:
    """Shares of a group's rows in each of its cells.

    ``sums`` (n_cells,): noisy, of weights.
    ``everybody``: whether the cells hold all rows, whose weight is public.
    """
    cells = len(sums)
    rows = heard.total if everybody else float(sums.sum())
    noise_of_rows = 0.0 if everybody else cells * heard.noise
    if rows < TOO_FEW * math.sqrt(noise_of_rows):
        return [NOTHING] * cells
    return [_share(float(one), rows, noise_of_rows, heard) for one in sums]


def _share(above: float, rows: float, noise_of_rows: float, heard: Heard) -> Estimate:
    one, both = heard.noise, heard.noise * bool(noise_of_rows)
    share = min(max(above / rows, 0.0), 1.0)
    of_all = rows / heard.total
    noise = (one - 2 * share * both + share**2 * noise_of_rows) / rows**2
    found = heard.around(share, noise, share * (1 - share), of_all / heard.most, 0.0, 1.0)
    squared = heard.margin(noise, found.people) ** 2 / max(noise + found.people, 1e-300)
    # The spread of each share f is f·(1 - f).
    apart = rows**2 * heard.unequal / min(1.0, max(of_all, 1 / heard.n))
    low, high = of_ratio(above, rows, (one, both - apart / 2, noise_of_rows - apart), 0.0, squared)
    if math.isinf(high):
        return NOTHING
    read = None
    if noise_of_rows:
        read = readable(of_all, noise_of_rows / heard.total**2, heard)
    low, high = min(max(low, 0.0), share), max(min(high, 1.0), share)
    return replace(found, lower=low, upper=high, readable=read)


def for_all_of(heard: Heard, cells: int) -> Heard:
    """The same with intervals that hold for so many cells at once (Bonferroni)."""
    return replace(heard, confidence=1 - (1 - heard.confidence) / cells)


def largest(cells: pd.DataFrame, most: int) -> pd.DataFrame:
    """The cells with the largest values, which come first."""
    return cells.sort_values("value", ascending=False, kind="stable").head(most)


def with_difference(
    cells: pd.DataFrame, groups: Sequence[str], unequal: float = 0.0
) -> pd.DataFrame:
    """Two groups of an answer, and below them their difference with its interval.

    ``unequal``: as :func:`difference` takes it.
    """
    both = cells.loc[list(groups)]
    a, b = both.to_dict("records")
    name = pd.Index([f"{groups[0]} - {groups[1]}"], name=both.index.name)
    return pd.concat([both, pd.DataFrame([difference(a, b, unequal)], index=name)])


def difference(
    a: Mapping[Any, float], b: Mapping[Any, float], unequal: float = 0.0
) -> dict[str, float]:
    """The difference of two cells of an answer.

    ``unequal``: Σ n w²/W² - 1/n of counts and sums, 0 of means. Of totals whose people weigh differently one
    is too large where the other is too small, since all weight is known: their covariance is -unequal·a·b,
    or, of people who may be in both, not below it.
    """
    value, covariance = a["value"] - b["value"], -unequal * a["value"] * b["value"]
    both = a["standard_error"] * b["standard_error"]
    related = min(max(covariance / both, -1.0), 1.0) if unequal and both else 0.0

    def apart(one: float, other: float) -> float:
        return math.sqrt(max(0.0, one**2 + other**2 - 2 * related * one * other))

    return {
        "value": value,
        "standard_error": apart(a["standard_error"], b["standard_error"]),
        "lower": value - apart(a["value"] - a["lower"], b["upper"] - b["value"]),
        "upper": value + apart(a["upper"] - a["value"], b["value"] - b["lower"]),
        "population_error": math.hypot(a["population_error"], b["population_error"]),
    }


def in_order(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Quantiles at rising levels in rising order: each end, like each value, sorted.

    Where all intervals hold, so they do when sorted: i of the quantiles are at most the i-th, and as many
    lower ends below it.
    """
    parts = zip(*((one.value, one.lower, one.upper) for one in estimates), strict=True)
    value, lower, upper = (np.sort(np.array(part)).tolist() for part in parts)
    return [
        replace(one, value=v, lower=low, upper=high)
        for one, v, low, high in zip(estimates, value, lower, upper, strict=True)
    ]
