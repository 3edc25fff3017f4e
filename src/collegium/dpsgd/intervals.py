"""Intervals for predicted numbers by split conformal prediction, from public records with known targets.

If the records that calibrate and a new one are exchangeable (drawn alike, in any order), the rank of the new
one's absolute residual among all n + 1 is at most k with probability k/(n + 1) or more, whatever the model
and the records: so the k-th smallest residual, k = ⌈(n + 1)·coverage⌉, reaches far enough with at least that
probability. The model must not have seen the records that calibrate.

V. Vovk, A. Gammerman, G. Shafer, *Algorithmic Learning in a Random World* (2005); J. Lei, M. G'Sell,
A. Rinaldo, R. J. Tibshirani, L. Wasserman, *Distribution-free predictive inference for regression*, Journal
of the American Statistical Association 113 (2018), Theorem 2.2.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.data.overlap_checks import HANDFUL, SHARE, Likeness
from collegium.errors import InputError

Floats = NDArray[np.float64]


def reach(residuals: Floats, coverage: float) -> float | None:
    """Find how far from a prediction an interval must reach; None: no finite number is known to be enough.

    ``residuals`` (n,): absolute, ascending.
    ``coverage``: in (0, 1).

    Examples
    --------
    >>> residuals = np.arange(1.0, 20.0)
    >>> reach(residuals, 0.5), reach(residuals, 0.95), reach(residuals, 0.96)
    (10.0, 19.0, None)
    """
    rank = math.ceil((len(residuals) + 1) * _exact(coverage))
    return float(residuals[rank - 1]) if rank <= len(residuals) else None


def fewest_records(coverage: float) -> int:
    """Tell how many records calibrate intervals of some coverage, at least.

    Examples
    --------
    >>> fewest_records(0.9), fewest_records(0.95)
    (9, 19)
    """
    exact = _exact(coverage)
    return math.ceil(exact / (1 - exact))


def around(
    predicted: Floats, residuals: Floats, coverage: float, bounds: tuple[float, float]
) -> Floats:
    """Make an interval around each prediction, within the bounds, shape (n, 2)."""
    low, high = bounds
    far = reach(residuals, coverage)
    if far is None:
        far = high - low
    far += 4 * float(np.spacing(max(abs(low), abs(high))))  # what rounding takes from ends
    return np.clip(np.stack([predicted - far, predicted + far], axis=1), low, high)


def refuse_seen(seen: Likeness, X: Any) -> None:
    """Refuse records to calibrate with of which more were given to fit than chance explains.

    ``seen``: of the public records of fit.
    """
    hashes = seen.hashes(X)
    common = int(np.isin(hashes, seen.public).sum())
    _, times = np.unique(hashes, return_counts=True)
    twins = int(times[times > 1].sum())  # where records equal one another, as many may equal others
    if common > max(HANDFUL, SHARE * len(hashes)) + 2 * twins:
        raise InputError(
            f"{common:,} of {len(hashes):,} records were given to fit as X_public, too: intervals "
            "would be too narrow. Keep some public records with known targets apart, and calibrate with those"
        )


def _exact(coverage: float) -> Fraction:
    return Fraction(repr(float(coverage)))  # as it is written: 0.9 of 10 is 9
