"""A study whose private records stay on disk: read as a stream, taught from shards."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.accounting.neighbours import OWNER, ROW, Arrangement
from collegium.budgets import Budgets
from collegium.data.column_types import NUMBER, TEXT, ColumnTypes, kind_of
from collegium.data.engines.places import Place
from collegium.data.overlap_checks import Likeness, refuse_same_people
from collegium.data.sharding import (
    CountedBudgets,
    Granted,
    ParquetSource,
    RecordSource,
    Roles,
    Scanned,
    ShardStore,
    build_shards,
    named_budgets,
    scan,
)
from collegium.data.sharding.shard_store import remove_shards
from collegium.data.tables import (
    as_records,
    classes_of_public,
    like_private,
    warn_of_unseen_classes,
)
from collegium.dpsgd.run import DPSGDRun, Summands
from collegium.dpsgd.streamed import Stream, summands_from_parquet
from collegium.errors import ConfigError, InputError, PrivacyWarning
from collegium.pate.teachers.shard_ensemble import ShardEnsemble
from collegium.pate.teaching import Teaching
from collegium.pate.voting.vote_blocks import ask_in_blocks, blocks_of
from collegium.pate.voting.vote_table import VoteTable
from collegium.personalisation.plan import Plan
from collegium.runs.records import Records
from collegium.study.config import StudyConfig
from collegium.study.study_data import (
    OVERLAP_KEY,
    MarkedMissing,
    StudyData,
    excluded,
    groups_of_test_records,
    known_owners,
    public_types,
    read_records,
    reading_of,
    the_list_of_classes,
    truth_about,
    warn_of_private_classes,
)
from collegium.workers.engines import Workers


@dataclass(frozen=True, eq=False)
class PrivateStream:
    """Private records that are on disk, or in a database, in place of a table of them. **Sensitive.**

    ``scanned``: what the first pass found.
    ``key``: public randomness of the assignment.
    ``fingerprint``: of all their bytes.
    ``types``: of their columns, as the public records show them.
    """

    source: RecordSource
    roles: Roles
    scanned: Scanned
    key: bytes
    fingerprint: str
    types: ColumnTypes

    def __len__(self) -> int:
        return self.scanned.budgets.n_records

    def shards(
        self,
        plan: Plan,
        folder: Path,
        n_jobs: int | None,
        progress: Callable[[int, int], None] | None = None,
    ) -> ShardStore:
        """Partition the records; see :func:`~collegium.data.sharding.build_shards`."""
        return build_shards(
            self.source,
            self.roles,
            self.scanned,
            plan,
            self.key,
            folder,
            fingerprint=self.fingerprint,
            n_jobs=n_jobs,
            progress=progress,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamedStudyData(StudyData):
    """Records of a study whose private ones are streamed.

    ``X`` is a :class:`PrivateStream`, ``budgets`` count owners without holding them, and ``codes`` are the
    numbers of the classes that occur.

    ``granted``: what their levels mean.
    ``n_jobs``: processes that read files on this machine.
    """

    X: PrivateStream
    granted: Granted
    n_jobs: int

    @functools.cached_property
    def people(self) -> Budgets:
        """Who granted what, by name: read again, since the records do not hold it. **Sensitive.**"""
        return named_budgets(self.X.source, self.X.roles, self.granted)

    def with_budgets(
        self, budgets: Budgets, rows: NDArray[np.intp], arrangement: Arrangement
    ) -> Self:
        """Take everybody, with other budgets of the same levels."""
        scanned = self.X.scanned
        assert tuple(budgets.group_names) == tuple(scanned.budgets.group_names)
        sizes = list(scanned.budgets.group_sizes().values())
        counted = CountedBudgets(
            budgets, sizes, scanned.budgets.n_records, named=scanned.budgets.named
        )
        return replace(
            self,
            X=replace(self.X, scanned=replace(scanned, budgets=counted)),
            budgets=counted,
            arrangement=arrangement,
        )


class StreamedTeaching(Teaching):
    """How teachers learn from shards, and vote block by block."""

    def votes(self, records: Records) -> VoteTable:
        """Partition private records, train teachers on shards and ask them block by block; all resumable.

        The shards are a second copy of the private records: they are removed once the votes are there.
        """
        assert isinstance(records, StreamedStudyData)
        recipe, memory, observer = self.recipe, self.memory, self.observer
        if memory.folder is None:
            raise InputError(
                "streamed records need a folder for their shards: run the study with one"
            )
        path, shards = memory.folder / "votes.npy", memory.folder / "shards"
        n_teachers, n_classes = self.plan.n_teachers, len(records.classes)
        size = (self.X_asked.shape[0], n_teachers, n_classes)
        known = memory.votes(*size)
        if known is not None:
            observer.skipped("teachers")
            remove_shards(shards)
            return known
        warn_of_unseen_classes(records.codes, records.classes)
        teachers = memory.teachers(n_teachers)
        missing = teachers.missing()
        with self.lend_workers() as workers:
            ensemble = teachers.ensemble(
                ShardEnsemble,
                recipe.teacher,
                recipe.seed,
                workers,
                progress=observer.advanced,
                n_classes=n_classes,
                class_shares=recipe.class_shares("teacher", records.classes),
            )
            if missing:
                observer.stage("shards")
                store = records.X.shards(self.plan, shards, records.n_jobs, observer.advanced)
                observer.stage("teachers", len(missing))
                ensemble.train_stored(
                    store, _Shown(records.X.types, self.view.transformer), missing
                )
            observer.stage("votes", n_teachers)
            votes = ask_in_blocks(
                path,
                lambda block: ensemble.ask(teachers.kept, block),
                blocks_of(self.X_asked, n_teachers),
                *size,
                vouch=partial(memory.vouch, path),
            )
        remove_shards(shards)
        return votes


def streamed_summands(
    data: StreamedStudyData, run: DPSGDRun, folder: Path, workers: Workers | None
) -> AbstractContextManager[Summands]:
    """Lend clipped sums over the records, for DP-SGD; see :func:`summands_from_parquet`."""
    view = replace(run.view, transformer=_Shown(data.X.types, run.view.transformer))
    stream = Stream(data.X.source, data.X.roles, data.X.scanned, view, data.X.fingerprint)
    return summands_from_parquet(
        stream,
        run,
        folder,
        workers=workers,
        n_jobs=data.n_jobs,
        progress=run.observer.advanced,
    )


def load_streamed_data(config: StudyConfig) -> StreamedStudyData:
    """Read public records into memory, and private ones once from end to end: checks and counts."""
    _refuse_what_needs_memory(config)
    lies = config.source("data.private")
    target, level = config.data.target, config.privacy.column
    assert lies is not None and target is not None and level is not None
    source, unread = _opened(lies, config)
    marker = config.data.missing
    roles = Roles(
        target=target,
        level=level,
        owner=config.data.owner,
        exclude=tuple(
            name for name in excluded(config, [*source.columns, *unread]) if name not in unread
        ),
        unwanted=None if marker is None else MarkedMissing(marker),
    )
    fingerprints = {"private": source.fingerprint()}
    like = source.empty_frame(roles.features(source))
    public = read_records(config, "public", fingerprints, is_private=False)
    X_public = like_private(as_records(public.X, "public"), like)
    types = public_types(config, X_public, public.characters)
    assert types is not None
    types.applied(like)  # refuses a column of another kind
    _tell_of_text(like, types)
    X_public = types.applied(X_public, "public")
    X_test = y_test = test = None
    n_tests = 0
    if config.data.test is not None:
        test = read_records(config, "test", fingerprints, is_private=False)
        n_tests = len(test.rows)
        test = test.with_known_class()
        X_test = types.applied(like_private(as_records(test.X, "test"), like, "test"), "test")
    key = str(config.study.seed).encode()
    granted = Granted(config.policy(), config.privacy.delta)
    classes: Any = config.data.classes
    if classes is None:
        classes = classes_of_public(public.y, None if test is None else test.y)
    given = {"public": X_public, "test": X_test}
    compared = {role: Likeness(X) for role, X in given.items() if X is not None}
    others = {"public": public} | ({} if test is None else {"test": test})
    people = {role: known_owners(records) for role, records in others.items()}
    if config.data.public_may_overlap:
        compared, people = {}, {}
    warn_of_private_classes(classes)
    with the_list_of_classes(config, classes):
        scanned = scan(
            source,
            roles,
            granted,
            key,
            classes,
            _jobs_here(config),
            compared=compared,
            people=people,
        )
    for role, likeness in compared.items():
        scanned.sensitive_equal[role].check(likeness.public, role, OVERLAP_KEY)
    for role, known in scanned.sensitive_known.items():
        refuse_same_people(known, len(others[role].rows), role, str(config.data.owner), OVERLAP_KEY)
    scanned.budgets.declare(config.privacy.sizes)
    if test is not None:
        y_test = truth_about(test.y, scanned.classes, "test")
    return StreamedStudyData(
        X=PrivateStream(source, roles, scanned, key, fingerprints["private"], types),
        codes=scanned.sensitive_seen,
        budgets=scanned.budgets,
        classes=scanned.classes,
        X_public=X_public,
        y_public=truth_about(public.y, scanned.classes, "public"),
        X_test=X_test,
        y_test=y_test,
        test_groups=None if test is None else groups_of_test_records(config, test.levels),
        public_rows=public.rows,
        fingerprints=fingerprints,
        n_tests_left_out=0 if test is None else n_tests - len(test.rows),
        reading=reading_of(config, types),
        granted=granted,
        n_jobs=_jobs_here(config),
        arrangement=Arrangement(
            unit=ROW if config.data.owner is None else OWNER,
            sizes_declared=config.privacy.sizes is not None,
            private_classes=classes is None,
            public_may_overlap=bool(config.data.public_may_overlap),
        ),
    )


def _opened(lies: Path | Place, config: StudyConfig) -> tuple[RecordSource, tuple[str, ...]]:
    """Open the private records; say which of their columns cannot be read."""
    if not isinstance(lies, Place):
        return ParquetSource(lies), ()
    from collegium.data.sharding.database_source import DatabaseSource  # drivers come with it

    source = DatabaseSource(lies, config.data.exclude)
    return source, source.unread


@dataclass(frozen=True)
class _Shown:
    """What teachers see of a shard: its records, brought to the types of the public ones, preprocessed."""

    types: ColumnTypes
    transformer: Any | None

    def transform(self, X: pd.DataFrame) -> Any:
        shown = self.types.transform(X)
        return shown if self.transformer is None else self.transformer.transform(shown)


def _tell_of_text(like: pd.DataFrame, types: ColumnTypes) -> None:
    """Warn of columns of text that are to be numbers, by the files' types alone."""
    for name, kind in types.kinds.items():
        if kind == NUMBER and kind_of(like[name].dtype) == TEXT:
            warnings.warn(
                f"column {name!r} is text in the private records, and numbers in the public ones: what is no "
                "number counts as a missing value of that record alone",
                PrivacyWarning,
                stacklevel=2,
            )


def _jobs_here(config: StudyConfig) -> int:
    """How many processes read files on this machine: the jobs of a cluster are not meant for it."""
    jobs: int = config.run.n_jobs if config.run.engine == "local" else -1
    return jobs


def _refuse_what_needs_memory(config: StudyConfig) -> None:
    path, unstreamed = config.path("data.private"), config.kind.unstreamed(config)
    place = config.place("data.private")
    wrong: list[tuple[bool, str]] = [
        (
            path is None,
            "data.dataset is read into memory: name a Parquet file or folder, or a table in a database, in "
            "data.private",
        ),
        (
            path is not None
            and not (path.is_dir() or path.name.lower().endswith(".parquet") or place is not None),
            "data.private must be a Parquet file or a folder of them, or a table in a database: convert it",
        ),
        (
            place is not None and place.in_memory,
            "SQLite and workbooks are read into memory: export the table to Parquet, or leave run.streaming "
            "out",
        ),
        (config.data.public is None, "a split needs all records at once: give data.public"),
        (config.data.target is None, "labels must be a column: give data.target"),
        (
            config.privacy.column is None,
            "privacy levels must be a column of the private records: give privacy.column",
        ),
        (
            bool(config.privacy.public),
            "public levels need all records at once: leave privacy.public out, or put these records into a "
            "file of labelled public ones",
        ),
        (bool(unstreamed), unstreamed),
    ]
    for given, reason in wrong:
        if given:
            raise ConfigError(f"run.streaming reads private records piece by piece, but {reason}")
