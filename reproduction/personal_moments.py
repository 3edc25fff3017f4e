"""The personalised moments accountant of bagging: what each owner's teachers, as they really voted, cost.

Everything here is computed from votes and **sensitive**. It is no guarantee in the worst case, nothing in the
package is charged by it, and no vote may be stopped by it: ``docs/personal-moments.md`` says what it means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
MOMENTS = tuple(range(1, 81))
"""As many as the authors' code looks at."""


def sensitive_reach(votes: ArrayLike, owner_teachers: ArrayLike, n_classes: int) -> Floats:
    """Tell how far each owner can move any class's share of votes, given how the owner's teachers voted.

    Of p teachers with weight 1/p each, a share n_c votes for class c. Without the owner, the count of c may
    fall by n_c or rise by 1 − n_c, so that no count moves further than m = 1 − min_c n_c.

    Parameters
    ----------
    votes : array-like of int, shape (n_queries, n_teachers)
        Class numbers; -1 where a teacher abstains.
    owner_teachers : array-like of int, shape (n_owners, p)
        Teachers of each owner, one for each partition.
    n_classes : int
        At least 2.

    Returns
    -------
    ndarray, shape (n_owners, n_queries)
        m, between 1 − 1/n_classes and 1. **Sensitive.**

    Examples
    --------
    >>> sensitive_reach([[0, 1, 0, 0]], [[0, 2], [0, 1]], n_classes=2).tolist()
    [[1.0], [0.5]]
    """
    theirs = np.asarray(votes)[:, np.asarray(owner_teachers)]  # queries, owners, partitions
    shares = np.stack([(theirs == c).mean(axis=2) for c in range(n_classes)])
    return np.asarray(1.0 - shares.min(axis=0)).T


def sensitive_epsilon(
    reach: ArrayLike, gamma: float, delta: float, moments: Sequence[int] = MOMENTS
) -> Floats:
    """ε of each owner by the personalised moments accountant.

    LNMax with Laplace noise of scale 1/γ on shares of votes is 2γm-DP between votes whose counts differ by at
    most m each, hence its l-th moment is at most l(l+1)·(2γm)²/2 = 2γ²m²·l(l+1) (Bun & Steinke 2016,
    arXiv 1605.02065v1, Proposition 3.3; Jordon, Yoon & van der Schaar, NeurIPS 2019). Moments add up, and
    ε = min_l (Σ + ln 1/δ)/l (Abadi et al. 2016, Theorem 2).

    Parameters
    ----------
    reach : array-like, shape (n_owners, n_queries)
        From :func:`sensitive_reach`, or what is supposed.
    gamma : float
        Inverse scale of the noise, on counts in which every partition together weighs as much as its number
        of teachers.
    delta : float
        For each owner.
    moments : sequence of int
        Which l are looked at.

    Returns
    -------
    ndarray, shape (n_owners,)
        **Sensitive.** Towards removal of the owner's records, from these votes.

    Examples
    --------
    >>> sensitive_epsilon([[1.0] * 100, [0.75] * 100, [0.5] * 100], 0.05, 1e-5).round(6).tolist()
    [5.302585, 3.887571, 2.526293]
    """
    orders = np.array(moments, dtype=np.float64)
    squares = (np.asarray(reach, dtype=np.float64) ** 2).sum(axis=-1)
    bounds = 2 * gamma**2 * squares[:, None] * (orders * (orders + 1)) + math.log(1 / delta)
    return np.asarray((bounds / orders).min(axis=1))
