"""A study whose private records stay on disk: read as a stream, taught from shards."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from collegium.data.public_is_public import row_hashes
from collegium.data.sharding import (
    Granted,
    ParquetSource,
    Roles,
    Scanned,
    ShardStore,
    build_shards,
    scan,
)
from collegium.data.tables import as_records, like_private, warn_of_unseen_classes
from collegium.errors import ConfigError, InputError
from collegium.pate.records import Teaching
from collegium.pate.teachers.shard_ensemble import ShardEnsemble
from collegium.pate.voting.vote_blocks import ask_in_blocks, blocks_of
from collegium.pate.voting.vote_table import VoteTable
from collegium.personalisation.plan import Plan
from collegium.study.config import StudyConfig
from collegium.study.study_data import (
    OVERLAP_KEY,
    MarkedMissing,
    StudyData,
    groups_of_test_records,
    read_records,
    truth_about,
    warn_of_private_classes,
)


@dataclass(frozen=True, eq=False)
class PrivateStream:
    """Private records that are on disk, in place of a table of them. **Sensitive.**

    ``scanned``: what the first pass found.
    ``key``: public randomness of the assignment.
    ``fingerprint``: of all their bytes.
    """

    source: ParquetSource
    roles: Roles
    scanned: Scanned
    key: bytes
    fingerprint: str

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

    ``n_jobs``: processes that read files on this machine.
    """

    X: PrivateStream
    n_jobs: int

    def votes(self, teaching: Teaching) -> VoteTable:
        """Partition private records, train teachers on shards and ask them block by block; all resumable.

        The shards are a second copy of the private records: they are removed once the votes are there.
        """
        recipe, memory, observer = teaching.recipe, teaching.memory, teaching.observer
        if memory.folder is None:
            raise InputError(
                "streamed records need a folder for their shards: run the study with one"
            )
        path, shards = memory.folder / "votes.npy", memory.folder / "shards"
        n_teachers, n_classes = teaching.plan.n_teachers, len(self.classes)
        size = (teaching.X_asked.shape[0], n_teachers, n_classes)
        known = memory.votes(*size)
        if known is not None:
            observer.skipped("teachers")
            shutil.rmtree(shards, ignore_errors=True)
            return known
        warn_of_unseen_classes(self.codes, self.classes)
        teachers = memory.teachers(n_teachers)
        missing = teachers.missing()
        with teaching.lend_workers() as workers:
            ensemble = teachers.ensemble(
                ShardEnsemble,
                recipe.teacher,
                recipe.seed,
                workers,
                progress=observer.advanced,
                n_classes=n_classes,
                class_shares=recipe.class_shares("teacher", self.classes),
            )
            if missing:
                observer.stage("shards")
                store = self.X.shards(teaching.plan, shards, self.n_jobs, observer.advanced)
                observer.stage("teachers", len(missing))
                ensemble.train_stored(store, teaching.view.transformer, missing)
            observer.stage("votes", n_teachers)
            votes = ask_in_blocks(
                path,
                lambda block: ensemble.ask(teachers.kept, block),
                blocks_of(teaching.X_asked, n_teachers),
                *size,
            )
        shutil.rmtree(shards, ignore_errors=True)
        return votes


def load_streamed_data(config: StudyConfig) -> StreamedStudyData:
    """Read public records into memory, and private ones once from end to end: checks and counts."""
    _refuse_what_needs_memory(config)
    path = config.path("data.private")
    target, level = config.data.target, config.privacy.column
    assert path is not None and target is not None and level is not None
    source = ParquetSource(path)
    marker = config.data.missing
    roles = Roles(
        target=target,
        level=level,
        owner=config.data.owner,
        exclude=tuple(config.data.exclude),
        unwanted=None if marker is None else MarkedMissing(marker),
    )
    fingerprints = {"private": source.fingerprint()}
    like = source.empty_frame(roles.features(source))
    public = read_records(config, "public", fingerprints, is_private=False)
    X_public = like_private(as_records(public.X, "public"), like)
    X_test = y_test = test = None
    n_tests = 0
    if config.data.test is not None:
        test = read_records(config, "test", fingerprints, is_private=False)
        n_tests = len(test.rows)
        test = test.with_known_class()
        X_test = like_private(as_records(test.X, "test"), like, "test")
    key = str(config.study.seed).encode()
    granted = Granted(config.policy(), config.privacy.delta)
    classes = config.data.classes
    given = {"public": X_public, "test": X_test}
    compared = {role: row_hashes(X) for role, X in given.items() if X is not None}
    if config.data.public_may_overlap:
        compared = {}
    scanned = scan(source, roles, granted, key, classes, _jobs_here(config), compared=compared)
    for role, hashes in compared.items():
        scanned.sensitive_equal[role].check(hashes, role, OVERLAP_KEY)
    warn_of_private_classes(classes)
    if test is not None:
        y_test = truth_about(test.y, scanned.classes, "test")
    return StreamedStudyData(
        X=PrivateStream(source, roles, scanned, key, fingerprints["private"]),
        codes=scanned.sensitive_seen,
        budgets=scanned.budgets,
        classes=scanned.classes,
        X_public=X_public,
        public_may_overlap=bool(config.data.public_may_overlap),
        y_public=truth_about(public.y, scanned.classes, "public"),
        X_test=X_test,
        y_test=y_test,
        test_groups=None if test is None else groups_of_test_records(config, test.levels),
        public_rows=public.rows,
        fingerprints=fingerprints,
        n_tests_left_out=0 if test is None else n_tests - len(test.rows),
        n_jobs=_jobs_here(config),
    )


def _jobs_here(config: StudyConfig) -> int:
    """How many processes read files on this machine: the jobs of a cluster are not meant for it."""
    jobs: int = config.run.n_jobs if config.run.engine == "local" else -1
    return jobs


def _refuse_what_needs_memory(config: StudyConfig) -> None:
    path = config.path("data.private")
    wrong: list[tuple[bool, str]] = [
        (
            path is None,
            "data.dataset is read into memory: name a Parquet file or folder in data.private",
        ),
        (
            path is not None and not (path.is_dir() or path.name.lower().endswith(".parquet")),
            "data.private must be a Parquet file or a folder of them: convert it",
        ),
        (config.data.public is None, "a split needs all records at once: give data.public"),
        (config.data.target is None, "labels must be a column: give data.target"),
        (
            config.privacy.column is None,
            "privacy levels must be a column of the private records: give privacy.column",
        ),
        (
            config.teachers.assignment != "hash",
            f"teachers.assignment {config['teachers.assignment']!r} needs all owners at once: use 'hash'",
        ),
    ]
    for given, reason in wrong:
        if given:
            raise ConfigError(f"run.streaming reads private records piece by piece, but {reason}")
