"""Labelling with votes that were cast elsewhere: any framework's teachers, and only the private release."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.neighbours import OWNER, TEACHER, Arrangement
from collegium.budgets import Budgets
from collegium.data.datasets import sha256_of
from collegium.distillation.supervised import RefittedStudent
from collegium.errors import InputError, PrivacyWarning
from collegium.ledger.admission import IN_A_STUDY, Face
from collegium.ledger.allowance import Allowance
from collegium.ledger.ledger import Balance, Ledger
from collegium.ledger.places import find_place
from collegium.noise.sources import noise_from
from collegium.pate.classifier import default_model
from collegium.pate.ledgered import NO_PROMISE, LedgeredRun
from collegium.pate.pipeline import PlannedVoting, Released
from collegium.pate.queries.order import random_order
from collegium.pate.settings import Account
from collegium.pate.voting.price_choice import price_on
from collegium.personalisation.plan import Plan
from collegium.planner.share import Share
from collegium.report.plans import plan_sentence, plan_table
from collegium.report.sections import Banner, Block, Paragraph, Points
from collegium.runs.observer import Observer
from collegium.study.config import StudyConfig
from collegium.study.folder import HISTOGRAMS_FILE, StudyFolder, versions
from collegium.study.identity import Identity, SourceFiles
from collegium.study.methods.votes.checkpoint import FolderMemory
from collegium.study.methods.votes.settings import (
    Aggregation,
    PersonalisationSection,
    aggregator_of,
    queries_of,
)
from collegium.study.methods.votes.stop_reasons import stopped
from collegium.study.methods.votes.terms import JobTerms, kept_price
from collegium.study.methods.votes.vote_budgets import electorate_of, refuse_fewer_people
from collegium.study.methods.votes.vote_files import (
    TeacherBudgets,
    read_budgets,
    read_features,
    read_people,
    read_votes,
)
from collegium.study.methods.votes.voting import VotingDraws, VotingPlan
from collegium.study.notes import KeptNotes
from collegium.study.on_ledger import PeopleOnLedger
from collegium.study.published import counts_of, write_release
from collegium.study.result import PublishedResult
from collegium.study.runner import Job
from collegium.study.spend import to_spend

_FACE = Face("--ledger", f"{IN_A_STUDY.new_people} in the file of --settings")


@dataclass(frozen=True)
class LabelFiles:
    """The files of a label job.

    ``votes``, ``budgets``: of the teachers.
    ``features``: of the queries, for an aggregator that consults a student.
    ``people``: whose records the teachers learnt from.
    """

    votes: Path
    budgets: Path
    features: Path | None = None
    people: Path | None = None

    def given(self) -> dict[str, Path]:
        """Name those that are given."""
        named = {"vote": self.votes, "budget": self.budgets}
        more = {"feature": self.features, "people": self.people}
        return named | {name: path for name, path in more.items() if path is not None}

    def digests(self) -> dict[str, str]:
        """Fingerprint them; one file for two things would publish what is private."""
        digests = {name: sha256_of(path) for name, path in self.given().items()}
        if len(set(digests.values())) < len(digests):
            raise InputError(
                f"one file was given twice among {', '.join(digests)}: votes are private, features public; "
                "give each its own file"
            )
        return digests


def label_job(
    files: LabelFiles,
    config: StudyConfig,
    votes_are: str = "auto",
    classes: int | None = None,
    ledger: str | None = None,
) -> Job:
    """Read votes and budgets.

    ``config``: how votes are counted and accounted, from
        :func:`~collegium.study.methods.votes.label_settings.label_config`.
    ``votes_are``, ``classes``: what the votes are, where the file leaves that open.
    ``ledger``: where the ledger is; default: as the settings say, or beside the people.
    """
    sources = SourceFiles(files.given().values())
    votes = _Votes(files, config, votes_are, classes)
    place = find_place(
        ledger or config.ledger.url,
        config.path("ledger.key"),
        files.people or files.votes,
        config.folder if ledger is None else Path(),
    )
    new = config.ledger.allow_new_people
    on_ledger = PeopleOnLedger(place, votes.why_no_ledger(), votes.people, new, face=_FACE)
    identity = Identity(votes.settings, files.digests())
    return Job("labels", sources, identity, on_ledger, LedgeredRun, votes.allowance, votes.plan)


class _Votes:
    """Votes and budgets, as they were read."""

    def __init__(
        self, files: LabelFiles, config: StudyConfig, votes_are: str, classes: int | None
    ) -> None:
        self._config, self._account, self._queries = config, config.account(), queries_of(config)
        self.seed, self.noise_seed = config.study.seed, config.of(Aggregation).seed_of_noise
        self._granted: Budgets | None = None
        self._ballots = read_budgets(files.budgets)
        if files.people is not None:
            self._granted, self._ballots = read_people(files.people, self._ballots)
        self.table = read_votes(files.votes, votes_are, classes, self._ballots)
        if self._granted is not None:
            refuse_fewer_people(self._ballots, self.table)
        unit = OWNER if self._ballots.knows_owners else TEACHER
        self._arrangement = Arrangement(unit=unit, assignment="elsewhere")
        self._planned = self._plan_with(self._ballots, self._account, self._arrangement)
        if large := self._planned.plan.large_deltas(self._arrangement.unit):
            warnings.warn(large, PrivacyWarning, stacklevel=2)
        self.features: NDArray[Any] | None = None
        if self._planned.aggregator.consults_student:
            self.features = read_features(files.features, self.table)
        elif files.features is not None:
            raise InputError(
                f"--features means nothing to aggregator {self._planned.aggregator.name!r}, which asks no "
                "student: leave it out"
            )
        are = "predictions" if self.table.has_teachers else "counts"
        votes = {"are": are, "classes": self.table.n_classes}
        self.settings = {**config.public(), "votes": votes}

    def people(self) -> Budgets:
        """Who granted what, by name."""
        assert self._granted is not None
        return self._granted

    def why_no_ledger(self) -> str:
        """Say why none can remember this; empty if one can."""
        if self.noise_seed is not None:
            return "its noise is seeded"
        if self._account.guarantee != "worst-case":
            return NO_PROMISE
        if self._granted is None:
            return "nobody is named whose records the teachers learnt from; --people does"
        return ""

    def allowance(
        self,
        begun_in: StudyFolder | None,
        left: Balance,
        promised: Ledger | None,
        observer: Observer,
    ) -> Allowance:
        """Take some of what people have left, if its answers add up to what a ledger promises."""
        price_on(left.lifetime.promise, self._planned.aggregator, self._account.price)
        everything = Allowance.by_level(self.people(), left)
        return to_spend(self._config, everything, Share.of_answers, observer)

    def plan(
        self, begun_in: StudyFolder | None, spending: LedgeredRun | None, promised: Ledger | None
    ) -> LabelPlan:
        """Weigh the teachers, with what a ledger left."""
        ballots, account, arrangement = self._ballots, self._account, self._arrangement
        if spending is not None:
            allowance = spending.allowance
            arrangement = replace(arrangement, promise=allowance.lifetime.promise)
            ballots = replace(ballots, groups=dict(allowance.groups))
        voting = self._plan_with(ballots, account, arrangement).at(kept_price(begun_in))
        return LabelPlan(self, voting)

    def _plan_with(
        self, ballots: TeacherBudgets, account: Account, arrangement: Arrangement
    ) -> PlannedVoting:
        personalisation = self._config.of(PersonalisationSection).build()
        plan, electorate = electorate_of(ballots, self.table, personalisation, self.seed)
        aggregator, queries = aggregator_of(self._config).resolved(plan.n_nominal), self._queries
        limits = (queries.max_labels, queries.max_queries, self.table.n_queries)
        most = min(limit for limit in limits if limit is not None)
        how = (aggregator, account, queries, arrangement)
        return PlannedVoting.of(plan, electorate, *how, most=most, seed=self.seed)


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelResult(PublishedResult):
    """What a finished label job says.

    ``released``: labels, and what they cost.
    ``plan``: weights, duplicates, frequencies.
    ``price_in_words``: what an answer is charged, and why, where that was chosen.
    """

    released: Released
    plan: Plan
    price_in_words: str

    def numbers(self) -> dict[str, Any]:
        """Count queries and labels, and say where they are."""
        release, histograms = self.folder.release, self.released.histograms
        return {
            **counts_of(self.released.labels),
            "labels": str(release / "labels.csv"),
            **({} if histograms is None else {"histograms": str(release / HISTOGRAMS_FILE)}),
        }

    def blocks(self) -> list[Block | Banner]:
        """Say who has how much influence, what is promised, and how many labels there are."""
        labels, histograms = self.released.labels, self.released.histograms
        said = [
            self.price_in_words,
            f"{self.in_short()}; {stopped(labels.stop_reason, self.privacy.unit)}.",
        ]
        if histograms is not None:
            said.append(
                f"Noisy counts of {int(histograms.answered.sum()):,} answered queries, and all noisy checks: "
                f"{HISTOGRAMS_FILE}."
            )
        return [
            plan_table(self.plan, self.privacy.unit),
            Paragraph(plan_sentence(self.plan)),
            *super().blocks(),
            Points(self.privacy.sentences()),
            *(Paragraph(line) for line in said if line),
        ]

    def in_short(self) -> str:
        """Count labels."""
        labels = self.released.labels
        return f"{len(labels.labels):,} labels released after {labels.n_asked:,} queries"


class LabelPlan(VotingPlan):
    """A label job, planned: who has how much influence, and what is asked."""

    def __init__(self, votes: _Votes, voting: PlannedVoting) -> None:
        self._votes, self._voting, self._observer = votes, voting, Observer()
        super().__init__(JobTerms.of(voting, votes.table.n_queries, votes.noise_seed is None))

    def note_in(self, notes: KeptNotes) -> None:
        """Tell these how it gets on."""
        self._observer = notes

    def keep_in(self, folder: StudyFolder) -> None:
        """Keep nothing yet: charges and answers are kept as queries are asked."""

    @contextlib.contextmanager
    def prepared(self, folder: StudyFolder) -> Iterator[VotingDraws]:
        """Do nothing: the votes are there."""
        yield VotingDraws(folder, lambda: self._release(FolderMemory(folder)))

    def _release(self, memory: FolderMemory) -> Released:
        votes, student, observer = self._votes, None, self._observer
        if votes.features is not None:
            n_classes = votes.table.n_classes
            student = RefittedStudent(default_model(), votes.features, n_classes, observer.note)
        order = random_order(votes.seed, votes.table.n_queries)
        observer.stage("labels", self.agreed.n_queries)
        noise = noise_from(votes.noise_seed)
        return self._voting.release(votes.table, order, noise, student, memory, observer)

    def publish(self, folder: StudyFolder, drawn: Released, notes: KeptNotes) -> LabelResult:
        """Write labels and the statement."""
        table, plan, price = self._votes.table, self._voting.plan, self._voting.price
        about = {"config": self._votes.settings, "versions": versions()}
        classes, rows = np.arange(table.n_classes), np.arange(table.n_queries)
        write_release(folder, drawn, classes, rows, about)
        return LabelResult(
            folder=folder,
            privacy=drawn.privacy,
            released=drawn,
            plan=plan,
            price_in_words=price.why,
        )
