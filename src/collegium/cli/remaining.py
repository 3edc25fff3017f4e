"""What is left of a study or label job, and what it is composed of: read, never changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from collegium.accounting.accountant import Accountant
from collegium.accounting.export import to_json
from collegium.accounting.statement import (
    LABELS_CHARGED,
    budget_and_cost,
    budget_in_digits,
    large_deltas,
)
from collegium.cli.console import MEMBERS, STOPPED, out, print_json, warn_of
from collegium.errors import InputError
from collegium.pate.voting.affordable import answers_affordable
from collegium.pate.voting.labelling import NO_LABEL, Outcome
from collegium.pate.voting.release import LABELS
from collegium.study.terms import JobTerms, read_job, why_it_ended

MOST = 100_000  # answers that are counted; more are not of interest


def show_left(folder: Path, as_json: bool) -> None:
    """Print what was spent and what is left, worst case."""
    terms, outcomes = _publishable_job(folder)
    ended = why_it_ended(folder)
    account = terms.replayed(outcomes).account
    groups = _by_group(terms, account)
    budgets = terms.electorate.groups
    warn_of(
        large_deltas(
            [(name, terms.owners.get(name, 0), budgets[name]) for name in budgets], terms.unit
        )
    )
    answers = answers_affordable(
        terms.pricing(),
        terms.electorate,
        MOST,
        first=len(outcomes),
        account=account,
    )
    if as_json:
        about = _about(terms, outcomes)
        print_json({**about, "stopped_by": ended, "answers_left": answers, "groups": groups})
        return
    if not terms.private_noise:
        out.print("NOT PRIVATE: the noise was drawn from a seed.", style="bold red")
    labels = sum(outcome.label != NO_LABEL for outcome in outcomes)
    out.print(f"{len(outcomes):,} queries asked and {labels:,} labels so far; {terms.aggregator}.")
    if terms.price == LABELS:
        out.print(LABELS_CHARGED, soft_wrap=True)
    bound = "at least " if answers == MOST else ""
    if ended is None:
        asked = terms.n_queries - len(outcomes)
        out.print(f"Voting has not ended: the next run asks at most {asked:,} more questions.")
    else:
        out.print(
            f"Voting has ended: {STOPPED.get(ended, ended)}. Nothing more will be asked in this folder."
        )
    pay = "pay" if ended is None else "would pay"
    out.print(f"The budgets {pay} for {bound}{answers:,} more answers if every query is answered.")
    for name, group in groups.items():
        granted, spent = budget_and_cost(group["epsilon"], group["epsilon_spent"])
        mu = f" (μ = {budget_in_digits(group['mu_left'])})" if "mu_left" in group else ""
        out.print(
            f"  {name}: ε = {spent} spent of {granted} at δ = {group['delta']:g}, "
            f"{budget_in_digits(group['epsilon_left'])} left{mu}"
        )
    out.print(
        f"ε per {MEMBERS[terms.unit][2]}, worst case; neighbouring data sets: {terms.adjacency}. Nothing was "
        "changed.",
        soft_wrap=True,
    )


def show_export(folder: Path) -> None:
    """Print the composition of a job as JSON."""
    terms, outcomes = _publishable_job(folder)
    replayed = terms.replayed(outcomes)
    about = _about(terms, outcomes)
    about.pop("guarantee")
    adjacency = about.pop("adjacency")
    spending = _by_group(terms, replayed.account)
    print_json(
        to_json(replayed.composition, terms.neighbours, adjacency, **about, spending=spending)
    )


def _publishable_job(folder: Path) -> tuple[JobTerms, list[Outcome]]:
    terms, outcomes = read_job(folder)
    if terms.guarantee != "worst-case":
        raise InputError(
            f"{folder} was run under the {terms.guarantee} guarantee: what was spent and what is left is "
            "sensitive, and only worst-case accounts can be shown"
        )
    return terms, outcomes


def _about(terms: JobTerms, outcomes: list[Outcome]) -> dict[str, Any]:
    return {
        "guarantee": terms.guarantee,
        "adjacency": terms.adjacency,
        "private_noise": terms.private_noise,
        "aggregator": terms.aggregator.settings(),
        "price": terms.price,
        "queries_asked": len(outcomes),
        "checks": len(outcomes) if terms.aggregator.has_check else 0,
        "labels": sum(outcome.label != NO_LABEL for outcome in outcomes),
    }


def _by_group(terms: JobTerms, account: Accountant) -> dict[str, dict[str, Any]]:
    spent, left = account.epsilon_spent_by_name(), account.remaining()
    names = np.asarray(account.names, dtype=object)
    return {
        name: {
            f"{terms.unit}s": terms.owners.get(name, 0),
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "epsilon_spent": spent[name],
            "epsilon_left": float(left.epsilon[names == name].min()),
            **({} if left.mu is None else {"mu_left": float(left.mu[names == name].min())}),
        }
        for name, budget in terms.electorate.groups.items()
    }
