"""Studies that ask: their plan, their durable questions, and what they publish."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

import pandas as pd

from collegium.accounting.neighbours import Arrangement, Neighbours
from collegium.accounting.promises import Promise
from collegium.budgets import Budgets, Policy
from collegium.data.date_format import day_of
from collegium.data.engines.sources import in_its_words
from collegium.data.schema_arrays import take_frame_rows
from collegium.errors import InputError
from collegium.ledger.allowance import Allowance
from collegium.ledger.event_spending import relation_on
from collegium.ledger.ledger import Ledger
from collegium.ledger.limits import Cost
from collegium.personalisation.bins import few_budgets
from collegium.plain_text import csv_for_people
from collegium.planner.share import Share
from collegium.report.audit import Audit
from collegium.report.sections import Banner, Block, Listing
from collegium.runs.observer import Observer
from collegium.statistics.answer_words import DATE
from collegium.statistics.ledgered import StatisticsSpending
from collegium.statistics.planned import Plan as AnswerPlan
from collegium.statistics.query import Query
from collegium.statistics.settings import QuerySettings
from collegium.study.config import StudyConfig
from collegium.study.event_terms import uses_by_group
from collegium.study.folder import StudyFolder, versions
from collegium.study.kept_draws import Drawn, NumberedDraws
from collegium.study.manifest_check import KEPT_ALLOWANCE
from collegium.study.methods.protocol import AgreedTerms, AuditSettings, Method, Plan, Study
from collegium.study.methods.statistics.audit import audit
from collegium.study.methods.statistics.data import QueryData, read_asked
from collegium.study.methods.statistics.page import StatisticsReport, statistics_page
from collegium.study.methods.statistics.result import StatisticsResult
from collegium.study.methods.statistics.session import KeptSession
from collegium.study.methods.statistics.settings import StatisticsSection
from collegium.study.methods.statistics.terms import StatisticsTerms
from collegium.study.notes import KeptNotes
from collegium.study.on_ledger import place_of
from collegium.study.pages import write_pages, write_privacy
from collegium.study.parties import ALONE, Alone
from collegium.study.result import as_chosen, shown_settings
from collegium.study.terms import relation_as_begun
from collegium.study.withdrawals import budgets_as_begun
from collegium.weighted_sums.settings import relation_of


class StatisticsMethod(Method[QueryData, StatisticsSpending]):
    """Nothing is learnt: questions about a private table are answered with noise."""

    spending = StatisticsSpending

    def read(
        self, config: StudyConfig, folder: StudyFolder | None, observer: Observer
    ) -> tuple[StudyConfig, QueryData]:
        """Read the schema, the questions, and the columns that they need."""
        begun_on_one = folder is not None and (folder.path / KEPT_ALLOWANCE).exists()
        in_memory = (place_of(config) is not None or begun_on_one) and config.data.owner is not None
        between_parties = config.parties.collective is not None
        return config, read_asked(config, observer, may_stream=not (in_memory or between_parties))

    def least_share(self, study: Study[QueryData], everything: Allowance) -> Share | None:
        """Half, unless the settings say how much all answers take."""
        if "spend" in study.config.given.get(StatisticsSection.section, {}):
            return None
        return Share.half("half, since statistics.spend does not say how much")

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
        frame, granted, promise = rows.frame, rows.budgets, Promise.EITHER
        if spending is not None:
            frame, granted = take_frame_rows(rows.frame, spending.records), spending.budgets
            promise = spending.allowance.lifetime.promise
            spending.used = config.of(StatisticsSection).spend
        everybody = granted
        if isinstance(granted, Budgets):
            granted = budgets_as_begun(study.begun_in, granted)
            everybody = _everybody(study, granted, relation, promise)
        columns = rows.columns if spending is None else {}
        with in_its_words(config.place("data.private")):
            session = KeptSession(
                frame,
                everybody,
                kept_in=promise,
                spending=spending,
                parties=study.parties,
                **columns,
                **settings,
            )
        return StatisticsPlan(config, data, session, granted, study.observer, study.parties)

    def audit(
        self, plan: Callable[[bool], StatisticsPlan], settings: AuditSettings, observer: Observer
    ) -> Audit:
        """Ask the same session about canaries: with the noise and the share of budgets of the study."""
        made = plan(True)
        return audit(made.session, max(1, len(made.data.charged)), settings, observer)


def _everybody(
    study: Study[QueryData], granted: Budgets, relation: Neighbours | None, promise: Promise
) -> Budgets:
    """Add the people of other parties; different budgets stay apart where a ledger knows them."""
    if not study.parties.takes_up:
        return granted
    for one in study.records.charged:
        if one.kind == "quantile":
            raise InputError(
                f"statistics.questions asks {one}, which is chosen, and no sum that parties could add: ask "
                "for a histogram"
            )
    said = relation or relation_of(study.config.of(StatisticsSection).neighbours)
    if promise is Promise.EITHER:
        granted = few_budgets(granted)
    return study.parties.everybody(granted, {"neighbours": said.name})


def _settings(config: StudyConfig, data: QueryData) -> dict[str, Any]:
    settings = {
        one.name: getattr(config.of(StatisticsSection), one.name) for one in fields(QuerySettings)
    }
    if config.parties.collective is not None:
        if settings["noise"] == "laplace":
            raise InputError(
                "statistics.noise = 'laplace' has no shares that parties could add: leave it out"
            )
        settings["noise"] = "gaussian"
    return settings | {"schema": data.schema, "questions": max(1, len(data.charged))}


def _relation(
    folder: StudyFolder | None, promised: Ledger | None, config: StudyConfig
) -> Neighbours | None:
    """Say which neighbours answers must be charged about: as begun, or as the ledger promises."""
    begun = relation_as_begun(folder)
    if begun is not None or promised is None:
        return begun
    return relation_on(promised, config.of(StatisticsSection).neighbours)


@dataclass(eq=False)
class StatisticsPlan(Plan[StatisticsSpending, Drawn]):
    """A study that asks, planned.

    ``by_whom``: what those grant who take part; the policy, where they are in files.
    ``observer``: is told how it gets on.
    """

    config: StudyConfig
    data: QueryData
    session: KeptSession
    by_whom: Budgets | Policy
    observer: Observer
    parties: Alone = ALONE

    @property
    def granted(self) -> Budgets:
        """Of a table in memory."""
        assert isinstance(self.by_whom, Budgets), "nobody is asked about in files"
        return self.by_whom

    @property
    def arrangement(self) -> Arrangement:
        """As the session has it."""
        return self.session.arrangement

    def note_in(self, notes: KeptNotes) -> None:
        """Tell these how it gets on."""
        self.observer = notes

    @contextlib.contextmanager
    def prepared(self, folder: StudyFolder) -> Iterator[StatisticsDraws]:
        """Look at what was asked before; afterwards, the table is let go."""
        with self.session:
            yield StatisticsDraws(self, folder)

    def at_most(self, spending: StatisticsSpending, folder: StudyFolder) -> list[Cost]:
        """What all answers may cost."""
        return spending.at_most(self.session.at_most())

    def numbers(self) -> dict[str, Any]:
        """What each question would cost, and how far off its answer would be."""
        return {
            "noise": self.session.noise,
            "plans": [asdict(one) for one in self._plans()],
            "public": self._public(),
        }

    def blocks(self) -> list[Block | Banner]:
        """The same, question by question; those about public things last."""
        free = [f"{question}: public, so it is free" for question in self._public()]
        return [Listing("\n".join([*map(str, self._plans()), *free]))]

    def in_short(self) -> str:
        """How many questions are not free."""
        return f"{len(self.data.charged):,} questions to pay for, {self.session.noise} noise"

    def _plans(self) -> list[AnswerPlan]:
        return [self.session.plan(one, **self.data.how(one)) for one in self.data.charged]

    def _public(self) -> list[str]:
        return [str(one) for one in self.data.asked if one not in self.data.charged]

    def spent(self, drawn: Drawn) -> tuple[Any, ...]:
        """The account, and what was charged, question by question."""
        return self.session.account, self.session.charged

    def terms(self) -> AgreedTerms:
        """Questions, and what each of them costs."""
        return AgreedTerms(_terms(self).to_json(), "other prices", "nothing was asked")

    def publish(self, folder: StudyFolder, drawn: Drawn, notes: KeptNotes) -> StatisticsResult:
        """Write answers, the statement, the card and the page."""
        numbers = {one: number for number, one in enumerate(self.data.charged, 1)}
        lost = tuple(str(one) for one, number in numbers.items() if number not in drawn)
        answers = [
            drawn.get(numbers[one]) if one in numbers else self._free(one)
            for one in self.data.asked
        ]
        result = StatisticsResult(
            folder=folder,
            privacy=self.session.privacy_,
            answers=tuple(one for one in answers if one is not None),
            lost=lost,
            chosen=as_chosen(self.data.rows.budgets),
        )
        _publish(result, self)
        return result

    def _free(self, asked: Query) -> dict[str, Any]:
        """Answer what is public already."""
        found = self.session.ask_durably(asked, self.data.how(asked), lambda: None)
        kept: dict[str, Any] = json.loads(json.dumps(found))
        return kept


class StatisticsDraws(NumberedDraws):
    """Nothing is asked that was not asked before."""

    def __init__(self, planned: StatisticsPlan, folder: StudyFolder) -> None:
        self._session, self._data = planned.session, planned.data
        count, observer = len(planned.data.charged), planned.observer
        super().__init__(folder, count, observer, "answers", planned.parties)

    def draw_one(self, number: int, charge: Callable[[], None]) -> dict[str, Any]:
        """Ask a question."""
        one = self._data.charged[number - 1]
        return self._session.ask_durably(one, self._data.how(one), charge)

    def charge_again(self, number: int) -> None:
        """Charge a question that was asked."""
        one = self._data.charged[number - 1]
        self._session.charge_again(one, self._data.how(one))


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
        spend=planned.config.of(StatisticsSection).spend,
        questions=tuple(str(one) for one in data.charged),
        uses=tuple(
            uses_by_group(session.events_of(one, data.how(one)), groups, "answer")
            for one in data.charged
        ),
    )


def _publish(result: StatisticsResult, planned: StatisticsPlan) -> None:
    """Write the release: answers, the statement, the card and the page."""
    folder, config = result.folder, planned.config
    answers = [{k: v for k, v in one.items() if k != "number"} for one in result.answers]
    folder.write_json(
        folder.release / "answers.json", {"answers": answers, "lost": list(result.lost)}
    )
    folder.write_bytes(
        folder.release / "answers.csv", csv_for_people(as_table(answers), index=False)
    )
    write_privacy(
        folder,
        result.privacy,
        config.published(),
        questions=len(planned.data.asked),
        questions_lost=len(result.lost),
        schema=planned.data.schema.digest,
    )
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
            **{name: _in_unit(cell[name], name, one) for name in numbers},
            "confidence": one["confidence"],
            "unit": one.get("unit", ""),
        }
        for one in answers
        for cell in one["cells"]
    ]
    return pd.DataFrame(rows, columns=["question", "keys", *numbers, "confidence", "unit"])


def _in_unit(number: float | None, name: str, answer: dict[str, Any]) -> float | str | None:
    """A number of an answer; of a date, the date, but for its error, which is in days."""
    is_date = answer.get("unit") == DATE and number is not None and name != "standard_error"
    return day_of(float(number or 0.0)) if is_date else number
