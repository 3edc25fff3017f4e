"""Studies of votes: teachers, questions, labels, and a student who learns from these."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from collegium.accounting.neighbours import Arrangement
from collegium.errors import NothingReleasedError
from collegium.ledger.allowance import Allowance
from collegium.ledger.ledger import Balance, Ledger
from collegium.ledger.limits import Cost
from collegium.models.trial import one_line_about
from collegium.pate.ledgered import LedgeredRun, MakeRun, allow
from collegium.pate.pipeline import PateRun, Released
from collegium.pate.recipe import Recipe
from collegium.pate.teacher_effects import sensitive_teacher_effects
from collegium.pate.teaching import Teaching
from collegium.pate.voting.vote_table import VoteTable
from collegium.plain_text import csv_for_people
from collegium.runs.observer import Observer
from collegium.runs.records import Records
from collegium.study.config import StudyConfig
from collegium.study.folder import StudyFolder, versions
from collegium.study.from_settings import recipe_of
from collegium.study.methods.protocol import Draws, Method, Plan, Rehearsed, Study
from collegium.study.notes import KeptNotes
from collegium.study.pages import write_pages
from collegium.study.predicted_quality import foretold_beside
from collegium.study.published import write_release
from collegium.study.reading import read_records
from collegium.study.result import (
    StudyResult,
    as_chosen,
    measure,
    notes_on_test_records,
)
from collegium.study.sections import PATE
from collegium.study.streaming import StreamedStudyData, StreamedTeaching
from collegium.study.student import StudentStage
from collegium.study.study_data import StudyData
from collegium.study.votes_checkpoint import FolderMemory
from collegium.study.votes_page import votes_page, votes_report
from collegium.study.votes_terms import kept_price
from collegium.study.withdrawals import planned_as_begun

_WITHOUT = "labels will be published, and no student; student.model may change"


class Votes(Method[StudyData, LedgeredRun]):
    """Teachers vote, and labels are released; a student learns from these."""

    name = PATE
    spending = LedgeredRun

    def check(self, config: StudyConfig) -> None:
        """Refuse what cannot be built."""
        recipe_of(config)

    def read(
        self, config: StudyConfig, folder: StudyFolder | None, observer: Observer
    ) -> tuple[StudyConfig, StudyData]:
        """Read private and public records, in memory or as a stream."""
        return read_records(config)

    def allowance(self, study: Study[StudyData], left: Balance, share: float) -> Allowance:
        """Decide by what the run would be, planned with budgets as granted."""
        data = study.records
        return allow(left, share, recipe_of(study.config), data, data.people, _make(study))

    def plan(
        self, study: Study[StudyData], spending: LedgeredRun | None, promised: Ledger | None
    ) -> VotesPlan:
        """Plan teachers, weights and noise."""
        recipe, make = recipe_of(study.config), _make(study)
        if spending is None:
            return VotesPlan(study.config, make(recipe, study.records))
        return VotesPlan(study.config, spending.plan(recipe, study.records, make))


def _make(study: Study[StudyData]) -> MakeRun:
    config, folder = study.config, study.folder
    memory = None if folder is None else FolderMemory(folder, study.is_begun)

    def make(recipe: Recipe, records: Records) -> PateRun:
        records = planned_as_begun(study.begun_in, records)
        teaching = StreamedTeaching if isinstance(records, StreamedStudyData) else Teaching
        lend_workers = config.engine().running
        return PateRun(recipe, records, memory, study.observer, lend_workers, teaching=teaching)

    return make


class VotesPlan(Plan[LedgeredRun, Released]):
    """A study of votes, planned.

    ``config``: with a preprocessing that was left out.
    ``run``: its ``records`` are the study's, or those of them that a ledger lets take part.
    """

    def __init__(self, config: StudyConfig, run: PateRun) -> None:
        assert isinstance(run.records, StudyData)
        self.config, self.run, self.data = config, run, run.records

    @property
    def arrangement(self) -> Arrangement:
        """As the run has it."""
        return self.run.arrangement

    def rehearse(self) -> Rehearsed | None:
        """Train both models on some public records."""
        student = self.run.rehearse(self.data.X_test)
        return None if student is None else Rehearsed(student, self.data, _WITHOUT)

    def note_in(self, notes: KeptNotes) -> None:
        """Let the run note here."""
        self.run.observer = notes

    def keep_in(self, folder: StudyFolder) -> None:
        """Keep teachers, votes, journal and how voting ended."""
        self.run.memory = FolderMemory(folder)

    @contextlib.contextmanager
    def prepared(self, folder: StudyFolder) -> Iterator[VotesDraws]:
        """Train teachers, and let them vote."""
        votes = self.run.votes()
        _keep_teacher_effects(folder, self.run, self.data, votes)
        yield VotesDraws(self.run, votes, folder)

    def at_most(self, spending: LedgeredRun, folder: StudyFolder) -> list[Cost]:
        """What all questions may cost, at the price with which the study was begun."""
        run = self.run
        price = kept_price(folder) or run.price.name
        return spending.at_most(run.aggregator, run.electorate, run.arrangement.neighbours, price)

    def spent(self, drawn: Released) -> tuple[Any, ...]:
        """What was released, and about which neighbours."""
        return drawn, self.run.arrangement.neighbours

    def publish(self, folder: StudyFolder, drawn: Released, notes: KeptNotes) -> StudyResult:
        """Write labels, student, card and page."""
        config, run, data = self.config, self.run, self.data
        stage = StudentStage(config, folder, data, notes, lambda: _taught(folder, run, drawn))
        about = {"config": stage.settings_of_release(), "versions": versions()}
        write_release(folder, drawn, data.classes, data.public_rows, about)
        student, own_notes = stage.publish()
        for line in notes_on_test_records(run.plan, data):
            notes.note(line)
        return _report(config, folder, run, data, drawn, student, (*notes.lines, *own_notes))


class VotesDraws(Draws[Released]):
    """Teachers have voted, and nobody was asked. **Sensitive.**"""

    def __init__(self, run: PateRun, votes: VoteTable, folder: StudyFolder) -> None:
        self._run, self._votes, self._folder = run, votes, folder

    @property
    def is_all_charged(self) -> bool:
        """Whether voting has ended."""
        return self._folder.voting_has_ended()

    def end(self) -> None:
        """Do nothing: the run kept it when voting ended."""

    def draw(self) -> Released:
        """Ask, or read again what was answered. Terms are kept with the order of the questions."""
        return self._run.release(self._votes)


def _taught(folder: StudyFolder, run: PateRun, released: Released) -> Any:
    """Train the student on what was released; it takes records as they are."""
    try:
        with one_line_about("student.model", "trained on the released labels"):
            return run.student_view.published(run.teach(released))
    except NothingReleasedError as error:
        where = folder.release / "privacy.json"
        if not released.privacy.may_publish_spending:
            where = folder.vault / "sensitive-spending.json"
        raise NothingReleasedError(f"{error} (what was spent: {where})") from None


def _keep_teacher_effects(
    folder: StudyFolder, run: PateRun, data: StudyData, votes: VoteTable
) -> None:
    """Tell the steward, in the vault, how right teachers are by class, where public truth is known."""
    path = folder.vault / "sensitive-teachers-by-class.csv"
    if data.y_public is None or path.exists():
        return
    table = sensitive_teacher_effects(votes, data.classes, data.y_public, run.plan)
    folder.write_bytes(path, csv_for_people(table, index=True))


def _report(
    config: StudyConfig,
    folder: StudyFolder,
    run: PateRun,
    data: StudyData,
    released: Released,
    student: Any,
    notes: tuple[str, ...],
) -> StudyResult:
    run.observer.stage("report")
    asked = "test" if data.X_test is not None else "public"
    with one_line_about("student.model", f"asked about the {asked} records"):
        measured = measure(run.recipe, run.plan, data, released, student)
    result = StudyResult(
        folder=folder,
        privacy=released.privacy,
        plan=run.plan,
        labels=released.labels,
        label_accuracy=measured.label_accuracy,
        student_accuracy=measured.student_accuracy,
        n_test=0 if data.X_test is None else len(data.X_test),
        effects=measured.effects,
        quality=measured.quality,
        student_notes=notes,
        foretold=foretold_beside(folder, measured.quality),
        chosen=as_chosen(data.people),
    )
    folder.write_json(folder.release / "effects.json", measured.effects.to_dict())
    folder.write_json(folder.release / "quality.json", measured.quality.to_dict())
    report = votes_report(result, config, data, run.aggregator, run.electorate)
    write_pages(folder, votes_page(report))
    return result
