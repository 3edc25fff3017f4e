"""Running a study: a recipe, records, and the folder in which each stage of the run is durable."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from collegium.errors import NothingReleasedError
from collegium.models.trial import one_line_about
from collegium.pate.ledgered import LedgeredRun
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
from collegium.study.from_settings import recipe_of, settled
from collegium.study.identity import claim, holds_same_study, read_study
from collegium.study.notes import KeptNotes
from collegium.study.on_ledger import StudyLedger, on_ledger
from collegium.study.pages import write_pages
from collegium.study.predicted_quality import foretold_beside
from collegium.study.published import write_release
from collegium.study.result import (
    StudyResult,
    as_chosen,
    measure,
    notes_on_test_records,
)
from collegium.study.streaming import StreamedStudyData, StreamedTeaching
from collegium.study.student import StudentStage, tell_if_unwritable
from collegium.study.study_data import StudyData
from collegium.study.terms import kept_price
from collegium.study.votes_checkpoint import FolderMemory
from collegium.study.votes_page import votes_page, votes_report
from collegium.study.withdrawals import planned_as_begun, refuse_half_forgotten


def plan_study(
    config: StudyConfig, folder: StudyFolder | None = None, observer: Observer | None = None
) -> PateRun:
    """Read the records and make the plan; nothing is trained, written or spent.

    ``config``: from :func:`~collegium.study.config.read_config`.
    ``folder``: where the run will be kept; default: in memory.
    ``observer``: is told how the run gets on.
    Returns: a run whose ``records`` are a :class:`~collegium.study.study_data.StudyData`.
    """
    config, data = read_study(config)
    memory = None
    if folder is not None:
        # A folder that holds another study is not written into.
        own = holds_same_study(folder, config, data)
        memory = FolderMemory(folder, own)
        data = planned_as_begun(folder if own else None, data)
    return _run_of(config, recipe_of(config), data, memory, observer)


def _run_of(
    config: StudyConfig,
    recipe: Recipe,
    records: Records,
    memory: FolderMemory | None,
    observer: Observer | None,
) -> PateRun:
    teaching = StreamedTeaching if isinstance(records, StreamedStudyData) else Teaching
    lend_workers = config.engine().running
    return PateRun(recipe, records, memory, observer, lend_workers, teaching=teaching)


def plan_on_ledger(
    config: StudyConfig,
    folder: StudyFolder | None = None,
    observer: Observer | None = None,
    *,
    is_claimed: bool = False,
) -> tuple[PateRun, StudyLedger[LedgeredRun] | None]:
    """The same with what a ledger has left of people's budgets, if one remembers this study.

    ``is_claimed``: whether to claim the folder, whose lock is held, for this study.
    """
    observer = Observer() if observer is None else observer
    config, data = read_study(config)
    if is_claimed:
        assert folder is not None
        claim(folder, config, data)
    own = folder is not None and holds_same_study(folder, config, data)
    memory = None if folder is None else FolderMemory(folder, own)

    def make(recipe: Recipe, records: Records) -> PateRun:
        records = planned_as_begun(folder if own else None, records)
        return _run_of(config, recipe, records, memory, observer)

    recipe = recipe_of(config)
    ledger = on_ledger(config, recipe, data, make, folder if own else None, observer)
    if ledger is None:
        return make(recipe, data), None
    return ledger.spending.plan(recipe, data, make), ledger


def run_study(config: StudyConfig, out: Path, observer: Observer | None = None) -> StudyResult:
    """Run a study, or go on with it where it was interrupted.

    ``config``: from :func:`~collegium.study.config.read_config`.
    ``observer``: is told how it gets on.
    Raises InputError if anything that was given cannot be used: before the first draw, so nothing
        is spent.
    """
    config.engine().check()
    folder = StudyFolder(Path(out))
    observer = Observer() if observer is None else observer
    notes = KeptNotes(folder, observer)
    refuse_half_forgotten(folder)
    run, ledger = plan_on_ledger(config, folder, observer)
    run.observer = notes
    data = run.records
    assert isinstance(data, StudyData)
    config = settled(config, data.X_public)
    rehearsed = run.rehearse(data.X_test)
    if rehearsed is not None and not folder.voting_has_ended():
        tell_if_unwritable(
            rehearsed,
            data,
            observer,
            "labels will be published, and no student; student.model may change",
        )
    folder.open()
    with folder.locked():
        claim(folder, config, data)
        refuse_half_forgotten(folder)
        run.memory = FolderMemory(folder)
        if ledger is not None:
            if ledger.spending.allowance.whole and ledger.left is not None:
                observer.note(ledger.in_words)
            ledger.keep(folder)
        votes = run.votes()
        _keep_teacher_effects(folder, run, data, votes)
        if ledger is not None:
            reserve(ledger, folder, config, run)
        released = run.release(votes)
        if ledger is not None:
            ledger.settle(folder, released, run.arrangement.neighbours)
        stage = StudentStage(config, folder, data, notes, lambda: _taught(folder, run, released))
        about = {"config": stage.settings_of_release(), "versions": versions()}
        write_release(folder, released, data.classes, data.public_rows, about)
        student, own_notes = stage.publish()
        for line in notes_on_test_records(run.plan, data):
            notes.note(line)
        result = _report(config, folder, run, data, released, student, (*notes.lines, *own_notes))
    return result if ledger is None else replace(result, ledger=str(ledger.place))


def reserve(
    ledger: StudyLedger[LedgeredRun], folder: StudyFolder, config: StudyConfig, run: PateRun
) -> None:
    """Set aside, in its ledger, what a study may cost."""
    costs = ledger.spending.at_most(
        run.aggregator,
        run.electorate,
        run.arrangement.neighbours,
        kept_price(folder) or run.price.name,
    )
    ledger.reserve(folder, config.title(), costs, run.arrangement)


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
