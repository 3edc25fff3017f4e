"""Private records from a Parquet data set into one shard per teacher, in one streaming pass."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import joblib

from collegium.data.sharding.disk import disk_trouble, private_folder, read_json, write_json
from collegium.data.sharding.roles import Roles
from collegium.data.sharding.scan import Scanned
from collegium.data.sharding.shard_store import (
    ENTRY,
    FORMAT,
    MANIFEST,
    ShardEntry,
    ShardStore,
    write_manifest,
    write_shards,
)
from collegium.data.sharding.shuffle import Sorting, bucket_starts, gather_bucket, sort_piece
from collegium.data.sharding.source import RecordSource
from collegium.durable import sync
from collegium.errors import InputError
from collegium.personalisation.plan import Plan

Progress = Callable[[int, int], None]
_WORK = ".work"


def build_shards(
    source: RecordSource,
    roles: Roles,
    scanned: Scanned,
    plan: Plan,
    key: bytes,
    folder: Path,
    *,
    fingerprint: str | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> ShardStore:
    """Partition private records into the shards of all teachers.

    Every record goes to the teachers that ``plan.assign`` would choose. What an interrupted call has
    finished is used by the next one. In a folder that holds shards already, only the files of
    shards whose content changes are written.

    ``source``: the private records.
    ``scanned``: from :func:`~collegium.data.sharding.scan.scan` of the same records, with the same
        ``key``.
    ``plan``: the public plan.
    ``key``: public randomness of the assignment.
    ``folder``: where the shards go; made with mode 0700. Needs room for twice the records,
        uncompressed, for each teacher that sees them; half of it is free again at the end.
    ``fingerprint``: of the content of the data set; default: ``source.fingerprint()``, which reads
        all of it.
    ``n_jobs``: as in joblib. Each worker holds some 262,144 records.
    ``progress``: called with (steps done, steps in all).
    """
    build = _identity(source, roles, scanned, plan, key, fingerprint)
    folder = private_folder(Path(folder))
    known: dict[int, ShardEntry] = {}
    if (folder / MANIFEST).exists():
        store = ShardStore(folder)
        if store.build == build:
            _tidy(folder, list(store.sensitive_entries))
            return store
        known = dict(enumerate(store.sensitive_entries))
    work = work_folder(folder, build)
    sorting = _sorting(source, roles, scanned, plan, key)
    n_buckets = len(sorting.first_teachers) - 1
    total = len(source.pieces) + n_buckets
    steps = Steps(progress, total)
    pieces: list[tuple[int, int]] = []
    records = 0
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
    for piece, counted in zip(
        source.pieces,
        parallel(joblib.delayed(sort_piece)(sorting, piece, work) for piece in source.pieces),
        strict=True,
    ):
        pieces.append((piece.number, counted["files"]))
        records += counted["records"]
        steps.one()
    refuse_other_records(source, scanned, records)
    entries: list[ShardEntry] = []
    for made in parallel(
        joblib.delayed(_make_bucket)(folder, work, pieces, sorting, bucket, known)
        for bucket in range(n_buckets)
    ):
        entries.extend(made)
        steps.one()
    write_manifest(folder, build, source.categorical, entries)
    _tidy(folder, entries)
    return ShardStore(folder)


def refuse_other_records(source: RecordSource, scanned: Scanned, records: int) -> None:
    """Refuse a data set that has not as many records as when it was checked."""
    if records != scanned.budgets.n_records:
        raise InputError(
            f"{source.path} had {scanned.budgets.n_records:,} records when it was checked and "
            f"{records:,} when it was read: do not change files while they are read; run again"
        )


class Steps:
    """Counts what is done."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def one(self) -> None:
        """Count one more, and tell."""
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._total)


def _make_bucket(
    folder: Path,
    work: Path,
    pieces: list[tuple[int, int]],
    sorting: Sorting,
    bucket: int,
    known: dict[int, ShardEntry],
) -> list[ShardEntry]:
    done = work / f"bucket-{bucket:06d}.json"
    if done.exists():
        return ShardEntry.read(read_json(done, [ENTRY]))
    first, end = sorting.first_teachers[bucket : bucket + 2].tolist()
    entries = write_shards(folder, gather_bucket(work, pieces, bucket), first, end, known)
    _make_durable(folder, entries)
    write_json(done, [asdict(entry) for entry in entries])
    return entries


def _sorting(
    source: RecordSource, roles: Roles, scanned: Scanned, plan: Plan, key: bytes
) -> Sorting:
    sizes = scanned.budgets.group_sizes()
    mean = sum(plan.groups[name].duplicates * size for name, size in sizes.items() if size)
    copies = scanned.budgets.n_records * mean // scanned.budgets.n_owners
    return Sorting(
        reader=source.reader,
        roles=roles,
        features=scanned.features,
        categorical=tuple(name for name in source.categorical if name in scanned.features),
        granted=scanned.granted,
        levels=scanned.levels,
        group_names=scanned.budgets.group_names,
        classes=scanned.classes,
        plan=plan,
        key=key,
        first_teachers=bucket_starts(plan.n_teachers, copies),
    )


def _identity(
    source: RecordSource,
    roles: Roles,
    scanned: Scanned,
    plan: Plan,
    key: bytes,
    fingerprint: str | None,
) -> str:
    """Name everything that the content of the shards follows from."""
    import pyarrow as pa

    content: dict[str, Any] = {
        "format": FORMAT,
        "arrow": pa.__version__,
        "records": source.fingerprint() if fingerprint is None else fingerprint,
        "columns": [roles.target, roles.level, roles.owner, list(scanned.features)],
        "unwanted": repr(roles.unwanted),
        "levels": scanned.levels.tolist(),
        "classes": scanned.classes.tolist(),
        "teachers": [plan.n_teachers, plan.teacher_ranges()],
        "duplicates": {name: group.duplicates for name, group in plan.groups.items()},
        "key": key.hex(),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def work_folder(folder: Path, build: str) -> Path:
    """Open what an interrupted call left, if it was of the same build."""
    work = folder / _WORK
    about = work / "build.json"
    if work.exists() and not (about.exists() and read_json(about, str) == build):
        with disk_trouble(work):
            shutil.rmtree(work)
    private_folder(work)
    if not about.exists():
        write_json(about, build)
    return work


def _make_durable(folder: Path, entries: list[ShardEntry]) -> None:
    with disk_trouble(folder):
        for entry in entries:
            sync(folder / entry.file)
        sync(folder)


def _tidy(folder: Path, entries: list[ShardEntry]) -> None:
    """Remove what the manifest does not list: it is nobody's shard any more."""
    keep = {MANIFEST, *(entry.file for entry in entries)}
    with disk_trouble(folder):
        shutil.rmtree(folder / _WORK, ignore_errors=True)
        for path in folder.iterdir():
            if path.name not in keep and path.is_file():
                path.unlink()
