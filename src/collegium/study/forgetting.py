"""Somebody leaves: the ledger is told, the records go, and what can be learnt again without them is.

The person's teachers, and no others, are trained again. Steps that were taken, and answers that were drawn,
were released under a guarantee, and stay; a study that has not ended goes on without the records. First it is
written into the vault what is going to happen, so that the same command goes on after a crash at any point;
each step may be done twice. What was released stays, and so does what it cost.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from collegium.data.datasets.remove_owner import without_person
from collegium.data.datasets.table_files import is_csv
from collegium.durable import PARTIAL, clear_leftovers, digest_of, sync, write_durably
from collegium.errors import InputError
from collegium.json_files import read_json
from collegium.ledger.allowance import Spending
from collegium.names import as_names
from collegium.pate.voting.pricing import WorstCasePricing
from collegium.runs.observer import Observer
from collegium.study.config import StudyConfig
from collegium.study.folder import StudyFolder
from collegium.study.manifest_check import ACCOUNTS, KEPT_CODES, MANIFEST, refuse_links
from collegium.study.methods.votes.settings import Teachers
from collegium.study.on_ledger import StudyLedger, ledger_of
from collegium.study.runner import PlannedJob, plan_study, reservation_of
from collegium.study.stored_teachers import TEACHERS, teacher_path
from collegium.study.withdrawals import Leavers, Leaving, tag_of

_INPUTS = {"inputs": dict}
_EFFECTS = "sensitive-teachers-by-class.csv"
_BY_HAND = (
    "`collegium ledger forget` tells the ledger, so that nothing more is released about this person; take "
    "the records out of the files yourself"
)
_ENOUGH = 0.1
"""Share of a budget that must be left for another release."""


@dataclass(frozen=True)
class Forgotten:
    """What was done about one study.

    ``folder``: the study's.
    ``private``: the file of its private records.
    ``records``: how many of the person's were removed from it; 0: the person had left before.
    ``teachers``: how many teachers had learnt from them.
    ``voted_again``: whether these were trained again, and voted; otherwise the next run trains them.
    ``has_asked``: whether anything may have been released that they had a part in.
    ``state``: of the study: "not begun", "begun" or "finished".
    ``method``: how it is learnt.
    ``ledger``: which was told; None: there is none.
    ``is_known``: whether that knew the person.
    ``may_release``: whether the ledger leaves the others enough for another release; None: there is none.
    """

    folder: Path
    private: Path
    records: int
    teachers: int = 0
    voted_again: bool = False
    has_asked: bool = False
    state: str = "not begun"
    method: str = ""
    ledger: str | None = None
    is_known: bool = False
    may_release: bool | None = None


def forget(
    name: str,
    studies: Sequence[tuple[StudyConfig, Path]],
    *,
    remove_records: bool = False,
    observer: Observer | None = None,
) -> list[Forgotten]:
    """Forget somebody in studies, or go on with that where it was interrupted.

    ``name``: as the owners' column spells it.
    ``studies``: settings and folder of each; those that were made of one file of records belong together.
    ``remove_records``: whether the file of private records may be written anew without this person's.
    ``observer``: is told how training gets on.
    Raises InputError, and nothing is changed, if that cannot be done with one of these studies.
    """
    observer = Observer() if observer is None else observer
    each = [_Forgetting(name, config, out, observer) for config, out in studies]
    with contextlib.ExitStack() as stack:
        for one in each:
            if one.folder.is_begun():
                stack.enter_context(one.folder.locked())
        planned = [one.planned(remove_records) for one in each]
        for one, leavers in zip(each, planned, strict=True):
            one.begin(leavers)
        return [one.go_on() for one in each]


class _Forgetting:
    """What is done about one study, whose lock is held."""

    def __init__(self, name: str, config: StudyConfig, out: Path, observer: Observer) -> None:
        self.name, self.config, self.observer = name, config, observer
        self.folder = StudyFolder(out)
        _require_possible(config)
        if self.folder.is_begun():
            refuse_links(self.folder.vault)
            config.engine().check()
        private = config.path("data.private")
        assert private is not None and config.data.owner is not None
        self.private, self.column = private.resolve(), config.data.owner
        self._gone = 0  # records that go, and nothing beside the file changes

    @property
    def _state(self) -> str:
        if not self.folder.is_begun():
            return "not begun"
        return "finished" if self.folder.is_finished() else "begun"

    def planned(self, remove_records: bool) -> Leavers | None:
        """Find out what is to be done, and change nothing; None: nothing but the file, or what was begun."""
        ledger = ledger_of(self.config, self.folder, self.name)
        if not self.folder.is_begun():
            account = None if ledger is None else ledger.account_of(self.name)
            has_left = account is not None and account.standing.has_left
            self._gone = self._to_remove(remove_records, has_left)[1]
            return None
        kept, who = Leavers.of(self.folder), tag_of(self.folder, self.name)
        now = None if kept is None else kept.now
        if now is not None and now.who != who:
            raise InputError(
                f"in {self.folder.path}, forgetting somebody else was cut off: end that first, by the same "
                "command as before; nothing was changed"
            )
        if now is not None and digest_of(self.private) != now.before:
            return None
        if now is None and kept is not None and who in kept.people:  # perhaps the records came back
            content, self._gone = self._to_remove(remove_records, had_left=True)
            if self._gone:
                self._require_own_file(hashlib.sha256(content).hexdigest())
            return None
        content, n_gone = self._to_remove(remove_records)
        return None if now is not None else self._found(kept, who, content, n_gone)

    def _to_remove(self, remove_records: bool, had_left: bool = False) -> tuple[bytes, int]:
        content, n_gone = self._without()
        if not n_gone and not had_left:
            raise InputError(
                f"{self.private} has no record of anybody of this name in column {self.column!r} (names are "
                "taken to the letter): nothing was changed; `collegium ledger forget` tells a ledger alone"
            )
        if n_gone and not remove_records:
            raise InputError(
                f"{self.private} holds {n_gone:,} record(s) of this person, which have to go: with "
                "--remove-records the same command writes the file anew without them; nothing was changed"
            )
        return content, n_gone

    def _without(self) -> tuple[bytes, int]:
        return without_person(self.private, self.column, self.name, self.config.data.separator)

    def _require_own_file(self, digest: str | None) -> None:
        known = read_json(self.folder.path / MANIFEST, _INPUTS)["inputs"].get("private")
        if known != digest:
            raise InputError(
                f"{self.private} is not the file that {self.folder.path} was made of: put that back, with "
                "this person's records, so that what learnt from them can be found; nothing was changed"
            )

    def _found(self, kept: Leavers | None, who: str, content: bytes, n_gone: int) -> Leavers:
        """Look the person up in the study's own plan, while the records are still there."""
        before = digest_of(self.private)
        assert before is not None
        self._require_own_file(before)
        now = Leaving(
            who=who,
            teachers=[],
            position=None,
            owners=0,
            before=before,
            after=hashlib.sha256(content).hexdigest(),
            records=n_gone,
        )
        if self._only_shown(kept):
            return replace(kept or Leavers({}), now=now)
        planned = plan_study(self.config, self.folder, self.observer, is_claimed=True)
        ledger, plan = planned.ledger, planned.plan
        if ledger is not None and ledger.was_just_entered():
            # With everybody who is in that entry.
            ledger.reserve(self.folder, *reservation_of(planned, self.folder))
        self._require_others(planned)
        if ledger is not None:
            owners = ledger.spending.people.n_owners
            now = replace(now, position=self._position(ledger), owners=owners)
        kept = kept or Leavers.planned_with(plan.granted)
        return replace(kept, now=replace(now, teachers=plan.learnt_by(self.name)))

    def _only_shown(self, kept: Leavers | None) -> bool:
        """Tell whether a study is finished, and cannot be planned again without one of its people."""
        if kept is not None and not kept.is_planned_again:
            return True
        reason = _why_not_planned_again(self.config, self.folder)
        if reason and self._state != "finished":
            raise InputError(
                f"{self.folder.path} has not ended, and cannot go on without one person: {reason}; let it "
                "end (`collegium run`), and give this command again; nothing was changed"
            )
        return bool(reason)

    def _position(self, ledger: StudyLedger[Spending]) -> int | None:
        found = np.flatnonzero(as_names(ledger.spending.people.owners) == self.name)
        return int(found[0]) if found.size else None

    def _require_others(self, planned: PlannedJob) -> None:
        """Refuse what would leave another study than this one."""
        if (as_names(planned.plan.granted.owners) == self.name).all():
            raise InputError(
                f"nobody else has records in {self.folder.path}: delete it, and the records; nothing was "
                "changed"
            )
        if planned.plan.has_class_of_its_own(self.name):
            raise InputError(
                f"the list of classes of {self.folder.path} was read off the private labels, and only "
                f"this person has one of them, so another study would be left: {_BY_HAND}; nothing was "
                "changed"
            )

    def begin(self, leavers: Leavers | None) -> None:
        """Write down what is going to happen."""
        if leavers is not None:
            if self.folder.journal is None:
                self.folder.take_up()
            leavers.keep(self.folder)

    def go_on(self) -> Forgotten:
        """Do what was written down, from wherever it was cut off."""
        kept = Leavers.of(self.folder) if self.folder.is_begun() else None
        ledger = ledger_of(self.config, self.folder, self.name)
        is_known = ledger is not None and ledger.forget(self.name)
        told = Forgotten(
            self.folder.path,
            self.private,
            records=0,
            state=self._state,
            method=self.config.kind.name,
            ledger=None if ledger is None else str(ledger),
            is_known=is_known,
            may_release=None
            if ledger is None
            else any(not one.has_left and one.share_left >= _ENOUGH for one in ledger.standings()),
        )
        if kept is None or kept.now is None:
            if self._gone:
                self._write(self._without()[0])
            self._remove_copies()
            return replace(told, records=self._gone)
        self.folder.take_up()
        self._remove_records(kept.now)
        self._remove_copies()
        self._keep_same_study(kept.now)
        if not kept.now.taken_out:
            self._remove_what_was_learnt(kept)
            kept = replace(kept, now=replace(kept.now, taken_out=True))
            kept.keep(self.folder)
        assert kept.now is not None and self.folder.journal is not None
        voted_again = False
        if kept.is_planned_again:
            planned = plan_study(self.config, self.folder, self.observer, is_claimed=True)
            voted_again = planned.plan.learn_again(self.folder, kept.now.teachers)
        journal = self.folder.journal
        told = replace(
            told,
            records=kept.now.records,
            teachers=len(kept.now.teachers),
            voted_again=voted_again,
            has_asked=journal.asked or journal.steps > 0,
        )
        people = dict.fromkeys((*kept.people, kept.now.who))
        replace(kept, people=tuple(people), now=None).keep(self.folder)
        return told

    def _remove_records(self, now: Leaving) -> None:
        found = digest_of(self.private)
        if found == now.before:
            content, _ = self._without()
            if hashlib.sha256(content).hexdigest() != now.after:
                raise InputError(
                    f"{self.private} would be written otherwise than when this began (another version of "
                    "pyarrow?): go on with the former one"
                )
            self._write(content)
        elif found != now.after:
            raise InputError(
                f"{self.private} was changed by something else while somebody was being forgotten: put it "
                "back as it was, and give the same command again"
            )

    def _write(self, content: bytes) -> None:
        mode = self.private.stat().st_mode
        write_durably(self.private, content, private=True)
        self.private.chmod(mode & 0o7777)

    def _remove_copies(self) -> None:
        """Remove what killed writers left of the private file: everybody was in it."""
        remaining = clear_leftovers(self.private)
        if remaining:
            raise InputError(
                f"{remaining[0]} is a copy of {self.private.name} that another process is writing, or left "
                "and that cannot be removed: wait for it or delete it, and give the same command again"
            )

    def _keep_same_study(self, now: Leaving) -> None:
        """Let manifest and kept allowances be those of the records that are left."""
        folder = self.folder
        path = folder.path / MANIFEST
        manifest = read_json(path, _INPUTS)
        if manifest["inputs"]["private"] != now.after:
            manifest["inputs"]["private"] = now.after
            folder.write_json(path, manifest)
        codes = folder.path / KEPT_CODES
        if now.position is not None and codes.exists():
            kept = np.load(codes, allow_pickle=False)
            if len(kept) == now.owners:
                folder.write_array(codes, np.delete(kept, now.position))

    def _remove_what_was_learnt(self, kept: Leavers) -> None:
        folder = self.folder
        assert kept.now is not None
        if (folder.vault / _EFFECTS).exists():
            folder.remove(folder.vault / _EFFECTS)
        # Of a study that is only shown from now on, nobody needs a teacher.
        teachers = kept.now.teachers if kept.is_planned_again else None
        for path in list(_files_of(folder, teachers)):
            if path.exists():
                path.unlink()
                sync(path.parent)


def _require_possible(config: StudyConfig) -> None:
    """Refuse studies in whose files one person's records cannot be told from the others'."""
    data, private = config.data, config.path("data.private")
    reasons: list[tuple[object, str]] = [
        (
            config.place("data.private") is not None,
            "they lie in a database or workbook, which is not written into: take them out there",
        ),
        (
            private is None or data.public_records is not None,
            "its records are split off a larger data set by who is in that",
        ),
        (data.owner is None, "its records do not say whose they are (data.owner)"),
        (
            data.private_labels is not None or config.privacy.file is not None,
            "labels or budgets of its records lie in a file of their own, tied to them by position alone",
        ),
        (
            private is not None and not (is_csv(private) or private.suffix.lower() == ".parquet"),
            "its records are in no CSV or Parquet table",
        ),
        (private is not None and private.is_dir(), "its records are a folder of files"),
    ]
    for is_so, reason in reasons:
        if is_so:
            raise InputError(
                f"nobody can be taken out of these records alone: {reason}; {_BY_HAND}, and keep the study's "
                "folder, whose release stays; nothing was changed"
            )


def _why_not_planned_again(config: StudyConfig, folder: StudyFolder) -> str:
    """Say why a study that has begun cannot be planned without all of its people; empty where it can."""
    is_filtered = (folder.path / ACCOUNTS).exists() and not folder.voting_has_ended()
    is_by_votes = Teachers.section not in config.unused
    reasons: list[tuple[object, str]] = [
        (config.privacy.shares is not None, "its levels are dealt by lot to all owners together"),
        (config.run.streaming, "its records are streamed"),
        (
            not config.kind.learns and not is_csv(config.folder / str(config["data.private"])),
            "its rows are read in parts",
        ),
        (config.kind.cannot_forget, config.kind.cannot_forget),
        (
            config.parties.collective is not None,
            "the other parties plan with all whom this one has counted, and what it has posted stands",
        ),
        (is_filtered, "everybody has an account of their own in it"),
        (
            is_by_votes and config.of(Teachers).assignment != "hash",
            "in a balanced assignment, everybody's teachers depend on everybody",
        ),
        (
            config.privacy.guarantee != WorstCasePricing.guarantee,
            "a data-dependent account is computed from all votes, again and again",
        ),
    ]
    return next((reason for is_so, reason in reasons if is_so), "")


def _files_of(folder: StudyFolder, teachers: list[int] | None) -> Iterator[Path]:
    """Name what holds anything of a person's records: theirs may be among those that are made again.

    ``teachers``: that learnt from them; None: all of them go.
    """
    if teachers is not None:
        yield from (teacher_path(folder.vault, number) for number in teachers)
    for place in ("features", "checkpoints", *([TEACHERS] if teachers is None else [])):
        yield from (path for path in (folder.vault / place).rglob("*") if path.is_file())
    yield from folder.vault.rglob(f"*{PARTIAL}")  # of writers that were killed
