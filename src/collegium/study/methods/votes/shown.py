"""What a plan of votes says of itself for JSON, and how many answers the budgets pay for."""

from __future__ import annotations

from typing import Any

from collegium.pate.voting.affordable import MOST, answers_affordable
from collegium.pate.voting.aggregators import Aggregator
from collegium.pate.voting.pricing import worst_case_pricing
from collegium.personalisation.plan import Plan


def plan_numbers(plan: Plan) -> dict[str, Any]:
    """Say all of a plan for JSON."""
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
