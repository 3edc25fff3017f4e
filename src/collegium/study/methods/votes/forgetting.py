"""Somebody leaves: the ledger is told, the records go, and only this person's teachers are trained again.

First of all it is written into the vault what is going to happen, so that the same command goes on after a
crash at any point; each step may be done twice. What was released stays, and so does what it cost.
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
from collegium.pate.pipeline import PateRun
from collegium.pate.voting.pricing import WorstCasePricing
from collegium.runs.observer import Observer
from collegium.study.config import StudyConfig
from collegium.study.folder import StudyFolder
from collegium.study.manifest_check import (
    KEPT_ALLOWANCE,
    KEPT_CODES,
    LEARNT,
    MANIFEST,
    VOTES,
    refuse_links,
)
from collegium.study.methods.votes.checkpoint import FolderMemory
from collegium.study.methods.votes.method import VotesPlan
from collegium.study.methods.votes.settings import Teachers
from collegium.study.on_ledger import StudyLedger, ledger_of
from collegium.study.runner import plan_study, reservation_of
from collegium.study.stored_teachers import teacher_path
from collegium.study.study_data import StudyData
from collegium.study.withdrawals import Leavers, Leaving, tag_of

_INPUTS = {"inputs": dict}
_BEGUN = (*LEARNT, Path(KEPT_ALLOWANCE).name)
_EFFECTS = "sensitive-teachers-by-class.csv"
_BY_HAND = (
    "`collegium ledger forget` tells the ledger; take the records out of the files yourself, delete the "
    "study's folder, and begin another study"
)


@dataclass(frozen=True)
class Forgotten:
    """What was done about one study.

    ``folder``: the study's.
    ``private``: the file of its private records.
    ``records``: how many of the person's were removed from it; 0: the person had left before.
    ``teachers``: how many teachers had learnt from them.
    ``voted_again``: whether these were trained again, and voted; otherwise the next run trains them.
    ``has_asked``: whether anything may have been released that they had a part in.
    ``ledger``: which was told; None: there is none.
    ``is_known``: whether that knew the person.
    """

    folder: Path
    private: Path
    records: int
    teachers: int = 0
    voted_again: bool = False
    has_asked: bool = False
    ledger: str | None = None
    is_known: bool = False


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
        if not (out / MANIFEST).exists():
            raise InputError(f"{out} holds no study that was begun: nothing was changed")
        refuse_links(self.folder.vault)
        config.engine().check()
        private = config.path("data.private")
        assert private is not None and config.data.owner is not None
        self.private, self.column = private.resolve(), config.data.owner

    def planned(self, remove_records: bool) -> Leavers | None:
        """Find out what is to be done, and change nothing; None: nothing, or what was begun before."""
        ledger_of(self.config, self.folder)
        kept, who = Leavers.of(self.folder), tag_of(self.folder, self.name)
        now = None if kept is None else kept.now
        if now is not None and now.who != who:
            raise InputError(
                f"in {self.folder.path}, forgetting somebody else was cut off: end that first, by the same "
                "command as before; nothing was changed"
            )
        if now is not None and digest_of(self.private) != now.before:
            return None
        if now is None and kept is not None and who in kept.people:
            return None
        content, n_gone = self._without()
        if not n_gone:
            raise InputError(
                f"{self.private} has no record of anybody of this name in column {self.column!r} (names are "
                "taken to the letter): nothing was changed; `collegium ledger forget` tells a ledger alone"
            )
        if not remove_records:
            raise InputError(
                f"{self.private} holds {n_gone:,} record(s) of this person, which have to go: with "
                "--remove-records the same command writes the file anew without them; nothing was changed"
            )
        return None if now is not None else self._found(who, content, n_gone)

    def _without(self) -> tuple[bytes, int]:
        return without_person(self.private, self.column, self.name, self.config.data.separator)

    def _found(self, who: str, content: bytes, n_gone: int) -> Leavers:
        """Look the person up in the study's own plan, while the records are still there."""
        config, folder = self.config, self.folder
        before = digest_of(self.private)
        if read_json(folder.path / MANIFEST, _INPUTS)["inputs"].get("private") != before:
            raise InputError(
                f"{self.private} is not the file that {folder.path} was made of: put that back, with this "
                "person's records, so that who learnt from them can be found; nothing was changed"
            )
        if not any((folder.vault / one).exists() for one in _BEGUN):
            raise InputError(
                f"nothing was learnt in {folder.path} yet: delete it, and take the records out of "
                f"{self.private}; nothing was changed"
            )
        planned = plan_study(config, folder, self.observer, is_claimed=True)
        assert isinstance(planned.plan, VotesPlan) and before is not None, "checked by the caller"
        run, ledger, data = planned.plan.run, planned.ledger, planned.plan.data
        if ledger is not None and ledger.was_just_entered():
            # With everybody who is in that entry.
            ledger.reserve(folder, *reservation_of(planned, folder))
        present = as_names(data.budgets.owners) == self.name
        self._require_others(data, present)
        assignment = run.plan.assign(data.budgets, run.recipe.key, run.recipe.assignment)
        teachers = np.unique(assignment.owner_teachers[present])
        kept = Leavers.of(folder) or Leavers.planned_with(run.granted)
        now = Leaving(
            who=who,
            teachers=teachers[teachers >= 0].tolist(),
            position=None if ledger is None else self._position(ledger),
            owners=0 if ledger is None else ledger.spending.people.n_owners,
            before=before,
            after=hashlib.sha256(content).hexdigest(),
            records=n_gone,
        )
        return replace(kept, now=now)

    def _position(self, ledger: StudyLedger[Spending]) -> int | None:
        found = np.flatnonzero(as_names(ledger.spending.people.owners) == self.name)
        return int(found[0]) if found.size else None

    def _require_others(
        self, data: StudyData, present: np.ndarray[tuple[int], np.dtype[np.bool_]]
    ) -> None:
        """Refuse what would leave another study than this one."""
        if present.all():
            raise InputError(
                f"nobody else has records in {self.folder.path}: delete it, and the records; nothing was "
                "changed"
            )
        if data.arrangement.private_classes:
            others = ~present[data.budgets.record_owner]
            if len(np.unique(data.codes[others])) < len(data.classes):
                raise InputError(
                    f"the list of classes of {self.folder.path} was read off the private labels, and only "
                    f"this person has one of them, so another study would be left: {_BY_HAND}; nothing was "
                    "changed"
                )

    def begin(self, leavers: Leavers | None) -> None:
        """Write down what is going to happen."""
        if leavers is not None:
            leavers.keep(self.folder)

    def go_on(self) -> Forgotten:
        """Do what was written down, from wherever it was cut off."""
        kept = Leavers.of(self.folder)
        assert kept is not None
        ledger = ledger_of(self.config, self.folder)
        is_known = ledger is not None and ledger.forget(self.name)
        told = Forgotten(
            self.folder.path,
            self.private,
            records=0,
            ledger=None if ledger is None else str(ledger),
            is_known=is_known,
        )
        if kept.now is None:
            self._remove_copies()
            return told
        self.folder.take_up()
        self._remove_records(kept.now)
        self._remove_copies()
        self._keep_same_study(kept.now)
        if not kept.now.taken_out:
            self._remove_what_was_learnt(kept.now.teachers)
            kept = replace(kept, now=replace(kept.now, taken_out=True))
            kept.keep(self.folder)
        assert kept.now is not None
        planned = plan_study(self.config, self.folder, self.observer, is_claimed=True)
        assert isinstance(planned.plan, VotesPlan)
        assert self.folder.journal is not None
        told = replace(
            told,
            records=kept.now.records,
            teachers=len(kept.now.teachers),
            voted_again=self._vote_again(planned.plan.run, kept.now.teachers),
            has_asked=self.folder.journal.asked,
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
            mode = self.private.stat().st_mode
            write_durably(self.private, content, private=True)
            self.private.chmod(mode & 0o7777)
        elif found != now.after:
            raise InputError(
                f"{self.private} was changed by something else while somebody was being forgotten: put it "
                "back as it was, and give the same command again"
            )

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

    def _remove_what_was_learnt(self, teachers: list[int]) -> None:
        folder = self.folder
        if (folder.vault / _EFFECTS).exists():
            folder.remove(folder.vault / _EFFECTS)
        for path in list(_files_of(folder, teachers)):
            if path.exists():
                path.unlink()
                sync(path.parent)

    def _vote_again(self, run: PateRun, teachers: list[int]) -> bool:
        """Train teachers without the person, and put their votes in place of the former ones."""
        memory = FolderMemory(self.folder)
        run.memory = memory
        plan, path = run.plan, self.folder.path / VOTES
        known = memory.votes(run.X_asked.shape[0], plan.n_teachers, len(run.records.classes))
        if known is None or not teachers:
            return False
        columns = run.votes_of(teachers)
        votes = np.load(path, allow_pickle=False)
        votes[:, teachers] = columns
        self.folder.replace_votes(votes)
        return True


def _require_possible(config: StudyConfig) -> None:
    """Refuse studies in which one person cannot be told from the others, or not without all of them."""
    data, private = config.data, config.path("data.private")
    reasons: list[tuple[object, str]] = [
        (
            private is None or data.public_records is not None,
            "its records are split off a larger data set by who is in that",
        ),
        (data.owner is None, "its records do not say whose they are (data.owner)"),
        (
            data.private_labels is not None or config.privacy.file is not None,
            "labels or budgets of its records lie in a file of their own, tied to them by position alone",
        ),
        (config.privacy.shares is not None, "its levels are dealt by lot to all owners together"),
        (config.run.streaming, "its records are streamed"),
        (config.kind.cannot_forget, config.kind.cannot_forget),
        (
            private is not None and not (is_csv(private) or private.suffix.lower() == ".parquet"),
            "its records are in no CSV or Parquet table",
        ),
        (private is not None and private.is_dir(), "its records are a folder of files"),
        (
            config.of(Teachers).assignment != "hash",
            "in a balanced assignment, everybody's teachers depend on everybody",
        ),
        (
            config.privacy.guarantee != WorstCasePricing.guarantee,
            "a data-dependent account is computed from all votes, again and again",
        ),
    ]
    for is_so, reason in reasons:
        if is_so:
            raise InputError(
                f"nobody can be taken out of this study alone: {reason}; {_BY_HAND}; nothing was changed"
            )


def _files_of(folder: StudyFolder, teachers: list[int]) -> Iterator[Path]:
    """Name what holds anything of a person's records: theirs may be among those that are made again."""
    yield from (teacher_path(folder.vault, number) for number in teachers)
    for place in ("features", "checkpoints"):
        yield from (path for path in (folder.vault / place).rglob("*") if path.is_file())
    yield from folder.vault.rglob(f"*{PARTIAL}")  # of writers that were killed
