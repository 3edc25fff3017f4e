"""What a fitted table says of each column, with error bars."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

from collegium.synthesis.model import TableModel

CONFIDENCE = 0.95


def marginals_table(model: TableModel) -> pd.DataFrame:
    """List every cell of every column: its share among the rows that are drawn, and what noise leaves open.

    Returns a frame with columns ``column``, ``cell``, ``share``, ``standard_error``, ``lower`` and
    ``upper``. The interval is of the share in the private table, as people are heard; it is that of the
    noisy counts alone, with the share that was fitted, so that it is rather too wide. Cells that were put
    together have one error: that of the cell that they make, of which each is given its part.
    """
    z = float(norm.ppf(0.5 + CONFIDENCE / 2))
    parts = []
    for place, one in enumerate(model.cells.columns):
        coarse = model.coarse[place]
        shares = model.shares((place,))[coarse.place] * coarse.within
        error = _error(model, place)[coarse.place]
        parts.append(
            pd.DataFrame(
                {
                    "column": one.name,
                    "cell": list(one.labels),
                    "share": shares,
                    "standard_error": error,
                    "lower": np.clip(shares - z * error, 0, 1),
                    "upper": np.clip(shares + z * error, 0, 1),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def _error(model: TableModel, column: int) -> NDArray[np.float64]:
    """Standard error of each coarse cell of a column, of all marginals that were fitted; NaN without one."""
    precision = np.zeros(model.sizes[column])
    for one in model.followed:
        if column in one.columns:
            others = tuple(a for a, c in enumerate(one.columns) if c != column)
            variance = np.broadcast_to(one.sd, one.shares.shape) ** 2
            precision += 1 / np.maximum(variance.sum(axis=others), 1e-30)
    return np.where(precision > 0, 1 / np.sqrt(np.maximum(precision, 1e-30)), np.nan)
