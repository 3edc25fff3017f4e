"""The card of released answers: what they are, who granted and paid what, how to read them, their limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from collegium.accounting.statement import PrivacyStatement
from collegium.report.numbers import count
from collegium.report.statistics_page import numbers_of
from collegium.study.config import StudyConfig
from collegium.study.model_card import made_with, points, promises, table_of, text_of

_SHOWN = 200  # values
LIMITS = (
    "Values beyond the public bounds count as the nearest bound; missing ones and unknown categories are in "
    "no group. Whether that happened to anybody is told to nobody.",
    "Where budgets go together with the data, answers lean towards those who weigh more, unless "
    "everybody is heard alike.",
    "The questions were chosen before a row was read. An answer with fresh noise would be another release, "
    "at its own price.",
)


def statistics_card(
    config: StudyConfig,
    privacy: PrivacyStatement,
    answers: Sequence[Mapping[str, Any]],
    lost: Sequence[str],
) -> str:
    """Write the card as Markdown, of what is published anyway.

    ``answers``, ``lost``: as in ``answers.json``.
    """
    questions = "one question" if len(answers) == 1 else f"{count(len(answers))} questions"
    gone = (
        f" {count(len(lost))} more were paid for, and lost in a crash: no answer." if lost else ""
    )
    notes = list(
        dict.fromkeys(f"{note[:1].upper()}{note[1:]}." for one in answers for note in one["notes"])
    )
    parts = [
        f"# {text_of(config.title())}",
        f"This folder holds noisy answers to {questions} about a private table, which is not in it.{gone} "
        "`answers.json` holds all of each answer, `answers.csv` a row for each value, `privacy.json` all "
        "settings, `report.html` the whole story.",
        *promises(privacy),
        "## The answers",
        *_values(answers),
        "## How to read them",
        points(
            [
                "A standard error, and an interval, say how far an answer may be from the value over the "
                "people in the table: noise and unequal weights are in it.",
                *notes,
            ]
        ),
        "## Limits",
        points(LIMITS),
        *made_with(),
    ]
    return "\n\n".join(parts) + "\n"


def _values(answers: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [
        (one["question"], ", ".join(str(cell[key]) for key in one["keys"]), *numbers_of(cell))
        for one in answers
        for cell in one["cells"]
    ]
    if not rows:
        return ["There are none."]
    head = ("question", "of", "value", "standard error", "interval")
    more = (
        [f"… and {count(len(rows) - _SHOWN)} more, in `answers.csv`."] if len(rows) > _SHOWN else []
    )
    confidence = (
        f"Intervals: {answers[0]['confidence']:.0%}. —: too few people to say, or, of a quantile's standard "
        "error, that it has none."
    )
    return [table_of(head, rows[:_SHOWN]), *more, confidence]
