"""What is left of a study or label job, and what it is composed of: read, never changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from collegium.accounting.accountant import WorstCaseAccountant
from collegium.accounting.export import to_json
from collegium.accounting.statement import budget_and_cost, budget_in_digits
from collegium.cli.console import out, print_json
from collegium.errors import InputError
from collegium.pate.voting.aggregators import CheckedAggregator
from collegium.pate.voting.composition import replay
from collegium.pate.voting.labelling import NO_LABEL, Outcome
from collegium.pate.voting.pricing import WorstCasePricing
from collegium.personalisation.electorate import Electorate
from collegium.study.terms import JobTerms, read_job

MOST = 100_000  # answers that are counted; more are not of interest


def show_left(folder: Path, as_json: bool) -> None:
    """Print what was spent and what is left, worst case."""
    terms, outcomes = _publishable_job(folder)
    account = replay(terms.aggregator, terms.electorate, outcomes, terms.adjacency).account
    groups = _by_group(terms, account)
    answers = answers_affordable(
        WorstCasePricing(terms.aggregator, terms.electorate, terms.adjacency),
        terms.electorate,
        account,
        len(outcomes),
    )
    if as_json:
        print_json({**_about(terms, outcomes), "answers_left": answers, "groups": groups})
        return
    if not terms.private_noise:
        out.print("NOT PRIVATE: the noise was drawn from a seed.", style="bold red")
    labels = sum(outcome.label != NO_LABEL for outcome in outcomes)
    out.print(f"{len(outcomes):,} queries asked and {labels:,} labels so far; {terms.aggregator}.")
    bound = "at least " if answers == MOST else ""
    out.print(f"The budgets pay for {bound}{answers:,} more answers if every query is answered.")
    for name, group in groups.items():
        granted, spent = budget_and_cost(group["epsilon"], group["epsilon_spent"])
        out.print(
            f"  {name}: ε = {spent} spent of {granted} at δ = {group['delta']:g}, "
            f"{budget_in_digits(group['epsilon_left'])} left (μ = {budget_in_digits(group['mu_left'])})"
        )
    out.print(
        f"ε per person, worst case; neighbouring data sets: {terms.adjacency}. Nothing was changed.",
        soft_wrap=True,
    )


def show_export(folder: Path) -> None:
    """Print the composition of a job as JSON."""
    terms, outcomes = _publishable_job(folder)
    replayed = replay(terms.aggregator, terms.electorate, outcomes, terms.adjacency)
    about = _about(terms, outcomes)
    about.pop("guarantee")
    adjacency = about.pop("adjacency")
    spending = _by_group(terms, replayed.account)
    print_json(to_json(replayed.composition, adjacency, **about, spending=spending))


def answers_affordable(
    prices: WorstCasePricing, electorate: Electorate, account: WorstCaseAccountant, first: int
) -> int:
    """Count how many queries from a position on an account pays for if each is answered.

    Charges the account that it is given; counts to ``MOST`` at most.
    """
    if np.isinf(account.epsilon).all():
        return MOST
    for position in range(first, first + MOST):
        prices.begin(position, [electorate.ballot(position)], np.empty((0, 2)))
        cost = prices.reserve(position)
        if electorate.is_static:
            return int(min(account.how_many(cost), MOST))
        if not account.affords(cost):
            return position - first
        account.charge(cost)
    return MOST


def _publishable_job(folder: Path) -> tuple[JobTerms, list[Outcome]]:
    terms, outcomes = read_job(folder)
    if terms.guarantee != "worst-case":
        raise InputError(
            f"{folder} was run under the {terms.guarantee} guarantee: what was spent and what is left is "
            "sensitive, and only worst-case accounts can be shown"
        )
    return terms, outcomes


def _about(terms: JobTerms, outcomes: list[Outcome]) -> dict[str, Any]:
    checked = isinstance(terms.aggregator, CheckedAggregator)
    return {
        "guarantee": terms.guarantee,
        "adjacency": terms.adjacency,
        "private_noise": terms.private_noise,
        "aggregator": {"name": terms.aggregator.name, **vars(terms.aggregator)},
        "queries_asked": len(outcomes),
        "checks": len(outcomes) if checked else 0,
        "labels": sum(outcome.label != NO_LABEL for outcome in outcomes),
    }


def _by_group(terms: JobTerms, account: WorstCaseAccountant) -> dict[str, dict[str, Any]]:
    spent, left = account.epsilon_spent_by_name(), account.remaining()
    assert left.mu is not None
    names = np.asarray(account.names, dtype=object)
    return {
        name: {
            "owners": terms.owners.get(name, 0),
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "epsilon_spent": spent[name],
            "epsilon_left": float(left.epsilon[names == name].min()),
            "mu_left": float(left.mu[names == name].min()),
        }
        for name, budget in terms.electorate.groups.items()
    }
