"""Terms of a release whose draws are known beforehand, each with the events that it exposes a group to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from collegium.accounting.accountants import GaussianAccountant
from collegium.accounting.events import Event
from collegium.accounting.export import Use, uses_of
from collegium.accounting.spent import Spent
from collegium.budgets import Budget
from collegium.study.journal import FileJournal
from collegium.study.registry import EXACT_NOISE
from collegium.study.terms import Progress, RegistryWords, Terms


@dataclass(frozen=True, eq=False, kw_only=True)
class EventTerms(Terms):
    """What was agreed on before the first draw; a subclass adds fields of its own, of which JSON is made.

    ``uses``: of each draw: what it does to a member of each group.
    """

    #: What is drawn, in words: "questions", say. ``privacy.json`` counts these, and those that a crash took.
    drawn: ClassVar[str] = "draws"
    #: What a run does with them.
    draws: ClassVar[str] = "makes"

    uses: tuple[Mapping[str, list[Use]], ...]

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.counted = {cls.drawn: int, f"{cls.drawn}_lost": int}

    def spent_on(self, charged: int) -> Spent:
        """Charge so many draws again, to a member of each group."""
        uses = {
            name: tuple(use for one in self.uses[:charged] for use in one[name])
            for name in self.groups
        }
        accounts = {name: self._account(name, uses[name]) for name in self.groups}
        # Pure answers may have been allowed by ε alone, and promise no μ then, unless a ledger does.
        charged_any = [one for one in accounts.values() if one.mu_squared.any()]
        return Spent(
            uses,
            {name: float(one.epsilon_spent()[0]) for name, one in accounts.items()},
            gaussian=bool(charged_any) and all(one.is_gaussian for one in charged_any),
        )

    def _account(self, name: str, uses: tuple[Use, ...]) -> GaussianAccountant:
        budget = self.groups[name]
        about = (self.neighbours, self.arrangement.promise)
        account = GaussianAccountant([budget.epsilon], [budget.delta], [name], *about)
        for use in uses:
            for _ in range(use.count):
                account.charge(use.event)
        return account

    def spent(self, journal: FileJournal) -> Spent:
        """Charge again the draws for which noise may have been drawn."""
        return self.spent_on(journal.steps)

    def progress(self, journal: FileJournal, ended: str | None) -> Progress:
        """Tell how many draws are charged, of how many."""
        planned, more = len(self.uses), len(self.uses) - journal.steps
        counts = {f"{self.drawn}_charged": journal.steps, f"{self.drawn}_planned": planned}
        sentences = (
            f"{journal.steps:,} of {planned:,} {self.drawn} are charged.",
            f"The next run {self.draws} {more:,} more."
            if more
            else "Nothing more will be drawn in this folder.",
        )
        return Progress(counts, sentences, {name: {} for name in self.groups})

    def drawn_and_told(self, told: Mapping[str, Any], journal: FileJournal) -> tuple[str, int, int]:
        """Count draws that cost anything: a release has them all."""
        return f"{self.drawn} were charged", journal.steps, len(self.uses)

    @classmethod
    def released(cls, told: Mapping[str, Any]) -> dict[str, Any]:
        """Count draws, and those that were lost."""
        return {name: told[name] for name in cls.counted}

    @classmethod
    def released_in_words(cls, released: Mapping[str, Any], unit: str) -> str:
        """Say the same."""
        total, lost = (released[name] for name in cls.counted)
        return f"{total:,} {cls.drawn} were planned; {lost:,} of them were lost."

    def for_registry(self, statement: Mapping[str, Any]) -> RegistryWords:
        """Describe it."""
        return RegistryWords(
            product_type="Summary statistics",
            description=f"{len(self.uses):,} noisy {self.drawn} of records of people. How much each person's "
            "records weigh follows from that person's budget.",
            unprotected="Budgets and who is in which group, group sizes, and all settings.",
            holder="Whoever runs Collegium holds the records.",
            mechanism=self.mechanism()["in_words"],
            noise=f"{EXACT_NOISE} Times are not hidden.",
            composition="Draws and noise fixed beforehand: Gaussian differential privacy (squares of mu "
            "add up), for each owner.",
            post_processing="What else is released follows from the noisy draws.",
        )

    def own_to_json(self) -> dict[str, Any]:
        """List the fields of a subclass, and what each draw does."""
        own = {name: getattr(self, name) for name in self._own()}
        uses = [
            {name: [use.to_json() for use in found] for name, found in one.items()}
            for one in self.uses
        ]
        as_list = {name: list(one) for name, one in own.items() if isinstance(one, tuple)}
        return {**own, **as_list, "uses": uses}

    @classmethod
    def own_from_json(cls, own: Mapping[str, Any], common: Mapping[str, Any]) -> Self:
        """Read them again."""
        neighbours = common["arrangement"].neighbours
        given = {name: own[name] for name in cls._own()}
        as_tuple = {name: tuple(one) for name, one in given.items() if isinstance(one, list)}
        uses = tuple(
            {name: [Use.from_json(use, neighbours) for use in found] for name, found in one.items()}
            for one in own["uses"]
        )
        return cls(**common, **{**given, **as_tuple}, uses=uses)

    @classmethod
    def _own(cls) -> list[str]:
        common = {one.name for one in fields(EventTerms)}
        return [one.name for one in fields(cls) if one.name not in common]


def uses_by_group(
    events: list[Event], groups: Mapping[str, Budget], drawn: str
) -> dict[str, list[Use]]:
    """What a draw's events do to a member of each group. ``drawn``: what comes of one event."""
    return {
        name: [use for event in events for use in uses_of(event, cohort, drawn)]
        for cohort, name in enumerate(groups)
    }
