"""What an audit found, as tables, as panels of its figure, and as records for JSON."""

from __future__ import annotations

import math
from typing import Any

from rich.table import Table

from collegium.accounting.statement import (
    budget_and_cost,
    budget_in_digits,
    ceil_decimals,
    floor_decimals,
)
from collegium.attacks.game import GameFinding
from collegium.attacks.one_run import OneRunFinding
from collegium.report.audit_plots import Bar


def game_table(findings: list[GameFinding], title: str) -> Table:
    """Tabulate what the distinguishing game found for each group."""
    table = _table(title, "lower μ", "claimed μ", "budget μ")
    for row in findings:
        table.add_row(
            *_epsilons(row),
            floor_decimals(row.lower_mu, 3),
            ceil_decimals(row.claim_mu, 3),
            floor_decimals(row.budget_mu, 3),
            "holds" if row.holds else "REFUTED",
        )
    return table


def one_run_table(findings: list[OneRunFinding], title: str) -> Table:
    """Tabulate what one run of a study with canaries found for each group."""
    table = _table(title, "ceiling", "guesses", "right")
    for row in findings:
        table.add_row(
            *_epsilons(row),
            floor_decimals(row.ceiling_epsilon, 3),
            str(row.guesses.guessed),
            str(row.guesses.correct),
            "holds" if row.holds else "REFUTED",
        )
    return table


def _table(title: str, *more: str) -> Table:
    table = Table(title=f"Audit: {title}", title_justify="left")
    table.add_column("level")
    for name in ("lower ε", "claimed ε", "budget ε", *more):
        table.add_column(name, justify="right")
    table.add_column("claim")
    ceiling = "; ceiling: what could be shown if all guesses were right"
    table.caption = f"per owner, at the level's δ{ceiling if 'ceiling' in more else ''}"
    table.caption_justify = "left"
    return table


def _epsilons(row: GameFinding | OneRunFinding) -> tuple[str, str, str, str]:
    granted, claimed = budget_and_cost(row.budget.epsilon, row.claim_epsilon, digits=3)
    return row.group, budget_in_digits(row.lower_epsilon, 3), claimed, granted


def game_panels(findings: list[GameFinding]) -> list[tuple[str, list[Bar]]]:
    """Panels of the game's figure: bounds on μ, where anything is claimed in it, and on ε."""
    if any(math.isinf(f.claim_mu) for f in findings):
        return [_epsilon_panel(findings)]
    return [
        ("μ per owner", [Bar(f.group, f.lower_mu, f.claim_mu, f.budget_mu) for f in findings]),
        _epsilon_panel(findings),
    ]


def one_run_panels(findings: list[OneRunFinding]) -> list[tuple[str, list[Bar]]]:
    """Panels of the run's figure: bounds on ε."""
    return [_epsilon_panel(findings)]


def _epsilon_panel(findings: Any) -> tuple[str, list[Bar]]:
    bars = [Bar(f.group, f.lower_epsilon, f.claim_epsilon, f.budget.epsilon) for f in findings]
    return f"ε per owner, at δ = {findings[0].budget.delta:g}", bars


def as_record(row: GameFinding | OneRunFinding) -> dict[str, Any]:
    """Put a finding into words and numbers for JSON."""
    record: dict[str, Any] = {
        "lower_epsilon": row.lower_epsilon,
        "claim_epsilon": row.claim_epsilon,
        "budget_epsilon": row.budget.epsilon,
        "delta": row.budget.delta,
        "holds": row.holds,
    }
    if isinstance(row, GameFinding):
        return {
            **record,
            "lower_mu": row.lower_mu,
            "claim_mu": row.claim_mu if math.isfinite(row.claim_mu) else None,
            "budget_mu": row.budget_mu,
            "true_positive_rate": row.true_positive_rate,
            "false_positive_rate": row.false_positive_rate,
        }
    return {
        **record,
        "ceiling_epsilon": row.ceiling_epsilon,
        "canaries": row.guesses.canaries,
        "guessed": row.guesses.guessed,
        "correct": row.guesses.correct,
    }
