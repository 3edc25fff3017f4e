"""Mechanisms in which everybody's own budget decides how much they are heard."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.accounting.accountant import Accountant
from collegium.accounting.events import BoundedRange, Laplace, rounded_up
from collegium.accounting.neighbours import Neighbours
from collegium.checks import check_number, check_positive, check_share, shown
from collegium.errors import InputError
from collegium.mechanisms.on_grid import noised
from collegium.mechanisms.people import as_column, as_flags, in_steps, refuse_other_lengths
from collegium.mechanisms.released import Released, charge
from collegium.mechanisms.selection import choose
from collegium.noise.grid import GRID
from collegium.noise.sources import WordSource
from collegium.noise.sums import Noise, NoisySum

STEP: float = 2.0**-30
"""Step of distances; those of a data set are below 2**22."""

_MOST_REACH = 2.0**41  # of all people together: twice that many steps are an int64

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def stretching(
    values: ArrayLike,
    epsilons: ArrayLike,
    lower: float,
    upper: float,
    *,
    unbias: bool = False,
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE,
    noise: NoisySum | None = None,
    query: int = 0,
    account: Accountant | None = None,
) -> Released[float]:
    """Sum values, each shrunk by its owner's preference, and add Laplace noise: the stretching mechanism.

    **Biased.** The sum is Σ v_i·x_i with v_i = ε_i / max ε: of 1,000 ones at v = ⅓, ⅔, 1 and 54/37/9 % it
    expects 516.667. ``unbias=True`` multiplies it by n/Σv_i (here 1.93548), which helps where budgets have
    nothing to do with values, and multiplies the noise. Weights that saturate are better than these.

    Parameters
    ----------
    values : array-like of float, shape (n_people,)
        One per person; beyond the bounds they are clipped.
    epsilons : array-like of float, shape (n_people,)
        ε of each person, above 0. People of one ε are a cohort; the event's cohorts are in ascending order.
    lower, upper : float
        Public bounds of the values.
    unbias : bool, default=False
        Whether the sum is divided by the mean preference, which is public as budgets are.
    neighbours : {ADD_OR_REMOVE, REPLACE}, default=ADD_OR_REMOVE
        Whether a person is there or not (moves the sum by v_i·max(\\|lower\\|, \\|upper\\|)), or has another
        value (by v_i·(upper - lower)).
    noise, query, account
        As in :func:`~collegium.mechanisms.basics.laplace`.

    Returns
    -------
    Released
        The sum, and a :class:`~collegium.accounting.events.Laplace`: person i pays at most ε_i.

    Raises
    ------
    InputError
        If something is no number, or out of its range, or neighbours are others.
    BudgetExceededError
        If the account refuses. Nothing is drawn then.

    Notes
    -----
    Alaggan, Gambs & Kermarrec [1]_, §3.2, for a sum: the function is applied to T·x with a diagonal T of
    preferences, so person i moves it by at most v_i·Δ, and Laplace noise for Δ and max ε costs v_i·max ε =
    ε_i. It holds for sums because they are linear. For a median, a maximum or a model shrinking a *value*
    does not shrink its influence (shrunk incomes still change places), and the authors search a T for each
    function.

    References
    ----------
    .. [1] M. Alaggan, S. Gambs, A.-M. Kermarrec, "Heterogeneous differential privacy", Journal of Privacy and
       Confidentiality 7(2), 2017, arXiv 1504.06998.

    Examples
    --------
    >>> from collegium.noise.sources import SeededNoise
    >>> epsilons = np.repeat([1.0, 2.0, 3.0], [540, 370, 90])
    >>> total = stretching(np.ones(1000), epsilons, 0.0, 1.0, noise=SeededNoise(0))
    >>> round(total.value), total.event.pure_epsilon.round(4).tolist()
    (516, [1.0, 2.0, 3.0])
    """
    given, budgets = as_column("values", values, finite=False), _budgets(epsilons)
    refuse_other_lengths(values=given, epsilons=budgets)
    check_number("lower", lower, above=-np.inf, below=np.inf)
    check_number("upper", upper, above=float(lower), below=np.inf)
    if neighbours is Neighbours.ADD_OR_REMOVE:
        offset, reach = 0.0, max(abs(lower), abs(upper))
    elif neighbours is Neighbours.REPLACE:
        offset, reach = float(lower), float(upper - lower)
    else:
        raise InputError(
            f"stretching is for people who are there or not, or whose values are replaced, not for "
            f"{neighbours.value!r}: use neighbours ADD_OR_REMOVE or REPLACE"
        )
    if reach < GRID:
        raise InputError(
            f"bounds are closer than 2**-20, got {shown(lower)} and {shown(upper)}: give values "
            "in a smaller unit"
        )
    if reach * len(given) >= _MOST_REACH:
        raise InputError("bounds are too wide for so many people: give values in a larger unit")
    kinds, cohort = np.unique(budgets, return_inverse=True)
    most = np.rint(kinds / kinds[-1] * (reach / GRID))  # steps by which one person moves the sum
    scale = float((most * GRID / kinds).max()) * (1 + 2.0**-48)
    share = most / (reach / GRID)
    steps = np.rint((np.clip(given, lower, upper) - offset) * share[cohort] / GRID)
    total = int(np.clip(steps, -most[cohort], most[cohort]).astype(np.int64).sum())
    event = Laplace(most * GRID, float(np.nextafter(1 / scale, np.inf)), neighbours=neighbours)
    its = Noise.in_votes("laplace", scale)
    charge(account, event)
    noisy = noised(np.array([total]), its, noise, query=query, purpose="stretching")
    public = offset * float(share[cohort].sum())
    factor = len(given) / float(share[cohort].sum()) if unbias else 1.0
    return Released(factor * (float(noisy[0]) + public), event)


def personalised_exponential(
    distances: ArrayLike,
    epsilons: ArrayLike,
    *,
    exact: bool = False,
    neighbours: Neighbours = Neighbours.REPLACE,
    noise: WordSource | None = None,
    query: int = 0,
    account: Accountant | None = None,
) -> Released[int]:
    """Choose a result, the likelier the less of people's budgets must change for it to be the true one.

    Pr(r) ∝ exp(-½·d_r), where d_r is the least Σ ε_o over the people o who must have other records for the
    function to give r. :func:`count_distances` and :func:`median_distances` compute it.

    Parameters
    ----------
    distances : array-like of float, shape (n_results,)
        d_r of each possible result, at least 0 and below 2**22; of these a person of budget ε_o moves each
        by at most ε_o. Results that cannot be reached have no place among them.
    epsilons : array-like of float, shape (n_people,)
        ε of each person, above 0. People of one ε are a cohort; the event's cohorts are in ascending order.
    exact : bool, default=False
        Whether distances are sums of budgets that were rounded down to multiples of 2**-30, as the functions
        beside this one make them. Otherwise one such step more is charged, for rounding.
    neighbours : Neighbours, default=REPLACE
        What the distances are about: of what kind a change is. Those of :func:`median_distances` hold for
        replacement alone; for those of :func:`count_distances`, ``ANY_CHANGE`` is true as well.
    noise, query, account
        As in :func:`~collegium.mechanisms.selection.exponential`.

    Returns
    -------
    Released
        Position of the result, and a :class:`~collegium.accounting.events.BoundedRange` of η = ε_i.

    Raises
    ------
    InputError
        If something is no number, or out of its range.
    BudgetExceededError
        If the account refuses. Nothing is drawn then.

    Notes
    -----
    Definition 10 of Jorgensen, Yu & Cormode [1]_. Proof: d is a shortest path in a graph in
    which a step that changes person o costs ε_o, so a neighbour in o's records has every d_r within ±ε_o;
    log-odds move by half of at most 2·ε_o. They claim ε_o-DP; the range is ε_o as well, which
    composes better. Where the function is a sum of weights, weighted sums with noise or
    :func:`~collegium.mechanisms.quantiles.weighted_quantile` are cheaper to compute, and no worse.

    References
    ----------
    .. [1] Z. Jorgensen, T. Yu, G. Cormode, "Conservative or liberal? Personalized differential privacy",
       ICDE 2015.

    Examples
    --------
    >>> from collegium.noise.sources import SeededNoise
    >>> has_it, epsilons = [True, True, False, False, False], [0.5, 2.0, 2.0, 1.0, 0.5]
    >>> distances = count_distances(has_it, epsilons)
    >>> distances.tolist()
    [2.5, 0.5, 0.0, 0.5, 1.5, 3.5]
    >>> count = personalised_exponential(distances, epsilons, exact=True, noise=SeededNoise(1))
    >>> count.value, count.event.eta.tolist()
    (3, [0.5, 1.0, 2.0])
    """
    kinds = np.unique(in_steps("epsilons", _budgets(epsilons), STEP))
    steps = _distance_steps(distances)
    ranges: Floats = np.asarray((kinds if exact else kinds + 1) * STEP, dtype=np.float64)
    event = BoundedRange(ranges, neighbours=neighbours)
    charge(account, event)
    place = choose(-steps, unit=STEP / 2, noise=noise, query=query, purpose="personalised")
    return Released(int(place), event)


def count_distances(has_it: ArrayLike, epsilons: ArrayLike) -> Floats:
    """How much of people's budgets must change for each count from 0 to n_people to be the true one.

    For a smaller count the cheapest of those who have it must lose it, for a larger one the cheapest of the
    others must gain it. A person who is not there does not have it: distances are about any change.

    Parameters
    ----------
    has_it : array-like of bool, shape (n_people,)
        Who is counted.
    epsilons : array-like of float, shape (n_people,)
        ε of each person.

    Returns
    -------
    ndarray, shape (n_people + 1,)
        Multiples of 2**-30.
    """
    having = as_flags("has_it", has_it)
    steps = in_steps("epsilons", _budgets(epsilons), STEP)
    refuse_other_lengths(has_it=having, epsilons=steps)
    fewer = np.cumsum(np.sort(steps[having]))[::-1]
    more = np.cumsum(np.sort(steps[~having]))
    return np.asarray(np.concatenate([fewer, [0], more]) * STEP)


def median_distances(values: ArrayLike, epsilons: ArrayLike, candidates: ArrayLike) -> Floats:
    """How much of people's budgets must be replaced for each candidate to be the lower median.

    The lower median of n values is the ⌈n/2⌉-th smallest. A candidate becomes it if the cheapest people on
    the side that is too heavy have the candidate instead. Distances are about values that are replaced, and
    nothing else: a person who goes moves all ranks, and may lose ten times their ε. With people who come or
    go, :func:`~collegium.mechanisms.quantiles.weighted_quantile` is the mechanism.

    Parameters
    ----------
    values, epsilons : array-like of float, shape (n_people,)
        Value and ε of each person.
    candidates : array-like of float, shape (n_candidates,)
        Public.

    Returns
    -------
    ndarray, shape (n_candidates,)
        Multiples of 2**-30.
    """
    given, results = as_column("values", values, finite=False), as_column("candidates", candidates)
    steps = in_steps("epsilons", _budgets(epsilons), STEP)
    refuse_other_lengths(values=given, epsilons=steps)
    middle = (len(given) + 1) // 2
    kinds = np.unique(steps)
    below, upto = (np.zeros((len(kinds), len(results)), dtype=np.int64) for _ in range(2))
    for number, kind in enumerate(kinds):
        own = np.sort(given[steps == kind])
        below[number] = np.searchsorted(own, results, side="left")
        upto[number] = np.searchsorted(own, results, side="right")
    people = np.array([(steps == kind).sum() for kind in kinds])
    too_many = np.maximum(below.sum(axis=0) - middle + 1, 0)
    too_few = np.maximum(middle - upto.sum(axis=0), 0)
    moved = _cheapest(below, too_many, kinds) + _cheapest(people[:, None] - upto, too_few, kinds)
    return np.asarray(moved * STEP)


def utility_aware(
    distances: ArrayLike,
    deviations: ArrayLike,
    epsilons: ArrayLike,
    sensitivity: float,
    *,
    share: float = 0.5,
    neighbours: Neighbours = Neighbours.REPLACE,
    noise: WordSource | None = None,
    query: int = 0,
    account: Accountant | None = None,
) -> Released[int]:
    """Choose a result by budgets that must change and by how far off it is: **a corrected score**.

    Niu et al. [1]_ (Definition 6, as the thesis states it) take Pr(r) ∝ exp(-d_r - z_r), with z_r = \\|f(D)
    - r\\|. That is *not* private: z moves with the data whatever budgets say. For a count of ten people at
    ε = 0.1 each it loses 1.3005. Here both are weighed within what everybody granted: Pr(r) ∝ exp(-½·((1 -
    share)·d_r + share·(min ε/Δ)·z_r)). It is a correction of ours, not the paper's.

    Parameters
    ----------
    distances : array-like of float, shape (n_results,)
        As in :func:`personalised_exponential`.
    deviations : array-like of float, shape (n_results,)
        z_r = \\|f(D) - r\\|, or any penalty at least 0 that one person moves by at most ``sensitivity``.
    epsilons : array-like of float, shape (n_people,)
        ε of each person, above 0.
    sensitivity : float
        How far one person moves any deviation, towards the neighbours that are named.
    share : float, default=0.5
        In [0, 1]: how much of the strictest budget goes to deviations.
    neighbours, noise, query, account
        As in :func:`personalised_exponential`.

    Returns
    -------
    Released
        Position of the result, and a :class:`~collegium.accounting.events.BoundedRange` of
        η = (1 - share)·ε_i + share·min ε, which is at most ε_i (but for one step of 2**-30 for rounding).

    Raises
    ------
    InputError
        If something is no number, or out of its range.
    BudgetExceededError
        If the account refuses. Nothing is drawn then.

    Notes
    -----
    A neighbour in person i moves d_r by at most ε_i and z_r by at most Δ, so the score by at most ½·((1 -
    share)·ε_i + share·min ε) either way. Deviations know one budget only, the strictest: whoever grants
    more is not heard more by them, so this is rarely better than :func:`personalised_exponential` alone.

    References
    ----------
    .. [1] B. Niu, Y. Chen, B. Wang, J. Cao, F. Li, "Utility-aware exponential mechanism for personalized
       differential privacy", IEEE WCNC 2020.

    Examples
    --------
    >>> from collegium.noise.sources import SeededNoise
    >>> has_it, epsilons = [True, True, False, False, False], [0.5, 2.0, 2.0, 1.0, 0.5]
    >>> off = np.abs(np.arange(6) - 2.0)
    >>> count = utility_aware(count_distances(has_it, epsilons), off, epsilons, 1.0, noise=SeededNoise(1))
    >>> count.event.eta.round(6).tolist()
    [0.5, 0.75, 1.25]
    """
    kinds: Floats = (
        np.unique(in_steps("epsilons", _budgets(epsilons), STEP)).astype(np.float64) * STEP
    )
    check_positive("sensitivity", sensitivity)
    check_share("share", share)
    penalty = as_column("deviations", deviations)
    near = _distance_steps(distances) * STEP
    refuse_other_lengths(distances=near, deviations=penalty)
    if (penalty < 0).any():
        raise InputError("deviations must be at least 0, and one is not: correct it")
    together = (1 - share) * near + share * (float(kinds[0]) / sensitivity) * penalty
    steps = _distance_steps(together)
    ranges = rounded_up((1 - share) * kinds + share * float(kinds[0]) + STEP)
    event = BoundedRange(ranges, neighbours=neighbours)
    charge(account, event)
    place = choose(-steps, unit=STEP / 2, noise=noise, query=query, purpose="utility aware")
    return Released(int(place), event)


def _budgets(epsilons: ArrayLike) -> Floats:
    budgets = as_column("epsilons", epsilons)
    if (budgets < STEP).any():
        raise InputError("epsilons must be above 0: leave out people who grant nothing")
    return budgets


def _distance_steps(distances: ArrayLike) -> Integers:
    """Distances in steps; longer ones than 2**22 (chances below exp(-2**21)) are as long as that."""
    column = as_column("distances", distances)
    if (column < 0).any():
        raise InputError("distances must be at least 0, and one is not: correct it")
    return np.rint(np.minimum(column, 2.0**22) / STEP).astype(np.int64)


def _cheapest(people: Integers, needed: Integers, cost: Integers) -> Integers:
    """Least cost of so many people, of whom there are ``people[kind]`` at ascending ``cost[kind]``."""
    total, missing = np.zeros_like(needed), needed.copy()
    for number, price in enumerate(cost.tolist()):
        taken = np.minimum(people[number], missing)
        total += taken * price
        missing -= taken
    return total
