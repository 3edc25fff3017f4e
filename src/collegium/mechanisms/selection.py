"""Mechanisms that choose one of several candidates by their private scores."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.accounting.accountant import Accountant
from collegium.accounting.events import BoundedRange, PureNoise, rounded_up
from collegium.accounting.neighbours import Neighbours
from collegium.checks import check_positive, check_whole
from collegium.errors import InputError
from collegium.mechanisms.on_grid import as_rounded, noised, per_cohort, source_of, to_steps
from collegium.mechanisms.released import Released, charge
from collegium.noise.exact_choice import (
    MAX_SCORE,
    are_accepted,
    draw_candidates,
    is_accepted,
    whole_below,
)
from collegium.noise.grid import GRID
from collegium.noise.sources import WordSource
from collegium.noise.sums import Noise, NoisySum

_MOST_DRAWS = 10_000_000  # at once
Floats = NDArray[np.float64]
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
    table = _checked_scores(scores, unit)
    if draws is not None:
        check_whole("draws", draws, most=_MOST_DRAWS)
    words = source_of(noise).words(query=query, purpose=purpose)
    rows = np.atleast_2d(table.astype(np.int64))
    chosen = np.stack([draw_candidates(row, float(unit), draws or 1, words) for row in rows])
    return chosen.reshape(table.shape[:-1] + (() if draws is None else (draws,)))


def choose_by_coins(
    scores: ArrayLike,
    *,
    unit: float = GRID,
    noise: WordSource | None = None,
    query: int = 0,
    purpose: str = "choice",
) -> NDArray[np.intp]:
    """Draw candidates as permute-and-flip does; parameters and errors as for :func:`choose`.

    The bare draw: it knows nothing of people and states no event; :func:`permute_and_flip` does.

    Returns
    -------
    ndarray of int, shape () or (n_groups,)
        Positions of the candidates that were drawn.

    Notes
    -----
    A candidate's coin does not depend on when its turn comes, so the first that is accepted in random order
    is one of all that would be, each as likely: all coins are tossed at once.

    Examples
    --------
    >>> from collegium.noise.sources import SeededNoise
    >>> drawn = [int(choose_by_coins([0, -1], unit=1.0, noise=SeededNoise(i))) for i in range(4000)]
    >>> round(float(np.mean(drawn)), 2), round(float(np.exp(-1) / 2), 2)
    (0.18, 0.18)
    """
    table = _checked_scores(scores, unit)
    words = source_of(noise).words(query=query, purpose=purpose)
    chosen = []
    for row in np.atleast_2d(table.astype(np.int64)):
        heads = np.flatnonzero(are_accepted(row - row.max(), float(unit), words))
        chosen.append(heads[whole_below(len(heads), words)])
    return np.array(chosen, dtype=np.intp).reshape(table.shape[:-1])


def exponential(
    scores: ArrayLike,
    sensitivity: ArrayLike,
    scale: float,
    *,
    monotone: bool = False,
    exact: bool = False,
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE,
    noise: WordSource | None = None,
    query: int = 0,
    account: Accountant | None = None,
) -> Released[int]:
    """Choose a candidate with a probability proportional to exp(score/scale).

    Parameters
    ----------
    scores : array-like of float, shape (n_candidates,)
        How good each candidate is. Beyond ±2**33 they are clipped; they are rounded to multiples of 2**-20.
    sensitivity : float or array-like, shape (n_cohorts,)
        How far an owner of each cohort moves any one score towards the neighbours that are named.
    scale : float
        For ε: 2·sensitivity/ε, or half of that where scores are monotone.
    monotone : bool, default=False
        Whether an owner moves all scores in the same direction, as with counts and owners who come or go.
    exact : bool, default=False
        Whether scores are multiples of 2**-20 on every data set, as counts are. Otherwise one step more
        is charged.
    neighbours : Neighbours, default=ADD_OR_REMOVE
        What the sensitivity is about.
    noise, query : SecureNoise or SeededNoise, int
        As in :func:`choose`.
    account : Accountant, optional
        Charged before anything is drawn.

    Returns
    -------
    Released
        The candidate's position, and a :class:`~collegium.accounting.events.BoundedRange` of
        η = 2·sensitivity/scale, or half of that.

    Raises
    ------
    InputError
        If something is no number, or out of its range.
    BudgetExceededError
        If the account refuses. Nothing is drawn then.

    Notes
    -----
    Theorem 6 of McSherry & Talwar [1]_: (η, 0)-DP. More is true: the log-ratios of all candidates lie in an
    interval of length η (Durfee & Rogers [2]_), so it composes like a mechanism of half the ε
    (``docs/vote-accounts.md``). For a single choice at a pure ε :func:`permute_and_flip` is never worse; for
    many choices this one is better.

    References
    ----------
    .. [1] F. McSherry, K. Talwar, "Mechanism design via differential privacy", FOCS 2007.
    .. [2] D. Durfee, R. Rogers, "Practical differentially private top-k selection with
       pay-what-you-get composition", NeurIPS 2019, arXiv 1905.04273.

    Examples
    --------
    >>> from collegium.noise.sources import SeededNoise
    >>> votes = [30, 25, 3]
    >>> chosen = exponential(votes, 1.0, 2.0, monotone=True, exact=True, noise=SeededNoise(0))
    >>> chosen.value, chosen.event.eta
    (0, array([0.5]))
    """
    steps, unit, moved = _scored(scores, sensitivity, scale, exact)
    event = BoundedRange(_range(moved, unit, monotone), neighbours=neighbours)
    charge(account, event)
    place = choose(steps, unit=unit, noise=noise, query=query, purpose="exponential mechanism")
    return Released(int(place), event)


def permute_and_flip(
    scores: ArrayLike,
    sensitivity: ArrayLike,
    scale: float,
    *,
    monotone: bool = False,
    exact: bool = False,
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE,
    noise: WordSource | None = None,
    query: int = 0,
    account: Accountant | None = None,
) -> Released[int]:
    """Choose a candidate: in random order, each is taken with probability exp((score - largest)/scale).

    Never worse than :func:`exponential` at the same pure ε: candidates that are much worse than the best
    are less likely, and the expected score is at most half as far from the largest as there, and never
    farther.

    Parameters
    ----------
    scores, sensitivity, scale, monotone, exact, neighbours, noise, query, account
        As in :func:`exponential`.

    Returns
    -------
    Released
        The candidate's position, and a :class:`~collegium.accounting.events.PureNoise` of
        ε = 2·sensitivity/scale, or half of that where scores are monotone.

    Raises
    ------
    InputError
        If something is no number, or out of its range.
    BudgetExceededError
        If the account refuses. Nothing is drawn then.

    Notes
    -----
    Algorithm 1 of McKenna & Sheldon [1]_, who prove that it is private and never worse. It is the report
    of a noisy maximum with exponential noise (Ding et al., arXiv 2105.07260), so the proof of
    :func:`report_noisy_max` holds; order and coins are drawn exactly. Its range is 2ε, not ε: over many
    choices it composes like any mechanism of its ε, and the exponential mechanism is then better.

    References
    ----------
    .. [1] R. McKenna, D. Sheldon, "Permute-and-flip: a new mechanism for differentially private selection",
       NeurIPS 2020, arXiv 2010.12603.

    Examples
    --------
    >>> from collegium.noise.sources import SeededNoise
    >>> chosen = permute_and_flip([60, 25, 3], 1.0, 4.0, exact=True, noise=SeededNoise(0))
    >>> chosen.value, chosen.event.epsilon
    (0, array([0.5]))
    """
    steps, unit, moved = _scored(scores, sensitivity, scale, exact)
    event = PureNoise(_range(moved, unit, monotone), neighbours=neighbours)
    charge(account, event)
    words = source_of(noise).words(query=query, purpose="permute and flip")
    below, left = (steps - steps.max()).tolist(), list(range(len(steps)))
    while True:  # the best is taken when its turn comes
        turn = whole_below(len(left), words)
        left[turn], left[-1] = left[-1], left[turn]
        candidate = left.pop()
        if is_accepted(below[candidate], unit, words):
            return Released(candidate, event)


def report_noisy_max(
    scores: ArrayLike,
    sensitivity: ArrayLike,
    scale: float,
    *,
    monotone: bool = False,
    exact: bool = False,
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE,
    noise: NoisySum | None = None,
    query: int = 0,
    account: Accountant | None = None,
) -> Released[int]:
    """Add Laplace noise to all scores, and release which one is the largest, and nothing else.

    Here because every course has it. :func:`permute_and_flip` has the same price and is better.

    Parameters
    ----------
    scores, sensitivity, monotone, exact, neighbours, account
        As in :func:`exponential`.
    scale : float
        Of the Laplace noise. For ε: 2·sensitivity/ε, or half of that where scores are monotone.
    noise, query : SecureNoise or SeededNoise, int
        Where the noise comes from.

    Returns
    -------
    Released
        The candidate's position, and a :class:`~collegium.accounting.events.PureNoise` of
        ε = 2·sensitivity/scale, or half of that where scores are monotone.

    Raises
    ------
    InputError
        If something is no number, or out of its range.
    BudgetExceededError
        If the account refuses. Nothing is drawn then.

    Notes
    -----
    Claim 3.9 of Dwork & Roth [1]_, for counts and owners who come or go: Lap(1/ε) on each. That needs
    counts that all move the same way: where one may rise while another falls, the same noise costs 2ε, and
    that is what is charged unless ``monotone`` says otherwise. Proof: fix everybody else's noise; a
    candidate wins if its own noise K reaches some M (ties go to the first, which only fixes M). A neighbour
    moves M by at most 2Δ (Δ, if monotone), and Pr[K >= t + d] >= e^(-d/scale) Pr[K >= t] for the rounded
    Laplace noise as well. The noisy maximum itself is not covered.

    References
    ----------
    .. [1] C. Dwork, A. Roth, "The algorithmic foundations of differential privacy", 2014, Claim 3.9.

    Examples
    --------
    >>> from collegium.noise.sources import SeededNoise
    >>> chosen = report_noisy_max([30, 25, 3], 1.0, 2.0, monotone=True, exact=True, noise=SeededNoise(0))
    >>> chosen.value, chosen.event.epsilon.round(9)
    (0, array([0.5]))
    """
    steps, unit, moved = _scored(scores, sensitivity, scale, exact)
    event = PureNoise(rounded_up(_range(moved, unit, monotone)), neighbours=neighbours)
    its = Noise.in_votes("laplace", scale)
    charge(account, event)
    noisy = noised(steps, its, noise, query=query, purpose="report noisy max")
    return Released(int(np.argmax(noisy)), event)


def _checked_scores(scores: ArrayLike, unit: float) -> NDArray[np.integer]:
    try:
        table = np.asarray(scores)
    except ValueError:
        raise InputError("scores must be a table: its rows have different lengths") from None
    if table.dtype.kind not in "iu" or table.ndim not in (1, 2) or not table.size:
        raise InputError(
            "scores must be whole numbers, one for each candidate (a row for each group), got "
            f"{table.dtype} of shape {table.shape}: give them in steps of unit"
        )
    if table.max() >= MAX_SCORE or table.min() <= -MAX_SCORE:
        raise InputError("a score is 2**62 or more in magnitude: use a larger unit")
    check_positive("unit", unit)
    return table


def _scored(
    scores: ArrayLike, sensitivity: ArrayLike, scale: float, exact: bool
) -> tuple[Integers, float, Floats]:
    """Scores in steps, one step in units of the scale, and how far an owner moves a rounded score."""
    steps = np.atleast_1d(to_steps("scores", scores, exact=exact))
    check_positive("scale", scale)
    moved = as_rounded(per_cohort("sensitivity", sensitivity), 1, 1, exact=exact)
    if not 0 < scale / GRID < math.inf or not 2 * float(moved.max()) / scale < math.inf:
        raise InputError(
            f"a scale of {scale:g} for a sensitivity of {moved.max():g} is too far from 1 to be computed "
            "with: state scores in another unit"
        )
    return steps, GRID / scale, moved


def _range(moved: Floats, unit: float, monotone: bool) -> Floats:
    """How far two scores move apart, in units of the scale: exact where no float is rounded."""
    apart = moved * (1 if monotone else 2)
    ranges = apart * (unit / GRID)
    is_exact = all(
        Fraction(one) * Fraction(unit) / Fraction(GRID) == Fraction(found)
        for one, found in zip(apart.tolist(), ranges.tolist(), strict=True)
    )
    return ranges if is_exact else rounded_up(ranges)
