"""What a plan of direct training says of itself: what everybody pays and gives, and how long it takes."""

from __future__ import annotations

from typing import Any

from collegium.dpsgd.footprint import GIGABYTE, PROGRAM, bytes_of
from collegium.dpsgd.run import DPSGDRun
from collegium.personalisation.dpsgd_plan import DPSGDPlan
from collegium.report.plans import steps_table
from collegium.report.sections import Block, Paragraph
from collegium.study.methods.dpsgd.page import signal_to_noise
from collegium.study.methods.dpsgd.step_time import seconds_of
from collegium.study.shown import records_shown
from collegium.study.streaming import PrivateStream
from collegium.study.study_data import StudyData

_COPIES = 4
"""Of records, while they are read: the cells of a file as text, and as numbers."""
_MUCH = 1.0  # GB


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
        steps_table(plan, dpsgd.clip_norm),
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
        *_memory(run, data),
    ]


def _memory(run: DPSGDRun, data: StudyData) -> list[Paragraph]:
    """Say what memory a run takes, where that is much. Records that are streamed are in none."""
    held = [X for X in (run.records.X, data.X_public) if not isinstance(X, PrivateStream | None)]
    records = sum(map(bytes_of, held))
    size = (PROGRAM + _COPIES * records + run.working_bytes) / GIGABYTE
    return [Paragraph(f"A run takes about {size:.1f} GB of memory.")] if size >= _MUCH else []


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
