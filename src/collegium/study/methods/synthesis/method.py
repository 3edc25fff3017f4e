"""Studies that publish a synthetic table: their plan, and what they publish."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from collegium.accounting.events import Event
from collegium.accounting.neighbours import Arrangement, Neighbours
from collegium.accounting.promises import Promise
from collegium.accounting.statement import PrivacyStatement
from collegium.budgets import Budget, Budgets
from collegium.data.engines.sources import in_its_words
from collegium.data.schema_arrays import take_frame_rows
from collegium.errors import InputError
from collegium.evaluation.synthetic import evaluate_synthetic
from collegium.evaluation.synthetic_quality import SyntheticQuality
from collegium.ledger.allowance import Allowance
from collegium.ledger.event_spending import EventSpending, relation_on
from collegium.ledger.ledger import Balance, Ledger
from collegium.noise.sources import noise_from
from collegium.report.audit import Audit
from collegium.report.sections import Banner, Block, Page
from collegium.runs.observer import Observer
from collegium.study.config import StudyConfig
from collegium.study.event_plan import EventPlan
from collegium.study.folder import StudyFolder
from collegium.study.kept_draws import Drawn, NumberedDraws
from collegium.study.manifest_check import KEPT_ALLOWANCE
from collegium.study.methods.protocol import AuditSettings, Method, Study
from collegium.study.methods.synthesis.audit import audit
from collegium.study.methods.synthesis.data import SynthesisData, read_tables
from collegium.study.methods.synthesis.page import SynthesisReport, synthesis_page
from collegium.study.methods.synthesis.release import MODEL
from collegium.study.methods.synthesis.result import SynthesisResult
from collegium.study.methods.synthesis.settings import SynthesisSection
from collegium.study.methods.synthesis.shown import (
    PlannedTable,
    plan_blocks,
    plan_in_short,
    plan_numbers,
)
from collegium.study.notes import KeptNotes
from collegium.study.on_ledger import place_of
from collegium.study.query_table import Rows
from collegium.study.result import PublishedResult, as_chosen
from collegium.study.terms import relation_as_begun
from collegium.study.withdrawals import budgets_as_begun
from collegium.synthesis.ledgered import SynthesisSpending, require_gaussian
from collegium.synthesis.model import TableModel
from collegium.synthesis.model_file import model_bytes
from collegium.synthesis.rehearsal import Prediction, predicted
from collegium.synthesis.rows_in_files import rows_in_parts, rows_into
from collegium.synthesis.run import Synthesis
from collegium.synthesis.settings import SynthesisSettings
from collegium.synthesis.tables_of_marginals import marginals_table
from collegium.weighted_sums.settings import relation_of
from collegium.weighted_sums.whose import table_of

SCHEMA, MARGINALS = "schema.toml", "marginals.csv"
QUALITY = "quality.json"
ROWS_AS_TEXT, ROWS_AS_PARQUET = "synthetic.csv", "synthetic.parquet"
MOST_AS_TEXT = 1_000_000
_SEED_OF_ROWS, _SEED_OF_TRIAL = 5, 6
_MOST_JUDGED = 100_000
_FEW = 200


class SynthesisMethod(Method[SynthesisData, EventSpending]):
    """Noisy counts of a private table are made, and rows drawn that fit them."""

    spending = SynthesisSpending

    def read(
        self, config: StudyConfig, folder: StudyFolder | None, observer: Observer
    ) -> tuple[StudyConfig, SynthesisData]:
        """Read the schema, the private table, and public ones."""
        begun_on_one = folder is not None and (folder.path / KEPT_ALLOWANCE).exists()
        in_memory = (place_of(config) is not None or begun_on_one) and config.data.owner is not None
        between_parties = config.parties.collective is not None
        return config, read_tables(config, observer, may_stream=not (in_memory or between_parties))

    def check_on(self, study: Study[SynthesisData], promised: Ledger) -> None:
        """Refuse a ledger of pure ε, and neighbours that are weaker than the ledger's."""
        require_gaussian(promised.lifetime)
        _relation(study, promised)

    def allowance(self, study: Study[SynthesisData], left: Balance) -> Allowance:
        """Take what people have left, of a ledger that can count Gaussian noise."""
        require_gaussian(left.lifetime)
        return super().allowance(study, left)

    def plan(
        self,
        study: Study[SynthesisData],
        spending: EventSpending | None,
        promised: Ledger | None,
    ) -> SynthesisPlan:
        """Plan the draws."""
        data = study.records
        _refuse_unusable_tests(study)
        rows, promise = data.rows, Promise.EITHER
        if spending is not None:
            rows = Rows(take_frame_rows(rows.frame, spending.records), spending.budgets)
            promise = spending.allowance.lifetime.promise
        if isinstance(rows.budgets, Budgets):
            rows = replace(rows, budgets=budgets_as_begun(study.begun_in, rows.budgets))
        return SynthesisPlan(study, rows, _relation(study, promised), promise)

    def audit(
        self, plan: Callable[[bool], SynthesisPlan], settings: AuditSettings, observer: Observer
    ) -> Audit:
        """Attack its noisy counts."""
        made = plan(False)
        return audit(made.run, made.arrangement, settings, observer)


def _relation(study: Study[SynthesisData], promised: Ledger | None) -> Neighbours:
    """Say which neighbours counts must be charged about: as begun, or as the ledger promises."""
    said = study.config.of(SynthesisSection).neighbours
    on_ledger = None if promised is None else relation_on(promised, said)
    return relation_as_begun(study.begun_in) or on_ledger or relation_of(said)


class SynthesisPlan(EventPlan):
    """A synthetic table, planned.

    ``rows``: of those who take part. ``relation``: what is hidden. ``promise``: of the ledger, if any.
    """

    def __init__(
        self,
        study: Study[SynthesisData],
        rows: Rows,
        relation: Neighbours,
        promise: Promise,
    ) -> None:
        self.study, self.config, self.observer = study, study.config, study.observer
        self.data = study.records
        self.rows, self.relation, self.promise = rows, relation, promise
        section = self.config.of(SynthesisSection)
        settings = SynthesisSettings(
            **{one.name: getattr(section, one.name) for one in fields(SynthesisSettings)}
        )
        data = self.data
        granted = rows.budgets
        if isinstance(granted, Budgets):
            granted = study.parties.everybody(granted, {"neighbours": relation.name})
        with in_its_words(self.config.place("data.private")):
            table = self.table = table_of(rows.frame, granted, data.schema, **rows.columns)
        public = None if data.public is None else data.cells.codes(data.public)
        target = self.config.data.target
        self.run = Synthesis(table, data.cells, target, settings, relation, public)
        self.groups = table.groups
        self.people: Mapping[str, int] = dict(zip(table.groups, table.sizes.tolist(), strict=True))
        self.noise = study.parties.noise(noise_from(section.noise_seed))

    @property
    def granted(self) -> Budgets:
        """Of a table in memory."""
        assert isinstance(self.rows.budgets, Budgets), "nobody is asked about in files"
        return self.rows.budgets

    @property
    def arrangement(self) -> Arrangement:
        """As the tables and the relation have it."""
        return replace(
            self.study.parties.arranged(self.data.arrangement),
            blanked_only=self.relation is Neighbours.ADD_OR_REMOVE,
            direct=True,
            promise=self.promise,
        )

    @property
    def chosen(self) -> Mapping[str, Budget]:
        """As the private table has them; of files, levels are known by the policy."""
        return as_chosen(self.data.rows.budgets)

    @contextlib.contextmanager
    def prepared(self, folder: StudyFolder) -> Iterator[NumberedDraws]:
        """Look at what was drawn before; afterwards, the table is let go."""
        with contextlib.closing(self.table), super().prepared(folder) as draws:
            yield draws

    def events(self) -> Sequence[Sequence[Event]]:
        """One event for each draw."""
        return [[one] for one in self.run.events]

    def draw(self, number: int, before: Drawn) -> dict[str, Any]:
        """Draw noisy counts, or scores."""
        return self.run.draw(number, before, self.noise)

    def own_terms(self) -> dict[str, Any]:
        """How the table is made."""
        stages, settings = self.run.stages, self.run.settings
        return {
            "goal": stages.goal,
            "target": self.config.data.target or "",
            "weights": settings.weights,
            "calibrated": settings.calibrated,
            "shares": tuple(round(one.share, 6) for one in stages.drawn),
        }

    # ------------------------------------------------------------------- what a plan says

    @cached_property
    def prediction(self) -> Prediction | None:
        """What a rehearsal on public records expects; None where there are too few of them."""
        data, run = self.data, self.run
        if data.public is None:
            return None
        depends = (
            data.schema.digest,
            data.fingerprints.get("public"),
            self.config.public().get(SynthesisSection.section, {}),
            self.config.data.target,
            {name: (one.epsilon, one.delta) for name, one in self.groups.items()},
            dict(self.people),
            self.relation,
        )
        kept = self.study.rehearsals.on("synthesis", *depends)
        found = kept.taken(Prediction.from_json)
        if found is None:
            self.observer.stage("rehearsal")
            found = predicted(run, data.public, self.config.study.seed)
            if found is not None:
                kept.keep(found.to_json())
        return found

    @property
    def _planned(self) -> PlannedTable:
        return PlannedTable(self.run, self.config.data.target, self.n_rows, None)

    @property
    def shown(self) -> PlannedTable:
        """What is shown of it, with what to expect."""
        return replace(self._planned, prediction=self.prediction)

    def numbers(self) -> dict[str, Any]:
        """Shares, weights, and what to expect."""
        return plan_numbers(self.shown)

    def blocks(self) -> list[Block | Banner]:
        """The same, for people."""
        return plan_blocks(self.shown)

    def in_short(self) -> str:
        """What is measured."""
        return plan_in_short(self._planned)

    # ------------------------------------------------------------------- what is published

    @property
    def n_rows(self) -> int:
        """How many rows are published."""
        return self.config.of(SynthesisSection).rows or self.run.n_rows

    def publish(self, folder: StudyFolder, drawn: Drawn, notes: KeptNotes) -> PublishedResult:
        """Write the distribution, rows, what they are worth, the statement, the card and the page."""
        self.observer.stage("rows")
        self.made = Made.of(self, drawn)
        found = super().publish(folder, drawn, notes)
        return SynthesisResult(
            folder=found.folder,
            privacy=found.privacy,
            chosen=found.chosen,
            about=found.about,
            quality=self.made.quality,
            rows=self.n_rows,
            marginals=len(self.made.model.marginals),
            file=self.file,
            notes=self.run.notes(drawn),
        )

    @property
    def file(self) -> str:
        """Where the rows are: as text, unless they are very many."""
        return ROWS_AS_TEXT if self.n_rows <= MOST_AS_TEXT else ROWS_AS_PARQUET

    def write(self, folder: StudyFolder, drawn: Drawn) -> Mapping[str, Any]:
        """Write what is released."""
        made, release = self.made, folder.release
        folder.write_bytes(release / MODEL, model_bytes(made.model, self.config.data.target))
        rng = np.random.default_rng([self.config.study.seed, _SEED_OF_ROWS])
        rows = rows_in_parts(made.model, self.n_rows, rng)
        told = self.observer.advanced
        folder.write_made(release / self.file, lambda file: rows_into(file, self.file, rows, told))
        folder.write_bytes(release / SCHEMA, self.data.cells.plain_schema.toml().encode())
        folder.write_bytes(
            release / MARGINALS, marginals_table(made.model).to_csv(index=False).encode()
        )
        if made.quality is not None:
            folder.write_json(release / QUALITY, made.quality.to_dict())
        return {
            "rows": self.n_rows,
            "goal": self.run.stages.goal,
            "measured": [
                [made.model.cells.names[c] for c in one.columns] for one in made.model.marginals
            ],
        }

    def page(self, privacy: PrivacyStatement, drawn: Drawn) -> Page:
        """Say all that there is to say of it."""
        return synthesis_page(
            SynthesisReport(
                title=self.config.title(),
                privacy=privacy,
                planned=self._planned,
                drawn=drawn,
                model=self.made.model,
                quality=self.made.quality,
                file=self.file,
            )
        )


@dataclass(frozen=True, eq=False)
class Made:
    """What follows from all draws: the distribution, and what it is worth (None without test records)."""

    model: TableModel
    quality: SyntheticQuality | None

    @classmethod
    def of(cls, planned: SynthesisPlan, drawn: Drawn) -> Made:
        """Fit and judge: by at most so many rows as a release usually has."""
        model = planned.run.model(drawn)
        rng = np.random.default_rng([planned.config.study.seed, _SEED_OF_TRIAL])
        rows = model.sample(min(planned.n_rows, _MOST_JUDGED), rng)
        return cls(model, judged(planned.config, planned.data, rows))


def judged(config: StudyConfig, data: SynthesisData, rows: Any) -> SyntheticQuality | None:
    """Judge rows by the test records; None without any.

    Raises InputError, which names the file, if these cannot be used.
    """
    if data.test is None:
        return None
    cells = data.cells
    test, public = (
        None if one is None else cells.frame(cells.schema.arrays(one, list(cells.names)))
        for one in (data.test, data.public)
    )
    try:
        return evaluate_synthetic(
            rows,
            test,
            schema=cells.plain_schema,
            target=config.data.target,
            public=public,
            seed=config.study.seed,
        )
    except InputError as error:
        text = re.sub(r"^public\b", "data.public", str(error).replace("held_out", "data.test"))
        raise InputError(text) from None


def _refuse_unusable_tests(study: Study[SynthesisData]) -> None:
    """Refuse test and public records that nothing can be judged by: before anybody pays."""
    data = study.records
    if data.test is None or study.is_begun:
        return
    rng = np.random.default_rng(0)
    sizes = data.cells.sizes
    codes = np.stack([rng.integers(0, size, _FEW) for size in sizes], axis=1)
    for place, one in enumerate(data.cells.columns):  # each value occurs
        codes[: one.n_values, place] = np.arange(one.n_values)[:_FEW]
    judged(study.config, data, data.cells.frame(data.cells.arrays(codes, rng)))
