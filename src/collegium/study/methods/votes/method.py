"""Studies of votes: teachers, questions, labels, and a student who learns from these."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np

from collegium.budgets import Budgets
from collegium.errors import NothingReleasedError
from collegium.ledger.allowance import Allowance
from collegium.ledger.ledger import Balance, Ledger
from collegium.models.trial import one_line_about
from collegium.names import as_names
from collegium.noise.sources import noise_from
from collegium.pate.between_parties import JointVotes, joint_votes, planned_alone
from collegium.pate.ledgered import LedgeredRun, MakeRun, allow
from collegium.pate.pipeline import PateRun, Released
from collegium.pate.recipe import Recipe
from collegium.pate.teacher_effects import sensitive_teacher_effects
from collegium.pate.teaching import Teaching
from collegium.pate.voting.vote_table import VoteTable
from collegium.plain_text import csv_for_people
from collegium.planner.share import Share
from collegium.report.audit import Audit
from collegium.report.plans import plan_sentence, plan_table
from collegium.report.sections import Banner, Block, Paragraph
from collegium.runs.observer import Observer
from collegium.runs.records import Records
from collegium.study.config import StudyConfig
from collegium.study.folder import StudyFolder, versions
from collegium.study.manifest_check import VOTES
from collegium.study.methods.protocol import AuditSettings, Method, Rehearsed, Study
from collegium.study.methods.votes.audit import audit
from collegium.study.methods.votes.checkpoint import FolderMemory
from collegium.study.methods.votes.page import votes_page, votes_report
from collegium.study.methods.votes.recipe import recipe_of
from collegium.study.methods.votes.result import VotesResult, measure
from collegium.study.methods.votes.shown import affordable_answers, at_least, plan_numbers
from collegium.study.methods.votes.terms import JobTerms, kept_price
from collegium.study.methods.votes.voting import VotingDraws, VotingPlan
from collegium.study.notes import KeptNotes
from collegium.study.pages import write_pages
from collegium.study.parties import ALONE, Alone, Others, learnt_together
from collegium.study.predicted_quality import foretold_beside
from collegium.study.published import write_release
from collegium.study.result import as_chosen, notes_on_test_records
from collegium.study.shown import columns_of, records_shown
from collegium.study.streaming import StreamedStudyData, StreamedTeaching
from collegium.study.student import StudentStage
from collegium.study.study_data import StudyData, has_class_of_its_own
from collegium.study.terms import WORST_CASE
from collegium.study.withdrawals import planned_as_begun

_WITHOUT = "labels will be published, and no student; student.model may change"


class Votes(Method[StudyData, LedgeredRun]):
    """Teachers vote, and labels are released; a student learns from these."""

    spending = LedgeredRun

    def check(self, config: StudyConfig) -> None:
        """Refuse what cannot be built."""
        recipe_of(config)

    def allowance(self, study: Study[StudyData], left: Balance) -> Allowance:
        """Decide by what its answers are charged."""
        data = study.records
        return allow(left, recipe_of(study.config), data, data.people)

    def least_share(self, study: Study[StudyData], everything: Allowance) -> Share:
        """Half: what fewer answers would buy is not rehearsed."""
        return Share.of_answers()

    def plan(
        self, study: Study[StudyData], spending: LedgeredRun | None, promised: Ledger | None
    ) -> VotesPlan:
        """Plan teachers, weights and noise."""
        recipe, make = recipe_of(study.config), _make(study)
        plan = make if spending is None else partial(spending.plan, make=make)
        run = plan(recipe, study.records)
        return VotesPlan(study.config, run, kept_price(study.begun_in), study.parties)

    def audit(
        self, plan: Callable[[bool], VotesPlan], settings: AuditSettings, observer: Observer
    ) -> Audit:
        """Run it once with canaries, which no ledger knows."""
        return audit(plan(False).run, settings, observer)


def _make(study: Study[StudyData]) -> MakeRun:
    config, folder = study.config, study.folder
    memory = None if folder is None else FolderMemory(folder, study.is_begun, study.parties)

    def make(recipe: Recipe, records: Records) -> PateRun:
        records = planned_as_begun(study.begun_in, records)
        teaching = StreamedTeaching if isinstance(records, StreamedStudyData) else Teaching
        lend_workers = config.engine().running
        records, joint = _with_everybody(study, recipe, records)
        about = (recipe, records, memory, study.observer, lend_workers)
        return PateRun(*about, teaching=teaching, joint=joint)

    return make


def _with_everybody(
    study: Study[StudyData], recipe: Recipe, records: Records
) -> tuple[Records, JointVotes | None]:
    """Add the people of other parties, and share the teachers out, once all have told their numbers."""
    parties = study.parties
    if not isinstance(parties, Others):
        return records, None
    if not records.arrangement.on_ledger:
        few = recipe.personalisation.few_budgets(records.budgets, recipe.n_teachers)
        records = records.regrouped(few)
    records = learnt_together(parties, records)
    noise = parties.noise(noise_from(recipe.noise_seed))
    if parties.census is None:
        return records, planned_alone(recipe, records.budgets, noise)
    of_all = (parties.census, parties.collective, parties.number)
    return records, joint_votes(recipe, records.budgets, *of_all, noise)


class VotesPlan(VotingPlan):
    """A study of votes, planned.

    ``config``: with a preprocessing that was left out.
    ``run``: its ``records`` are the study's, or those of them that a ledger lets take part.
    ``price``: of an answer, with which it was begun; None: the run's.
    ``parties``: whose teachers vote together.
    """

    def __init__(
        self,
        config: StudyConfig,
        run: PateRun,
        price: str | None = None,
        parties: Alone = ALONE,
    ) -> None:
        assert isinstance(run.records, StudyData)
        self.config, self.run, self.data, self.parties = config, run, run.records, parties
        n_public, is_private = run.records.X_public.shape[0], run.recipe.noise_seed is None
        super().__init__(JobTerms.of(run.voting.at(price), int(n_public), is_private))

    @property
    def granted(self) -> Budgets:
        """Of the run."""
        return self.run.granted

    def has_class_of_its_own(self, name: str) -> bool:
        """Look at the labels of the others."""
        return has_class_of_its_own(self.data, name)

    def learnt_by(self, name: str) -> list[int]:
        """Look them up in the assignment, which follows from public numbers and names."""
        run, present = self.run, as_names(self.data.budgets.owners) == name
        plan, recipe = run.plan_of_own, run.recipe
        assignment = plan.assign(self.data.budgets, recipe.key, recipe.assignment)
        teachers = np.unique(assignment.owner_teachers[present])
        found: list[int] = teachers[teachers >= 0].tolist()
        return found

    def learn_again(self, folder: StudyFolder, teachers: list[int]) -> bool:
        """Put their votes in place of the former ones, if there were any."""
        run, memory = self.run, FolderMemory(folder)
        run.memory = memory
        n_teachers = run.plan_of_own.n_teachers
        known = memory.votes(run.X_asked.shape[0], n_teachers, len(self.data.classes))
        if known is None or not teachers:
            return False
        columns = run.votes_of(teachers)
        votes = np.load(folder.path / VOTES, allow_pickle=False)
        votes[:, teachers] = columns
        folder.replace_votes(votes)
        return True

    def rehearse(self) -> Rehearsed | None:
        """Train both models on some public records."""
        student = self.run.rehearse(self.data.X_test)
        return None if student is None else Rehearsed(student, self.data, _WITHOUT)

    @property
    def columns(self) -> dict[str, str]:
        """As public records show them."""
        return columns_of(self.data)

    @cached_property
    def answers_affordable(self) -> int | None:
        """How many answers the budgets pay for; None where their prices depend on the data."""
        run = self.run
        if self.config.privacy.guarantee != WORST_CASE:
            return None
        return affordable_answers(run.aggregator, run.plan, run.price.name, self.config.study.seed)

    def numbers(self) -> dict[str, Any]:
        """Who gets which teachers, and how many answers the budgets pay for."""
        most = self.answers_affordable
        price = None if most is None else self.run.price.name
        return {**plan_numbers(self.run.plan), "answers_affordable": most, "price": price}

    def blocks(self) -> list[Block | Banner]:
        """The same, with why answers are charged as they are."""
        made, why = self.run.plan, self.run.price.why
        bought = [] if self.answers_affordable is None else [Paragraph(f"{self.in_short()}.")]
        return [
            plan_table(made),
            Paragraph(plan_sentence(made)),
            *records_shown(self.data, f"; {self.run.aggregator}"),
            *bought,
            *([Paragraph(why)] if why else []),
        ]

    def in_short(self) -> str:
        """What the budgets buy."""
        most = self.answers_affordable
        if most is None:
            return plan_sentence(self.run.plan).removesuffix(".")
        return f"The budgets pay for {at_least(most)} answers if every query is answered"

    def note_in(self, notes: KeptNotes) -> None:
        """Let the run note here."""
        self.run.observer = notes

    def keep_in(self, folder: StudyFolder) -> None:
        """Keep teachers, votes, journal and how voting ended."""
        self.run.memory = FolderMemory(folder, parties=self.parties)

    @contextlib.contextmanager
    def prepared(self, folder: StudyFolder) -> Iterator[VotingDraws]:
        """Train teachers, and let them vote."""
        votes = self.run.votes()
        _keep_teacher_effects(folder, self.run, self.data, votes)
        yield VotingDraws(folder, lambda: self.run.release(votes, self.agreed.price))

    def publish(self, folder: StudyFolder, drawn: Released, notes: KeptNotes) -> VotesResult:
        """Write labels, student, card and page."""
        config, run, data = self.config, self.run, self.data
        stage = StudentStage(config, folder, data, notes, lambda: _taught(folder, run, drawn))
        about = {"config": stage.settings_of_release(), "versions": versions()}
        write_release(folder, drawn, data.classes, data.public_rows, about)
        student, own_notes = stage.publish()
        for line in notes_on_test_records(run.plan, data):
            notes.note(line)
        return _report(config, folder, run, data, drawn, student, (*notes.lines, *own_notes))


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
    own = run.votes_of_own(votes)
    table = sensitive_teacher_effects(own, data.classes, data.y_public, run.plan_of_own)
    folder.write_bytes(path, csv_for_people(table, index=True))


def _report(
    config: StudyConfig,
    folder: StudyFolder,
    run: PateRun,
    data: StudyData,
    released: Released,
    student: Any,
    notes: tuple[str, ...],
) -> VotesResult:
    run.observer.stage("report")
    asked = "test" if data.X_test is not None else "public"
    with one_line_about("student.model", f"asked about the {asked} records"):
        measured = measure(run.recipe, run.plan, data, released, student)
    result = VotesResult(
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
