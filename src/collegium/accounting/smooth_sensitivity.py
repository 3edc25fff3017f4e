"""Smooth sensitivity of data-dependent costs: how far one owner can move what they add up to.

A data-dependent cost is computed from raw votes and must not be published as it is. This module
bounds, for every number of changed owners ("distance"), how much one more owner can change the
total cost of a group, and turns that into a smooth bound, the scale of the noise with which
:mod:`collegium.accounting.smooth_release` publishes the total. Proofs: ``docs/smooth-sensitivity.md``.

Neighbours differ in all records of one owner, who moves at most Delta votes of *every* query: takes
up to Delta votes away from classes and gives up to Delta to others (or to none: abstaining). An
owner of group h counts as ``steps[h]`` steps, a public whole number; one step is as many votes as
make each Delta_h at most steps[h] of them. Distance k is everything within k steps.

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
condition is that C falls in g (see :mod:`collegium.accounting.noisy_max`). No case distinction is
needed where the most voted class changes.

Everything that depends on votes here is **sensitive**.

References
----------
N. Papernot, S. Song, I. Mironov, A. Raghunathan, K. Talwar, U. Erlingsson. Scalable Private
Learning with PATE. ICLR 2018; arXiv 1802.08908v1: Appendix B.
K. Nissim, S. Raskhodnikova, A. Smith. Smooth sensitivity and sampling in private data analysis.
STOC 2007: Definition 2.2 (smooth bound), Section 3 (local sensitivity at distance k).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtri_exp

from collegium.accounting._inputs import (
    FloatArray,
    as_counts,
    as_floats,
    as_nonnegative,
    as_positive_scalar,
)
from collegium.accounting._margins import SLACK, Margins, Window, rounding_of
from collegium.accounting._outcomes import per_group
from collegium.accounting.noisy_max import gnmax_log_q, gnmax_rdp, threshold_rdp
from collegium.accounting.renyi import validate_orders
from collegium.errors import InputError

__all__ = [
    "CostProfile",
    "Owners",
    "answer_profile",
    "check_profile",
    "constant_profile",
    "local_sensitivity",
    "owner_steps",
    "smooth_sensitivity",
]


def owner_steps(sensitivity: ArrayLike, most: int = 64) -> NDArray[np.int64]:
    """Steps that an owner of each group counts as: Delta over the smallest one, rounded up.

    Any positive whole numbers are valid; the closer they are to the ratios of the Deltas, the less
    is lost. Public, as the Deltas are.

    Parameters
    ----------
    sensitivity : array-like of shape (n_groups,)
        Delta of each group, in votes; a group without influence counts as 0 steps.
    most : int, default=64
        Largest number of steps: smaller Deltas than the largest/most are treated as that.

    Returns
    -------
    ndarray of int, shape (n_groups,)

    Examples
    --------
    >>> owner_steps([0.5, 1.0, 1.25])
    array([1, 2, 3])
    """
    moves = per_group(sensitivity)
    positive = moves[moves > 0]
    if not positive.size:
        return np.zeros(moves.size, dtype=np.int64)
    step = max(float(positive.min()), float(positive.max()) / most)
    return np.ceil(moves / step * (1 - 1e-12)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Owners:
    """Public facts about the owners of each group, chosen or known before any vote is seen.

    Attributes
    ----------
    sensitivity : ndarray, shape (n_groups,)
        Delta: votes that one owner of each group can move, in the unit of the counts.
    orders : ndarray, shape (n_groups,)
        The one Rényi order at which each group's cost is published; a number serves all.
    steps : ndarray of int, shape (n_groups,)
        Steps that an owner counts as; the same for all queries of a job. Default: `owner_steps`.
    n_distances : int
        Distances told apart, in steps; the last one stands for all larger ones.

    Raises
    ------
    InputError
        If a Delta is negative, an order not above 1, a group that moves votes counts as no step, or
        the shapes disagree.

    Examples
    --------
    >>> Owners([0.5, 1.0], 20.0).steps
    array([1, 2])
    """

    sensitivity: ArrayLike
    orders: ArrayLike
    steps: ArrayLike | None = None
    n_distances: int = 512

    def __post_init__(self) -> None:
        moves = per_group(self.sensitivity)
        given = self.steps
        steps = as_nonnegative("steps", owner_steps(moves) if given is None else given)
        orders = as_floats("orders", self.orders)
        if orders.ndim == 0:
            orders = np.full(moves.size, float(orders))
        if orders.shape != moves.shape or steps.shape != moves.shape:
            raise InputError(
                f"orders and steps must be one per group ({moves.size}), got shapes "
                f"{orders.shape} and {steps.shape}."
            )
        if (steps != np.floor(steps)).any() or ((steps == 0) & (moves > 0)).any():
            raise InputError(
                "steps must be whole numbers, at least 1 where the sensitivity is above 0; "
                "leave them out to get owner_steps(sensitivity)."
            )
        if self.n_distances < 1:
            raise InputError(f"n_distances must be at least 1, got {self.n_distances}.")
        object.__setattr__(self, "sensitivity", moves)
        object.__setattr__(self, "orders", validate_orders(orders))
        object.__setattr__(self, "steps", steps.astype(np.int64))

    @property
    def step(self) -> float:
        """Votes of one step: each Delta is at most its number of steps times this."""
        moves, steps = np.asarray(self.sensitivity), np.asarray(self.steps)
        return float(np.max(moves[moves > 0] / steps[moves > 0], initial=0.0))


@dataclass(frozen=True, eq=False)
class CostProfile:
    """Total data-dependent cost of some queries at one order per group, and how it can change.

    Profiles of different queries (or of checks and answers) of one job are added with ``+``.

    Attributes
    ----------
    orders : ndarray, shape (n_groups,)
        The order of each group's cost, chosen before the votes were seen. Public.
    steps : ndarray of int, shape (n_groups,)
        Steps that one owner of each group counts as. Public.
    worst_case : ndarray, shape (n_groups,)
        Data-independent cost of the same queries. Public, given which were answered.
    sensitive_cost : ndarray, shape (n_groups,)
        Data-dependent cost, rounded up.
    sensitive_change : ndarray, shape (n_groups, n_groups, n_distances)
        Entry [g, h, k]: how far one owner of group h can change the cost of group g, after any
        change within k steps. Nondecreasing in k. The last distance stands for all that follow.
    """

    orders: FloatArray
    steps: NDArray[np.int64]
    worst_case: FloatArray
    sensitive_cost: FloatArray
    sensitive_change: FloatArray

    def __add__(self, other: "CostProfile") -> "CostProfile":
        """Profile of the queries of both."""
        same = self.sensitive_change.shape == other.sensitive_change.shape
        if not same or (self.orders != other.orders).any() or (self.steps != other.steps).any():
            raise InputError(
                "cost profiles of different groups, orders, steps or distances cannot be added; "
                "compute all profiles of a job with the same orders, steps and n_distances."
            )
        return CostProfile(
            self.orders,
            self.steps,
            (self.worst_case + other.worst_case) * (1 + SLACK),
            (self.sensitive_cost + other.sensitive_cost) * (1 + SLACK),
            (self.sensitive_change + other.sensitive_change) * (1 + SLACK),
        )


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
    table = as_counts(counts)
    bound = as_positive_scalar("total", total)
    noise = as_positive_scalar("sigma", sigma)
    if (table.sum(axis=1) > bound * (1 + 1e-9)).any():
        raise InputError("counts exceed the total weight of votes; pass the public total.")
    scale = math.sqrt(2) * noise
    log_others = math.log(table.shape[1] - 1)
    log_cap = math.log1p(-1 / table.shape[1])

    def cost(margin: FloatArray, delta: float, order: float) -> FloatArray:
        log_q = np.minimum(log_others + log_ndtr(-margin / scale), log_cap)
        return gnmax_rdp(log_q, [delta], noise, [order])[:, 0, 0]

    rounding = rounding_of(bound, noise)
    margin = -scale * ndtri_exp(gnmax_log_q(table, noise) - log_others)
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
    largest = np.atleast_1d(as_floats("max_count", max_count))
    bound = as_positive_scalar("total", total)
    noise = as_positive_scalar("sigma_threshold", sigma_threshold)
    limit = as_floats("threshold", threshold)
    if limit.ndim or not np.isfinite(limit):
        raise InputError(f"threshold must be one finite number, got {threshold}.")
    if largest.ndim != 1 or not (np.abs(largest) <= bound * (1 + 1e-9)).all():
        raise InputError(
            "max_count must have shape (n_queries,) and lie within the total weight of votes; "
            "pass one per query, and the public total."
        )

    def cost(margin: FloatArray, delta: float, order: float) -> FloatArray:
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
    public = as_nonnegative("cost", cost)
    orders, steps = np.asarray(owners.orders), np.asarray(owners.steps)
    if public.shape != orders.shape:
        raise InputError(f"cost must be one per group ({orders.size}), got shape {public.shape}.")
    nothing = np.zeros((orders.size, orders.size, owners.n_distances))
    return CostProfile(orders, steps, public, public, nothing)


def _profile(
    margins: Margins, owners: Owners, worst: FloatArray, charged: ArrayLike | None
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
        share = np.stack([np.bincount(window.cell_of, counted[:, group]) for group in groups])
        for mover, moved in enumerate(movers):
            if moved:
                found = _changes(window, share, moved, (delta, order), owners.n_distances)
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
    share: FloatArray,
    moved: float,
    kind: tuple[float, float],
    n_distances: int,
) -> FloatArray:
    """Change of the total cost at each distance, shape (n_groups of this kind, n_distances)."""
    falls = window.falls(moved, *kind)
    found = np.empty((share.shape[0], n_distances))
    for distance in range(n_distances - 1):
        found[:, distance] = share @ falls.at_distance(distance)
    found[:, -1] = share.sum(axis=1) * falls.anywhere
    return np.maximum.accumulate(found, axis=1)


def local_sensitivity(profile: CostProfile, distance: int = 0) -> FloatArray:
    """Bound the change of each group's cost by one owner of each group. Sensitive.

    Parameters
    ----------
    profile : CostProfile
        Of all queries.
    distance : int, default=0
        Steps by which the data may have changed before; 0 is the local sensitivity itself.

    Returns
    -------
    ndarray of shape (n_groups, n_groups)
        Entry [g, h]: group g's cost, changed by an owner of group h.

    Raises
    ------
    InputError
        If the distance is negative.

    Examples
    --------
    >>> owners = Owners([1.0], 20.0)
    >>> profile = answer_profile([[150.0, 100.0]], owners, 40.0, total=250.0)
    >>> local_sensitivity(profile) <= local_sensitivity(profile, 5)
    array([[ True]])
    """
    if distance < 0:
        raise InputError(f"distance must be at least 0 steps, got {distance}.")
    last = profile.sensitive_change.shape[2] - 1
    return np.array(profile.sensitive_change[:, :, min(distance, last)])


def smooth_sensitivity(profile: CostProfile, beta: float) -> FloatArray:
    """Smooth bound on the change of each group's cost, per step. Sensitive.

    S_g = max over distances k of exp(-beta k) max over groups h of change[g, h, k] / steps[h].
    For neighbours that differ in an owner of group h: the cost of g differs by at most
    steps[h] min(S_g, S_g'), and S_g by a factor of at most exp(beta steps[h]) (Nissim,
    Raskhodnikova & Smith 2007, Definition 2.2, with a metric of whole steps in place of the
    number of changed rows).

    Parameters
    ----------
    profile : CostProfile
        Of all queries.
    beta : float
        Smoothness per step, above 0; chosen before the votes were seen.

    Returns
    -------
    ndarray of shape (n_groups,)
        In units of Rényi cost per step.

    Raises
    ------
    InputError
        If beta is not positive.

    Examples
    --------
    >>> owners = Owners([0.5, 1.0], 20.0)
    >>> profile = answer_profile([[150.0, 100.0]], owners, 40.0, total=250.0)
    >>> bool((smooth_sensitivity(profile, 0.1) >= smooth_sensitivity(profile, 0.2)).all())
    True
    """
    rate = as_positive_scalar("beta", beta)
    steps = np.maximum(profile.steps, 1)[:, None]
    per_step = (profile.sensitive_change / steps).max(axis=1)
    discount = np.exp(-rate * np.arange(per_step.shape[1]))
    return np.asarray((per_step * discount).max(axis=1) * (1 + SLACK))
