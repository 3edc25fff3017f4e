"""Running a study: partition → teachers → votes → aggregation → student → report, each stage durable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from collegium.accounting.renyi import DEFAULT_ORDERS, SEED_ORDERS
from collegium.accounting.statement import PrivacyStatement
from collegium.data.tables import warn_of_unseen_classes
from collegium.errors import InputError
from collegium.models.trial import one_line_about
from collegium.noise.sources import NoiseSource, SecureNoise, SeededNoise
from collegium.pate.catalogue import build_model
from collegium.pate.effects import sensitive_teacher_effects
from collegium.pate.rehearsal import rehearse_teacher
from collegium.pate.students.active_choice import require_beliefs
from collegium.pate.students.selection import ACTIVE
from collegium.pate.students.supervised import RefittedStudent
from collegium.pate.teachers.ensemble import TeacherEnsemble
from collegium.pate.voting.affordable import refuse_unaffordable
from collegium.pate.voting.aggregators import Aggregator
from collegium.pate.voting.histograms import NoisyHistograms, released_histograms
from collegium.pate.voting.labelling import Labels
from collegium.pate.voting.release import HISTOGRAM
from collegium.pate.voting.vote_blocks import open_votes, vote_type
from collegium.pate.voting.vote_table import VoteTable
from collegium.personalisation.electorate import Electorate
from collegium.personalisation.plan import Plan
from collegium.report.page import render_report
from collegium.study.config import StudyConfig
from collegium.study.folder import StudyFolder, versions
from collegium.study.frozen import FREE_INPUTS, Settings, free_keys, frozen_settings
from collegium.study.job import label_durably, write_release
from collegium.study.notes import KeptNotes
from collegium.study.preprocessed import fit_views
from collegium.study.question_order import check_asking, chooser_of, order_of_asking
from collegium.study.records import StudyData, load_study_data
from collegium.study.result import (
    StudyResult,
    measured_effects,
    notes_on_test_records,
    report_data,
)
from collegium.study.stored_teachers import StoredTeachers
from collegium.study.streaming import StreamedStudyData, load_streamed_data, streamed_votes
from collegium.study.student import StudentStage


class StudyObserver:
    """Is told how a study gets on; the command line shows it. Does nothing by itself."""

    def stage(self, name: str, total: int | None = None) -> None:
        """Learn that a stage begins, and of how many steps (None: unknown)."""

    def advanced(self, done: int, total: int | None = None) -> None:
        """Learn that so many steps of the stage are done."""

    def skipped(self, name: str) -> None:
        """Learn that a stage was finished in an earlier run."""

    def note(self, line: str) -> None:
        """Learn what the user should know about the student; nothing in it is private."""


def plan_study(config: StudyConfig) -> tuple[Plan, Aggregator, StudyData]:
    """Read the records and make the plan; nothing is trained, written or spent.

    Raises
    ------
    InputError
        If anything that was given cannot be used.
    """
    _, student = _models(config)  # nobody should wait for records to be read to learn of a typo
    if config["aggregation.query_order"] == ACTIVE:
        require_beliefs(student)
    data = load_streamed_data(config) if config["run.streaming"] else load_study_data(config)
    plan = config.personalisation().plan_for(data.budgets, config["teachers.number"])
    for section in ("teachers", "student"):
        config.class_shares(section, data.classes)
    aggregator = config.aggregator(plan)
    _refuse_more_answers_than_questions(config, len(data.public_rows))
    refuse_unaffordable(aggregator, plan, config["privacy.guarantee"], config["study.seed"])
    return plan, aggregator, data


def _refuse_more_answers_than_questions(config: StudyConfig, n_public: int) -> None:
    """Refuse noise for answers that nobody will ask for: most of the budgets would buy nothing."""
    wanted = config["aggregation.answers"]
    limits = {
        "public records": n_public,
        "aggregation.max_queries": config["aggregation.max_queries"],
        "aggregation.max_labels": config["aggregation.max_labels"],
    }
    for name, limit in limits.items():
        if wanted is not None and limit is not None and wanted > limit:
            raise InputError(
                f"aggregation.answers = {wanted:,} is more than can be asked ({name}: {limit:,}): lower it, "
                "and each answer gets less noise"
            )


def run_study(config: StudyConfig, out: Path, observer: StudyObserver | None = None) -> StudyResult:
    """Run a study, or go on with it where it was interrupted.

    Parameters
    ----------
    config : StudyConfig
        From :func:`~collegium.study.config.read_config`.
    out : Path
        The study's folder.
    observer : StudyObserver, optional
        Is told how it gets on.

    Raises
    ------
    InputError
        If anything that was given cannot be used: before the first draw, so nothing is spent.
    StudyMismatchError
        If the folder belongs to another study.
    NothingReleasedError
        If no label was released.
    StudyInterrupted
        After Ctrl-C.
    """
    config.engine().check()
    folder = StudyFolder(Path(out))
    plan, aggregator, data = plan_study(config)
    study = _Run(config, folder, plan, aggregator, data, observer or StudyObserver())
    study.rehearse()
    folder.open()
    with folder.locked():
        folder.claim(*study.identity(), *study.free())
        return study.run()


def _models(config: StudyConfig) -> tuple[Any, Any]:
    teacher = build_model("teachers.model", config["teachers.model"], config["teachers.params"])
    student = build_model("student.model", config["student.model"], config["student.params"])
    free = "random_state" not in config["student.params"]
    if free and "random_state" in getattr(student, "get_params", dict)():
        student.set_params(random_state=config["study.seed"])
    return teacher, student


class _Run:
    """One run through the stages."""

    def __init__(
        self,
        config: StudyConfig,
        folder: StudyFolder,
        plan: Plan,
        aggregator: Aggregator,
        data: StudyData,
        observer: StudyObserver,
    ) -> None:
        self._config = config
        self._folder = folder
        self._plan = plan
        self._aggregator = aggregator
        self._data = data
        self._observer = observer
        self._seed: int = config["study.seed"]
        self._notes = KeptNotes(folder, observer.note)
        self._teacher, self._student = _models(config)
        self._view, self._student_view = fit_views(config, data.X_public)
        # A folder that holds another study is not written into.
        cache = folder.vault if folder.holds(*self.identity(), *self.free()) else None
        self._X_public = self._view.of(data.X_public, cache)
        self._X_seen = self._X_public  # by the student
        if self._student_view is not self._view:
            self._X_seen = self._student_view.of(data.X_public, cache)
        self._stage = StudentStage(
            config, folder, data, self._student, self._student_view, self._X_seen
        )

    def identity(self) -> tuple[Settings, dict[str, str]]:
        """Settings and inputs that make it this study and no other."""
        return frozen_settings(self._config, self._aggregator), self._data.fingerprints

    def free(self) -> tuple[frozenset[str], frozenset[str]]:
        """Settings and inputs that may have changed since it began."""
        return free_keys(self._config, self._folder.voting_has_ended()), FREE_INPUTS

    def rehearse(self) -> None:
        """Train both models on some public records with made-up labels: a typo must cost nothing."""
        check_asking(self._config, self._student, self._X_public)
        records = sum(self._data.budgets.group_sizes().values())
        rehearse_teacher(
            self._teacher,
            self._X_public,
            len(self._data.classes),
            records // self._plan.n_teachers,
            "teachers.model",
        )
        self._stage.rehearse(soft=self._config["aggregation.release"] == HISTOGRAM)

    def run(self) -> StudyResult:
        votes = self._votes()
        self._keep_teacher_effects(votes)
        labels, privacy, electorate, histograms = self._aggregate(votes)
        student, notes = self._stage.train(
            labels, histograms, self._observer.stage, self._observer.skipped, self._observer.note
        )
        for line in notes_on_test_records(self._plan, self._data):
            self._notes.add(line)
        return self._report(labels, privacy, electorate, student, (*self._notes.lines, *notes))

    def _votes(self) -> VoteTable:
        path = self._folder.vault / "votes.npy"
        n_classes = len(self._data.classes)
        if isinstance(self._data, StreamedStudyData):
            return streamed_votes(
                self._config,
                self._folder,
                self._plan,
                self._data,
                self._teacher,
                self._view.transformer,
                self._X_public,
                self._observer,
            )
        if path.exists():
            self._observer.skipped("teachers")
            return open_votes(path, len(self._X_public), self._plan.n_teachers, n_classes)
        assignment = self._plan.assign(
            self._data.budgets, str(self._seed).encode(), self._config["teachers.assignment"]
        )
        self._folder.write_array(self._folder.vault / "partition.npy", assignment.owner_teachers)
        warn_of_unseen_classes(self._data.codes, self._data.classes)
        stored = StoredTeachers(self._folder, assignment.n_teachers)
        missing = stored.missing()
        self._observer.stage("teachers", len(missing))
        with self._config.engine().running() as workers:
            ensemble = stored.ensemble(
                TeacherEnsemble,
                self._teacher,
                self._seed,
                workers,
                progress=self._observer.advanced,
                n_classes=n_classes,
                class_shares=self._config.class_shares("teachers", self._data.classes),
            )
            records = self._view.of(self._data.X, self._folder.vault)
            ensemble.train(records, self._data.codes, assignment, missing)
            self._observer.stage("votes", assignment.n_teachers)
            table = ensemble.ask(stored.paths, self._X_public)
        votes = VoteTable.from_predictions(table, n_classes, allow_abstention=True)
        self._folder.write_array(path, table.astype(vote_type(n_classes)))
        return votes

    def _aggregate(
        self, votes: VoteTable
    ) -> tuple[Labels, PrivacyStatement, Electorate, NoisyHistograms | None]:
        release: str = self._config["aggregation.release"]
        electorate = self._plan.electorate(self._seed)
        order = order_of_asking(self._config, self._folder, self._X_public)
        interactive = None
        if self._aggregator.consults_student:
            interactive = RefittedStudent(
                self._student, self._X_seen, votes.n_classes, self._notes.add
            )
        asking = chooser_of(
            self._config,
            self._student,
            self._X_seen,
            self._X_public,
            order,
            electorate,
            self._aggregator,
            votes.n_classes,
            self._notes.add,
        )
        max_queries = self._config["aggregation.max_queries"]
        self._observer.stage("labels", len(order[:max_queries]))
        labels, privacy = label_durably(
            self._folder,
            votes,
            electorate,
            self._aggregator,
            asking,
            guarantee=self._config["privacy.guarantee"],
            orders=SEED_ORDERS if self._config["privacy.orders"] == "seeds" else DEFAULT_ORDERS,
            conversion=self._config["privacy.conversion"],
            bounds=self._config["privacy.bounds"],
            noise=_noise(self._config),
            max_queries=max_queries,
            max_labels=self._config["aggregation.max_labels"],
            owners=self._data.budgets.group_sizes(),
            neighbours=self._plan.neighbours(self._config["teachers.assignment"]),
            adjacency=self._plan.adjacency(self._config["teachers.assignment"]),
            student=interactive,
            progress=self._observer.advanced,
            release=release,
        )
        histograms = None
        if release == HISTOGRAM:
            histograms = released_histograms(labels, electorate, self._aggregator, votes.n_classes)
        write_release(
            self._folder,
            labels,
            privacy,
            self._data.classes,
            self._data.public_rows,
            {"config": self._settings_of_release(), "versions": versions()},
            histograms,
        )
        return labels, privacy, electorate, histograms

    def _settings_of_release(self) -> dict[str, dict[str, Any]]:
        """All settings; of the student those of the one that is published, until another one is."""
        settings = self._config.public()
        before = self._stage.published_settings()
        return settings if before is None else {**settings, "student": before}

    def _keep_teacher_effects(self, votes: VoteTable) -> None:
        """Tell the steward, in the vault, how right teachers are by class, where public truth is known."""
        path = self._folder.vault / "sensitive-teachers-by-class.csv"
        if self._data.y_public is None or path.exists():
            return
        table = sensitive_teacher_effects(
            votes, self._data.classes, self._data.y_public, self._plan
        )
        self._folder.write_bytes(path, table.to_csv().encode())

    def _report(
        self,
        labels: Labels,
        privacy: PrivacyStatement,
        electorate: Electorate,
        student: Any,
        notes: tuple[str, ...],
    ) -> StudyResult:
        self._observer.stage("report")
        with one_line_about("student.model", "asked about the test records"):
            effects, label_accuracy, student_accuracy = measured_effects(
                self._config, self._plan, self._data, labels, student
            )
        result = StudyResult(
            folder=self._folder,
            privacy=privacy,
            plan=self._plan,
            labels=labels,
            label_accuracy=label_accuracy,
            student_accuracy=student_accuracy,
            n_test=0 if self._data.X_test is None else len(self._data.X_test),
            effects=effects,
            student_notes=notes,
        )
        self._folder.write_json(self._folder.release / "effects.json", effects.to_dict())
        page = report_data(result, self._config, self._data, self._aggregator, electorate)
        self._folder.write_bytes(result.report, render_report(page).encode())
        return result


def _noise(config: StudyConfig) -> NoiseSource:
    if config["aggregation.noise"] == "seeded":
        return SeededNoise(config["aggregation.noise_seed"])
    return SecureNoise()
