"""Studies of direct training: their plan, their durable steps, and what they publish."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.neighbours import Arrangement, Neighbours
from collegium.budgets import Budgets
from collegium.distillation.where_in_doubt import is_in_doubt
from collegium.dpsgd.account import DPSGDAccount
from collegium.dpsgd.by_rule import mostly_noise
from collegium.dpsgd.ledgered import DPSGDSpending, allow, relation_of
from collegium.dpsgd.optimiser import State
from collegium.dpsgd.run import RELATIONS, DPSGDRecipe, DPSGDRun, Learnt, Summands
from collegium.dpsgd.steadiness import Steadiness, too_large_for_noise
from collegium.dpsgd.streamed import remove_feature_shards
from collegium.dpsgd.student import DistilledStudent, published_model
from collegium.ledger.allowance import Allowance
from collegium.ledger.ledger import Balance, Ledger
from collegium.ledger.limits import Cost
from collegium.models.trial import one_line_about
from collegium.noise.sources import noise_from
from collegium.personalisation.bins import few_budgets
from collegium.planner.share import Share, rehearsed_share
from collegium.report.audit import Audit
from collegium.report.sections import Banner, Block
from collegium.runs.observer import Observer
from collegium.runs.records import Records
from collegium.study.checkpoint import StudyInterrupted
from collegium.study.config import StudyConfig
from collegium.study.folder import StudyFolder
from collegium.study.from_settings import student_of, student_preprocessing_of
from collegium.study.methods.dpsgd.audit import audit
from collegium.study.methods.dpsgd.checkpoint import FolderDPSGDMemory
from collegium.study.methods.dpsgd.page import dpsgd_page, dpsgd_report
from collegium.study.methods.dpsgd.recipe import dpsgd_recipe_of
from collegium.study.methods.dpsgd.result import DPSGDResult, measured, unjudged
from collegium.study.methods.dpsgd.shown import plan_blocks, plan_numbers, used_in_words
from collegium.study.methods.dpsgd.student import distilled_student_of
from collegium.study.methods.dpsgd.terms import DPSGDTerms
from collegium.study.methods.protocol import (
    AgreedTerms,
    AuditSettings,
    Draws,
    Method,
    Plan,
    Rehearsed,
    Study,
)
from collegium.study.notes import KeptNotes
from collegium.study.pages import write_pages, write_privacy
from collegium.study.parties import ALONE, Alone, learnt_together
from collegium.study.planned_settings import facts_of, require_gaussian
from collegium.study.predicted_quality import foretold_beside
from collegium.study.result import as_chosen, notes_on_test_records
from collegium.study.shown import columns_of
from collegium.study.streaming import StreamedStudyData, streamed_summands
from collegium.study.student import StudentStage
from collegium.study.student_file import STUDENT_FILE, student_bytes
from collegium.study.study_data import StudyData, has_class_of_its_own
from collegium.study.terms import relation_as_begun
from collegium.study.withdrawals import planned_as_begun

_SHARDS = "dpsgd-shards"  # in the vault
WITHOUT = "the statement is published, and no model"


class DPSGD(Method[StudyData, DPSGDSpending]):
    """A model learns from private records directly, in noisy steps; perhaps a student from its beliefs."""

    spending = DPSGDSpending

    def check(self, config: StudyConfig) -> None:
        """Refuse what cannot be built."""
        dpsgd_recipe_of(config)
        if config.has_student:
            student_of(config)
            student_preprocessing_of(config)

    def check_on(self, study: Study[StudyData], promised: Ledger) -> None:
        """Refuse a ledger of pure ε, and neighbours that are weaker than the ledger's."""
        require_gaussian(promised)
        _relation(study.begun_in, promised, dpsgd_recipe_of(study.config))

    def allowance(self, study: Study[StudyData], left: Balance) -> Allowance:
        """Take what people have left, of a ledger that can count Gaussian noise."""
        recipe = dpsgd_recipe_of(study.config)
        return allow(left, recipe.noise_seed, study.records.people)

    def least_share(self, study: Study[StudyData], everything: Allowance) -> Share:
        """Rehearse on public records, where their classes are known."""
        config, recipe = study.config, dpsgd_recipe_of(study.config)
        facts = facts_of(config, study.records)
        left = replace(
            facts, groups=everything.groups, sizes=everything.sizes(), dpsgd=recipe.dpsgd
        )
        rehearsals = study.rehearsals.on("share", left, config.preprocessing, config.has_student)
        found = rehearsals.taken(Share.from_json)
        if found is None:
            found = rehearsed_share(left, recipe.preprocessing, config.has_student)
            rehearsals.keep(found.to_json())
        return found

    def plan(
        self, study: Study[StudyData], spending: DPSGDSpending | None, promised: Ledger | None
    ) -> DPSGDStudyPlan:
        """Plan steps, noise, and what everybody gives."""
        config, data, folder = study.config, study.records, study.folder
        recipe = dpsgd_recipe_of(config)
        memory = None
        if folder is not None:
            steps = recipe.dpsgd.n_steps_taken
            memory = FolderDPSGDMemory(folder, steps, study.is_begun, study.parties)
        taking_part: Records = data if spending is None else data.allowed(spending)
        taking_part = planned_as_begun(study.begun_in, taking_part)
        threads = None if config.run.n_jobs < 0 else config.run.n_jobs
        relation = _relation(study.begun_in, promised, recipe)
        granted = taking_part.budgets
        taking_part = _with_everybody(study, taking_part, relation)
        recipe = replace(recipe, public_targets=_known_codes(data))
        run = DPSGDRun(recipe, taking_part, memory, study.observer, relation, threads)
        believer = distilled_student_of(config, run)
        return DPSGDStudyPlan(config, data, run, granted, study.parties, believer)

    def audit(
        self, plan: Callable[[bool], DPSGDStudyPlan], settings: AuditSettings, observer: Observer
    ) -> Audit:
        """Attack its steps."""
        return audit(plan(True).run, settings, observer)


def _relation(
    folder: StudyFolder | None, promised: Ledger | None, recipe: DPSGDRecipe
) -> Neighbours | None:
    """Say which neighbours the steps must be charged about: as begun, or as the ledger promises."""
    begun = relation_as_begun(folder)
    if begun is not None or promised is None:
        return begun
    return relation_of(promised, recipe.dpsgd)


def _with_everybody(
    study: Study[StudyData], records: Records, relation: Neighbours | None
) -> Records:
    """Add the people of other parties."""
    if not study.parties.takes_up:
        return records
    if not records.arrangement.on_ledger:
        records = records.regrouped(few_budgets(records.budgets))
    by_name = RELATIONS.get(dpsgd_recipe_of(study.config).dpsgd.neighbours or "")
    about = relation or by_name or Neighbours.ADD_OR_REMOVE
    return learnt_together(study.parties, records, neighbours=about.name)


def _known_codes(data: StudyData) -> NDArray[np.float64] | None:
    """Class numbers of public records, NaN where unknown; None where none is known."""
    codes = data.known_codes
    return np.where(codes >= 0, codes, np.nan) if (codes >= 0).any() else None


@dataclass(frozen=True, eq=False)
class DPSGDStudyPlan(Plan[DPSGDSpending, Learnt]):
    """A study of direct training, planned.

    ``config``: with a preprocessing that was left out.
    ``run``: its ``records`` are ``data``, or those of them that a ledger lets take part.
    ``by_whom``: what those grant who take part, before similar budgets became one.
    ``parties``: with whom it is learnt.
    ``believer``: the student, if there is to be one.
    """

    config: StudyConfig
    data: StudyData
    run: DPSGDRun
    by_whom: Budgets
    parties: Alone = ALONE
    believer: DistilledStudent | None = None

    @property
    def n_features(self) -> int:
        """Of the model, with the constant."""
        return self.run.n_parameters

    @property
    def arrangement(self) -> Arrangement:
        """As the run has it."""
        return self.run.arrangement

    @property
    def granted(self) -> Budgets:
        """Before similar budgets became one."""
        return self.by_whom

    def has_class_of_its_own(self, name: str) -> bool:
        """Look at the labels of the others."""
        return has_class_of_its_own(self.data, name)

    def rehearse(self) -> Rehearsed:
        """Make, and ask, a model as it will be published."""
        may_change = "; student.model may change" if self.config.has_student else ""
        return Rehearsed(_rehearse(self), self.data, f"{WITHOUT}{may_change}")

    @property
    def columns(self) -> dict[str, str]:
        """As public records show them."""
        return columns_of(self.data)

    def warnings(self) -> list[str]:
        """Say so if budgets or the learning rate leave little but noise."""
        run = self.run
        noise = mostly_noise(run.plan, run.loss)
        rate = too_large_for_noise(run.recipe.dpsgd, run.plan, run.learning_rate, run.loss)
        return [line for line in (noise, rate) if line]

    def numbers(self) -> dict[str, Any]:
        """What everybody would pay and give, and how long it would take."""
        return plan_numbers(self.run, self.data)

    def blocks(self) -> list[Block | Banner]:
        """The same."""
        return [*plan_blocks(self.run, self.data)]

    def in_short(self) -> str:
        """How many steps there are, and what they use."""
        return f"{self.run.plan.steps:,} steps, in which {used_in_words(self.run)}"

    def note_in(self, notes: KeptNotes) -> None:
        """Let the run note here."""
        self.run.observer = notes

    def keep_in(self, folder: StudyFolder) -> None:
        """Keep which steps are charged, and where the model stands."""
        run = self.run
        for line in self.warnings():
            run.observer.note(line)
        steps = run.recipe.dpsgd.n_steps_taken
        run.memory = FolderDPSGDMemory(folder, steps, parties=self.parties)

    @contextlib.contextmanager
    def prepared(self, folder: StudyFolder) -> Iterator[DPSGDDraws]:
        """Let the model see the private records; if all steps were charged before, none is looked at."""
        draws = DPSGDDraws(self, folder, None)
        if draws.is_all_charged:
            self.run.observer.skipped("steps")
            yield draws
            return
        with _summands(self, folder) as summands:
            yield DPSGDDraws(self, folder, summands)

    def at_most(self, spending: DPSGDSpending, folder: StudyFolder) -> list[Cost]:
        """What all steps cost."""
        return spending.at_most(self.run.plan)

    def spent(self, drawn: Learnt) -> tuple[Any, ...]:
        """The account of the steps."""
        return (drawn.account,)

    def terms(self) -> AgreedTerms:
        """The plan, and what it hides."""
        return AgreedTerms(_terms(self.run).to_json(), "another plan", "no step was taken")

    def publish(self, folder: StudyFolder, drawn: Learnt, notes: KeptNotes) -> DPSGDResult:
        """Write the statement, the model, card and page."""
        config, run, data, lost = self.config, self.run, self.data, _memory_of(self.run).lost
        about = {"steps": drawn.account.steps, "steps_lost": lost}
        stage = StudentStage(
            config,
            folder,
            data,
            notes,
            lambda: _published(config, run, drawn, self.believer),
            WITHOUT,
        )
        write_privacy(folder, drawn.privacy, stage.settings_of_release(), **about)
        folder.write_digests()
        model, own_notes = stage.publish()
        for line in notes_on_test_records(run.plan, data):
            notes.note(line)
        return _report(self, folder, drawn, lost, model, (*notes.lines, *own_notes))


class DPSGDDraws(Draws[Learnt]):
    """The model sees the private records, and no step is taken. **Sensitive.**"""

    def __init__(
        self, planned: DPSGDStudyPlan, folder: StudyFolder, summands: Summands | None
    ) -> None:
        self._planned, self._folder, self._summands = planned, folder, summands
        self._run, self._memory = planned.run, _memory_of(planned.run)
        self._state: State | None = None

    @property
    def is_all_charged(self) -> bool:
        """Whether all steps are."""
        return self._memory.is_all_taken(self._run.recipe.dpsgd.n_steps_taken)

    def end(self) -> None:
        """Keep that, and how many steps a crash took."""
        remove_feature_shards(self._folder.vault / _SHARDS)  # of a run that ended before it could
        self._state = self._memory.state()
        self._memory.end()

    def draw(self) -> Learnt:
        """Take the steps that are left."""
        run = self._run
        if self._summands is None:
            return self._as_kept()
        steadiness = Steadiness(run.recipe.dpsgd, run.plan, run.loss)

        def watch(state: State) -> bool:
            steadiness.look(state)
            return False  # a study takes all of its steps, and says afterwards what was seen

        noise = self._planned.parties.noise(noise_from(run.recipe.noise_seed))
        learnt = run.descend(self._summands, self._planned.n_features, noise, watch)
        if learnt.account.steps < run.recipe.dpsgd.n_steps_taken:
            raise StudyInterrupted  # shards are kept for who goes on
        self._memory.end()
        complaint = steadiness.complaint(run.learning_rate)
        if complaint:
            run.observer.note(complaint)
        return learnt

    def _as_kept(self) -> Learnt:
        """Recall what was learnt, where all steps were charged before."""
        run = self._run
        account = DPSGDAccount(run.plan, run.recipe.dpsgd.n_steps_taken)
        account.charge(self._memory.charged())
        state = self._state or run.start(run.n_parameters)
        return Learnt(state, _terms(run).statement(account), account)


def _memory_of(run: DPSGDRun) -> FolderDPSGDMemory:
    assert isinstance(run.memory, FolderDPSGDMemory), "a folder is claimed before steps are taken"
    return run.memory


@contextlib.contextmanager
def _summands(planned: DPSGDStudyPlan, folder: StudyFolder) -> Iterator[Summands]:
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


def _terms(run: DPSGDRun) -> DPSGDTerms:
    return DPSGDTerms.of(
        run.plan,
        run.arrangement,
        run.recipe.noise_seed is None,
        run.recipe.dpsgd.n_steps_taken,
        {name: value for name, value in asdict(run.recipe.dpsgd).items() if value is not None},
    )


def _rehearse(planned: DPSGDStudyPlan) -> Any:
    """Make, and ask, a model as it will be published: what fails must fail before anything is spent."""
    data, run, believer = planned.data, planned.run, planned.believer
    untaught = run.start(planned.n_features)
    account = DPSGDAccount(run.plan)
    privacy = account.statement(run.arrangement, noise_is_private=False)
    direct = run.model(Learnt(untaught, privacy, account))
    model = published_model(run, direct, planned.config.student.goal)
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
    labels = run.with_public_labels(learnt)
    if labels is not None:
        run.observer.note("; ".join(dict.fromkeys((labels.in_words, *labels.notes))))
    if believer is None:
        return published_model(run, run.model(learnt), config.student.goal)
    better, choice = believer.taught(run.model(learnt))
    if choice is not None:
        run.observer.note(choice.in_words)
    return better


def _report(
    planned: DPSGDStudyPlan,
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
    direct = student_bytes(
        published_model(run, run.model(learnt), config.student.goal), data.inputs
    )
    is_student = config.has_student and not (path.exists() and path.read_bytes() == direct)
    with one_line_about("the model", f"asked about the {asked} records"):
        effects, quality = measured(config, run, data, learnt, model, is_student)
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
        in_doubt=is_in_doubt(model),
        foretold=foretold_beside(folder, quality),
        chosen=as_chosen(data.people),
    )
    folder.write_json(folder.release / "effects.json", effects.to_dict())
    if quality is not None:
        folder.write_json(folder.release / "quality.json", quality.to_dict())
    write_pages(folder, dpsgd_page(dpsgd_report(result, config, data, run)))
    return result
