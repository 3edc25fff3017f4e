"""Running a study, whatever its method: every step that is the same for all of them, once and in one order.

Read, ask the ledger, plan, rehearse; claim the folder; keep what the ledger allowed and the terms; make
everything ready; reserve; charge and draw; settle; publish. Nothing is drawn before all that may refuse a
study has been asked, and nothing is published before it is settled.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from collegium.accounting.neighbours import Arrangement
from collegium.ledger.allowance import Entry, Spending
from collegium.ledger.limits import Cost
from collegium.runs.observer import Observer
from collegium.study.config import StudyConfig
from collegium.study.folder import StudyFolder
from collegium.study.identity import SourceFiles, claim, holds_same_study
from collegium.study.methods import method_of
from collegium.study.methods.protocol import Plan, Study, StudyRecords
from collegium.study.notes import KeptNotes
from collegium.study.on_ledger import StudyLedger, begin_study
from collegium.study.student import tell_if_unwritable
from collegium.study.terms import keep_or_match
from collegium.study.withdrawals import refuse_half_forgotten


@dataclass(frozen=True, eq=False)
class PlannedStudy:
    """A study, planned.

    ``config``: with what follows from public records.
    ``records``: all of them, also of people whom a ledger lets take no part.
    ``plan``: its method's own.
    ``ledger``: what remembers it, if anything does.
    ``files``: that it was read from.
    """

    config: StudyConfig
    records: StudyRecords
    plan: Plan[Any, Any]
    ledger: StudyLedger[Spending] | None
    files: SourceFiles


def plan_study(
    config: StudyConfig,
    folder: StudyFolder | None = None,
    observer: Observer | None = None,
    *,
    is_claimed: bool = False,
    on_ledger: bool = True,
) -> PlannedStudy:
    """Read the records and make the plan; nothing is trained, written or spent.

    ``config``: from :func:`~collegium.study.config.read_config`.
    ``folder``: where the run will be kept; default: nowhere.
    ``observer``: is told how it gets on.
    ``is_claimed``: whether to claim the folder, whose lock is held, for this study.
    ``on_ledger``: whether to ask what a ledger has left; without, people grant all that their levels mean.
    Raises InputError if anything cannot be used, or a file is changed while it is read.
    """
    method, observer = method_of(config), Observer() if observer is None else observer
    files = SourceFiles(config)
    method.check(config)
    config, records = method.read(config, folder, observer)
    if is_claimed:
        assert folder is not None
        claim(folder, config, records)
    # A folder that holds another study is not written into.
    is_begun = folder is not None and holds_same_study(folder, config, records)
    study = Study(config, records, folder, is_begun, observer)
    ledger: StudyLedger[Spending] | None = None
    if on_ledger:
        ledger = begin_study(
            config,
            records,
            lambda left, share: method.allowance(study, left, share),
            study.begun_in,
            observer,
            method.spending,
        )
    promised = None if ledger is None else ledger.place.opened()
    plan = method.plan(study, None if ledger is None else ledger.spending, promised)
    files.require_unchanged()
    return PlannedStudy(config, records, plan, ledger, files)


def run_study(config: StudyConfig, out: Path, observer: Observer | None = None) -> Any:
    """Run a study, or go on with it where it was interrupted.

    ``config``: from :func:`~collegium.study.config.read_config`.
    ``observer``: is told how it gets on.
    Returns: what its method published.
    Raises InputError if anything that was given cannot be used: before the first draw, so nothing
        is spent.
    """
    config.engine().check()
    folder = StudyFolder(Path(out))
    observer = Observer() if observer is None else observer
    refuse_half_forgotten(folder)
    study = plan_study(config, folder, observer)
    plan, ledger = study.plan, study.ledger
    notes = KeptNotes(folder, observer)
    plan.note_in(notes)
    rehearsed = plan.rehearse()
    if rehearsed is not None and not folder.voting_has_ended():
        tell_if_unwritable(rehearsed.model, rehearsed.records, observer, rehearsed.without)
    folder.open()
    with folder.locked():
        claim(folder, study.config, study.records)
        refuse_half_forgotten(folder)
        plan.keep_in(folder)
        if ledger is not None:
            if ledger.spending.allowance.whole and ledger.left is not None:
                observer.note(ledger.in_words)
            ledger.keep(folder)
        with plan.prepared(folder) as draws:
            if not draws.is_all_charged:
                study.files.require_unchanged()
            terms = plan.terms()
            if terms is not None:
                keep_or_match(folder, *terms)
            if draws.is_all_charged:
                draws.end()
            with _reserved(study, folder) as entry:
                drawn = draws.draw()
                entry.settle(*plan.spent(drawn))
        result: Any = plan.publish(folder, drawn, notes)
    return result if ledger is None else replace(result, ledger=str(ledger.place))


@contextlib.contextmanager
def _reserved(study: PlannedStudy, folder: StudyFolder) -> Iterator[Entry]:
    """Set aside, in its ledger if it has one, what a study may cost."""
    if study.ledger is None:
        yield Entry(lambda *_: None)
        return
    with study.ledger.reserved(folder, *reservation_of(study, folder)) as entry:
        yield entry


def reservation_of(study: PlannedStudy, folder: StudyFolder) -> tuple[str, list[Cost], Arrangement]:
    """What a ledger calls a study, what that may cost at most, and what was done with people and records."""
    assert study.ledger is not None
    costs = study.plan.at_most(study.ledger.spending, folder)
    return study.config.title(), costs, study.plan.arrangement
