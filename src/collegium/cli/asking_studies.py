"""What commands about studies show of those that ask."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collegium.cli.console import (
    last_line,
    out,
    print_cautions,
    print_json,
    print_spent,
    privacy_table,
    warn_of,
)
from collegium.cli.shown_answers import print_answers

if TYPE_CHECKING:
    from collegium.study.config import StudyConfig
    from collegium.study.statistics_terms import StatisticsTerms


def show_plan(config: StudyConfig, as_json: bool) -> None:
    """Show what each question would cost, and how far off its answer would be. Spends nothing."""
    from collegium.cli.progress import NoteObserver
    from collegium.study.statistics_stages import plan_statistics

    planned = plan_statistics(config, observer=NoteObserver())
    session, ledger = planned.session, planned.ledger
    plans = [session.plan(str(one), **planned.data.how(one)) for one in planned.data.charged]
    free = [str(one) for one in planned.data.asked if one not in planned.data.charged]
    if as_json:
        print_json(
            {
                "method": "statistics",
                "noise": session.noise,
                "neighbours": session.arrangement.sentence,
                "plans": [dataclasses.asdict(one) for one in plans],
                "public": free,
                "ledger": None if ledger is None else str(ledger.place),
            }
        )
        return
    for line in "\n".join(map(str, plans)).splitlines():
        out.print(line, soft_wrap=True)
    for question in free:
        out.print(f"{question}: public, so it is free", soft_wrap=True)
    out.print(f"Neighbouring data sets: {session.arrangement.sentence}.", soft_wrap=True)
    if ledger is not None:
        out.print(ledger.in_words, soft_wrap=True)
    last_line(None, f"{len(plans):,} questions to pay for, {session.noise} noise")


def run_and_show(config: StudyConfig, folder: Path, as_json: bool) -> None:
    """Run the study, and show its answers."""
    from collegium.cli.progress import watching
    from collegium.study.statistics_stages import run_statistics_study

    with watching(not as_json) as observer:
        result = run_statistics_study(config, folder, observer)
    if as_json:
        print_json(
            {
                **result.privacy.to_dict(),
                "answers": list(result.answers),
                "lost": list(result.lost),
                **({} if result.ledger is None else {"ledger": result.ledger}),
                "release": str(result.folder.release),
                "report": str(result.report),
            }
        )
        return
    print_cautions(result.privacy)
    print_answers(result.answers)
    for question in result.lost:
        out.print(f"{question}: paid for, and lost in a crash; it is not drawn again.")
    out.print(privacy_table(result.privacy))
    if result.ledger is not None:
        out.print(
            f"Ledger:    {result.ledger} (`collegium ledger show`, `collegium receipt`)",
            soft_wrap=True,
        )
    out.print(f"Published: {result.folder.release}", soft_wrap=True)
    out.print(f"Report:    {result.report}", soft_wrap=True)
    last_line(
        result.privacy, f"{len(result.answers):,} answers", f"published: {result.folder.release}"
    )


def show_left(folder: Path, as_json: bool) -> None:
    """Print what was spent of a study that asks, and what is left to ask."""
    from collegium.accounting.statement import large_deltas
    from collegium.study.statistics_terms import read_statistics

    terms, charged = read_statistics(folder)
    warn_of(large_deltas((name, terms.people[name], one) for name, one in terms.groups.items()))
    if as_json:
        print_json({**_about(terms, charged), "groups": _spending(terms, charged)})
        return
    if not terms.private_noise:
        out.print("NOT PRIVATE: the noise was drawn from a seed.", style="bold red")
    left = terms.questions[charged:]
    out.print(
        f"{charged:,} of {len(terms.questions):,} questions are charged ({terms.noise} noise)."
    )
    out.print(
        f"The next run asks {len(left):,} more."
        if left
        else "Nothing more will be drawn in this folder."
    )
    print_spent(terms.groups, terms.epsilon_spent(charged), terms.unit, terms.adjacency)


def show_export(folder: Path) -> None:
    """Print the composition of all answers as JSON."""
    from collegium.accounting.export import to_json
    from collegium.study.statistics_terms import read_statistics

    terms, charged = read_statistics(folder)
    about = _about(terms, charged)
    about.pop("guarantee")
    adjacency = about.pop("adjacency")
    spending = _spending(terms, charged)
    print_json(
        to_json(terms.composition(charged), terms.neighbours, adjacency, **about, spending=spending)
    )


def _spending(terms: StatisticsTerms, charged: int) -> dict[str, dict[str, Any]]:
    spent = terms.epsilon_spent(charged)
    return {
        name: {
            f"{terms.unit}s": terms.people[name],
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "epsilon_spent": spent[name],
        }
        for name, budget in terms.groups.items()
    }


def _about(terms: StatisticsTerms, charged: int) -> dict[str, Any]:
    return {
        "guarantee": "worst-case",
        "adjacency": terms.adjacency,
        "private_noise": terms.private_noise,
        "method": "statistics",
        "noise": terms.noise,
        "questions_charged": charged,
        "questions_planned": len(terms.questions),
    }
