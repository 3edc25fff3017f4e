"""What a finished study that asks says, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from collegium.report.sections import Banner, Block, Listing
from collegium.statistics.answer_notes import costs_anything, notes_apart
from collegium.statistics.answer_words import price_in_words
from collegium.study.result import PublishedResult


@dataclass(frozen=True, eq=False, kw_only=True)
class StatisticsResult(PublishedResult):
    """What a finished study that asks says. Nothing in it is sensitive.

    ``answers``: as in ``answers.json``, in the order of the questions.
    ``lost``: questions that were paid for, and whose answers a crash took.
    """

    answers: tuple[dict[str, Any], ...]
    lost: tuple[str, ...]

    def numbers(self) -> dict[str, Any]:
        """Give all of each answer."""
        return {"answers": list(self.answers), "lost": list(self.lost)}

    def blocks(self) -> list[Block | Banner]:
        """Say what was answered, with what is to be minded."""
        own, of_all = notes_apart(self.answers)
        lines = []
        for answer, notes in zip(self.answers, own, strict=True):
            lines.append(answer["text"])
            if costs_anything(answer):
                shares = {str(row["group"]): row["share"] for row in answer["paid"]}
                lines.append(f"  {price_in_words(shares)}")
            lines += [f"  • {note}" for note in notes]
        lines += [f"• {note}" for note in of_all]
        lines += [
            f"{question}: paid for, and lost in a crash; it is not drawn again."
            for question in self.lost
        ]
        return [Listing("\n".join(lines)), *super().blocks()]

    def in_short(self) -> str:
        """Count answers."""
        return f"{len(self.answers):,} answers"
