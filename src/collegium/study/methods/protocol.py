"""What a way of learning from people's records must be able to do, so that a study of it can be run.

The runner (:mod:`collegium.study.runner`) does what is the same for all: it reads, asks the ledger, claims
the folder, keeps the terms, reserves, lets draw, settles and publishes, in this order. A method says what is
its own: how it plans, what it draws, what that cost, and what it publishes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from numpy.typing import NDArray

from collegium.accounting.neighbours import Arrangement
from collegium.budgets import Budgets
from collegium.ledger.allowance import Allowance, Spending
from collegium.ledger.ledger import Balance, Ledger
from collegium.ledger.limits import Cost
from collegium.runs.observer import Observer
from collegium.study.config import StudyConfig
from collegium.study.folder import StudyFolder
from collegium.study.notes import KeptNotes
from collegium.study.result import PublishedResult
from collegium.study.study_data import StudyData


class StudyRecords(Protocol):
    """What the runner needs to know of a study's records."""

    @property
    def arrangement(self) -> Arrangement: ...  # noqa: D102
    @property
    def people(self) -> Budgets: ...  # noqa: D102
    @property
    def made_public(self) -> NDArray[Any] | None: ...  # noqa: D102
    @property
    def fingerprints(self) -> dict[str, str]: ...  # noqa: D102


R = TypeVar("R", bound=StudyRecords)
S = TypeVar("S", bound=Spending)
D = TypeVar("D")


@dataclass(frozen=True, eq=False)
class Study(Generic[R]):
    """A study that was read, and is to be planned.

    ``config``: its settings, with a preprocessing that was left out.
    ``records``: all of them.
    ``folder``: where the run will be kept, if anywhere.
    ``is_begun``: whether that folder holds this very study, begun before.
    ``observer``: is told how it gets on.
    """

    config: StudyConfig
    records: R
    folder: StudyFolder | None
    is_begun: bool
    observer: Observer

    @property
    def begun_in(self) -> StudyFolder | None:
        """The folder, if it holds this very study."""
        return self.folder if self.is_begun else None


class AgreedTerms(NamedTuple):
    """Public terms of a study, and how a refusal of others than it was begun with names them.

    ``content``: as JSON.
    ``what``: what differs then. ``nothing``: what was not done.
    """

    content: dict[str, Any]
    what: str
    nothing: str


class Rehearsed(NamedTuple):
    """A model like the one that will be published.

    ``records``: the study's, as its file says what they are.
    ``without``: what is published if the model cannot be written to a file.
    """

    model: Any
    records: StudyData
    without: str


class Draws(ABC, Generic[D]):
    """Everything is ready, and nothing is drawn."""

    @property
    @abstractmethod
    def is_all_charged(self) -> bool:
        """Whether everything was charged in an earlier run, so that nothing more will be drawn."""

    @abstractmethod
    def end(self) -> None:
        """Keep, once, that nothing more will be drawn, whoever leaves since."""

    @abstractmethod
    def draw(self) -> D:
        """Charge durably, then draw, as often as there is anything left to draw.

        Raises StudyInterrupted after Ctrl-C: the next run goes on.
        """


class Plan(ABC, Generic[S, D]):
    """A study, planned: nothing is trained, written or spent."""

    @property
    @abstractmethod
    def arrangement(self) -> Arrangement:
        """What was done with people and records, and so which data sets the guarantee is about."""

    def rehearse(self) -> Rehearsed | None:
        """Do on public records alone whatever may fail: it must fail before anything is spent.

        Returns: the model; None where there is none to try.
        """
        return None

    @abstractmethod
    def note_in(self, notes: KeptNotes) -> None:
        """Note from now on here what the user should know, and how it gets on."""

    @abstractmethod
    def keep_in(self, folder: StudyFolder) -> None:
        """Keep from now on in this folder, which is claimed, what must outlive the process."""

    @abstractmethod
    def prepared(self, folder: StudyFolder) -> AbstractContextManager[Draws[D]]:
        """Make everything ready that draws nothing: teachers, votes, features."""

    @abstractmethod
    def at_most(self, spending: S, folder: StudyFolder) -> list[Cost]:
        """What it may cost each group that takes part, from public numbers alone."""

    @abstractmethod
    def spent(self, drawn: D) -> tuple[Any, ...]:
        """What was drawn, as the method's spending enters it into a ledger."""

    def terms(self) -> AgreedTerms | None:
        """What was agreed on before the first draw; None where drawing itself keeps it."""
        return None

    @abstractmethod
    def publish(self, folder: StudyFolder, drawn: D, notes: KeptNotes) -> PublishedResult:
        """Write the release. Costs nobody anything."""


class Method(ABC, Generic[R, S]):
    """A way of learning from people's records.

    ``name``: as method.kind spells it.
    ``spending``: what it does about a ledger.
    """

    name: ClassVar[str]
    spending: type[S]

    @abstractmethod
    def check(self, config: StudyConfig) -> None:
        """Refuse, before any record is read, what cannot be built."""

    @abstractmethod
    def read(
        self, config: StudyConfig, folder: StudyFolder | None, observer: Observer
    ) -> tuple[StudyConfig, R]:
        """Read all records. Returns: settings, with what follows from public records; and the records."""

    @abstractmethod
    def allowance(self, study: Study[R], left: Balance, share: float) -> Allowance:
        """Decide what it may use of what people have left; ``share`` of δ is set aside for δ₀."""

    @abstractmethod
    def plan(self, study: Study[R], spending: S | None, promised: Ledger | None) -> Plan[S, Any]:
        """Plan with the records of those who take part.

        ``spending``: what a ledger lets it use; None: no ledger remembers it.
        ``promised``: the ledger that will remember it; None: there is none, or none yet.
        """
