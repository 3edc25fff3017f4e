"""Smooth sensitivity of data-dependent costs: how far one owner can move what they add up to.

A data-dependent cost is computed from raw votes and must not be published as it is. This module
bounds, for every number of changed owners ("distance"), how much one more owner can change the
total cost of a group, and turns that into a smooth bound, the scale of the noise with which
:mod:`reproduction.smooth.smooth_release` publishes the total. Costs and bounds of the mechanisms:
:mod:`reproduction.smooth.cost_profiles`. Proofs: ``reproduction/docs/smooth-sensitivity.md``.

Neighbours differ in all records of one owner, who moves at most Delta votes of *every* query: takes
up to Delta votes away from classes and gives up to Delta to others (or to none: abstaining). An
owner of group h counts as ``steps[h]`` steps, a public whole number; one step is as many votes as
make each Delta_h at most steps[h] of them. Distance k is everything within k steps.

Everything that depends on votes here is **sensitive**.

References
----------
N. Papernot, S. Song, I. Mironov, A. Raghunathan, K. Talwar, U. Erlingsson. Scalable Private
Learning with PATE. ICLR 2018; arXiv 1802.08908v1: Appendix B.
K. Nissim, S. Raskhodnikova, A. Smith. Smooth sensitivity and sampling in private data analysis.
STOC 2007: Definition 2.2 (smooth bound), Section 3 (local sensitivity at distance k).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.accounting.renyi import validate_orders
from collegium.errors import InputError
from reproduction.smooth.inputs import Floats, nonnegative, numbers, one_per_group, positive
from reproduction.smooth.margins import SLACK

__all__ = [
    "CostProfile",
    "Owners",
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
    moves = one_per_group("sensitivity", sensitivity)
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
        moves = one_per_group("sensitivity", self.sensitivity)
        given = self.steps
        steps = nonnegative("steps", owner_steps(moves) if given is None else given)
        orders = numbers("orders", self.orders)
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

    orders: Floats
    steps: NDArray[np.int64]
    worst_case: Floats
    sensitive_cost: Floats
    sensitive_change: Floats

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


def local_sensitivity(profile: CostProfile, distance: int = 0) -> Floats:
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
    >>> from reproduction.smooth.cost_profiles import answer_profile
    >>> owners = Owners([1.0], 20.0)
    >>> profile = answer_profile([[150.0, 100.0]], owners, 40.0, total=250.0)
    >>> local_sensitivity(profile) <= local_sensitivity(profile, 5)
    array([[ True]])
    """
    if distance < 0:
        raise InputError(f"distance must be at least 0 steps, got {distance}.")
    last = profile.sensitive_change.shape[2] - 1
    return np.array(profile.sensitive_change[:, :, min(distance, last)])


def smooth_sensitivity(profile: CostProfile, beta: float) -> Floats:
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
    >>> from reproduction.smooth.cost_profiles import answer_profile
    >>> owners = Owners([0.5, 1.0], 20.0)
    >>> profile = answer_profile([[150.0, 100.0]], owners, 40.0, total=250.0)
    >>> bool((smooth_sensitivity(profile, 0.1) >= smooth_sensitivity(profile, 0.2)).all())
    True
    """
    rate = positive("beta", beta)
    steps = np.maximum(profile.steps, 1)[:, None]
    per_step = (profile.sensitive_change / steps).max(axis=1)
    discount = np.exp(-rate * np.arange(per_step.shape[1]))
    return np.asarray((per_step * discount).max(axis=1) * (1 + SLACK))
