"""Mechanisms that choose one of several candidates by their private scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.checks import check_positive, check_whole
from collegium.errors import InputError
from collegium.noise.exact_choice import MAX_SCORE, draw_candidates
from collegium.noise.grid import GRID
from collegium.noise.sources import SecureNoise, WordSource

Integers = NDArray[np.int64]


def choose(
    scores: ArrayLike,
    *,
    unit: float = GRID,
    noise: WordSource | None = None,
    query: int = 0,
    purpose: str = "choice",
    draws: int | None = None,
) -> NDArray[np.intp]:
    """Draw candidates with probabilities that are exactly proportional to exp(score).

    The bare draw: it knows nothing of people and states no event; :func:`exponential` does.

    Parameters
    ----------
    scores : array-like of int, shape (n_candidates,) or (n_groups, n_candidates)
        In units of ``unit``; below 2**62 in magnitude.
    unit : float, default=GRID
        Taken as the exact value of the float: Pr[i] = exp(scores[i]·unit) / Σ_j exp(scores[j]·unit).
    noise : SecureNoise or SeededNoise, optional
        Where the bits come from; default: the operating system's randomness.
    query, purpose : int, str
        Names the draw for seeded noise: the same name, seed and scores repeat it.
    draws : int, optional
        How many independent draws from each group; default: one, without an axis of its own.

    Returns
    -------
    ndarray of int, shape (), (n_groups,), (draws,) or (n_groups, draws)
        Positions of the candidates that were drawn.

    Raises
    ------
    InputError
        If scores are no whole numbers, there is none, or one is too large.

    Notes
    -----
    The index is a function of fair bits alone, and has these probabilities whatever floats do; the proof is
    in ``docs/noise.md``.

    Examples
    --------
    >>> from collegium.noise.sources import SeededNoise
    >>> drawn = choose([0, 1, 2], unit=1.0, noise=SeededNoise(0), draws=10_000)
    >>> (np.bincount(drawn) / 10_000).round(2).tolist()
    [0.09, 0.25, 0.66]
    """
    table = np.asarray(scores)
    if table.dtype.kind not in "iu" or table.ndim not in (1, 2) or not table.size:
        raise InputError(
            "scores must be whole numbers, one for each candidate (a row for each group), got "
            f"{table.dtype} of shape {table.shape}: give them in steps of unit"
        )
    if table.max() >= MAX_SCORE or table.min() <= -MAX_SCORE:
        raise InputError("a score is 2**62 or more in magnitude: use a larger unit")
    check_positive("unit", unit)
    if draws is not None:
        check_whole("draws", draws)
    words = (SecureNoise() if noise is None else noise).words(query=query, purpose=purpose)
    rows = np.atleast_2d(table.astype(np.int64))
    chosen = np.stack([draw_candidates(row, float(unit), draws or 1, words) for row in rows])
    return chosen.reshape(table.shape[:-1] + (() if draws is None else (draws,)))
