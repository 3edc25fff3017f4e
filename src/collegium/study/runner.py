"""Running a study, or labelling with votes from elsewhere: every step, once and in one order.

Read, ask the ledger, plan, rehearse; claim the folder; keep what the ledger allowed and the terms; make
everything ready; reserve; charge and draw; settle; publish. Nothing is drawn before all that may refuse a
release has been asked, and nothing is published before it is settled.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info, threadpool_limits

from collegium.budgets import Budgets
from collegium.ledger.allowance import Allowance, Spending
from collegium.ledger.ledger import Balance, Ledger
from collegium.runs.observer import Observer
from collegium.study.config import StudyConfig
from collegium.study.folder import StudyFolder
from collegium.study.identity import Identity, SourceFiles, identity_of
from collegium.study.kept_rehearsals import KeptRehearsals
from collegium.study.methods.protocol import Method, Plan, Study, method_of
from collegium.study.notes import KeptNotes
from collegium.study.on_ledger import PeopleOnLedger, Reserved, StudyLedger, begin, reserved
from collegium.study.parties import ALONE, Alone, parties_of
from collegium.study.spend import refuse_to_spend, to_spend
from collegium.study.student import tell_if_unwritable
from collegium.study.terms import keep_or_match
from collegium.study.withdrawals import refuse_half_forgotten

FINISHED = (
    "{} is finished, so nothing more is drawn or spent; for another release about the same people, copy the "
    "settings to a file of another name, and plan and run that"
)


@dataclass(frozen=True, eq=False)
class Job:
    """What is to be released, as it was read: a study, or votes from elsewhere.

    ``title``: what a ledger calls it, for people.
    ``files``: that it was read from.
    ``identity``: what makes it this release and no other.
    ``on_ledger``: which ledger is to remember it, and of whom.
    ``spending``: makes what it does about that ledger, given who granted what, and what of it it may use.
    ``allowance``: decides what it may use of what people have left in a ledger, None where that is yet to be
        made.
    ``plan``: plans with those who take part, given what a ledger lets it use, and the ledger; both may be
        None. This and ``allowance`` are told, first, which folder holds this very release, begun before.
    ``parties``: with whom it is run.
    """

    title: str
    files: SourceFiles
    identity: Identity
    on_ledger: PeopleOnLedger
    spending: Callable[[Budgets, Allowance], Spending]
    allowance: Callable[[StudyFolder | None, Balance, Ledger | None, Observer], Allowance]
    plan: Callable[[StudyFolder | None, Any, Ledger | None], Plan[Any, Any]]
    parties: Alone = ALONE


@dataclass(frozen=True, eq=False)
class PlannedJob:
    """A job, planned: ``plan`` is its method's own; ``ledger``, if any, remembers it."""

    job: Job
    plan: Plan[Any, Any]
    ledger: StudyLedger[Spending] | None


def plan_study(
    config: StudyConfig,
    folder: StudyFolder | None = None,
    observer: Observer | None = None,
    *,
    is_claimed: bool = False,
    on_ledger: bool = True,
    rehearsals: KeptRehearsals | None = None,
) -> PlannedJob:
    """Read the records and make the plan; nothing is trained, written or spent.

    ``config``: from :func:`~collegium.study.config.read_config`.
    ``folder``: where the run will be kept; default: nowhere.
    ``observer``: is told how it gets on.
    ``is_claimed``: whether to claim the folder, whose lock is held, for this study.
    ``on_ledger``: whether to ask what a ledger has left; without, people grant all that their levels mean.
    ``rehearsals``: keeps what is rehearsed; default: it is rehearsed each time.
    Raises InputError if anything cannot be used, or a file is changed while it is read.
    """
    observer = Observer() if observer is None else observer
    kept = KeptRehearsals() if rehearsals is None else rehearsals
    method, files = method_of(config), SourceFiles.of(config)
    method.check(config)
    config, records = method.read(config, folder, observer)
    parties = parties_of(config, records.fingerprints, folder)

    def study(begun_in: StudyFolder | None) -> Study[Any]:
        return Study(config, records, folder, begun_in is not None, observer, kept, parties)

    job = Job(
        config.title(),
        files,
        identity_of(config, {**records.fingerprints, **parties.fingerprints}),
        PeopleOnLedger.of_study(config, records),
        method.spending,
        lambda begun_in, left, promised, _: _to_spend(method, study(begun_in), left, promised),
        lambda begun_in, *how: method.plan(study(begun_in), *how),
        parties,
    )
    if is_claimed:
        assert folder is not None
        job.identity.claim(folder)
    planned = plan_job(job, folder, observer, on_ledger=on_ledger)
    if on_ledger and planned.ledger is None:
        refuse_to_spend(config)
    return planned


def _to_spend(
    method: Method[Any, Any], study: Study[Any], left: Balance, promised: Ledger | None
) -> Allowance:
    if promised is not None:
        method.check_on(study, promised)
    everything = method.allowance(study, left)
    return to_spend(
        study.config, everything, lambda: method.least_share(study, everything), study.observer
    )


def plan_job(
    job: Job, folder: StudyFolder | None, observer: Observer, *, on_ledger: bool = True
) -> PlannedJob:
    """Plan what was read; see :func:`plan_study`."""
    # A folder that holds another release is not written into.
    is_begun = folder is not None and job.identity.is_that_of(folder)
    begun_in = folder if is_begun else None
    ledger: StudyLedger[Spending] | None = None
    if on_ledger:
        ledger = begin(
            job.on_ledger,
            lambda left, promised: job.allowance(begun_in, left, promised, observer),
            begun_in,
            observer,
            job.spending,
        )
    on_it = (None, None) if ledger is None else (ledger.spending, ledger.promised)
    plan = job.plan(begun_in, *on_it)
    job.files.require_unchanged()
    return PlannedJob(job, plan, ledger)


def require_ready(config: StudyConfig, folder: StudyFolder) -> None:
    """Refuse, before anything is rehearsed, what can be told without records: workers and folder.

    Raises InputError.
    """
    config.engine().check()
    refuse_half_forgotten(folder)
    folder.require_usable()


def run_study(
    config: StudyConfig,
    out: Path,
    observer: Observer | None = None,
    rehearsals: KeptRehearsals | None = None,
) -> Any:
    """Run a study, or go on with it where it was interrupted.

    ``config``: from :func:`~collegium.study.config.read_config`.
    ``observer``: is told how it gets on.
    ``rehearsals``: keeps what is rehearsed; default: it is rehearsed each time.
    Returns: what its method published.
    Raises InputError if anything that was given cannot be used: before the first draw, so nothing
        is spent.
    """
    folder = StudyFolder(Path(out))
    observer = Observer() if observer is None else observer
    require_ready(config, folder)
    with threadpool_limits(_most_threads(config)):
        return _run(plan_study(config, folder, observer, rehearsals=rehearsals), folder, observer)


def _most_threads(config: StudyConfig) -> dict[str, int] | None:
    """Tell with how many threads each library may compute in this process: no more than there are jobs."""
    jobs = config.run.n_jobs
    if config.run.engine != "local" or jobs < 0:
        return None
    return {pool["prefix"]: min(pool["num_threads"], jobs) for pool in threadpool_info()}


def run_job(job: Job, out: Path, observer: Observer | None = None) -> Any:
    """Run what was read already, or go on with it; see :func:`run_study`."""
    folder, observer = StudyFolder(Path(out)), Observer() if observer is None else observer
    folder.require_usable()
    return _run(plan_job(job, folder, observer), folder, observer)


def _run(planned: PlannedJob, folder: StudyFolder, observer: Observer) -> Any:
    plan, ledger = planned.plan, planned.ledger
    notes = KeptNotes(folder, observer)
    plan.note_in(notes)
    rehearsed = plan.rehearse()
    if rehearsed is not None and not folder.voting_has_ended():
        tell_if_unwritable(rehearsed.model, rehearsed.records, observer, rehearsed.without)
    folder.open()
    with folder.locked():
        planned.job.identity.claim(folder)
        if folder.is_finished():
            observer.note(FINISHED.format(folder.path))
        refuse_half_forgotten(folder)
        with _with_all_parties(planned, folder, notes, observer) as planned:
            plan = planned.plan
            with plan.prepared(folder) as draws:
                if not draws.is_all_charged:
                    planned.job.files.require_unchanged()
                keep_or_match(folder, *plan.terms())
                if draws.is_all_charged:
                    draws.end()
                with reserved(ledger, folder, lambda: reservation_of(planned, folder)) as entry:
                    drawn = draws.draw()
                    entry.settle(*plan.spent(drawn))
            result: Any = plan.publish(folder, drawn, notes)
    return result if ledger is None else replace(result, ledger=str(ledger.place))


@contextlib.contextmanager
def _with_all_parties(
    planned: PlannedJob, folder: StudyFolder, notes: KeptNotes, observer: Observer
) -> Iterator[PlannedJob]:
    """Keep what must outlive the process; with other parties, plan with their people, too.

    What a ledger allowed is kept before they are told of it: it is what they all plan with.
    """
    ledger, parties = planned.ledger, planned.job.parties
    if not parties.takes_up:
        planned.plan.keep_in(folder)
    if ledger is not None:
        if ledger.left is not None:
            observer.note(ledger.in_words)
        ledger.keep(folder)
    with parties.joined(folder, notes) as has_joined:
        if has_joined:
            on_it = (None, None) if ledger is None else (ledger.spending, ledger.promised)
            planned = replace(planned, plan=planned.job.plan(folder, *on_it))
            planned.plan.note_in(notes)
            planned.plan.keep_in(folder)
        yield planned


def reservation_of(planned: PlannedJob, folder: StudyFolder) -> Reserved:
    """What a ledger calls it, what it may cost at most, and what was done with people and records."""
    assert planned.ledger is not None
    costs = planned.plan.at_most(planned.ledger.spending, folder)
    return Reserved(planned.job.title, costs, planned.plan.arrangement)
