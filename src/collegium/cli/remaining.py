"""What is left of a release, and what it is composed of: read, never changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from collegium.accounting.export import to_json
from collegium.accounting.spent import Spent
from collegium.accounting.statement import budget_and_cost, budget_in_digits, large_deltas
from collegium.cli.console import out, print_json, warn_of
from collegium.errors import InputError
from collegium.report.words import MEMBERS
from collegium.study.journal import FileJournal
from collegium.study.terms import Progress, Terms, read_terms, why_it_ended


def show_remaining(folder: Path, as_json: bool) -> None:
    """Print what was spent and what is left, worst case."""
    terms, journal, spent = _publishable(folder)
    progress = terms.progress(journal, why_it_ended(folder))
    groups = _by_group(terms, spent, progress)
    warn_of(
        large_deltas(
            [(name, terms.people[name], budget) for name, budget in terms.groups.items()],
            terms.unit,
        )
    )
    if as_json:
        about = {"guarantee": terms.guarantee, "adjacency": terms.adjacency}
        print_json({**about, **_about(terms, progress), **progress.rest, "groups": groups})
        return
    if not terms.private_noise:
        out.print("NOT PRIVATE: the noise was drawn from a seed.", style="bold red")
    for sentence in progress.sentences:
        out.print(sentence, soft_wrap=True)
    for name, group in groups.items():
        granted, paid = budget_and_cost(group["epsilon"], group["epsilon_spent"])
        out.print(
            f"  {name}: ε = {paid} spent of {granted} at δ = {group['delta']:g}{_left(group)}"
        )
    out.print(
        f"ε per {MEMBERS[terms.unit][2]}, worst case. {terms.arrangement.in_short} Nothing was changed.",
        soft_wrap=True,
    )


def show_export(folder: Path) -> None:
    """Print what a release is composed of as JSON."""
    terms, journal, spent = _publishable(folder)
    progress = terms.progress(journal, why_it_ended(folder))
    print_json(
        to_json(
            spent.uses,
            terms.neighbours,
            terms.adjacency,
            **_about(terms, progress),
            spending=_by_group(terms, spent, progress),
        )
    )


def _publishable(folder: Path) -> tuple[Terms, FileJournal, Spent]:
    terms, journal = read_terms(folder)
    spent = terms.spent(journal)
    if spent.sensitive:
        raise InputError(
            f"{folder} was run under the {terms.guarantee} guarantee: what was spent and what is left is "
            "sensitive, and only worst-case accounts can be shown"
        )
    return terms, journal, spent


def _about(terms: Terms, progress: Progress) -> dict[str, Any]:
    return {
        "private_noise": terms.private_noise,
        "method": terms.method,
        **progress.counts,
    }


def _by_group(terms: Terms, spent: Spent, progress: Progress) -> dict[str, dict[str, Any]]:
    return {
        name: {
            f"{terms.unit}s": terms.people[name],
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "epsilon_spent": spent.epsilon[name],
            **progress.by_group[name],
        }
        for name, budget in terms.groups.items()
    }


def _left(group: dict[str, Any]) -> str:
    """Say what a group has left, where that is known."""
    if "epsilon_left" not in group:
        return ""
    mu = f" (μ = {budget_in_digits(group['mu_left'])})" if "mu_left" in group else ""
    return f", {budget_in_digits(group['epsilon_left'])} left{mu}"
