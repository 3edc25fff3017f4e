"""The public terms of a study that asks, kept in its vault: enough to read its account without any data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collegium.accounting.accountants import GaussianAccountant
from collegium.accounting.events import Event
from collegium.accounting.export import Use, uses_of
from collegium.accounting.neighbours import Neighbours
from collegium.budgets import Budget
from collegium.json_files import number_as_json
from collegium.study.sections import STATISTICS
from collegium.study.terms import begun_job, reading_terms

FORMAT = 1


@dataclass(frozen=True, eq=False)
class StatisticsTerms:
    """What was agreed on before the first question.

    ``groups``, ``people``: the budget of each group's members, and how many there are.
    ``neighbours``, ``adjacency``: what is hidden about an owner; in words.
    ``unit``: what a group's members are.
    ``private_noise``: whether noise comes from the operating system.
    ``noise``, ``weights``, ``spend``: as the session has them.
    ``questions``: that cost anything, in the order in which they are asked.
    ``uses``: of each question: what it does to a member of each group.
    """

    groups: Mapping[str, Budget]
    people: Mapping[str, int]
    neighbours: Neighbours
    adjacency: str
    unit: str
    private_noise: bool
    noise: str
    weights: str
    spend: float
    questions: tuple[str, ...]
    uses: tuple[Mapping[str, list[Use]], ...]

    def composition(self, charged: int) -> dict[str, list[Use]]:
        """What so many questions did to a member of each group."""
        return {
            name: [use for one in self.uses[:charged] for use in one[name]] for name in self.groups
        }

    def accounts(self, charged: int) -> dict[str, GaussianAccountant]:
        """Charge so many questions again, to a member of each group."""
        accounts = {}
        for name, uses in self.composition(charged).items():
            budget = self.groups[name]
            account = GaussianAccountant([budget.epsilon], [budget.delta], [name], self.neighbours)
            for use in uses:
                for _ in range(use.count):
                    account.charge(use.event)
            accounts[name] = account
        return accounts

    def epsilon_spent(self, charged: int) -> dict[str, float]:
        """What so many questions cost a member of each group, at the group's δ."""
        accounts = self.accounts(charged).items()
        return {name: float(account.epsilon_spent()[0]) for name, account in accounts}

    def to_json(self) -> dict[str, Any]:
        """Make a dictionary for JSON, exact to the last bit."""
        return {
            "format": FORMAT,
            "method": STATISTICS,
            "groups": {
                name: [number_as_json(one.epsilon), one.delta] for name, one in self.groups.items()
            },
            "people": dict(self.people),
            "neighbours": self.neighbours.value,
            "adjacency": self.adjacency,
            "unit": self.unit,
            "private_noise": self.private_noise,
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
    def from_json(cls, content: Mapping[str, Any]) -> StatisticsTerms:
        """Read what :meth:`to_json` made."""
        if content["format"] != FORMAT:
            raise ValueError(content["format"])
        neighbours = Neighbours(content["neighbours"])
        return cls(
            {name: Budget(float(eps), delta) for name, (eps, delta) in content["groups"].items()},
            content["people"],
            neighbours,
            content["adjacency"],
            content["unit"],
            content["private_noise"],
            content["noise"],
            content["weights"],
            content["spend"],
            tuple(content["questions"]),
            tuple(
                {
                    name: [Use.from_json(use, neighbours) for use in uses]
                    for name, uses in one.items()
                }
                for one in content["uses"]
            ),
        )


def uses_by_group(events: list[Event], groups: Mapping[str, Budget]) -> dict[str, list[Use]]:
    """What a question's events do to a member of each group."""
    return {
        name: [use for event in events for use in uses_of(event, cohort, "answer")]
        for cohort, name in enumerate(groups)
    }


def read_statistics(path: Path) -> tuple[StatisticsTerms, int]:
    """Read the terms, and how many questions are charged; nothing is changed, also while it is running.

    Raises StudyMismatchError if the journal does not vouch for the terms, and for what was released.
    """
    with reading_terms(path):
        content, journal = begun_job(path)
        return StatisticsTerms.from_json(content), journal.steps
