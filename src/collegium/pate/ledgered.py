"""A run of PATE on a ledger: budgets as it left them, a reservation before anything is drawn, costs after."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from collegium.accounting.accountants import GaussianAccountant
from collegium.accounting.gaussian import gdp_mu
from collegium.accounting.neighbours import Neighbours
from collegium.budgets import Budgets
from collegium.errors import InputError
from collegium.ledger.allowance import SEEDED, Allowance, Spending, squared
from collegium.ledger.ledger import Balance
from collegium.ledger.limits import Cost
from collegium.pate.pipeline import PateRun, Released
from collegium.pate.recipe import Recipe
from collegium.pate.voting.composition import replay
from collegium.pate.voting.labelling import Outcome
from collegium.pate.voting.noisy_maxima import Aggregator
from collegium.pate.voting.pricing import LabelPricing, WorstCasePricing
from collegium.pate.voting.release import HISTOGRAM, LABELS
from collegium.personalisation.bins import too_many
from collegium.personalisation.electorate import Electorate
from collegium.runs.records import Records

NO_PROMISE = (
    "a data-dependent guarantee is a statement about one data set, and no budget that a ledger could count: "
    "use worst-case, or no ledger"
)
MakeRun = Callable[[Recipe, Records], PateRun]


def allow(
    left: Balance, share: float, recipe: Recipe, records: Records, people: Budgets, make: MakeRun
) -> Allowance:
    """Decide what a run may use: all, if nobody's records were used before and it counts in another way.

    Parameters
    ----------
    left : Balance
        What people have left.
    share : float
        Of δ, that their ledger sets aside for δ₀.
    recipe, records, make
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
    if left.untouched.all():
        planned = make(recipe, records)
        # Whole budgets are entered one by one; of very many different ones, groups are charged in μ instead.
        instead = (
            too_many(people) and planned.aggregator.has_label_price and recipe.account.price is None
        )
        if takes_the_whole(planned.aggregator, planned.price.name) and not instead:
            return Allowance.everything(people)
    counted_in_mu(recipe)
    if (
        people is not records.budgets
    ):  # names are not beside the records, so levels stay as they are
        return Allowance.by_level(people, left, share)
    least = -(-people.n_owners // recipe.n_teachers)
    return Allowance.what_is_left(people, left, least, share)


def takes_the_whole(aggregator: Aggregator, price: str) -> bool:
    """Whether a worst-case release counts in another way than a ledger, and keeps a budget only by itself."""
    return price == LABELS or not aggregator.has_label_price


def require_mu(aggregator: Aggregator, price: str | None) -> None:
    """Refuse what a ledger cannot add to other costs: those are in Gaussian DP.

    Raises InputError.
    """
    beside = "these people's records were used before, and a ledger adds costs in μ of Gaussian DP"
    if not aggregator.has_label_price:
        raise InputError(
            f"{beside}: the noise must be Gaussian (gnmax, confident, interactive), and the aggregator is "
            f"{aggregator.name!r}"
        )
    if price not in (None, HISTOGRAM):
        raise InputError(f"{beside}: price 'labels' says less in μ than it costs; leave it out")


def counted_in_mu(recipe: Recipe) -> Recipe:
    """Let a recipe's answers be charged so that a ledger can add them; raises as :func:`require_mu`."""
    require_mu(recipe.aggregator, recipe.account.price)
    return replace(recipe, account=replace(recipe.account, price=HISTOGRAM))


class LedgeredRun(Spending):
    """What a run of PATE does about a ledger: parameters and attributes as of :class:`Spending`."""

    method = "PATE"

    def plan(self, recipe: Recipe, records: Records, make: MakeRun) -> PateRun:
        """Plan with what there is."""
        allowed = records.allowed(self)
        return make(recipe if self.allowance.whole else counted_in_mu(recipe), allowed)

    def at_most(
        self,
        aggregator: Aggregator,
        electorate: Electorate,
        neighbours: Neighbours,
        price: str,
    ) -> list[Cost]:
        """What the run may cost each of its groups, at most: from public numbers only."""
        groups = self.allowance.groups
        if not self.allowance.whole:
            return [Cost(squared(gdp_mu(one.epsilon, one.delta))) for one in groups.values()]
        mu = dict.fromkeys(groups, math.inf)
        if price == LABELS:
            mu = LabelPricing(aggregator, electorate, neighbours).mu_by_name()
        return [
            Cost(squared(one), alone=None if budget.is_unlimited else budget)
            for one, budget in zip(self.of_each_group(mu, math.inf), groups.values(), strict=True)
        ]

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
        if self.allowance.whole:
            self._reservation.settle(self._reservation.costs, events)
            return
        account = again.account
        assert isinstance(account, GaussianAccountant)
        most: dict[str, float] = {}
        for name, mu_squared in zip(account.names, account.mu_squared.tolist(), strict=True):
            most[name] = max(most.get(name, mu_squared), mu_squared)
        costs = {name: Cost(mu_squared) for name, mu_squared in most.items()}
        self._reservation.settle(self.of_each_group(costs, Cost(0.0)), events)
