"""Direct training on a ledger: what steps may cost is reserved before the first; what they did is entered.

A full batch costs each owner of a group exactly the plan's μ², which a ledger adds to whatever else was
released. Poisson samples are not μ-Gaussian-DP, and their account stands for all steps together: such a
release takes all that people grant, as the first one about them.
"""

from __future__ import annotations

import math

from collegium.accounting.events import Event
from collegium.accounting.neighbours import Neighbours
from collegium.budgets import Budget, Budgets
from collegium.dpsgd.account import DPSGDAccount
from collegium.dpsgd.run import RELATIONS
from collegium.dpsgd.settings import FULL_BATCH, DPSGDSettings
from collegium.errors import InputError
from collegium.ledger.allowance import SEEDED, Allowance, Spending
from collegium.ledger.ledger import Balance, Ledger
from collegium.ledger.limits import DELTA_0_SHARE, Cost
from collegium.personalisation.dpsgd_plan import DPSGDPlan


def relation_of(ledger: Ledger, settings: DPSGDSettings) -> Neighbours:
    """Say about which neighbours steps must be charged, so that a ledger can count them.

    Raises InputError if settings say something weaker.
    """
    blanked = ledger.neighbours is Neighbours.ADD_OR_REMOVE
    needed = Neighbours.ADD_OR_REMOVE if blanked else Neighbours.ANY_CHANGE
    given = RELATIONS.get(settings.neighbours or "", needed)
    if not given.include(ledger.neighbours):
        raise InputError(
            f"the ledger at {ledger} promises something where {ledger.neighbours.in_words}, and neighbours = "
            f"{settings.neighbours!r} less: leave neighbours out, or give 'replace-one'"
        )
    return given


def allow(
    left: Balance,
    settings: DPSGDSettings,
    noise_seed: int | None,
    people: Budgets,
    share: float = DELTA_0_SHARE,
    *,
    by_level: bool = False,
) -> Allowance:
    """Decide what DP-SGD may use of people's budgets.

    Parameters
    ----------
    left : Balance
        What people have left.
    settings : DPSGDSettings
        Of the training.
    noise_seed : int or None
        No ledger takes seeded noise.
    people : Budgets
        Who granted what, by name.
    share : float
        Of δ, that their ledger sets aside for δ₀.
    by_level : bool
        Whether everybody of a level must have the same, where who is in which group was decided elsewhere.

    Raises
    ------
    InputError
        If its costs cannot be entered beside others.
    BudgetExceededError
        If nobody has anything left.
    """
    if noise_seed is not None:
        raise InputError(SEEDED)
    if settings.sampling == FULL_BATCH:
        if by_level:
            return Allowance.by_level(people, left, share)
        return Allowance.what_is_left(people, left, 1, share)
    if left.untouched.all():
        return Allowance.everything(people)
    raise InputError(
        f"{int((~left.untouched).sum()):,} of {len(left.untouched):,} owners' records were used before, and "
        f"sampling = {settings.sampling!r} keeps a budget only by itself, as the first release about "
        f"everybody: use sampling = {FULL_BATCH!r}, whose costs add up exactly"
    )


class DPSGDSpending(Spending):
    """What DP-SGD does about a ledger: parameters and attributes as of :class:`Spending`."""

    method = "direct training"
    uses = "uses all that people have left"
    instead = ""

    def at_most(self, plan: DPSGDPlan) -> list[Cost]:
        """What all steps cost each of its groups: from public numbers only."""
        groups = self.allowance.groups
        if self.allowance.whole:
            return [_whole(one) for one in groups.values()]
        return self._in_order(plan, plan.event())

    def settle(self, account: DPSGDAccount) -> None:
        """Enter what the steps that were charged cost; nothing, if there was none."""
        assert self._reservation is not None
        if not account.steps:
            return self.give_back()
        uses = account.composition()
        events = self.of_each_group(
            {name: [use.to_json() for use in some] for name, some in uses.items()}, []
        )
        costs = list(self._reservation.costs)
        if not self.allowance.whole:
            costs = self._in_order(account.plan, account.event)
        self._reservation.settle(costs, events)

    def _in_order(self, plan: DPSGDPlan, event: Event) -> list[Cost]:
        costs = dict(zip(plan.groups, Cost.of_event(event), strict=True))
        return self.of_each_group(costs, Cost(0.0))


def _whole(budget: Budget) -> Cost:
    return Cost(math.inf, alone=None if budget.is_unlimited else budget)
