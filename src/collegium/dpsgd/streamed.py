"""From Parquet files to the shards of DP-SGD: rounded features on this machine's disk, for one run."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.data.sharding import RecordSource, Roles, Scanned
from collegium.data.sharding.disk import disk_trouble, private_folder, read_json, write_json
from collegium.data.sharding.owner_shards import each_owner_shard, number_of_shards, write_private
from collegium.dpsgd.linear_model import as_rows
from collegium.dpsgd.linear_sums import to_features
from collegium.dpsgd.run import DPSGDRun
from collegium.dpsgd.shards import Records, ShardFiles, ShardSums, in_order, record_type, rows_of
from collegium.durable import sync
from collegium.errors import InputError
from collegium.personalisation.dpsgd_plan import DPSGDPlan
from collegium.runs.views import View
from collegium.workers.engines import Workers

_FORMAT = 1
_CHUNK = 16_384  # records that are seen as floats at a time
_MANIFEST = "dpsgd.json"
_SHAPE = {"build": str, "records": [int]}


@dataclass(frozen=True, eq=False)
class Stream:
    """Private records that are read as a stream, and how a model sees them. **Sensitive.**

    ``scanned``: from :func:`~collegium.data.sharding.scan` of the records.
    ``view``: fitted on public records; shown records by some thousands, each of which it sees by itself.
    ``fingerprint``: of the content of the data set; default: it is read once more.
    """

    source: RecordSource
    roles: Roles
    scanned: Scanned
    view: View
    fingerprint: str | None = None

    def build(self, groups: NDArray[np.intp], n_features: int, n_shards: int) -> str:
        """Name everything that the content of the shards follows from."""
        known = self.fingerprint or self.source.fingerprint()
        about = [_FORMAT, known, joblib.hash(self.view.transformer), n_features, n_shards]
        about += [self.roles.target, self.roles.level, self.roles.owner, self.scanned.features]
        about += [self.scanned.levels.tolist(), groups.tolist(), self.scanned.classes.tolist()]
        about += [repr(self.roles.unwanted)]
        return hashlib.sha256(repr(about).encode()).hexdigest()


@dataclass(frozen=True)
class _Show:
    """Shows records to a model, in a worker: some at a time, each by itself."""

    view: View
    n_features: int

    def __call__(self, X: pd.DataFrame, codes: NDArray[np.intp]) -> Records:
        parts = []
        for first in range(0, len(codes), _CHUNK):
            some = slice(first, first + _CHUNK)
            seen = as_rows(self.view.of_private(X.iloc[some]), "private records")
            if seen.shape[1] + 1 != self.n_features:
                raise InputError(
                    f"preprocessing makes {seen.shape[1]} columns of some private records and "
                    f"{self.n_features - 1} of public ones: take one whose columns are fitted on public "
                    "records"
                )
            parts.append(rows_of(to_features(seen), codes[some]))
        return np.concatenate(parts)


@dataclass(frozen=True)
class _Writer:
    """Writes a shard, in a worker."""

    folder: Path
    groups: NDArray[np.intp]  # position in the plan of each group of the records

    def __call__(
        self, number: int, rows: Records, owner: NDArray[np.intp], groups: NDArray[np.intp]
    ) -> int:
        in_plan = self.groups[groups]
        assert (in_plan >= 0).all()
        with disk_trouble(self.folder):
            write_private(_file(self.folder, number), in_order(rows, owner, in_plan))
        return len(rows)


def feature_shards(
    stream: Stream,
    plan: DPSGDPlan,
    n_features: int,
    folder: Path,
    *,
    n_shards: int | None = None,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ShardFiles:
    """Write rounded features of all private records, with all records of an owner in one shard.

    Parameters
    ----------
    stream : Stream
        The records.
    plan : DPSGDPlan
        Of the training.
    n_features : int
        Of the model, with the constant.
    folder : Path
        Where to write (mode 0700; files 0600). Needs room for the records, and for their features at two
        bytes each. If it holds these shards already, they are taken as they are.
    n_shards : int, optional
        Default: some 131,072 records each.
    n_jobs : int, optional
        As in joblib. Each worker holds one shard.
    progress : callable, optional
        Called with (steps done, steps in all).

    Raises
    ------
    InputError
        If records cannot be read or seen, or the disk is full; says nothing of their values.
    """
    scanned = stream.scanned
    kind = record_type(n_features)
    count = n_shards or number_of_shards(scanned.budgets.n_records, kind.itemsize)
    groups = plan.places_of(scanned.budgets)
    build = stream.build(groups, n_features, count)
    folder = private_folder(Path(folder))
    made = ShardFiles(tuple(_file(folder, number) for number in range(count)), n_features)
    manifest = folder / _MANIFEST
    if manifest.exists() and read_json(manifest, _SHAPE)["build"] == build:
        return made
    manifest.unlink(missing_ok=True)
    records = each_owner_shard(
        stream.source,
        stream.roles,
        scanned,
        folder,
        build,
        _Show(stream.view, n_features),
        kind,
        _Writer(folder, groups),
        count,
        n_jobs,
        progress,
    )
    sync(folder)
    write_json(manifest, {"build": build, "records": records})
    with disk_trouble(folder):
        shutil.rmtree(folder / ".work", ignore_errors=True)
    return made


@contextlib.contextmanager
def summands_from_parquet(
    stream: Stream,
    run: DPSGDRun,
    folder: Path,
    *,
    workers: Workers | None = None,
    n_jobs: int | None = None,
    n_shards: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[ShardSums]:
    """Lend clipped sums over private records that stay on disk, for :meth:`DPSGDRun.descend`.

    The shards are a second copy of the private records: they are removed on leaving, unless the run was cut
    off, and the next one goes on with them.

    Parameters
    ----------
    stream : Stream
        The records.
    run : DPSGDRun
        Its plan, terms, loss and threads are taken; its own records are not looked at.
    folder : Path
        See :func:`feature_shards`, also of the parameters below.
    workers : Workers, optional
        Of an engine that runs; without any, threads of this process sum.

    Raises
    ------
    InputError
        If records cannot be read or seen, or the disk is full; says nothing of their values.
    """
    shards = feature_shards(
        stream,
        run.plan,
        run.n_parameters,
        folder,
        n_shards=n_shards,
        n_jobs=n_jobs,
        progress=progress,
    )
    try:
        yield ShardSums(shards, run.loss, run.terms, workers, run.n_threads)
    finally:
        if workers is not None:
            workers.take_back()
    remove_feature_shards(folder)


def remove_feature_shards(folder: Path) -> None:
    """Remove shards, if there are any: the manifest first, so that a crash leaves files that mean nothing."""
    with contextlib.suppress(OSError):
        (folder / _MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _file(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.records"
