"""What commands about studies show of direct training."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from collegium.cli.console import last_line, out, print_json

if TYPE_CHECKING:
    from rich.table import Table

    from collegium.personalisation.dpsgd_plan import DPSGDPlan
    from collegium.study.config import StudyConfig


def show_plan(
    config: StudyConfig,
    as_json: bool,
    choice: dict[str, Any] | None = None,
    show_first: Callable[[], None] = lambda: None,
) -> None:
    """Show what everybody would pay and give, and how long it would take. Spends nothing.

    ``choice``: what was chosen before, for JSON; ``show_first`` prints it otherwise.
    """
    from collegium.cli.progress import NoteObserver
    from collegium.dpsgd.by_rule import mostly_noise
    from collegium.study.dpsgd_page import signal_to_noise
    from collegium.study.methods.dpsgd import DPSGDStudyPlan
    from collegium.study.runner import plan_study
    from collegium.study.step_time import seconds_of

    study = plan_study(config, observer=NoteObserver())
    planned, ledger = study.plan, study.ledger
    assert isinstance(planned, DPSGDStudyPlan)
    run, data = planned.run, planned.data
    too_little = mostly_noise(run.plan, run.loss)
    if too_little:
        run.observer.note(too_little)
    plan, clip_norm = run.plan, run.recipe.dpsgd.clip_norm
    columns = data.inputs.get("columns", [])
    n_features = planned.n_features
    signal = signal_to_noise(plan, n_features * run.loss.n_outputs)
    seconds = seconds_of(run, n_features, len(data.X))
    used = plan.utilisation * run.records.budgets.kept
    if as_json:
        print_json(
            {
                "method": "dpsgd",
                "sampling": plan.kind,
                "bound": plan.bound,
                "steps": plan.steps,
                "steps_taken": run.recipe.dpsgd.n_steps_taken,
                "noise": plan.noise * clip_norm,
                "divisor": plan.divisor * clip_norm,
                "signal_to_noise": signal,
                "accountant": plan.accountant,
                "utilisation": used,
                "seconds": seconds,
                "neighbours": run.arrangement.sentence,
                "columns": dict(columns),
                "ledger": None if ledger is None else str(ledger.place),
                "takes_whole_budgets": ledger is not None and ledger.spending.allowance.whole,
                "groups": _groups(plan, clip_norm),
                **({} if choice is None else {"chosen": choice}),
            }
        )
        return
    from collegium.cli.console import columns_sentence

    show_first()
    out.print(dpsgd_table(plan, clip_norm))
    out.print(
        f"{plan.steps:,} steps, each with noise of {plan.noise * clip_norm:.4g} in every coordinate of its "
        "sum; "
        f"{100 * used:.1f} % of all granted budgets are used.",
        soft_wrap=True,
    )
    if run.recipe.dpsgd.n_steps_taken > plan.steps:
        out.print(
            f"With the filter, {run.recipe.dpsgd.n_steps_taken:,} steps are taken with that noise, and "
            "nobody pays more."
        )
    out.print(
        f"Signal to noise: if all gradients agreed, and were as long as allowed, a step's sum would be "
        f"{signal:.3g} times as long as its noise ({n_features * run.loss.n_outputs:,} parameters).",
        soft_wrap=True,
    )
    out.print(
        f"{len(data.X):,} private records of {data.budgets.n_owners:,} people, "
        f"{len(data.X_public):,} public records, {len(data.classes)} classes"
    )
    if columns:
        out.print(columns_sentence(columns), soft_wrap=True)
    out.print(f"All steps take {_minutes(seconds)} on this machine, once features are there.")
    out.print(run.arrangement.in_short, soft_wrap=True)
    if ledger is not None:
        out.print(ledger.in_words, soft_wrap=True)
    last_line(
        None,
        f"{plan.steps:,} steps, in which {100 * plan.utilisation:.1f} % of all granted budgets are used",
    )


def dpsgd_table(plan: DPSGDPlan, clip_norm: float) -> Table:
    """Tabulate what each group gives in a step, and pays for all of them."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from collegium.accounting.statement import budget_and_cost, left_out, some_of

    sampled = any(group.rate < 1 for group in plan.groups.values())
    table = Table(title=f"Plan: {plan.kind}", title_justify="left", box=SIMPLE_HEAD)
    for name, shown in {
        "level": True, "people": True, "budget ε": True, "rate": sampled, "weight": True,
        "pays ε": True, "used": True,
    }.items():  # fmt: skip
        if shown:
            table.add_column(name, justify="left" if name == "level" else "right")
    spent = plan.epsilon()
    for name, group in some_of(list(plan.groups.items()), lambda item: item[1].budget):
        granted, paid = budget_and_cost(group.budget.epsilon, spent[name])
        table.add_row(
            name,
            f"{group.owners:,}",
            granted,
            *[f"{100 * group.rate:.4g} %"] * sampled,
            f"{group.clip:.4g}",
            paid,
            f"{100 * group.utilisation:.1f} %",
        )
    legend = [
        *["rate: probability with which a person takes part in a step"] * sampled,
        f"weight: of a gradient, which is clipped to {clip_norm:g} before",
        "used: share of the budget (in μ) that all steps spend",
        *filter(None, [left_out(len(plan.groups))]),
    ]
    table.caption = "; ".join(legend)
    table.caption_justify = "left"
    return table


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
