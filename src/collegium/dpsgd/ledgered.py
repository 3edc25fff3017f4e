"""Direct training on a ledger: what steps may cost is reserved before the first; what they did is entered.

A full batch costs each owner of a group exactly the plan's μ², which a ledger adds to whatever else was
released. Poisson samples cost a μ² and a δ₀ beside it, fitted for all steps together
(:mod:`~collegium.personalisation.addable_rates`).
"""

from __future__ import annotations

from collegium.accounting.neighbours import Neighbours
from collegium.accounting.promises import ONLY_PURE, Promise
from collegium.budgets import Budgets
from collegium.dpsgd.account import DPSGDAccount
from collegium.dpsgd.run import RELATIONS
from collegium.dpsgd.settings import DPSGDSettings
from collegium.errors import InputError
from collegium.ledger.allowance import SEEDED, Allowance, Spending
from collegium.ledger.ledger import Balance, Ledger
from collegium.ledger.limits import Cost
from collegium.personalisation.dpsgd_plan import EXACT, DPSGDPlan


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


def allow(left: Balance, noise_seed: int | None, people: Budgets) -> Allowance:
    """Decide what DP-SGD may use of people's budgets.

    Parameters
    ----------
    left : Balance
        What people have left.
    noise_seed : int or None
        No ledger takes seeded noise.
    people : Budgets
        Who granted what, by name.

    Raises
    ------
    InputError
        If its costs cannot be entered beside others.
    BudgetExceededError
        If nobody has anything left.
    """
    if noise_seed is not None:
        raise InputError(SEEDED)
    if left.lifetime.promise is Promise.PURE:
        raise InputError(f"{ONLY_PURE}; direct training has Gaussian noise")
    return Allowance.what_is_left(people, left, 1)


class DPSGDSpending(Spending):
    """What DP-SGD does about a ledger: parameters and attributes as of :class:`Spending`."""

    method = "direct training"

    def at_most(self, plan: DPSGDPlan) -> list[Cost]:
        """What all steps cost each of its groups: from public numbers only."""
        if plan.accountant == EXACT:
            return self._in_order(plan, Cost.of_event(plan.event()))
        event, delta_0 = plan.event(), self.allowance.delta_0
        costs = [
            Cost.of_cohort(event, cohort, delta_0[name]) for cohort, name in enumerate(plan.groups)
        ]
        return self._in_order(plan, costs)

    def settle(self, account: DPSGDAccount) -> None:
        """Enter what the steps that were charged cost; nothing, if there was none.

        Of samples that is all that was reserved: their cost was fitted for all steps together.
        """
        assert self._reservation is not None
        if not account.steps:
            return self.give_back()
        uses = account.composition()
        events = self.of_each_group(
            {name: [use.to_json() for use in some] for name, some in uses.items()}, []
        )
        costs = list(self._reservation.costs)
        if account.plan.accountant == EXACT:
            costs = self._in_order(account.plan, Cost.of_event(account.event))
        self._reservation.settle(costs, events)

    def _in_order(self, plan: DPSGDPlan, costs: list[Cost]) -> list[Cost]:
        return self.of_each_group(dict(zip(plan.groups, costs, strict=True)), Cost(0.0))
