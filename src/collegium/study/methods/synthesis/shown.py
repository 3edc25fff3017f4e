"""What a plan of a synthetic table says of itself: who weighs how much, what noise does, what to expect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from collegium.checks import listed
from collegium.report.numbers import count, share
from collegium.report.sections import Banner, Block, Column, Paragraph, Table
from collegium.synthesis.rehearsal import Prediction
from collegium.synthesis.run import Synthesis
from collegium.synthesis.stages import FIRST, PAIRS, SCORES

GOALS = {
    "target": "learning to predict {}",
    "fidelity": "any question about single columns and pairs",
    "both": "learning to predict {}, and any other question about single columns and pairs",
}


@dataclass(frozen=True, eq=False)
class PlannedTable:
    """A synthetic table, as far as it is shown before anything is drawn.

    ``target``: column that others are to predict. ``n_rows``: that are published.
    ``prediction``: what to expect; None where nobody knows.
    """

    run: Synthesis
    target: str | None
    n_rows: int
    prediction: Prediction | None


def goal_in_words(goal: str, target: str | None) -> str:
    """Say what a table is to be good for."""
    return GOALS[goal].format(target)


def plan_numbers(planned: PlannedTable) -> dict[str, Any]:
    """Say all of a plan for JSON."""
    run = planned.run
    heard = run.heard()
    return {
        "goal": run.stages.goal,
        "signal": run.stages.signal,
        "rows": planned.n_rows,
        "notes": list(run.notes()),
        "draws": [
            {
                "what": one.name,
                "share": one.share,
                "numbers": _numbers_of(planned, one.name),
                "noise": one.sd(_numbers_of(planned, one.name) or 1),
            }
            for one in run.stages.drawn
        ],
        "cells": dict(zip(run.cells.names, run.cells.sizes, strict=True)),
        "groups": {
            str(name): {
                "people": int(row["people"]),
                "share_of_people": float(row["share_of_people"]),
                "share_of_weight": float(row["share_of_weight"]),
            }
            for name, row in heard.iterrows()
        },
        "prediction": None if planned.prediction is None else planned.prediction.to_json(),
    }


def _numbers_of(planned: PlannedTable, name: str) -> int | None:
    """How many marginals, or scores, a draw has; None where noisy scores decide."""
    run = planned.run
    if name == FIRST:
        return len(run.first)
    if name == SCORES:
        return len(run.candidates)
    return len(run.structure) or None


def plan_blocks(planned: PlannedTable) -> list[Block | Banner]:
    """Say the same for people."""
    run, target = planned.run, planned.target
    return [
        heard_table(planned),
        Paragraph(f"Made for {goal_in_words(run.stages.goal, target)}."),
        *(Paragraph(line, "note") for line in run.notes()),
        Paragraph(_draws_in_words(planned)),
        Paragraph(_error_in_words(planned)),
        _expected(planned),
    ]


def heard_table(planned: PlannedTable) -> Table:
    """Show, of each level, its share of the people and of the weight with which they are heard."""
    rows = [
        (
            str(name),
            count(int(row["people"])),
            share(float(row["share_of_people"])),
            share(float(row["share_of_weight"])),
        )
        for name, row in planned.run.heard().iterrows()
    ]
    return Table(
        (Column("level", False), Column("people"), Column("of all people"), Column("of the table")),
        rows,
        "Whose distribution this is: people with larger budgets weigh more, so the table leans towards "
        "them where they differ from others.",
        title="Who is heard",
    )


def _draws_in_words(planned: PlannedTable) -> str:
    run = planned.run
    of_what = "single columns" if run.target is None else f"each column with {planned.target}"
    said = {
        FIRST: f"counts of {of_what} ({len(run.first):,})",
        SCORES: f"how much each of {len(run.candidates):,} other pairs would add",
        PAIRS: "counts of "
        + (
            f"{len(run.structure):,} given combinations"
            if run.structure
            else "the pairs that add most"
        ),
    }
    parts = [f"{said[one.name]}, with {share(one.share)}" for one in run.stages.drawn]
    return (
        f"Measured with noise, with these shares of everybody's budget (of μ²): {'; '.join(parts)}."
    )


def _error_in_words(planned: PlannedTable) -> str:
    run = planned.run
    stage = run.stages[FIRST]
    total = float(run.table.sizes @ stage.weighing.weights)
    error = stage.sd(len(run.first)) / total
    return (
        f"Noise moves the share of a cell that is counted by about {100 * error:.2g} percentage points; the "
        f"{sum(run.cells.sizes):,} cells of all columns are public."
    )


def _expected(planned: PlannedTable) -> Paragraph:
    found = planned.prediction
    if found is None:
        return Paragraph(
            "What comes of it cannot be predicted without public records (data.public): a few hundred "
            "would do, of the same columns."
        )
    pairs = (
        f"pairs of columns off by {found.pairs:.3f} on average (total variation; public rows alone "
        f"{found.pairs_public:.3f}"
        + (f", sampling alone {found.pairs_least:.3f})" if found.pairs_least is not None else ")")
    )
    scores = [
        f"{found.measure} {value:.3f} with {model} (public rows alone {found.public_alone[model]:.3f})"
        for model, value in found.scores.items()
        if model in found.public_alone
    ]
    return Paragraph(
        f"Rehearsed on public records: {listed([*scores, pairs])}. Private records say more than so few "
        "public ones repeated, so this is rather too low."
    )


def plan_in_short(planned: PlannedTable) -> str:
    """Say how much is measured, and for what."""
    run = planned.run
    draws = len(run.stages.drawn)
    return (
        f"{planned.n_rows:,} rows from {draws:,} draw{'s' * (draws != 1)} of noisy counts, for "
        f"{goal_in_words(run.stages.goal, planned.target)}"
    )
