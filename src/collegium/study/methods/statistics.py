"""Studies that ask: their plan, their durable questions, and what they publish."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import pandas as pd

from collegium.accounting.neighbours import Arrangement, Neighbours
from collegium.accounting.statement import PrivacyStatement
from collegium.budgets import Budget, Budgets
from collegium.data.schema_arrays import take_frame_rows
from collegium.ledger.allowance import Allowance
from collegium.ledger.ledger import Balance, Ledger
from collegium.ledger.limits import Cost
from collegium.plain_text import csv_for_people
from collegium.runs.observer import Observer
from collegium.statistics.ledgered import StatisticsSpending, relation_on
from collegium.statistics.query import Query
from collegium.statistics.settings import QuerySettings
from collegium.study.answers_checkpoint import FolderAnswers, KeptSession
from collegium.study.config import StudyConfig
from collegium.study.folder import StudyFolder, versions
from collegium.study.manifest_check import KEPT_ALLOWANCE
from collegium.study.methods.protocol import AgreedTerms, Draws, Method, Plan, Study
from collegium.study.notes import KeptNotes
from collegium.study.on_ledger import place_of
from collegium.study.pages import write_pages
from collegium.study.result import PublishedResult, as_chosen, shown_settings
from collegium.study.sections import STATISTICS
from collegium.study.statistics_data import QueryData, read_asked
from collegium.study.statistics_page import StatisticsReport, statistics_page
from collegium.study.statistics_terms import StatisticsTerms, uses_by_group
from collegium.study.terms import TERMS, read_terms
from collegium.study.votes_checkpoint import StudyInterrupted, interruptible


class StatisticsMethod(Method[QueryData, StatisticsSpending]):
    """Nothing is learnt: questions about a private table are answered with noise."""

    name = STATISTICS
    spending = StatisticsSpending

    def check(self, config: StudyConfig) -> None:
        """Refuse nothing: questions are read with the schema."""

    def read(
        self, config: StudyConfig, folder: StudyFolder | None, observer: Observer
    ) -> tuple[StudyConfig, QueryData]:
        """Read the schema, the questions, and the columns that they need."""
        begun_on_one = folder is not None and (folder.path / KEPT_ALLOWANCE).exists()
        in_memory = (place_of(config) is not None or begun_on_one) and config.data.owner is not None
        return config, read_asked(config, observer, may_stream=not in_memory)

    def allowance(self, study: Study[QueryData], left: Balance, share: float) -> Allowance:
        """Take what people have left."""
        return Allowance.what_is_left(study.records.people, left, 1, share)

    def plan(
        self,
        study: Study[QueryData],
        spending: StatisticsSpending | None,
        promised: Ledger | None,
    ) -> StatisticsPlan:
        """Open a session."""
        config, data = study.config, study.records
        rows, settings = data.rows, _settings(config, data)
        relation = None
        if isinstance(rows.budgets, Budgets):  # of rows in files, nobody is named
            relation = _relation(study.begun_in, promised, config)
        if relation is not None:
            blanked = relation is Neighbours.ADD_OR_REMOVE
            settings["neighbours"] = "zero-out" if blanked else "replace-one"
        if spending is None:
            session = KeptSession(
                rows.frame, rows.budgets, on_ledger=False, **rows.columns, **settings
            )
        else:
            if settings["noise"] == "auto":
                settings["noise"] = "gaussian"  # it leaves the most for what follows
            frame = take_frame_rows(rows.frame, spending.records)
            session = KeptSession(frame, spending.budgets, on_ledger=True, **settings)
        return StatisticsPlan(config, data, session, study.observer)


def _settings(config: StudyConfig, data: QueryData) -> dict[str, Any]:
    settings = {one.name: getattr(config.statistics, one.name) for one in fields(QuerySettings)}
    return settings | {"schema": data.schema, "questions": max(1, len(data.charged))}


def _relation(
    folder: StudyFolder | None, promised: Ledger | None, config: StudyConfig
) -> Neighbours | None:
    """Say which neighbours answers must be charged about: as begun, or as the ledger promises."""
    if folder is not None and (folder.vault / TERMS).exists():
        return read_terms(folder.path)[0].neighbours
    return None if promised is None else relation_on(promised, config.statistics.neighbours)


class Answered(NamedTuple):
    """All answers, in the order of the questions; and questions that were paid for, with answers lost."""

    answers: tuple[dict[str, Any], ...]
    lost: tuple[str, ...]


@dataclass(eq=False)
class StatisticsPlan(Plan[StatisticsSpending, Answered]):
    """A study that asks, planned. ``observer``: is told how it gets on."""

    config: StudyConfig
    data: QueryData
    session: KeptSession
    observer: Observer

    @property
    def arrangement(self) -> Arrangement:
        """As the session has it."""
        return self.session.arrangement

    def note_in(self, notes: KeptNotes) -> None:
        """Tell these how it gets on."""
        self.observer = notes

    def keep_in(self, folder: StudyFolder) -> None:
        """Keep nothing yet: charges and answers are kept as questions are asked."""

    @contextlib.contextmanager
    def prepared(self, folder: StudyFolder) -> Iterator[StatisticsDraws]:
        """Look at what was asked before."""
        yield StatisticsDraws(self, FolderAnswers(folder))

    def at_most(self, spending: StatisticsSpending, folder: StudyFolder) -> list[Cost]:
        """What all answers may cost."""
        return spending.at_most(self.session.at_most(), self.session.noise == "laplace")

    def spent(self, drawn: Answered) -> tuple[Any, ...]:
        """The account, and what was charged, question by question."""
        return self.session.account, self.session.charged

    def terms(self) -> AgreedTerms:
        """Questions, and what each of them costs."""
        return AgreedTerms(_terms(self).to_json(), "other prices", "nothing was asked")

    def publish(self, folder: StudyFolder, drawn: Answered, notes: KeptNotes) -> StatisticsResult:
        """Write answers, the statement, the card and the page."""
        chosen = as_chosen(self.data.rows.budgets)
        result = StatisticsResult(
            folder, self.session.privacy_, drawn.answers, drawn.lost, chosen=chosen
        )
        _publish(result, self)
        return result


class StatisticsDraws(Draws[Answered]):
    """Nothing is asked that was not asked before."""

    def __init__(self, planned: StatisticsPlan, memory: FolderAnswers) -> None:
        self._planned, self._memory = planned, memory

    @property
    def is_all_charged(self) -> bool:
        """Whether all questions are."""
        return self._memory.charged == len(self._planned.data.charged)

    def end(self) -> None:
        """Keep that."""
        self._memory.end()

    def draw(self) -> Answered:
        """Ask what was not asked yet."""
        data, session = self._planned.data, self._planned.session
        memory, observer = self._memory, self._planned.observer
        found: dict[Query, dict[str, Any]] = {}
        lost: list[str] = []
        if self.is_all_charged:
            observer.skipped("answers")
        else:
            observer.stage("answers", len(data.charged))
        with memory.asking(), interruptible() as should_stop:
            for number, one in enumerate(data.charged, 1):
                if number <= memory.charged:
                    session.charge_again(one, data.how(one))
                    kept = memory.find(number)
                    if kept is None:
                        lost.append(str(one))
                    else:
                        found[one] = kept
                    continue
                if should_stop():
                    raise StudyInterrupted
                answer = session.ask_durably(one, data.how(one), memory.charge)
                found[one] = memory.keep(number, answer)
                observer.advanced(number)
        memory.end()
        for one in data.asked:
            if one not in found and str(one) not in lost:
                answer = session.ask_durably(one, data.how(one), memory.charge)
                found[one] = json.loads(json.dumps({**answer, "number": 0}))
        answers = tuple(found[one] for one in data.asked if one in found)
        return Answered(answers, tuple(lost))


def _terms(planned: StatisticsPlan) -> StatisticsTerms:
    session, data = planned.session, planned.data
    privacy = session.privacy_
    groups = {row.group: row.budget for row in privacy.groups}
    return StatisticsTerms(
        groups=groups,
        people={row.group: row.owners for row in privacy.groups},
        arrangement=session.arrangement,
        private_noise=privacy.noise_is_private,
        noise=session.noise,
        weights=session.weights,
        spend=planned.config.statistics.spend,
        questions=tuple(str(one) for one in data.charged),
        uses=tuple(
            uses_by_group(session.events_of(one, data.how(one)), groups) for one in data.charged
        ),
    )


@dataclass(frozen=True, eq=False)
class StatisticsResult(PublishedResult):
    """What a finished study that asks says. Nothing in it is sensitive.

    ``answers``: as in ``answers.json``, in the order of the questions.
    ``lost``: questions that were paid for, and whose answers a crash took.
    ``ledger``: which one remembers it, if any.
    ``chosen``: budgets as people chose them, by level.
    """

    folder: StudyFolder
    privacy: PrivacyStatement
    answers: tuple[dict[str, Any], ...]
    lost: tuple[str, ...]
    ledger: str | None = None
    chosen: Mapping[str, Budget] = field(default_factory=dict)


def _publish(result: StatisticsResult, planned: StatisticsPlan) -> None:
    """Write the release: answers, the statement, the card and the page."""
    folder, config = result.folder, planned.config
    answers = [{k: v for k, v in one.items() if k != "number"} for one in result.answers]
    about = {
        "schema": planned.data.schema.digest,
        "config": config.published(),
        "versions": versions(),
    }
    folder.write_json(
        folder.release / "answers.json", {"answers": answers, "lost": list(result.lost)}
    )
    folder.write_bytes(
        folder.release / "answers.csv", csv_for_people(as_table(answers), index=False)
    )
    told = {
        **result.privacy.to_dict(),
        "questions": len(planned.data.asked),
        "questions_lost": len(result.lost),
        **about,
    }
    folder.write_json(folder.release / "privacy.json", told)
    report = StatisticsReport(
        title=config.title(),
        privacy=result.privacy,
        answers=answers,
        lost=result.lost,
        noise=planned.session.noise,
        settings=shown_settings(config),
        versions=versions(),
        chosen=result.chosen,
    )
    write_pages(folder, statistics_page(report))


def as_table(answers: list[dict[str, Any]]) -> pd.DataFrame:
    """One row for each cell of each answer, with its keys in one column."""
    numbers = ("value", "standard_error", "lower", "upper")
    rows = [
        {
            "question": one["question"],
            "keys": "; ".join(f"{name} = {cell[name]}" for name in one["keys"]),
            **{name: cell[name] for name in numbers},
            "confidence": one["confidence"],
        }
        for one in answers
        for cell in one["cells"]
    ]
    return pd.DataFrame(rows, columns=["question", "keys", *numbers, "confidence"])
