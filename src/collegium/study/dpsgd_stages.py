"""Running a study that trains directly: its plan, its durable steps, and what it publishes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.accounting.neighbours import Neighbours
from collegium.dpsgd.account import DPSGDAccount
from collegium.dpsgd.by_rule import mostly_noise
from collegium.dpsgd.estimator_base import start_from_public
from collegium.dpsgd.ledgered import DPSGDSpending, allow, relation_of
from collegium.dpsgd.optimiser import State
from collegium.dpsgd.run import DPSGDRecipe, DPSGDRun, Learnt, Summands
from collegium.dpsgd.steadiness import Steadiness, too_large_for_noise
from collegium.dpsgd.streamed import remove_feature_shards
from collegium.errors import InputError
from collegium.models.trial import one_line_about
from collegium.runs.observer import Observer
from collegium.runs.records import Records
from collegium.study.config import StudyConfig
from collegium.study.dpsgd_checkpoint import FolderDPSGDMemory
from collegium.study.dpsgd_page import dpsgd_page, dpsgd_report
from collegium.study.dpsgd_result import DPSGDResult, measured, unjudged
from collegium.study.dpsgd_student import DistilledStudent, published_model
from collegium.study.dpsgd_terms import DPSGDTerms, read_dpsgd
from collegium.study.folder import StudyFolder, versions
from collegium.study.from_settings import dpsgd_recipe_of
from collegium.study.identity import claim, holds_same_study, read_study
from collegium.study.notes import KeptNotes
from collegium.study.on_ledger import StudyLedger, begin_study
from collegium.study.pages import write_pages
from collegium.study.predicted_quality import foretold_beside
from collegium.study.result import as_chosen, notes_on_test_records
from collegium.study.sections import FROM_LABELS
from collegium.study.streaming import StreamedStudyData, streamed_summands
from collegium.study.student import StudentStage, tell_if_unwritable
from collegium.study.student_file import STUDENT_FILE, student_bytes
from collegium.study.study_data import StudyData
from collegium.study.terms import TERMS, keep_or_match
from collegium.study.votes_checkpoint import StudyInterrupted

_SHARDS = "descent-shards"  # in the vault
WITHOUT = "the statement is published, and no model"


@dataclass(frozen=True, eq=False)
class PlannedDPSGD:
    """A study of direct training, planned.

    ``config``: with a preprocessing that was left out.
    ``run``: its ``records`` are ``data``, or those of them that a ledger lets take part.
    ``ledger``: what remembers it, if anything does.
    ``believer``: the student, if there is to be one.
    """

    config: StudyConfig
    data: StudyData
    run: DPSGDRun
    ledger: StudyLedger[DPSGDSpending] | None = None
    believer: DistilledStudent | None = None

    @property
    def n_features(self) -> int:
        """Of the model, with the constant."""
        return self.run.n_parameters


def plan_dpsgd(
    config: StudyConfig, folder: StudyFolder | None = None, observer: Observer | None = None
) -> PlannedDPSGD:
    """Read the records and make the plan; nothing is trained, written or spent.

    ``config``: from :func:`~collegium.study.config.read_config`.
    ``folder``: where the run will be kept; default: in memory.
    ``observer``: is told how the run gets on.
    """
    observer = Observer() if observer is None else observer
    config, data = read_study(config)
    recipe = dpsgd_recipe_of(config)
    own = folder if folder is not None and holds_same_study(folder, config, data) else None
    memory = None
    if folder is not None:
        memory = FolderDPSGDMemory(folder, recipe.dpsgd.n_steps_taken, own is not None)
    ledger = begin_study(
        config,
        data,
        lambda left, share: allow(left, recipe.dpsgd, recipe.noise_seed, data.people, share),
        own,
        observer,
        DPSGDSpending,
    )
    taking_part: Records = data if ledger is None else data.allowed(ledger.spending)
    threads = None if config.run.n_jobs < 0 else config.run.n_jobs
    relation = _relation(own, ledger, recipe)
    run = DPSGDRun(recipe, taking_part, memory, observer, relation, threads)
    labelled = _known_codes(data) if config.dpsgd.start == FROM_LABELS else None
    start = start_from_public(run, labelled)
    if start is not None:
        run.recipe = replace(run.recipe, start=start)
    believer = DistilledStudent(config, run) if config.has_student else None
    return PlannedDPSGD(config, data, run, ledger, believer)


def _relation(
    folder: StudyFolder | None, ledger: StudyLedger[DPSGDSpending] | None, recipe: DPSGDRecipe
) -> Neighbours | None:
    """Say which neighbours the steps must be charged about: as begun, or as the ledger promises."""
    if folder is not None and (folder.vault / TERMS).exists():
        return read_dpsgd(folder.path)[0].plan.neighbours
    known = None if ledger is None else ledger.place.opened()
    return None if known is None else relation_of(known, recipe.dpsgd)


def _known_codes(data: StudyData) -> NDArray[np.float64]:
    """Class numbers of public records; NaN where none is known."""
    if data.y_public is None:
        raise InputError(
            f"dpsgd.start = {FROM_LABELS!r}, and no class of a public record is known: give data.public a "
            "column of them, or leave start out"
        )
    codes = pd.Index(data.classes).get_indexer(pd.Index(data.y_public))
    return np.where(codes >= 0, codes, np.nan)


def run_dpsgd_study(
    config: StudyConfig, out: Path, observer: Observer | None = None
) -> DPSGDResult:
    """Run a study that trains directly, or go on with it where it was interrupted.

    ``config``: from :func:`~collegium.study.config.read_config`.
    ``observer``: is told how it gets on.
    Raises InputError if anything that was given cannot be used: before the first step, so nothing
        is spent.
    """
    folder = StudyFolder(Path(out))
    observer = Observer() if observer is None else observer
    notes = KeptNotes(folder, observer)
    planned = plan_dpsgd(config, folder, observer)
    config, data, run = planned.config, planned.data, planned.run
    run.observer = notes
    believer = planned.believer
    rehearsed = _rehearse(planned)
    if not folder.voting_has_ended():
        may_change = "; student.model may change" if config.has_student else ""
        tell_if_unwritable(rehearsed, data, observer, f"{WITHOUT}{may_change}")
    folder.open()
    with folder.locked():
        claim(folder, config, data)
        rate = run.learning_rate
        _tell(run, mostly_noise(run.plan, run.loss))
        _tell(run, too_large_for_noise(run.recipe.dpsgd, run.plan, rate, run.loss))
        run.memory = memory = FolderDPSGDMemory(folder, run.recipe.dpsgd.n_steps_taken)
        ledger = planned.ledger
        if ledger is not None:
            if ledger.spending.allowance.whole and ledger.left is not None:
                observer.note(ledger.in_words)
            ledger.keep(folder)
        learnt = _descend(planned, folder, memory)
        if ledger is not None:
            ledger.settle(folder, learnt.account)
        about = {"steps": learnt.account.steps, "steps_lost": memory.lost}
        stage = StudentStage(
            config, folder, data, notes, lambda: _published(config, run, learnt, believer), WITHOUT
        )
        told = {
            **learnt.privacy.to_dict(),
            **about,
            "config": stage.settings_of_release(),
            "versions": versions(),
        }
        folder.write_json(folder.release / "privacy.json", told)
        folder.write_digests()
        model, own_notes = stage.publish()
        for line in notes_on_test_records(run.plan, data):
            notes.note(line)
        result = _report(planned, folder, learnt, memory.lost, model, (*notes.lines, *own_notes))
    return result if ledger is None else replace(result, ledger=str(ledger.place))


def _descend(planned: PlannedDPSGD, folder: StudyFolder, memory: FolderDPSGDMemory) -> Learnt:
    """Take the steps that are left; if all were charged before, no record is looked at."""
    run, taken = planned.run, planned.run.recipe.dpsgd.n_steps_taken
    with contextlib.ExitStack() as stack:
        summands: Summands | None = None
        if memory.charged() < taken:
            summands = stack.enter_context(_summands(planned, folder))
        else:
            run.observer.skipped("steps")
        keep_or_match(folder, _terms(run).to_json(), "another plan", "no step was taken")
        if planned.ledger is not None:
            costs = planned.ledger.spending.at_most(run.plan)
            planned.ledger.reserve(folder, planned.config.title(), costs, run.arrangement)
        if summands is None:
            remove_feature_shards(folder.vault / _SHARDS)  # of a run that ended before it could
            return _as_kept(run, memory)
        steadiness = Steadiness(run.recipe.dpsgd, run.plan, run.loss)

        def watch(state: State) -> bool:
            steadiness.look(state)
            return False  # a study takes all of its steps, and says afterwards what was seen

        learnt = run.descend(summands, planned.n_features, stop=watch)
        if learnt.account.steps < taken:
            raise StudyInterrupted  # shards are kept for who goes on
    memory.end()
    _tell(run, steadiness.complaint(run.learning_rate))
    return learnt


def _tell(run: DPSGDRun, line: str) -> None:
    if line:
        run.observer.note(line)


@contextlib.contextmanager
def _summands(planned: PlannedDPSGD, folder: StudyFolder) -> Iterator[Summands]:
    """Let the private records be seen by the model, in memory or on disk. **Sensitive.**"""
    run, config = planned.run, planned.config
    records = run.records
    run.observer.stage("features")
    if not isinstance(records, StreamedStudyData):
        yield run.summands()
        return
    is_here = config.run.engine == "local"
    with contextlib.ExitStack() as stack:
        workers = None if is_here else stack.enter_context(config.engine().running())
        yield stack.enter_context(streamed_summands(records, run, folder.vault / _SHARDS, workers))


def _as_kept(run: DPSGDRun, memory: FolderDPSGDMemory) -> Learnt:
    """Recall what was learnt, where all steps were charged before."""
    account = DPSGDAccount(run.plan, run.recipe.dpsgd.n_steps_taken)
    account.charge(memory.charged())
    state = memory.state() or run.start(run.n_parameters)
    memory.end()
    return Learnt(state, _terms(run).statement(account), account)


def _terms(run: DPSGDRun) -> DPSGDTerms:
    arrangement = run.arrangement
    return DPSGDTerms(
        run.plan,
        arrangement.sentence,
        arrangement.provisos,
        arrangement.counts_in,
        run.recipe.noise_seed is None,
        run.recipe.dpsgd.n_steps_taken,
        {name: value for name, value in asdict(run.recipe.dpsgd).items() if value is not None},
    )


def _rehearse(planned: PlannedDPSGD) -> Any:
    """Make, and ask, a model as it will be published: what fails must fail before anything is spent."""
    data, run, believer = planned.data, planned.run, planned.believer
    untaught = run.start(planned.n_features)
    account = DPSGDAccount(run.plan)
    privacy = account.statement(run.arrangement.sentence, noise_is_private=False)
    model = published_model(planned.config, run, run.model(Learnt(untaught, privacy, account)))
    if believer is not None:
        model = believer.rehearsed() or model
    for X, name in ((data.X_public[:1], "public records"), (data.X_test, "data.test")):
        if X is not None:
            with one_line_about(name, "predicted"):
                model.predict(X)
    return model


def _published(
    config: StudyConfig, run: DPSGDRun, learnt: Learnt, believer: DistilledStudent | None
) -> Any:
    if believer is not None:
        return believer.taught(run.model(learnt))
    return published_model(config, run, run.model(learnt))


def _report(
    planned: PlannedDPSGD,
    folder: StudyFolder,
    learnt: Learnt,
    lost: int,
    model: Any,
    notes: tuple[str, ...],
) -> DPSGDResult:
    config, data, run = planned.config, planned.data, planned.run
    run.observer.stage("report")
    asked = "test" if data.X_test is not None else "public"
    path = folder.release / STUDENT_FILE
    direct = student_bytes(published_model(config, run, run.model(learnt)), data.inputs)
    is_student = config.has_student and not (path.exists() and path.read_bytes() == direct)
    with one_line_about("the model", f"asked about the {asked} records"):
        effects, quality = measured(config, run.plan, data, model, is_student)
    tested = quality is not None and data.X_test is not None and data.y_test is not None
    result = DPSGDResult(
        folder=folder,
        privacy=learnt.privacy,
        plan=run.plan,
        steps=learnt.account.steps,
        lost=lost,
        accuracy=float(np.float64(quality.accuracy)) if tested and quality is not None else None,
        n_test=0 if data.X_test is None else len(data.X_test),
        effects=effects,
        quality=quality,
        student_notes=notes,
        unjudged=("", "") if quality is not None else unjudged(data, model, is_student),
        is_student=is_student,
        foretold=foretold_beside(folder, quality),
        chosen=as_chosen(data.people),
    )
    folder.write_json(folder.release / "effects.json", effects.to_dict())
    if quality is not None:
        folder.write_json(folder.release / "quality.json", quality.to_dict())
    write_pages(folder, dpsgd_page(dpsgd_report(result, config, data, run)))
    return result
