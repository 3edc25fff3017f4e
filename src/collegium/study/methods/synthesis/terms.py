"""The public terms of a study that publishes a synthetic table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from collegium.study.event_terms import EventTerms
from collegium.study.methods.synthesis.settings import SynthesisKind
from collegium.study.registry import EXACT_NOISE
from collegium.study.terms import RegistryWords


@dataclass(frozen=True, eq=False, kw_only=True)
class SynthesisTerms(EventTerms):
    """Which noisy counts are made.

    ``goal``: as it was chosen. ``weights``, ``calibrated``: as the settings have them.
    ``target``: column that others are to predict; empty: none.
    ``shares``: of everybody's μ², of each draw.
    """

    method: ClassVar[str] = SynthesisKind.name
    drawn: ClassVar[str] = "draws"
    draws: ClassVar[str] = "makes"

    goal: str
    target: str
    weights: str
    calibrated: bool
    shares: tuple[float, ...]

    def mechanism(self) -> dict[str, Any]:
        """Describe how the table is made."""
        return {
            "name": self.method,
            "in_words": self._in_words(),
            "goal": self.goal,
            "weights": self.weights,
            "calibrated": self.calibrated,
        }

    def _in_words(self) -> str:
        return (
            "Gaussian noise on counts of columns and pairs of columns, weighted by budgets "
            f"({self.weights}); rows are drawn from the distribution of largest entropy that fits them"
        )

    @classmethod
    def released_in_words(cls, released: Mapping[str, Any], unit: str) -> str:
        """Say how many rows there are, and what they rest on."""
        total, lost = (released[name] for name in cls.counted)
        crash = f"; a crash took {lost:,} of them" if lost else ""
        return f"A synthetic table, from {total:,} draws of noisy counts{crash}."

    def for_registry(self, statement: Mapping[str, Any]) -> RegistryWords:
        """Describe the table."""
        return RegistryWords(
            product_type="Synthetic data",
            description="Rows that were drawn from a distribution which fits noisy counts of a table of "
            "people. How much each person's records weigh follows from that person's budget.",
            unprotected="Budgets and who is in which group, group sizes, the table's schema (columns, "
            "bounds and categories), constraints, public records and settings.",
            holder="Whoever runs Collegium holds the records.",
            mechanism=self._in_words(),
            noise=f"{EXACT_NOISE} Times are not hidden.",
            composition="Draws and noise fixed beforehand: Gaussian differential privacy (squares of mu "
            "add up), for each owner.",
            post_processing="Rows follow from the noisy counts and from public randomness alone.",
        )
