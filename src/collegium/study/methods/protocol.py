"""What a way of learning from people's records must be able to do, so that a study of it can be run.

The runner (:mod:`collegium.study.runner`) does what is the same for all: it reads, asks the ledger, claims
the folder, keeps the terms, reserves, lets draw, settles and publishes, in this order. A method says what is
its own: how it plans, what it draws, what that cost, and what it publishes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from collegium.accounting.neighbours import Arrangement
from collegium.budgets import Budgets
from collegium.errors import InputError
from collegium.ledger.allowance import Allowance, Spending
from collegium.ledger.ledger import Balance, Ledger
from collegium.ledger.limits import Cost
from collegium.planner.share import Share
from collegium.report.audit import Audit
from collegium.runs.observer import Observer
from collegium.study.config import StudyConfig
from collegium.study.folder import StudyFolder
from collegium.study.kept_rehearsals import KeptRehearsals
from collegium.study.notes import KeptNotes
from collegium.study.on_ledger import StudyPeople
from collegium.study.parties import ALONE, Alone
from collegium.study.reading import read_records
from collegium.study.result import PublishedResult
from collegium.study.shown import Shown
from collegium.study.study_data import StudyData


class StudyRecords(StudyPeople, Protocol):
    """What the runner needs to know of a study's records."""

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
    ``rehearsals``: keeps what is rehearsed for a plan, and the run that follows it.
    ``parties``: with whom it is run.
    """

    config: StudyConfig
    records: R
    folder: StudyFolder | None
    is_begun: bool
    observer: Observer
    rehearsals: KeptRehearsals = field(default_factory=KeptRehearsals)
    parties: Alone = ALONE

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


class Plan(Shown, ABC, Generic[S, D]):
    """A study, planned: nothing is trained, written or spent."""

    @property
    @abstractmethod
    def arrangement(self) -> Arrangement:
        """What was done with people and records, and so which data sets the guarantee is about."""

    @property
    def columns(self) -> Mapping[str, str]:
        """How the columns of tables are read; none where records are no tables."""
        return {}

    @property
    def granted(self) -> Budgets:
        """Who takes part, and what they granted; asked where somebody leaves, of methods that allow it."""
        raise NotImplementedError

    def learnt_by(self, name: str) -> list[int]:
        """Number the teachers that learn from somebody who takes part; none where there are no teachers."""
        return []

    def has_class_of_its_own(self, name: str) -> bool:
        """Tell whether classes are read off private labels, and would be others without somebody."""
        return False

    def learn_again(self, folder: StudyFolder, teachers: list[int]) -> bool:
        """Let teachers learn, and vote, again without somebody who has left; tell whether they did."""
        return False

    def warnings(self) -> list[str]:
        """Say what should be known before anything is spent."""
        return []

    def rehearse(self) -> Rehearsed | None:
        """Do on public records alone whatever may fail: it must fail before anything is spent.

        Returns: the model; None where there is none to try.
        """
        return None

    @abstractmethod
    def note_in(self, notes: KeptNotes) -> None:
        """Note from now on here what the user should know, and how it gets on."""

    def keep_in(self, folder: StudyFolder) -> None:
        """Keep from now on in this folder, which is claimed, what must outlive the process.

        Nothing, where drawing itself keeps it all (:class:`~collegium.study.kept_draws.NumberedDraws`).
        """
        return

    @abstractmethod
    def prepared(self, folder: StudyFolder) -> AbstractContextManager[Draws[D]]:
        """Make everything ready that draws nothing: teachers, votes, features."""

    @abstractmethod
    def at_most(self, spending: S, folder: StudyFolder) -> list[Cost]:
        """What it may cost each group that takes part, from public numbers alone."""

    @abstractmethod
    def spent(self, drawn: D) -> tuple[Any, ...]:
        """What was drawn, as the method's spending enters it into a ledger."""

    @abstractmethod
    def terms(self) -> AgreedTerms:
        """What was agreed on before the first draw."""

    @abstractmethod
    def publish(self, folder: StudyFolder, drawn: D, notes: KeptNotes) -> PublishedResult:
        """Write the release. Costs nobody anything."""


@dataclass(frozen=True)
class AuditSettings:
    """How a study is audited; a method takes what means something to its attack.

    ``config``: of the study; ``file``: what its file is called.
    ``confidence``: probability that all lower bounds hold.
    ``runs``: how often steps are repeated on each side, or counts drawn; None: training is run once, and
        counts are drawn as often as they are by default.
    ``canaries``, ``copies``, ``guess_share``, ``observe``: as in
        :class:`~collegium.attacks.one_run.OneRunSettings`; None: its defaults.
    """

    config: StudyConfig
    file: str
    confidence: float
    runs: int | None
    canaries: int | None
    copies: int
    guess_share: float
    observe: str | None


class Method(ABC, Generic[R, S]):
    """A way of learning from people's records.

    ``spending``: what it does about a ledger.
    """

    spending: type[S]

    def check(self, config: StudyConfig) -> None:
        """Refuse, before any record is read, what cannot be built: nothing, where its keys say it all."""
        return

    def read(
        self, config: StudyConfig, folder: StudyFolder | None, observer: Observer
    ) -> tuple[StudyConfig, R]:
        """Read all records: of those who learn, private and public ones, in memory or as a stream.

        Returns: settings, with what follows from public records; and the records.
        """
        read: tuple[StudyConfig, Any] = read_records(config, observer)
        return read

    def check_on(self, study: Study[R], promised: Ledger) -> None:
        """Refuse a ledger that promises what it cannot be charged for: before anything is rehearsed."""
        return

    def allowance(self, study: Study[R], left: Balance) -> Allowance:
        """Find what people have left for it; what it does not spend is given back."""
        return Allowance.what_is_left(study.records.people, left, 1)

    def least_share(self, study: Study[R], everything: Allowance) -> Share | None:
        """Choose how much of what people have left it takes: half, where nothing can be rehearsed.

        Returns: None where its own settings say so.
        """
        return Share.half(
            "half, since nothing can be rehearsed that would tell what less would buy"
        )

    @abstractmethod
    def plan(self, study: Study[R], spending: S | None, promised: Ledger | None) -> Plan[S, Any]:
        """Plan with the records of those who take part.

        ``spending``: what a ledger lets it use; None: no ledger remembers it.
        ``promised``: the ledger that will remember it; None: there is none, or none yet.
        """

    def audit(
        self, plan: Callable[[bool], Any], settings: AuditSettings, observer: Observer
    ) -> Audit:
        """Attack a study of it, and hold what is found against its claims. Never a release.

        ``plan``: makes its plan; with False, as if nothing of what people granted were spent.
        ``observer``: is told how it gets on.
        Raises InputError where no attack on it is known.
        """
        raise InputError(
            f"no attack is known on studies of method.kind = {settings.config.kind.name!r}: audit one of "
            "another kind, or the mechanism (collegium audit mechanism)"
        )


def method_of(config: StudyConfig) -> Method[Any, Any]:
    """Find how a study learns: one that leaves that open, by votes."""
    method: Method[Any, Any] = config.kind.method()
    return method
