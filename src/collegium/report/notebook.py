"""Policies, budgets, statements and plans as a notebook shows them: small tables that need nothing else.

Rows are those of terminal and page. Colours are the notebook's own, light or dark, and every name is text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch
from typing import Any

from collegium.accounting.statement import PrivacyStatement, left_out, some_of
from collegium.budgets import PUBLIC, Budgets, Policy
from collegium.ledger.limits import Lifetime
from collegium.personalisation.dpsgd_plan import DPSGDPlan
from collegium.personalisation.plan import Plan
from collegium.planner.recommend import Recommendation
from collegium.report import choice
from collegium.report.in_plain_words import promise
from collegium.report.numbers import count, down
from collegium.report.page import environment
from collegium.report.plans import plan_sentence, plan_table, steps_table
from collegium.report.promise import footnotes, spending_table
from collegium.report.sections import Block, Column, Paragraph, Points, Table
from collegium.report.words import MEMBERS

_NAME = Column("level", is_number=False)


def html_of(shown: Any) -> str:
    """Write something as a piece of HTML, without scripts and without anything from outside.

    Examples
    --------
    >>> "<td" in html_of(Policy({"high": 1.0}))
    True
    """
    return environment().get_template("notebook.html.j2").render(blocks=_blocks_of(shown))


@singledispatch
def _blocks_of(shown: Any) -> Sequence[Block]:
    raise TypeError(f"{type(shown).__name__} has no rows to show")


@_blocks_of.register
def _(shown: Policy) -> Sequence[Block]:
    rows = [
        (name, down(one.epsilon), down(one.delta), str(promise([one], Lifetime()).right))
        for name, one in shown.levels.items()
    ]
    rows += [
        (name, *(("∞", "", "100") if kind == PUBLIC else ("0", "", "50")))
        for name, kind in shown.outside.items()
    ]
    public = [name for name, kind in shown.outside.items() if kind == PUBLIC]
    said = [
        "Right of 100: in how many of 100 cases the best test can tell whether a person's records were used, "
        "at most, from all releases on one ledger together. Guessing is right in 50.",
        *[f"Records of {', '.join(public)} are published as they are." for _ in public[:1]],
    ]
    columns = [_NAME, *map(Column, ("budget ε", "δ", "right of 100"))]
    return [Table(columns, rows, " ".join(said), "Policy: what each level allows")]


@_blocks_of.register
def _(shown: Budgets) -> Sequence[Block]:
    sizes = shown.public_sizes()
    rows = [
        (name, count(sizes[name]), down(one.epsilon), down(one.delta))
        for name, one in some_of(list(shown.groups.items()), lambda item: item[1])
    ]
    whose = (
        "Each person has one budget for all of their records."
        if shown.named
        else "Each record counts as a person, since no owners were named."
    )
    said = [f"{count(len(shown))} records.", whose]
    some, _, _ = left_out(len(shown.groups)).partition(":")
    if some:
        said.append(f"{some}: group_sizes() has all of them.")
    columns = [_NAME, *map(Column, ("people", "budget ε", "δ"))]
    return [Table(columns, rows, " ".join(said), "Budgets: who granted what")]


@_blocks_of.register
def _(shown: PrivacyStatement) -> Sequence[Block]:
    unit = MEMBERS[shown.unit][2]
    said = [f"ε and δ per {unit}. {shown.in_short} In full: sentences().", *footnotes(shown)]
    table = replace(spending_table(shown), caption=" ".join(said))
    warned = [] if shown.noise_is_private else [Paragraph(shown.title, "warning")]
    more = [*shown.provisos, *filter(None, [shown.large_deltas])]
    return [*warned, table, *([Points([f"{line}." for line in more])] if more else [])]


@_blocks_of.register
def _(shown: DPSGDPlan) -> Sequence[Block]:
    said = (
        f"{shown.steps:,} steps, each with noise of {shown.noise:.4g} clip norms in every coordinate; "
        f"{shown.neighbours.in_words}. Signal to noise of a step, at most: {shown.signal_to_noise:.4g} in "
        "each coordinate."
    )
    return [steps_table(shown), Paragraph(said)]


@_blocks_of.register
def _(shown: Plan) -> Sequence[Block]:
    return [plan_table(shown), Paragraph(plan_sentence(shown))]


@_blocks_of.register
def _(shown: Recommendation) -> Sequence[Block]:
    columns = [Column("key", is_number=False), Column("value", False), Column("why", False, True)]
    lines = [*choice.expectations(shown), *choice.figures(shown), *choice.notes(shown)]
    return [
        *[Paragraph(line, "warning") for line in choice.verdict(shown)],
        Table(columns, choice.settings(shown), "", choice.chosen_from(shown)),
        Points(lines),
    ]
