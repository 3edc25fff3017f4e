"""What a plan says of itself: who gets which teachers, or what everybody gives to a step and pays."""

from __future__ import annotations

from collegium.accounting.neighbours import OWNER
from collegium.accounting.statement import budget_and_cost, budget_in_digits, left_out, some_of
from collegium.personalisation.dpsgd_plan import DPSGDPlan
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


def steps_table(plan: DPSGDPlan, clip_norm: float | None = None) -> Table:
    """Tabulate what each group gives in a step, and pays for all of them; a plan alone knows no norm."""
    sampled = any(group.rate < 1 for group in plan.groups.values())
    names = ("people", "budget ε", *["rate"] * sampled, "weight", "pays ε", "used")
    spent = plan.epsilon()
    rows = []
    for name, group in some_of(list(plan.groups.items()), lambda item: item[1].budget):
        granted, paid = budget_and_cost(group.budget.epsilon, spent[name])
        rows.append(
            (
                name,
                f"{group.owners:,}",
                granted,
                *[f"{100 * group.rate:.4g} %"] * sampled,
                f"{group.clip:.4g}",
                paid,
                f"{100 * group.utilisation:.1f} %",
            )
        )
    legend = [
        *["rate: probability with which a person takes part in a step"] * sampled,
        "weight: of a gradient, which is clipped"
        + (" before" if clip_norm is None else f" to {clip_norm:g} before"),
        "used: share of the budget (in μ) that all steps spend",
        *filter(None, [left_out(len(plan.groups))]),
    ]
    columns = [Column("level", is_number=False), *map(Column, names)]
    return Table(columns, rows, "; ".join(legend), f"Plan: {plan.kind}")
