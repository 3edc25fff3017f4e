"""Running a study: partition → teachers → votes → aggregation → student → report, each stage durable."""

from __future__ import annotations

import json
import signal
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from collegium.accounting.renyi import DEFAULT_ORDERS, SEED_ORDERS
from collegium.errors import InputError, NothingReleasedError, StudyMismatchError
from collegium.pate import refuse_unaffordable, warn_of_unseen_classes
from collegium.personalisation.electorate import Electorate
from collegium.personalisation.plan import Plan
from collegium.privacy import PrivacyStatement, statement
from collegium.report.data import ReportData
from collegium.report.page import render_report
from collegium.students.supervised import RefittedStudent, fit_student
from collegium.study.config import StudyConfig
from collegium.study.data import StudyData, load_study_data
from collegium.study.folder import StudyFolder, versions
from collegium.study.journal import FileJournal
from collegium.study.models import build_model, build_preprocessing
from collegium.study.terms import JobTerms, keep_terms
from collegium.tables import take_rows
from collegium.teachers.ensemble import Teacher, TeacherEnsemble
from collegium.voting.aggregators import Aggregator, InteractiveGNMax
from collegium.voting.history import spending_history
from collegium.voting.labelling import LOST, REINFORCED, LabellingJob, Labels
from collegium.voting.noise import NoiseSource, SecureNoise, SeededNoise
from collegium.voting.pricing import pricing_for
from collegium.voting.votes import VoteTable

_REHEARSAL = 200  # public records on which models are tried before anything is spent


class StudyObserver:
    """Is told how a study gets on; the command line shows it. Does nothing by itself."""

    def stage(self, name: str, total: int | None = None) -> None:
        """Learn that a stage begins, and of how many steps (None: unknown)."""

    def advanced(self, done: int, total: int | None = None) -> None:
        """Learn that so many steps of the stage are done."""

    def skipped(self, name: str) -> None:
        """Learn that a stage was finished in an earlier run."""


class StudyInterrupted(KeyboardInterrupt):
    """Ctrl-C: everything that was paid for is on disk, and the same command goes on."""


@dataclass(frozen=True, eq=False)
class StudyResult:
    """What a finished study says. Nothing in it is sensitive under the worst-case guarantee.

    Attributes
    ----------
    folder : StudyFolder
        Where everything lies.
    privacy : PrivacyStatement
        Budgets and spending by group.
    plan : Plan
        Teachers, weights, duplicates, frequencies.
    labels : Labels
        Outcomes of all queries.
    label_accuracy, student_accuracy : float or None
        Against public truth, where it is known.
    n_test : int
        Public test records behind ``student_accuracy``.
    """

    folder: StudyFolder
    privacy: PrivacyStatement
    plan: Plan
    labels: Labels
    label_accuracy: float | None
    student_accuracy: float | None
    n_test: int

    @property
    def report(self) -> Path:
        """Where the page is."""
        return self.folder.release / "report.html"


def plan_study(config: StudyConfig) -> tuple[Plan, Aggregator, StudyData]:
    """Read the records and make the plan; nothing is trained, written or spent.

    Raises
    ------
    InputError
        If anything that was given cannot be used.
    """
    data = load_study_data(config)
    plan = config.personalisation().plan_for(data.budgets, config["teachers.number"])
    aggregator = config.aggregator()
    refuse_unaffordable(aggregator, plan, config["privacy.guarantee"], config["study.seed"])
    return plan, aggregator, data


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
    folder = StudyFolder(Path(out))
    plan, aggregator, data = plan_study(config)
    study = _Run(config, folder, plan, aggregator, data, observer or StudyObserver())
    study.rehearse()
    folder.open()
    with folder.locked():
        folder.claim(config.public(), data.fingerprints)
        return study.run()


def _models(config: StudyConfig) -> tuple[Any, Any, Any]:
    seed = config["study.seed"]
    teacher = build_model("teachers.model", config["teachers.model"], config["teachers.params"])
    student = build_model("student.model", config["student.model"], config["student.params"])
    if "random_state" in getattr(student, "get_params", dict)():
        student.set_params(random_state=seed)
    preprocessing = build_preprocessing(
        config["preprocessing.kind"],
        categorical=config["preprocessing.categorical"],
        components=config["preprocessing.components"],
        random_state=seed,
    )
    return teacher, student, preprocessing


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
        self._teacher, self._student, preprocessing = _models(config)
        self._preprocessing = preprocessing
        if preprocessing is not None:
            with _one_line_about("preprocessing", "fitted to the public records"):
                self._preprocessing = preprocessing.fit(data.X_public)
        self._X_public = self._prepared(data.X_public)

    def rehearse(self) -> None:
        """Train both models on some public records with made-up labels: a typo must cost nothing."""
        rows = np.arange(min(len(self._data.public_rows), _REHEARSAL))
        labels = self._data.classes[rows % len(self._data.classes)]
        if len(set(labels.tolist())) < 2:
            return
        for key, model in {"teachers": self._teacher, "student": self._student}.items():
            with _one_line_about(f"{key}.model", "trained on public records"):
                clone(model, safe=False).fit(take_rows(self._X_public, rows), labels)

    def run(self) -> StudyResult:
        votes = self._votes()
        labels, privacy, electorate = self._aggregate(votes)
        student = self._train_student(labels)
        return self._report(labels, privacy, electorate, student)

    def _prepared(self, X: Any) -> Any:
        return X if self._preprocessing is None else self._preprocessing.transform(X)

    def _votes(self) -> VoteTable:
        path = self._folder.vault / "votes.npy"
        n_classes = len(self._data.classes)
        if path.exists():
            self._observer.skipped("teachers")
            table = _load_array(path)
            return VoteTable.from_predictions(table, n_classes, allow_abstention=True)
        assignment = self._plan.assign(
            self._data.budgets, str(self._seed).encode(), self._config["teachers.assignment"]
        )
        self._folder.write_array(self._folder.vault / "partition.npy", assignment.owner_teachers)
        warn_of_unseen_classes(self._data.codes, self._data.classes)
        teachers = self._folder.vault / "teachers"
        teachers.mkdir(exist_ok=True)
        ensemble = TeacherEnsemble(
            self._teacher,
            self._seed,
            self._config["run.jobs"],
            keep=partial(_store_teacher, self._folder, teachers),
            fetch=_fetch_teacher,
            progress=self._observer.advanced,
        )
        paths = [_teacher_path(teachers, number) for number in range(assignment.n_teachers)]
        missing = [number for number, kept in enumerate(paths) if not kept.exists()]
        self._observer.stage("teachers", len(missing))
        ensemble.train(self._prepared(self._data.X), self._data.codes, assignment, missing)
        self._observer.stage("votes", len(paths))
        table = ensemble.ask(paths, self._X_public)
        votes = VoteTable.from_predictions(table, n_classes, allow_abstention=True)
        self._folder.write_array(path, table.astype(np.int16))
        return votes

    def _aggregate(self, votes: VoteTable) -> tuple[Labels, PrivacyStatement, Electorate]:
        electorate = self._plan.electorate(self._seed)
        order = np.random.default_rng([self._seed, 3]).permutation(len(self._X_public))
        order = order[: self._config["aggregation.max_queries"]]
        interactive = None
        if isinstance(self._aggregator, InteractiveGNMax):
            interactive = RefittedStudent(self._student, self._X_public, votes.n_classes)
        self._observer.stage("labels", len(order))
        labels, privacy = label_durably(
            self._folder,
            votes,
            electorate,
            self._aggregator,
            order,
            guarantee=self._config["privacy.guarantee"],
            orders=SEED_ORDERS if self._config["privacy.orders"] == "seeds" else DEFAULT_ORDERS,
            conversion=self._config["privacy.conversion"],
            bounds=self._config["privacy.bounds"],
            noise=_noise(self._config),
            max_labels=self._config["aggregation.max_labels"],
            owners=self._data.budgets.group_sizes(),
            adjacency=self._plan.adjacency(self._config["teachers.assignment"]),
            student=interactive,
            progress=self._observer.advanced,
        )
        write_release(
            self._folder,
            labels,
            privacy,
            self._data.classes,
            self._data.public_rows,
            {"config": self._config.public(), "versions": versions()},
        )
        return labels, privacy, electorate

    def _train_student(self, labels: Labels) -> Any:
        path = self._folder.release / "student.joblib"
        if path.exists():
            self._observer.skipped("student")
            return _load_model(path)
        self._observer.stage("student")
        try:
            student = fit_student(
                self._student,
                take_rows(self._X_public, labels.queries),
                self._data.classes[labels.labels],
            )
        except NothingReleasedError as error:
            raise NothingReleasedError(
                f"{error} (what was spent: {self._folder.release / 'privacy.json'})"
            ) from None
        if self._preprocessing is not None:
            student = Pipeline([("preprocessing", self._preprocessing), ("student", student)])
        self._folder.write_model(path, student)
        return student

    def _report(
        self, labels: Labels, privacy: PrivacyStatement, electorate: Electorate, student: Any
    ) -> StudyResult:
        data, config = self._data, self._config
        label_accuracy = student_accuracy = None
        if data.y_public is not None and len(labels.queries):
            truth = data.y_public[labels.queries]
            label_accuracy = float(np.mean(data.classes[labels.labels] == truth))
        if data.X_test is not None and data.y_test is not None:
            student_accuracy = float(np.mean(student.predict(data.X_test) == data.y_test))
        n_test = 0 if data.X_test is None else len(data.X_test)
        result = StudyResult(
            self._folder, privacy, self._plan, labels, label_accuracy, student_accuracy, n_test
        )
        verdicts = [outcome.verdict for outcome in labels.outcomes]
        scales = [electorate.ballot(p).scale for p in range(min(len(verdicts), 1000))] or [1.0]
        page = ReportData(
            title=config["study.name"],
            privacy=privacy,
            plan=self._plan,
            aggregator={"name": self._aggregator.name, **vars(self._aggregator)},
            scale=float(np.mean(scales)),
            stop_reason=labels.stop_reason,
            n_public=len(self._X_public),
            n_asked=labels.n_asked,
            n_answered=labels.n_answered,
            n_reinforced=verdicts.count(REINFORCED),
            n_lost=verdicts.count(LOST),
            class_names=[str(name) for name in data.classes],
            labels_per_class=np.bincount(labels.labels, minlength=len(data.classes)).tolist(),
            history=(
                spending_history(self._aggregator, electorate, labels.outcomes)
                if privacy.may_publish_spending
                else []
            ),
            teacher=_in_words(config, "teachers"),
            student=_in_words(config, "student"),
            label_accuracy=label_accuracy,
            student_accuracy=student_accuracy,
            n_test=n_test,
            settings=_settings(config),
            versions=versions(),
        )
        self._observer.stage("report")
        self._folder.write_bytes(result.report, render_report(page).encode())
        return result


def label_durably(
    folder: StudyFolder,
    votes: VoteTable,
    electorate: Electorate,
    aggregator: Aggregator,
    order: NDArray[np.intp],
    *,
    guarantee: str,
    orders: NDArray[np.float64],
    conversion: str,
    noise: NoiseSource,
    max_labels: int | None,
    owners: dict[str, int],
    adjacency: str,
    student: RefittedStudent | None = None,
    progress: Callable[[int], None] = lambda asked: None,
    bounds: str | None = None,
) -> tuple[Labels, PrivacyStatement]:
    """Run a labelling job with its journal in the vault; a finished job is only read again.

    Raises
    ------
    StudyInterrupted
        After Ctrl-C, with everything settled.
    """
    pricing = pricing_for(guarantee, aggregator, electorate, orders, conversion, adjacency, bounds)
    path = folder.vault / "journal.jsonl"
    if not path.exists() and (folder.release / "labels.csv").exists():
        raise StudyMismatchError(
            f"labels were released from {folder.path}, but its journal {path} is gone: nothing was asked, "
            "since what was spent is not known; restore it from a backup"
        )
    journal = FileJournal(path)
    finished = folder.vault / "aggregation.json"
    if finished.exists():
        known = json.loads(finished.read_text(encoding="utf-8"))
        if len(journal.settled()) != known["asked"]:
            raise StudyMismatchError(
                f"{finished} and the journal beside it do not belong together: nothing was changed; "
                "restore both from one backup"
            )
        order = order[: known["asked"]]
    keep_terms(
        folder,
        JobTerms(
            aggregator, electorate, guarantee, adjacency, noise.is_private, owners, len(order)
        ),
    )
    with _interruptible() as should_stop:
        job = LabellingJob(
            votes,
            electorate,
            aggregator,
            pricing,
            noise,
            order,
            student=student,
            max_labels=max_labels,
            journal=journal,
            should_stop=should_stop,
            progress=progress,
        )
        labels = job.run()
    if finished.exists():
        labels = Labels(labels.outcomes, labels.queries, labels.labels, known["stop_reason"])
    elif labels.stop_reason == "interrupted":
        raise StudyInterrupted
    else:
        done = {"asked": labels.n_asked, "stop_reason": labels.stop_reason}
        folder.write_json(finished, done)
    privacy = statement(
        pricing.accountant, owners, dict(electorate.groups), adjacency, noise.is_private
    )
    if not privacy.may_publish_spending:
        spent = {row.group: row.epsilon_spent for row in privacy.groups}
        folder.write_json(folder.vault / "sensitive-spending.json", spent)
        privacy = privacy.without_spending()
    return labels, privacy


def write_release(
    folder: StudyFolder,
    labels: Labels,
    privacy: PrivacyStatement,
    classes: NDArray[Any],
    public_rows: NDArray[np.intp],
    about: dict[str, Any],
) -> None:
    """Write the labels and the statement. Every outcome in them is durable in the journal already."""
    table = pd.DataFrame({"row": public_rows[labels.queries], "label": classes[labels.labels]})
    folder.write_bytes(folder.release / "labels.csv", table.to_csv(index=False).encode())
    summary = {
        **privacy.to_dict(),
        "queries_asked": labels.n_asked,
        "labels_released": len(labels.labels),
        "stopped_by": labels.stop_reason,
        **about,
    }
    folder.write_json(folder.release / "privacy.json", summary)


@contextmanager
def _one_line_about(key: str, purpose: str) -> Iterator[None]:
    """Refuse what fails on public records alone; such a message cannot quote private ones."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except InputError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(
            f"{key} cannot be {purpose} ({type(error).__name__}: {reason}): correct its parameters, or the "
            "preprocessing"
        ) from None


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a question that is asked between two queries."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    asked_to_stop = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: asked_to_stop.set())
    try:
        yield asked_to_stop.is_set
    finally:
        signal.signal(signal.SIGINT, before)


def _noise(config: StudyConfig) -> NoiseSource:
    if config["aggregation.noise"] == "seeded":
        return SeededNoise(config["aggregation.noise_seed"])
    return SecureNoise()


def _teacher_path(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.joblib"


def _store_teacher(folder: StudyFolder, teachers: Path, number: int, teacher: Teacher) -> Path:
    path = _teacher_path(teachers, number)
    folder.write_model(path, teacher)
    return path


def _fetch_teacher(kept: Any) -> Teacher:
    teacher = _load_model(kept)
    assert isinstance(teacher, Teacher)
    return teacher


def _load_model(path: Path) -> Any:
    try:
        return joblib.load(path)
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} cannot be read ({error}): delete it and run again") from None


def _load_array(path: Path) -> NDArray[Any]:
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}): delete it and run again") from None


def _in_words(config: StudyConfig, section: str) -> str:
    params = ", ".join(f"{k}={v!r}" for k, v in config[f"{section}.params"].items())
    return f"{config[f'{section}.model']}({params})"


def _settings(config: StudyConfig) -> dict[str, str]:
    shown = {}
    for section, keys in config.public().items():
        for name, value in keys.items():
            if value not in ([], {}):
                shown[f"{section}.{name}"] = str(value)
    return shown
