"""Cost profiles of GNMax answers and threshold checks: today's cost, and how far owners can move it.

Per query. A cost C is a nonincreasing function of one number, the *margin* g >= 0, which one owner
moves by at most ell * Delta:

- answer: ell = 2 and (n_classes - 1) Phi(-g / (sqrt(2) sigma)) = q, the union bound of Papernot et
  al. 2018 (arXiv 1802.08908v1), Proposition 7: the gap that would give q if all gaps were equal.
  As p -> Phi(Phi^-1(p) + c) is concave for c >= 0 and convex for c <= 0, Jensen's inequality bounds
  its change by that of the largest gap, 2 Delta; this is the pair B_U, B_L of their Appendix B.
- check: ell = 1 and g = abs(largest count - T).

So whatever happens within k steps, and to the owner after them, the cost changes by at most the
largest C(g) - C(g + ell Delta) with g in [G - ell (k step + Delta), G + ell k step], G being the
margin of the actual votes. The paper evaluates C at the two ends only and needs conditions (C1-C6)
for that to be the largest; here the whole window is searched on a grid, rounded up, and the only
condition is that C falls in g (see :mod:`collegium.accounting.votes.noisy_max`). No case distinction is
needed where the most voted class changes.

The answers of Confident- and Interactive-GNMax are GNMax answers of the queries that passed. All
checks are charged; where they are charged their data-independent cost, nobody can change it.

Everything that depends on votes here is **sensitive**.

References
----------
N. Papernot, S. Song, I. Mironov, A. Raghunathan, K. Talwar, U. Erlingsson. Scalable Private
Learning with PATE. ICLR 2018; arXiv 1802.08908v1: Proposition 7, Theorem 6, Appendix B.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtri_exp

from collegium.accounting.votes.noisy_max import gnmax_log_q, gnmax_rdp, threshold_rdp
from collegium.errors import InputError
from reproduction.smooth.inputs import Floats, nonnegative, numbers, positive
from reproduction.smooth.margins import SLACK, Margins, Window, rounding_of
from reproduction.smooth.smooth_sensitivity import CostProfile, Owners

__all__ = ["answer_profile", "check_profile", "constant_profile"]


def answer_profile(
    counts: ArrayLike,
    owners: Owners,
    sigma: float,
    *,
    total: float,
    charged: ArrayLike | None = None,
) -> CostProfile:
    """Profile of GNMax answers.

    Parameters
    ----------
    counts : array-like of shape (n_queries, n_classes)
        Weighted vote counts of the *answered* queries, before noise.
    owners : Owners
        Sensitivities in the unit of the counts, orders, steps.
    sigma : float
        Standard deviation of the noise on every count, in votes.
    total : float
        Public upper bound on the weight of all votes of a query.
    charged : array-like of bool, shape (n_queries, n_groups), optional
        Public: which queries each group's owners are charged for (vanishing); default: all. The
        owner who changes is taken to move votes of every query, which is conservative.

    Returns
    -------
    CostProfile
        **Sensitive.**

    Raises
    ------
    InputError
        If counts are not a finite, non-negative table or exceed the total, or a public number is
        out of range.

    Examples
    --------
    >>> votes = [[240.0, 10.0], [180.0, 70.0]]
    >>> profile = answer_profile(votes, Owners([1.0], 20.0), 40.0, total=250.0)
    >>> profile.worst_case
    array([0.025])
    """
    bound = positive("total", total)
    noise = positive("sigma", sigma)
    log_q = gnmax_log_q(counts, noise)  # refuses what is no table of votes
    table = np.asarray(counts, dtype=np.float64)
    if (table.sum(axis=1) > bound * (1 + 1e-9)).any():
        raise InputError("counts exceed the total weight of votes; pass the public total.")
    scale = math.sqrt(2) * noise
    log_others = math.log(table.shape[1] - 1)
    log_cap = math.log1p(-1 / table.shape[1])

    def cost(margin: Floats, delta: float, order: float) -> Floats:
        log_q = np.minimum(log_others + log_ndtr(-margin / scale), log_cap)
        return gnmax_rdp(log_q, [delta], noise, [order])[:, 0, 0]

    rounding = rounding_of(bound, noise)
    margin = -scale * ndtri_exp(log_q - log_others)
    margins = Margins(
        np.clip(margin - rounding, 0.0, bound), bound, reach=2.0, rounding=rounding, cost=cost
    )
    worst = np.asarray(owners.orders) * (np.asarray(owners.sensitivity) / noise) ** 2
    return _profile(margins, owners, worst, charged)


def check_profile(
    max_count: ArrayLike,
    owners: Owners,
    threshold: float,
    sigma_threshold: float,
    *,
    total: float,
    charged: ArrayLike | None = None,
) -> CostProfile:
    """Profile of data-dependent threshold checks, of Confident- and of Interactive-GNMax.

    Where checks are charged their data-independent cost, use :func:`constant_profile`.

    Parameters
    ----------
    max_count : array-like of shape (n_queries,)
        What the checks noise, for *every* query asked: the largest count, or (Interactive) the
        largest difference to the public prediction times the total.
    owners : Owners
        Sensitivities in the unit of the counts, orders, steps.
    threshold, sigma_threshold : float
        In votes.
    total : float
        Public upper bound on the weight of all votes of a query.
    charged : array-like of bool, shape (n_queries, n_groups), optional
        As for :func:`answer_profile`.

    Returns
    -------
    CostProfile
        **Sensitive.**

    Raises
    ------
    InputError
        If max_count is not finite or exceeds the total, or a public number is out of range.

    Examples
    --------
    >>> owners = Owners([1.0], 20.0)
    >>> check_profile([249.0, 90.0], owners, 200.0, 150.0, total=250.0).worst_case.round(6)
    array([0.000889])
    """
    largest = np.atleast_1d(numbers("max_count", max_count))
    bound = positive("total", total)
    noise = positive("sigma_threshold", sigma_threshold)
    limit = numbers("threshold", threshold)
    if limit.ndim or not np.isfinite(limit):
        raise InputError(f"threshold must be one finite number, got {threshold}.")
    if largest.ndim != 1 or not (np.abs(largest) <= bound * (1 + 1e-9)).all():
        raise InputError(
            "max_count must have shape (n_queries,) and lie within the total weight of votes; "
            "pass one per query, and the public total."
        )

    def cost(margin: Floats, delta: float, order: float) -> Floats:
        return threshold_rdp(log_ndtr(-margin / noise), [delta], noise, [order])[:, 0, 0]

    furthest = bound + abs(float(limit))
    rounding = rounding_of(furthest, noise)
    margin = np.clip(np.abs(largest - limit) - rounding, 0.0, furthest)
    margins = Margins(margin, furthest, reach=1.0, rounding=rounding, cost=cost)
    worst = np.asarray(owners.orders) * (np.asarray(owners.sensitivity) / noise) ** 2 / 2
    return _profile(margins, owners, worst, charged)


def constant_profile(cost: ArrayLike, owners: Owners) -> CostProfile:
    """Profile of costs that do not depend on votes, such as data-independent checks.

    Parameters
    ----------
    cost : array-like of shape (n_groups,)
        Total Rényi cost of each group at its order, public.
    owners : Owners
        The owners of the profiles that this one is added to.

    Returns
    -------
    CostProfile
        Nobody can change it.

    Raises
    ------
    InputError
        If a cost is negative or there is not one per group.

    Examples
    --------
    >>> constant_profile([0.25], Owners([1.0], 20.0)).sensitive_cost
    array([0.25])
    """
    public = nonnegative("cost", cost)
    orders, steps = np.asarray(owners.orders), np.asarray(owners.steps)
    if public.shape != orders.shape:
        raise InputError(f"cost must be one per group ({orders.size}), got shape {public.shape}.")
    nothing = np.zeros((orders.size, orders.size, owners.n_distances))
    return CostProfile(orders, steps, public, public, nothing)


def _profile(
    margins: Margins, owners: Owners, worst: Floats, charged: ArrayLike | None
) -> CostProfile:
    moves, orders = np.asarray(owners.sensitivity), np.asarray(owners.orders)
    n_queries, n_groups = margins.sensitive.size, moves.size
    counted = np.ones((n_queries, n_groups), dtype=bool) if charged is None else np.array(charged)
    if counted.shape != (n_queries, n_groups) or counted.dtype != np.bool_:
        raise InputError(
            f"charged must be booleans of shape ({n_queries}, {n_groups}), got {counted.shape}."
        )
    cost = np.zeros(n_groups)
    change = np.zeros((n_groups, n_groups, owners.n_distances))
    kinds, kind_of = np.unique(np.stack([moves, orders]), axis=1, return_inverse=True)
    movers, mover_of = np.unique(moves, return_inverse=True)
    for kind, (delta, order) in enumerate(kinds.T):
        groups = np.flatnonzero(kind_of.ravel() == kind)
        if delta == 0 or n_queries == 0:
            continue
        single = margins.cost(margins.sensitive, delta, order)
        cost[groups] = single @ counted[:, groups]
        window = Window(margins, owners.step)
        share: Floats = np.stack(
            [np.bincount(window.cell_of, counted[:, group].astype(np.float64)) for group in groups]
        )
        for mover, moved in enumerate(movers):
            if moved:
                found = _changes(window, share, float(moved), (delta, order), owners.n_distances)
                change[np.ix_(groups, np.flatnonzero(mover_of == mover))] = found[:, None]
    upwards = 1 + SLACK
    return CostProfile(
        orders,
        np.asarray(owners.steps),
        worst * counted.sum(axis=0) * upwards,
        cost * upwards,
        change * upwards,
    )


def _changes(
    window: Window,
    share: Floats,
    moved: float,
    kind: tuple[float, float],
    n_distances: int,
) -> Floats:
    """Change of the total cost at each distance, shape (n_groups of this kind, n_distances)."""
    falls = window.falls(moved, *kind)
    found = np.empty((share.shape[0], n_distances))
    for distance in range(n_distances - 1):
        found[:, distance] = share @ falls.at_distance(distance)
    found[:, -1] = share.sum(axis=1) * falls.anywhere
    return np.maximum.accumulate(found, axis=1)
