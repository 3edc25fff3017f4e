"""What a plan of direct training says of itself: what everybody pays and gives, and how long it takes."""

from __future__ import annotations

from typing import Any

from collegium.accounting.statement import budget_and_cost, left_out, some_of
from collegium.dpsgd.run import DPSGDRun
from collegium.personalisation.dpsgd_plan import DPSGDPlan
from collegium.report.sections import Block, Column, Paragraph, Table
from collegium.study.methods.dpsgd.page import signal_to_noise
from collegium.study.methods.dpsgd.step_time import seconds_of
from collegium.study.shown import records_shown
from collegium.study.study_data import StudyData


def plan_numbers(run: DPSGDRun, data: StudyData) -> dict[str, Any]:
    """Say all of a plan for JSON. ``data``: all records, of which ``run`` may be allowed fewer."""
    plan, clip_norm = run.plan, run.recipe.dpsgd.clip_norm
    return {
        "sampling": plan.kind,
        "bound": plan.bound,
        "steps": plan.steps,
        "steps_taken": run.recipe.dpsgd.n_steps_taken,
        "noise": plan.noise * clip_norm,
        "divisor": plan.divisor * clip_norm,
        "signal_to_noise": signal_to_noise(plan, _coordinates(run)),
        "accountant": plan.accountant,
        "utilisation": share_used(run),
        "seconds": seconds_of(run, run.n_parameters, len(data.X)),
        "groups": _groups(plan, clip_norm),
    }


def plan_blocks(run: DPSGDRun, data: StudyData) -> list[Block]:
    """Say the same for people."""
    plan, dpsgd = run.plan, run.recipe.dpsgd
    seconds = seconds_of(run, run.n_parameters, len(data.X))
    filtered = (
        f"With the filter, {dpsgd.n_steps_taken:,} steps are taken with that noise, and nobody "
        "pays more."
    )
    return [
        _table(plan, dpsgd.clip_norm),
        Paragraph(
            f"{plan.steps:,} steps, each with noise of {plan.noise * dpsgd.clip_norm:.4g} in every "
            f"coordinate of its sum; {used_in_words(run)}."
        ),
        *([Paragraph(filtered)] if dpsgd.n_steps_taken > plan.steps else []),
        Paragraph(
            "Signal to noise: if all gradients agreed, and were as long as allowed, a step's sum would be "
            f"{signal_to_noise(plan, _coordinates(run)):.3g} times as long as its noise "
            f"({_coordinates(run):,} parameters)."
        ),
        *records_shown(data),
        Paragraph(f"All steps take {_minutes(seconds)} on this machine, once features are there."),
    ]


def _coordinates(run: DPSGDRun) -> int:
    return run.n_parameters * run.loss.n_outputs


def used_in_words(run: DPSGDRun) -> str:
    """Say how much all steps use: of what people granted, or of what a ledger lets the release use."""
    share = f"{100 * share_used(run):.1f} %"
    if run.arrangement.on_ledger:
        return f"{share} of what this release may use is used"
    return f"{share} of all granted budgets are used"


def share_used(run: DPSGDRun) -> float:
    """Share of all granted budgets that all steps use."""
    return run.plan.utilisation * run.records.budgets.kept


def _table(plan: DPSGDPlan, clip_norm: float) -> Table:
    """Tabulate what each group gives in a step, and pays for all of them."""
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
        f"weight: of a gradient, which is clipped to {clip_norm:g} before",
        "used: share of the budget (in μ) that all steps spend",
        *filter(None, [left_out(len(plan.groups))]),
    ]
    columns = [Column("level", is_number=False), *map(Column, names)]
    return Table(columns, rows, "; ".join(legend), f"Plan: {plan.kind}")


def _groups(plan: DPSGDPlan, clip_norm: float) -> dict[str, Any]:
    spent = plan.epsilon()
    return {
        name: {
            "people": group.owners,
            "epsilon": group.budget.epsilon,
            "delta": group.budget.delta,
            "rate": group.rate,
            "weight": group.clip,
            "clip": group.clip * clip_norm,
            "epsilon_spent": spent[name],
            "utilisation": group.utilisation,
        }
        for name, group in plan.groups.items()
    }


def _minutes(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 1.5 * length:
            return f"about {seconds / length:,.0f} {unit}"
    return f"about {seconds:.2g} seconds"
