"""The public terms of a study that asks, and what a journal of its answers amounts to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from collegium.accounting.accountants import GaussianAccountant
from collegium.accounting.events import Event
from collegium.accounting.export import Use, uses_of
from collegium.accounting.spent import Spent
from collegium.budgets import Budget
from collegium.study.journal import FileJournal
from collegium.study.sections import STATISTICS
from collegium.study.terms import Progress, RegistryWords, Terms


@dataclass(frozen=True, eq=False, kw_only=True)
class StatisticsTerms(Terms):
    """Which questions are asked, at which prices.

    ``noise``, ``weights``, ``spend``: as the session has them.
    ``questions``: that cost anything, in the order in which they are asked.
    ``uses``: of each question: what it does to a member of each group.
    """

    method: ClassVar[str] = STATISTICS
    counted: ClassVar[Mapping[str, Any]] = {"questions": int, "questions_lost": int}

    noise: str
    weights: str
    spend: float
    questions: tuple[str, ...]
    uses: tuple[Mapping[str, list[Use]], ...]

    def spent_on(self, charged: int) -> Spent:
        """Charge so many questions again, to a member of each group."""
        uses = {
            name: tuple(use for one in self.uses[:charged] for use in one[name])
            for name in self.groups
        }
        accounts = {name: self._account(name, uses[name]) for name in self.groups}
        # Pure answers may have been allowed by ε alone, and promise no μ then.
        charged_any = [one for one in accounts.values() if one.mu_squared.any()]
        return Spent(
            uses,
            {name: float(one.epsilon_spent()[0]) for name, one in accounts.items()},
            gaussian=bool(charged_any) and all(one.is_gaussian for one in charged_any),
        )

    def _account(self, name: str, uses: tuple[Use, ...]) -> GaussianAccountant:
        budget = self.groups[name]
        account = GaussianAccountant([budget.epsilon], [budget.delta], [name], self.neighbours)
        for use in uses:
            for _ in range(use.count):
                account.charge(use.event)
        return account

    def spent(self, journal: FileJournal) -> Spent:
        """Charge again the questions for which noise may have been drawn."""
        return self.spent_on(journal.steps)

    def progress(self, journal: FileJournal, ended: str | None) -> Progress:
        """Tell how many questions are charged, of how many."""
        planned, more = len(self.questions), len(self.questions) - journal.steps
        counts = {
            "noise": self.noise,
            "questions_charged": journal.steps,
            "questions_planned": planned,
        }
        sentences = (
            f"{journal.steps:,} of {planned:,} questions are charged ({self.noise} noise).",
            f"The next run asks {more:,} more."
            if more
            else "Nothing more will be drawn in this folder.",
        )
        return Progress(counts, sentences, {name: {} for name in self.groups})

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

    def drawn_and_told(self, told: Mapping[str, Any], journal: FileJournal) -> tuple[str, int, int]:
        """Count questions that cost anything: a release has them all."""
        return "questions were charged", journal.steps, len(self.questions)

    def released(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Count questions, those that cost nothing among them, and answers that were lost."""
        return {"questions": told["questions"], "questions_lost": told["questions_lost"]}

    def released_in_words(self, released: Mapping[str, Any]) -> str:
        """Say how many questions were asked."""
        return (
            f"{released['questions']:,} questions were asked; the answers of "
            f"{released['questions_lost']:,} of them were lost."
        )

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

    def own_to_json(self) -> dict[str, Any]:
        """List the questions, and what each does."""
        return {
            "noise": self.noise,
            "weights": self.weights,
            "spend": self.spend,
            "questions": list(self.questions),
            "uses": [
                {name: [use.to_json() for use in uses] for name, uses in one.items()}
                for one in self.uses
            ],
        }

    @classmethod
    def own_from_json(cls, own: Mapping[str, Any], common: Mapping[str, Any]) -> Self:
        """Read the questions."""
        neighbours = common["arrangement"].neighbours
        return cls(
            **common,
            noise=own["noise"],
            weights=own["weights"],
            spend=own["spend"],
            questions=tuple(own["questions"]),
            uses=tuple(
                {
                    name: [Use.from_json(use, neighbours) for use in uses]
                    for name, uses in one.items()
                }
                for one in own["uses"]
            ),
        )


def uses_by_group(events: list[Event], groups: Mapping[str, Budget]) -> dict[str, list[Use]]:
    """What a question's events do to a member of each group."""
    return {
        name: [use for event in events for use in uses_of(event, cohort, "answer")]
        for cohort, name in enumerate(groups)
    }
