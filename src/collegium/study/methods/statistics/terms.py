"""The public terms of a study that asks, and what a journal of its answers amounts to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from collegium.json_files import parse_json
from collegium.report.sections import Block, Listing
from collegium.study.event_terms import EventTerms
from collegium.study.journal import FileJournal
from collegium.study.methods.statistics.settings import StatisticsKind
from collegium.study.released_files import released_content
from collegium.study.terms import Progress, RegistryWords


@dataclass(frozen=True, eq=False, kw_only=True)
class StatisticsTerms(EventTerms):
    """Which questions are asked, at which prices.

    ``noise``, ``weights``, ``spend``: as the session has them.
    ``questions``: that cost anything, in the order in which they are asked.
    """

    method: ClassVar[str] = StatisticsKind.name
    drawn: ClassVar[str] = "questions"
    draws: ClassVar[str] = "asks"

    noise: str
    weights: str
    spend: float
    questions: tuple[str, ...]

    def progress(self, journal: FileJournal, ended: str | None) -> Progress:
        """Tell how many questions are charged, and with which noise."""
        found = super().progress(journal, ended)
        first = f"{journal.steps:,} of {len(self.questions):,} questions are charged ({self.noise} noise)."
        counts = {"noise": self.noise, **found.counts}
        return replace(found, counts=counts, sentences=(first, *found.sentences[1:]))

    def mechanism(self) -> dict[str, Any]:
        """Describe how answers are made."""
        return {
            "name": "statistics",
            "in_words": self._in_words(),
            "noise": self.noise,
            "weights": self.weights,
        }

    def _in_words(self) -> str:
        choice = "permute-and-flip" if self.noise == "laplace" else "the exponential mechanism"
        return (
            f"{len(self.questions):,} questions to a table; sums weighted by budgets ({self.weights}) with "
            f"{self.noise} noise, quantiles by {choice}"
        )

    @classmethod
    def released_in_words(cls, released: Mapping[str, Any], unit: str) -> str:
        """Say how many questions were asked."""
        return (
            f"{released['questions']:,} questions were asked; the answers of "
            f"{released['questions_lost']:,} of them were lost."
        )

    @classmethod
    def released_blocks(cls, told: Mapping[str, Any], folder: Path) -> list[Block]:
        """Show the answers, too."""
        path = folder / "release" / "answers.json"
        content = released_content(path)
        if content is None:
            return super().released_blocks(told, folder)
        answers = parse_json(content, path, {"answers": [{"text": str}]})["answers"]
        shown = Listing("\n".join(one["text"] for one in answers))
        return [*super().released_blocks(told, folder), shown]

    def for_registry(self, statement: Mapping[str, Any]) -> RegistryWords:
        """Describe the answers."""
        exact = "" if statement["guarantee"]["gaussian"] else ", or the sum of pure epsilons"
        return RegistryWords(
            product_type="Summary statistics",
            description=f"Noisy answers to {statement['released']['questions']:,} questions about a table "
            "of people. Each person's weight in an answer follows from that person's budget.",
            unprotected="Budgets and who is in which group, group sizes, the table's schema (columns, bounds "
            "and categories), questions and settings.",
            holder="Whoever runs Collegium holds the records.",
            mechanism=self._in_words(),
            noise="Noise comes from the operating system's cryptographic randomness. Times are not "
            "hidden.",
            composition="Questions and their noise fixed beforehand: Gaussian differential privacy (squares "
            f"of mu add up){exact}, for each owner.",
            post_processing="Answers are scaled and bounded by public numbers alone.",
        )
