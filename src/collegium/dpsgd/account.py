"""The account of DP-SGD: which steps may be taken, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping

from collegium.accounting.currency import GaussianBound
from collegium.accounting.events import Event
from collegium.accounting.export import Use, uses_of
from collegium.accounting.gaussian import gdp_mu
from collegium.accounting.neighbours import Arrangement
from collegium.accounting.statement import GroupSpending, PrivacyStatement
from collegium.budgets import Budget
from collegium.errors import BudgetExceededError
from collegium.personalisation.dpsgd_plan import EXACT, DPSGDPlan

STEPS_RELEASED = (
    "the noisy sum of clipped gradients of each of {} steps, and with it every model on the way"
)


class DPSGDAccount:
    """Charges the steps of a plan, which were fixed beforehand; one more is refused.

    With everybody in every step, each step is a Gaussian event, and the account is exact. Poisson samples
    are fixed in advance, in number and rates, and composed as a whole: no filter is valid for them.

    ``n_steps_taken``: steps that may be taken; default: the plan's. There are more with a filter
        (``dpsgd/filtered.py``), under which nobody pays more than the plan's steps cost: that is stated.
    """

    def __init__(self, plan: DPSGDPlan, n_steps_taken: int | None = None) -> None:
        self.plan = plan
        self.n_steps_taken = plan.steps if n_steps_taken is None else n_steps_taken
        self.steps = 0

    def charge(self, steps: int) -> None:
        """Charge all steps up to this number; raises BudgetExceededError beyond the plan."""
        if steps > self.n_steps_taken:
            raise BudgetExceededError(
                f"step {steps:,} of {self.n_steps_taken:,} that were planned and paid for: nothing was drawn"
            )
        self.steps = max(self.steps, steps)

    @property
    def event(self) -> Event:
        """What was drawn; with a filter, what it costs nobody more than."""
        return self.plan.event(self.paid)

    @property
    def paid(self) -> int:
        """How many steps at the full bound what was drawn costs at most."""
        return min(self.steps, self.plan.steps)

    def composition(self) -> dict[str, list[Use]]:
        """What was drawn, by group, for export."""
        event = self.event
        return {
            name: uses_of(event, cohort, "gradient step")
            for cohort, name in enumerate(self.plan.groups)
        }

    def epsilon_spent(self) -> Mapping[str, float]:
        """Of each owner of a group, at the group's δ, after the steps charged so far."""
        return self.plan.epsilon(self.paid)

    def statement(self, arrangement: Arrangement, noise_is_private: bool) -> PrivacyStatement:
        """Say what was promised, and what was spent."""
        spent = self.epsilon_spent()
        exact = self.plan.accountant == EXACT

        def within(name: str, budget: Budget) -> GaussianBound:
            if exact:
                return GaussianBound(gdp_mu(budget.epsilon, budget.delta))
            return self.plan.bounds[name]

        groups = tuple(
            GroupSpending(
                name,
                group.owners,
                group.budget,
                _all_or(spent[name], group.budget.epsilon),
                bound.mu,
                bound.delta_0,
            )
            for name, group in self.plan.groups.items()
            for bound in (within(name, group.budget),)
        )
        return PrivacyStatement(
            "worst-case",
            arrangement.sentence,
            noise_is_private,
            groups,
            STEPS_RELEASED.format(f"{self.steps:,}"),
            arrangement.neighbours,
            arrangement.counts_in,
            gaussian=exact,
            provisos=arrangement.provisos,
            in_short=arrangement.in_short,
        )


def _all_or(spent: float, granted: float) -> float:
    """Round a cost up to the budget, where a plan uses all of it but for rounding."""
    return granted if granted * (1 - 1e-9) <= spent <= granted else spent
