"""Shards that hold all records of their owners: for what bounds a person's say, and not a teacher's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.data.sharding.build import Steps, sort_pieces, work_folder
from collegium.data.sharding.roles import Roles
from collegium.data.sharding.scan import Scanned
from collegium.data.sharding.shuffle import (
    CLASS,
    GROUP,
    OWNER,
    SECOND,
    TEACHER,
    Sorting,
    gather_bucket,
)
from collegium.data.sharding.source import PIECE_ROWS, ParquetSource, as_frame

if TYPE_CHECKING:
    import pyarrow as pa

_Made = TypeVar("_Made")


@dataclass(frozen=True, eq=False)
class OwnedRecords:
    """All records of some owners. **Sensitive.**

    ``codes`` (n,): class numbers.
    ``owner`` (n,): position in ``groups`` of each record's owner.
    ``groups`` (n_owners,): position of each owner's group in the order of the groups.
    """

    codes: NDArray[np.intp]
    owner: NDArray[np.intp]
    groups: NDArray[np.intp]
    _features: pa.Table
    _categorical: tuple[str, ...]

    @classmethod
    def of(cls, table: pa.Table, categorical: tuple[str, ...]) -> OwnedRecords:
        """Take them from what was sorted with owners."""
        hashes, seconds = table.column(OWNER).to_numpy(), table.column(SECOND).to_numpy()
        order = np.lexsort((seconds, hashes))
        hashes, seconds = hashes[order], seconds[order]
        is_new = np.ones(len(order), dtype=bool)
        is_new[1:] = (hashes[1:] != hashes[:-1]) | (seconds[1:] != seconds[:-1])
        owner = np.empty(len(order), dtype=np.intp)
        owner[order] = np.cumsum(is_new) - 1
        return cls(
            table.column(CLASS).to_numpy().astype(np.intp),
            owner,
            table.column(GROUP).to_numpy().astype(np.intp)[order[is_new]],
            table.drop_columns([CLASS, TEACHER, OWNER, SECOND, GROUP]).combine_chunks(),
            categorical,
        )

    def __len__(self) -> int:
        return len(self.codes)

    def frame(self, rows: NDArray[np.intp]) -> pd.DataFrame:
        """Return the features of some records, as they are in the data set."""
        return as_frame(self._features.take(rows), self._categorical)


@dataclass(frozen=True)
class _ByHash:
    """Each owner in one of so many shards, by the hash alone."""

    n_shards: int

    def teachers_of(
        self, hashes: NDArray[np.uint64], group_names: Sequence[str], groups: NDArray[np.intp]
    ) -> NDArray[np.int32]:
        """Name the shard of each owner."""
        return (hashes % np.uint64(self.n_shards)).astype(np.int32)[:, None]


def number_of_shards(n_records: int, rows: int = PIECE_ROWS // 2) -> int:
    """Choose how many shards hold about so many records each."""
    return max(1, -(-n_records // rows))


def each_owner_shard(
    source: ParquetSource,
    roles: Roles,
    scanned: Scanned,
    key: bytes,
    folder: Path,
    build: str,
    make: Callable[[int, OwnedRecords], _Made],
    n_shards: int,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[_Made]:
    """Sort private records by their owners' shards, and make something of each shard, in workers.

    No worker holds more than a piece of the data set, or one shard. What an interrupted call has sorted is
    used by the next one, if that has the same ``build``.

    ``scanned``: from :func:`~collegium.data.sharding.scan.scan` of the same records, with the same
        ``key``.
    ``folder``: where sorted records are kept meanwhile, in a folder of their own that the caller removes.
    ``build``: names all that the result follows from.
    ``make``: must be picklable.
    ``progress``: called with (steps done, steps in all).
    Returns: what was made, by shard.
    """
    work = work_folder(folder, build)
    sorting = Sorting(
        reader=source.reader,
        roles=roles,
        features=scanned.features,
        categorical=tuple(name for name in source.categorical if name in scanned.features),
        granted=scanned.granted,
        levels=scanned.levels,
        group_names=scanned.budgets.group_names,
        classes=scanned.classes,
        plan=_ByHash(n_shards),
        key=key,
        first_teachers=np.arange(n_shards + 1, dtype=np.intp),
        with_owners=True,
    )
    steps = Steps(progress, len(source.pieces) + n_shards)
    pieces = sort_pieces(source, scanned, sorting, work, n_jobs, steps)
    made: list[Any] = []
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
    for one in parallel(
        joblib.delayed(_make)(work, pieces, number, sorting.categorical, make)
        for number in range(n_shards)
    ):
        made.append(one)
        steps.one()
    return made


def _make(
    work: Path,
    pieces: list[tuple[int, int]],
    number: int,
    categorical: tuple[str, ...],
    make: Callable[[int, OwnedRecords], _Made],
) -> _Made:
    return make(number, OwnedRecords.of(gather_bucket(work, pieces, number), categorical))
