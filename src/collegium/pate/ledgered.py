"""A run of PATE on what a ledger has left: budgets before it, a reservation before it draws, costs after."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from itertools import pairwise
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.accountants import GaussianAccountant
from collegium.accounting.gaussian import gdp_epsilon, gdp_mu
from collegium.accounting.neighbours import Arrangement, Neighbours
from collegium.budgets import Budget, Budgets
from collegium.errors import BudgetExceededError, InputError, PrivacyWarning
from collegium.ledger.ledger import Ledger, Reservation
from collegium.ledger.limits import Cost, Limit
from collegium.pate.pipeline import Released
from collegium.pate.recipe import Recipe
from collegium.pate.voting.composition import replay
from collegium.pate.voting.release import HISTOGRAM

_ROUNDING = 1e-9  # of μ: conversions to ε and back are off by less
_STEPS = 10  # what is left is rounded down to tenths, so that groups do not become too small


class LedgeredRun:
    """What a ledger allows a run, and what the run costs.

    Parameters
    ----------
    ledger : Ledger
    granted : Budgets
        Whose records are offered, and what they grant over all releases together.
    name : str
        Of the release, for people.
    n_teachers : int
        Nominal number, which says how small a group may be.

    Attributes
    ----------
    records : ndarray of int
        Positions of the records whose owners have anything left.
    budgets : Budgets
        Of these records: what their owners have left of their μ², rounded down to tenths, in groups of those
        who have the same left.

    Raises
    ------
    BudgetExceededError
        If nobody has anything left.
    LedgerError
        If the ledger knows these people otherwise.
    """

    def __init__(self, ledger: Ledger, granted: Budgets, name: str, n_teachers: int) -> None:
        if granted.declared_sizes is not None:
            raise InputError(
                "group sizes are counted where a ledger says what is left, and here they are declared: leave "
                "sizes out"
            )
        self._ledger, self._name, self._id = ledger, name, uuid4().hex
        left = ledger.left(granted)
        tenths = np.floor(left.share * _STEPS + 1e-9).astype(np.intp)
        tenths = _merged(granted, tenths, -(-granted.n_owners // n_teachers))
        alike, which = np.unique(
            np.stack([granted.owner_group, tenths]), axis=1, return_inverse=True
        )
        codes, groups = _groups(granted, alike, ledger.delta_0_share)
        present = (codes >= 0)[which]
        if not present.any():
            raise BudgetExceededError(
                f"nobody of {len(present):,} owners has anything left in the ledger at {ledger}: nothing was "
                "asked or spent"
            )
        if not present.all():
            warnings.warn(
                f"{(~present).sum():,} of {len(present):,} owners have nothing left in the ledger: their "
                "records take no part",
                PrivacyWarning,
                stacklevel=3,
            )
        self.records: NDArray[np.intp] = np.flatnonzero(present[granted.record_owner])
        self._granted = granted[self.records]
        owners = granted.record_owner[self.records]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)  # they were warned of as granted
            self.budgets = Budgets(groups, codes[which][owners], granted.owners[owners])
        # Judged with those who have nothing left: who takes part may be new people for the most part.
        self._are_known = bool((left.cohort > 0).mean() >= 0.5)
        self._reservation: Reservation | None = None

    @staticmethod
    def recipe(recipe: Recipe) -> Recipe:
        """Check that a recipe's costs can be entered, and let its answers be charged so.

        Raises
        ------
        InputError
            If they cannot: a ledger counts worst-case costs in Gaussian DP.
        """
        if recipe.account.guarantee != "worst-case":
            raise InputError(
                f"a ledger counts worst-case costs only, and the guarantee is {recipe.account.guarantee}: "
                "use worst-case, or no ledger"
            )
        if recipe.noise_seed is not None:
            raise InputError(
                "noise from a seed protects nobody, so a ledger does not take it: leave noise_seed out"
            )
        if not recipe.aggregator.has_label_price:
            raise InputError(
                f"aggregator {recipe.aggregator.name!r} does not draw Gaussian noise, in which the ledger "
                "counts: use gnmax, confident or interactive"
            )
        if recipe.account.price not in (None, HISTOGRAM):
            raise InputError(
                "price 'labels' says less in μ than it costs, and a ledger counts in μ: leave it out"
            )
        return replace(recipe, account=replace(recipe.account, price=HISTOGRAM))

    def reserve(self, arrangement: Arrangement) -> None:
        """Set aside all that the run may spend: what everybody of its plan has left."""
        budgets = [self.budgets.groups[name] for name in self.budgets.group_names]
        costs = [Cost(_squared(gdp_mu(one.epsilon, one.delta))) for one in budgets]
        self._reservation = self._ledger.reserve(
            self._id,
            self._name,
            self._granted,
            costs,
            self.budgets.owner_group,  # its owners are those of the granted budgets, in the same order
            about={"method": "PATE", "neighbours": arrangement.sentence},
            neighbours=arrangement.neighbours,
            newcomers=self._are_known,
        )

    def give_back(self) -> None:
        """Enter that nothing was drawn."""
        assert self._reservation is not None
        self._reservation.settle([Cost(0.0) for _ in self.budgets.group_names])

    def settle(self, released: Released, neighbours: Neighbours) -> None:
        """Enter what the run did cost: of each group, what its most burdened owners paid."""
        assert self._reservation is not None
        again = replay(
            released.aggregator, released.electorate, released.labels.outcomes, neighbours
        )
        account = again.account
        assert isinstance(account, GaussianAccountant)
        most = dict.fromkeys(self.budgets.group_names, 0.0)
        for name, mu_squared in zip(account.names, account.mu_squared.tolist(), strict=True):
            most[name] = max(most[name], mu_squared)
        events = [[use.to_json() for use in again.composition[name]] for name in most]
        self._reservation.settle([Cost(mu_squared) for mu_squared in most.values()], events)


def _merged(granted: Budgets, tenths: NDArray[np.intp], least: int) -> NDArray[np.intp]:
    """Lower what is left to those of too small a group, to that of the next group of their level."""
    tenths = tenths.copy()
    for level in range(len(granted.group_names)):
        its = granted.owner_group == level
        steps = sorted(set(tenths[its].tolist()) - {0}, reverse=True)
        for step, lower in pairwise(steps):
            if (its & (tenths == step)).sum() < least:
                tenths[its & (tenths == step)] = lower
    return tenths


def _groups(
    granted: Budgets, alike: NDArray[np.intp], share: float
) -> tuple[NDArray[np.intp], dict[str, Budget]]:
    """Make a group of those who have the same left; -1 for those who have nothing.

    ``alike`` (2, n): pairs of a level and of how many tenths of its μ² are left.
    """
    groups: dict[str, Budget] = {}
    numbers = np.full(alike.shape[1], -1, dtype=np.intp)
    for place, (code, tenths) in enumerate(alike.T.tolist()):
        level = granted.group_names[code]
        if not tenths:
            continue
        budget = granted.groups[level]
        left = Limit.of(budget, share).mu_squared * tenths / _STEPS
        name = level if tenths == _STEPS else f"{level}, {tenths}/{_STEPS} left"
        groups[name] = Budget(_epsilon(left, budget.delta), budget.delta)
        numbers[place] = len(groups) - 1
    return numbers, groups


def _epsilon(mu_squared: float, delta: float) -> float:
    """The ε at δ of what is left, rounded so that its own μ is no more than that."""
    if math.isinf(mu_squared):
        return math.inf
    return float(gdp_epsilon(math.sqrt(mu_squared) * (1 - _ROUNDING), delta))


def _squared(mu: float) -> float:
    return math.inf if math.isinf(mu) else math.nextafter(mu * mu, math.inf)
