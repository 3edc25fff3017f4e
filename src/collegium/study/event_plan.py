"""Studies whose draws are known beforehand: each of them noises a vector, or some, once for everybody.

All that is left for such a method to say is which events it draws, how, and what it publishes of them.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from collegium.accounting.accountants import GaussianAccountant
from collegium.accounting.events import Event
from collegium.accounting.neighbours import Arrangement
from collegium.accounting.promises import Promise
from collegium.accounting.statement import PrivacyStatement, statement
from collegium.budgets import Budget
from collegium.ledger.event_spending import EventSpending
from collegium.ledger.limits import Cost
from collegium.report.sections import Page
from collegium.runs.records import Records
from collegium.study.event_terms import EventTerms, uses_by_group
from collegium.study.folder import StudyFolder, versions
from collegium.study.kept_draws import Drawn, NumberedDraws
from collegium.study.methods.protocol import AgreedTerms, Plan, Study
from collegium.study.notes import KeptNotes
from collegium.study.pages import write_pages, write_privacy
from collegium.study.result import PublishedResult, as_chosen, shown_settings


class EventPlan(Plan[EventSpending, Drawn]):
    """Draws that are known beforehand, charged to groups of people with equal budgets.

    ``study``: as it was read.
    ``records``: of those who take part.

    Attributes: these two; ``config``; ``observer``; ``groups``: what a member of each group grants;
    ``people``: how many members each has.
    """

    def __init__(self, study: Study[Any], records: Records) -> None:
        self.study, self.records = study, records
        self.config, self.observer = study.config, study.observer
        self.groups: Mapping[str, Budget] = records.budgets.groups
        self.people: Mapping[str, int] = records.budgets.public_sizes()

    @abstractmethod
    def events(self) -> Sequence[Sequence[Event]]:
        """Plan, from public numbers alone, the events of each draw; a cohort of theirs is a group."""

    @abstractmethod
    def draw(self, number: int, before: Drawn) -> dict[str, Any]:
        """Draw, from 1 on: it is charged, durably. Returns what is kept and may be published, for JSON.

        ``before``: what was drawn earlier, in the light of which it may be chosen what is noised.
        """

    @abstractmethod
    def write(self, folder: StudyFolder, drawn: Drawn) -> Mapping[str, Any]:
        """Write what is released. Returns what ``privacy.json`` says of it, beside how much was drawn."""

    @abstractmethod
    def page(self, privacy: PrivacyStatement, drawn: Drawn) -> Page:
        """Say all that there is to say of it, but for settings and versions."""

    @property
    def noise_is_private(self) -> bool:
        """Whether it comes from the operating system."""
        return not self.config.noise_is_seeded

    @property
    def chosen(self) -> Mapping[str, Budget]:
        """Budgets as people chose them, by level, where these are known."""
        return as_chosen(self.study.records.people)

    def own_terms(self) -> dict[str, Any]:
        """Fields of its terms that no other method has."""
        return {}

    @cached_property
    def draws(self) -> Sequence[Sequence[Event]]:
        """The events of each draw."""
        return self.events()

    @cached_property
    def account(self) -> GaussianAccountant:
        """What everybody has paid."""
        granted = list(self.groups.values())
        epsilons, deltas = [one.epsilon for one in granted], [one.delta for one in granted]
        about = (self.arrangement.neighbours, self.arrangement.promise)
        return GaussianAccountant(epsilons, deltas, list(self.groups), *about)

    @property
    def arrangement(self) -> Arrangement:
        """Costs are those of people whose records are there or blank."""
        return replace(self.records.arrangement, blanked_only=True, direct=True)

    def note_in(self, notes: KeptNotes) -> None:
        """Tell these how it gets on."""
        self.observer = notes

    @contextlib.contextmanager
    def prepared(self, folder: StudyFolder) -> Iterator[NumberedDraws]:
        """Look at what was drawn before."""
        yield _PlannedDraws(folder, self)

    def at_most(self, spending: EventSpending, folder: StudyFolder) -> list[Cost]:
        """What all draws cost."""
        pure = self.arrangement.promise is Promise.PURE
        costs = [
            event.pure_epsilon if pure else event.mu_squared for one in self.draws for event in one
        ]
        most = np.sum(costs, axis=0)
        return spending.at_most(dict(zip(self.groups, most.tolist(), strict=True)))

    def spent(self, drawn: Drawn) -> tuple[Any, ...]:
        """The account, and all events."""
        return self.account, [event for one in self.draws for event in one]

    @cached_property
    def form(self) -> type[EventTerms]:
        """The class of its terms."""
        found: type[EventTerms] = self.config.kind.terms()
        return found

    def terms(self) -> AgreedTerms:
        """Who granted what, and what each draw does to them."""
        made = self.form(
            groups=self.groups,
            people=self.people,
            arrangement=self.arrangement,
            private_noise=self.noise_is_private,
            uses=tuple(uses_by_group(list(one), self.groups, "draw") for one in self.draws),
            **self.own_terms(),
        )
        return AgreedTerms(made.to_json(), "another plan", "nothing was drawn")

    def publish(self, folder: StudyFolder, drawn: Drawn, notes: KeptNotes) -> PublishedResult:
        """Write what is released, the statement, the card and the page."""
        counted = dict(
            zip(self.form.counted, (len(self.draws), len(self.draws) - len(drawn)), strict=True)
        )
        about = {**counted, **self.write(folder, drawn)}
        privacy = statement(
            self.account,
            self.people,
            self.groups,
            self.arrangement,
            self.noise_is_private,
            self.form.drawn,
        )
        write_privacy(folder, privacy, self.config.published(), **about)
        chosen = self.chosen
        settings = shown_settings(self.config)
        page = self.page(privacy, drawn)
        write_pages(folder, replace(page, chosen=chosen, settings=settings, versions=versions()))
        return PublishedResult(folder=folder, privacy=privacy, chosen=chosen, about=about)


class _PlannedDraws(NumberedDraws):
    """Each draw is charged in the account of this process, then durably, and then made."""

    def __init__(self, folder: StudyFolder, planned: EventPlan) -> None:
        self._plan = planned
        what, parties = planned.form.drawn, planned.study.parties
        super().__init__(folder, len(planned.draws), planned.observer, what, parties)

    def charge_again(self, number: int) -> None:
        """Charge its events."""
        for event in self._plan.draws[number - 1]:
            self._plan.account.charge(event)

    def draw_one(self, number: int, charge: Callable[[], None]) -> dict[str, Any]:
        """Charge, and then draw."""
        self.charge_again(number)
        charge()
        return self._plan.draw(number, self.drawn)
