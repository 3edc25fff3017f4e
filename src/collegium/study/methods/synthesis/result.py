"""What a finished study of a synthetic table says, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from collegium.evaluation.synthetic_quality import SyntheticQuality
from collegium.report.sections import Banner, Block, Paragraph
from collegium.study.result import PublishedResult


@dataclass(frozen=True, eq=False, kw_only=True)
class SynthesisResult(PublishedResult):
    """What a finished study of a synthetic table says. Nothing in it is sensitive.

    ``quality``: by test records; None where there are none.
    ``rows``, ``marginals``: how many there are. ``file``: with the rows.
    ``notes``: what the table is not good for.
    """

    quality: SyntheticQuality | None
    rows: int
    marginals: int
    file: str
    notes: tuple[str, ...]

    def numbers(self) -> dict[str, Any]:
        """Say how many rows there are, and what they are worth."""
        return {
            **super().numbers(),
            "quality": None if self.quality is None else self.quality.to_dict(),
            "notes": list(self.notes),
        }

    def blocks(self) -> list[Block | Banner]:
        """Show the verdict, above what was promised and spent."""
        told = Paragraph(
            f"{self.rows:,} synthetic rows in {self.folder.release / self.file}, from {self.marginals:,} "
            "noisy "
            f"marginals; more: collegium sample {self.folder.release} --rows NUMBER --out FILE"
        )
        noted = [Paragraph(line, "note") for line in self.notes]
        if self.quality is None:
            return [told, *noted, *super().blocks()]
        verdict = Banner(self.quality.tone, self.quality.verdict, self.quality.reason)
        return [verdict, told, *noted, *super().blocks()]

    def in_short(self) -> str:
        """Say what it is worth, or that nobody knows."""
        if self.quality is None:
            return f"{self.rows:,} synthetic rows; without test records nobody knows what they are worth"
        return self.quality.verdict
