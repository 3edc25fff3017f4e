"""A run of PATE on a ledger: budgets as it left them, a reservation before anything is drawn, costs after."""

from __future__ import annotations

from collections.abc import Callable

from collegium.accounting.accountants import GaussianAccountant
from collegium.accounting.neighbours import Neighbours
from collegium.budgets import Budgets
from collegium.errors import InputError
from collegium.ledger.allowance import SEEDED, Allowance, Spending
from collegium.ledger.ledger import Balance
from collegium.ledger.limits import Cost
from collegium.pate.pipeline import PateRun, Released
from collegium.pate.recipe import Recipe
from collegium.pate.voting.composition import replay
from collegium.pate.voting.labelling import Outcome
from collegium.pate.voting.price_choice import price_on
from collegium.pate.voting.pricing import WorstCasePricing
from collegium.runs.records import Records

NO_PROMISE = (
    "a data-dependent guarantee is a statement about one data set, and no budget that a ledger could count: "
    "use worst-case, or no ledger"
)
MakeRun = Callable[[Recipe, Records], PateRun]


def allow(left: Balance, recipe: Recipe, records: Records, people: Budgets) -> Allowance:
    """Decide what a run may use of what people have left.

    Parameters
    ----------
    left : Balance
        What people have left.
    recipe, records
        Of the run, with budgets as granted.
    people : Budgets
        Who granted what, by name.

    Raises
    ------
    InputError
        If its costs cannot be entered beside others.
    BudgetExceededError
        If nobody has anything left.
    """
    if recipe.noise_seed is not None:
        raise InputError(SEEDED)
    if recipe.account.guarantee != WorstCasePricing.guarantee:
        raise InputError(NO_PROMISE)
    price_on(left.lifetime.promise, recipe.aggregator, recipe.account.price)
    if (
        people is not records.budgets
    ):  # names are not beside the records, so levels stay as they are
        return Allowance.by_level(people, left)
    least = -(-people.n_owners // recipe.n_teachers)
    return Allowance.what_is_left(people, left, least)


class LedgeredRun(Spending):
    """What a run of PATE does about a ledger: parameters and attributes as of :class:`Spending`."""

    method = "PATE"

    def plan(self, recipe: Recipe, records: Records, make: MakeRun) -> PateRun:
        """Plan with what there is."""
        return make(recipe, records.allowed(self))

    def at_most(self) -> list[Cost]:
        """What the run may cost each of its groups, at most: all that they have left."""
        lifetime = self.allowance.lifetime
        return [lifetime.all_of(one) for one in self.allowance.groups.values()]

    def settle(self, released: Released, neighbours: Neighbours) -> None:
        """Enter what the run did cost: of each group, what its most burdened owners paid."""
        assert self._reservation is not None
        privacy = released.privacy
        outcomes: list[Outcome] = released.labels.outcomes
        again = replay(
            released.aggregator, released.electorate, outcomes, neighbours, privacy.price
        )
        uses = {name: [use.to_json() for use in some] for name, some in again.composition.items()}
        events = self.of_each_group(uses, [])
        account = again.account
        assert isinstance(account, GaussianAccountant)
        costs: dict[str, Cost] = {}
        paid = zip(account.mu_squared.tolist(), account.pure_epsilon.tolist(), strict=True)
        for name, (mu_squared, pure) in zip(account.names, paid, strict=True):
            before = costs.get(name, Cost(0.0, 0.0))
            costs[name] = Cost(
                max(before.mu_squared, mu_squared), max(before.pure_epsilon, pure), 0.0
            )
        self._reservation.settle(self.of_each_group(costs, Cost(0.0)), events)
