"""What a plan of votes says of itself: who gets which teachers, and how many answers the budgets pay for."""

from __future__ import annotations

from typing import Any

from collegium.accounting.neighbours import OWNER
from collegium.accounting.statement import budget_in_digits, left_out, some_of
from collegium.pate.voting.affordable import MOST, answers_affordable
from collegium.pate.voting.aggregators import Aggregator
from collegium.pate.voting.pricing import worst_case_pricing
from collegium.personalisation.plan import Plan
from collegium.report.sections import Column, Table
from collegium.report.words import MEMBERS


def plan_table(plan: Plan, unit: str = OWNER) -> Table:
    """Tabulate who gets which teachers and how much influence."""
    one, of_owners = MEMBERS[unit][0], unit == OWNER
    copies = any(group.duplicates != 1 for group in plan.groups.values())
    absent = any(group.frequency != 1 for group in plan.groups.values())
    names = (
        *["people"] * of_owners, "budget ε", "teachers", *["seen by"] * copies, "weight",
        *["present"] * absent, "Δ", "used",
    )  # fmt: skip
    rows = [
        (
            name,
            *[f"{group.owners:,}"] * of_owners,
            budget_in_digits(group.budget.epsilon),
            f"{group.teachers:,}",
            *[str(group.duplicates)] * copies,
            f"{group.weight:.4g}",
            *[f"{100 * group.frequency:.3g} %"] * absent,
            f"{group.sensitivity:.4g}",
            f"{100 * group.utilisation:.1f} %",
        )
        for name, group in some_of(list(plan.groups.items()), lambda item: item[1].budget)
    ]
    legend = [
        *[f"seen by: teachers that see each {one}"] * copies,
        *["present: share of the queries in which the group's teachers vote"] * absent,
        f"Δ: votes that one {one} can move",
        "used: share of the budget (in μ) that is spent when the first budget runs out",
        *filter(None, [left_out(len(plan.groups))]),
    ]
    title = f"Plan: {plan.personalisation}, rule {plan.rule}"
    columns = [Column("level", is_number=False), *map(Column, names)]
    return Table(columns, rows, "; ".join(legend), title)


def plan_sentence(plan: Plan) -> str:
    """Say what a plan makes of the budgets."""
    return (
        f"{plan.n_teachers:,} teachers are trained; {100 * plan.efficiency:.1f} % of all granted budgets "
        "turn into votes."
    )


def plan_numbers(plan: Plan) -> dict[str, Any]:
    """Say the same for JSON."""
    return {
        "personalisation": plan.personalisation,
        "rule": plan.rule,
        "teachers": plan.n_teachers,
        "efficiency": plan.efficiency,
        "groups": {
            name: {
                "people": group.owners,
                "epsilon": group.budget.epsilon,
                "delta": group.budget.delta,
                "teachers": group.teachers,
                "teachers_per_person": group.duplicates,
                "weight": group.weight,
                "frequency": group.frequency,
                "sensitivity": group.sensitivity,
                "utilisation": group.utilisation,
            }
            for name, group in plan.groups.items()
        },
    }


def affordable_answers(aggregator: Aggregator, plan: Plan, price: str, seed: int = 0) -> int:
    """Count the queries that all budgets pay for if each is answered (at most ``MOST``)."""
    electorate = plan.electorate(seed)
    return answers_affordable(worst_case_pricing(price, aggregator, electorate), electorate, MOST)


def at_least(answers: int) -> str:
    """Write how many answers budgets pay for, of which no more than ``MOST`` are counted."""
    return f"{'at least ' if answers == MOST else ''}{answers:,}"
