"""Running a study that asks: its plan, its durable questions, and what it publishes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pandas as pd

from collegium.accounting.neighbours import Neighbours
from collegium.accounting.statement import PrivacyStatement
from collegium.budgets import Budget, Policy
from collegium.errors import InputError
from collegium.ledger.allowance import Allowance
from collegium.plain_text import csv_for_people
from collegium.runs.observer import Observer
from collegium.statistics.ledgered import StatisticsSpending, relation_on
from collegium.statistics.query import Query
from collegium.statistics.settings import QuerySettings
from collegium.study.answers_checkpoint import FolderAnswers, KeptSession
from collegium.study.config import StudyConfig
from collegium.study.folder import StudyFolder, versions
from collegium.study.identity import claim, holds_same_study
from collegium.study.manifest_check import KEPT_ALLOWANCE
from collegium.study.on_ledger import StudyLedger, begin_study, place_of, why_not
from collegium.study.pages import write_pages
from collegium.study.query_table import take_frame_rows
from collegium.study.result import PublishedResult, as_chosen, shown_settings
from collegium.study.statistics_data import QueryData, read_asked, state_of
from collegium.study.statistics_page import StatisticsReport, statistics_page
from collegium.study.statistics_terms import StatisticsTerms, read_statistics, uses_by_group
from collegium.study.terms import TERMS, keep_or_match
from collegium.study.votes_checkpoint import StudyInterrupted, interruptible


@dataclass(frozen=True, eq=False)
class PlannedStatistics:
    """A study that asks, planned. ``ledger``: what remembers it, if anything does."""

    config: StudyConfig
    data: QueryData
    session: KeptSession
    ledger: StudyLedger[StatisticsSpending] | None = None


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


def plan_statistics(
    config: StudyConfig, folder: StudyFolder | None = None, observer: Observer | None = None
) -> PlannedStatistics:
    """Read the table and open a session; nothing is asked, written or spent.

    ``config``: from :func:`~collegium.study.config.read_config`.
    ``folder``: where the run will be kept; default: nowhere.
    ``observer``: is told how it gets on.
    Raises InputError if anything cannot be used, or the table is changed meanwhile.
    """
    private = config.path("data.private")
    assert private is not None, "checked with the settings"
    before = state_of(private)
    planned = _planned(config, folder, Observer() if observer is None else observer)
    if state_of(private) != before:  # its digest would be of other rows than were read
        raise InputError(
            f"{private} was changed while it was read: nothing was asked; run it again"
        )
    return planned


def _planned(
    config: StudyConfig, folder: StudyFolder | None, observer: Observer
) -> PlannedStatistics:
    begun_on_one = folder is not None and (folder.path / KEPT_ALLOWANCE).exists()
    in_memory = (place_of(config) is not None or begun_on_one) and config.data.owner is not None
    data = read_asked(config, observer, may_stream=not in_memory)
    own = folder if folder is not None and holds_same_study(folder, config, data) else None
    settings = {one.name: getattr(config.statistics, one.name) for one in fields(QuerySettings)}
    settings |= {"schema": data.schema, "questions": max(1, len(data.charged))}
    if isinstance(data.rows.budgets, Policy):  # nobody is named, or no ledger wanted
        _tell_nobody_remembers(config, data, observer)
        return PlannedStatistics(
            config,
            data,
            KeptSession(
                data.rows.frame,
                data.rows.budgets,
                on_ledger=False,
                **data.rows.columns,
                **settings,
            ),
        )
    ledger = begin_study(
        config,
        data,
        lambda left, share: Allowance.what_is_left(data.people, left, 1, share),
        own,
        observer,
        StatisticsSpending,
    )
    frame, budgets = data.rows.frame, data.people
    relation = _relation(own, ledger, config)
    if relation is not None:
        blanked = relation is Neighbours.ADD_OR_REMOVE
        settings["neighbours"] = "zero-out" if blanked else "replace-one"
    if ledger is not None:
        frame, budgets = take_frame_rows(frame, ledger.spending.records), ledger.spending.budgets
        if settings["noise"] == "auto":
            settings["noise"] = "gaussian"  # it leaves the most for what follows
    session = KeptSession(frame, budgets, on_ledger=ledger is not None, **settings)
    return PlannedStatistics(config, data, session, ledger)


def _tell_nobody_remembers(config: StudyConfig, data: QueryData, observer: Observer) -> None:
    place = place_of(config)
    if place is not None:
        reason = why_not(config, data)
        if place.is_asked_for:
            raise InputError(f'no ledger can remember this: {reason}; or name none ("none")')
        observer.note(
            f"nobody remembers what is spent here, and the next one spends it anew: {reason}"
        )


def _relation(
    folder: StudyFolder | None,
    ledger: StudyLedger[StatisticsSpending] | None,
    config: StudyConfig,
) -> Neighbours | None:
    """Say which neighbours answers must be charged about: as begun, or as the ledger promises."""
    if folder is not None and (folder.vault / TERMS).exists():
        return read_statistics(folder.path)[0].neighbours
    known = None if ledger is None else ledger.place.opened()
    return None if known is None else relation_on(known, config.statistics.neighbours)


def run_statistics_study(
    config: StudyConfig, out: Path, observer: Observer | None = None
) -> StatisticsResult:
    """Run a study that asks, or go on with it where it was interrupted.

    ``config``: from :func:`~collegium.study.config.read_config`.
    ``observer``: is told how it gets on.
    Raises InputError if anything that was given cannot be used: before the first question, so nothing
        is spent.
    """
    folder = StudyFolder(Path(out))
    observer = Observer() if observer is None else observer
    planned = plan_statistics(config, folder, observer)
    data, session, ledger = planned.data, planned.session, planned.ledger
    terms = _terms(planned)
    folder.open()
    with folder.locked():
        claim(folder, config, data)
        if ledger is not None:
            if ledger.spending.allowance.whole and ledger.left is not None:
                observer.note(ledger.in_words)
            ledger.keep(folder)
        keep_or_match(folder, terms.to_json(), "other prices", "nothing was asked")
        memory = FolderAnswers(folder)
        if memory.charged == len(data.charged):
            memory.end()  # nothing more is drawn, whoever has left since
        if ledger is not None:
            costs = ledger.spending.at_most(session.at_most(), session.noise == "laplace")
            ledger.reserve(folder, config.title(), costs, session.arrangement)
        answers, lost = _ask(planned, memory, observer)
        if ledger is not None:
            ledger.settle(folder, session.account, session.charged)
        chosen = as_chosen(planned.data.rows.budgets)
        result = StatisticsResult(folder, session.privacy_, answers, lost, chosen=chosen)
        _publish(result, planned)
    return result if ledger is None else replace(result, ledger=str(ledger.place))


def _terms(planned: PlannedStatistics) -> StatisticsTerms:
    session, data = planned.session, planned.data
    privacy = session.privacy_
    groups = {row.group: row.budget for row in privacy.groups}
    return StatisticsTerms(
        groups,
        {row.group: row.owners for row in privacy.groups},
        session.arrangement.neighbours,
        session.arrangement.sentence,
        privacy.unit,
        privacy.noise_is_private,
        session.noise,
        session.weights,
        planned.config.statistics.spend,
        tuple(str(one) for one in data.charged),
        tuple(uses_by_group(session.events_of(one, data.how(one)), groups) for one in data.charged),
    )


def _ask(
    planned: PlannedStatistics, memory: FolderAnswers, observer: Observer
) -> tuple[tuple[dict[str, Any], ...], tuple[str, ...]]:
    """Ask what was not asked yet; returns all answers, and the questions whose answers are lost."""
    data, session = planned.data, planned.session
    found: dict[Query, dict[str, Any]] = {}
    lost: list[str] = []
    if memory.charged == len(data.charged):
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
    return tuple(found[one] for one in data.asked if one in found), tuple(lost)


def _publish(result: StatisticsResult, planned: PlannedStatistics) -> None:
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
