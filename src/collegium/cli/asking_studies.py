"""What commands about studies show of those that ask."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from collegium.cli.console import (
    last_line,
    out,
    print_cautions,
    print_json,
    privacy_table,
)
from collegium.cli.shown_answers import print_answers

if TYPE_CHECKING:
    from collegium.study.config import StudyConfig
    from collegium.study.methods.statistics import StatisticsResult


def show_plan(config: StudyConfig, as_json: bool) -> None:
    """Show what each question would cost, and how far off its answer would be. Spends nothing."""
    from collegium.cli.progress import NoteObserver
    from collegium.study.methods.statistics import StatisticsPlan
    from collegium.study.runner import plan_study

    study = plan_study(config, observer=NoteObserver())
    planned, ledger = study.plan, study.ledger
    assert isinstance(planned, StatisticsPlan)
    session = planned.session
    plans = [session.plan(one, **planned.data.how(one)) for one in planned.data.charged]
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
    out.print(session.arrangement.in_short, soft_wrap=True)
    if ledger is not None:
        out.print(ledger.in_words, soft_wrap=True)
    last_line(None, f"{len(plans):,} questions to pay for, {session.noise} noise")


def show_result(result: StatisticsResult, as_json: bool) -> None:
    """Show what was answered, and where it is published."""
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
    out.print(privacy_table(result.privacy, result.chosen))
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
