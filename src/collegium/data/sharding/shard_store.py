"""Shards on disk: one file per teacher, named by its content, listed in one manifest."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.data.sharding.disk import disk_trouble, read_json, write_json
from collegium.data.sharding.shuffle import CLASS, TEACHER, one_batch, write_options
from collegium.data.sharding.source import as_frame
from collegium.errors import CollegiumError, InputError

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1
MANIFEST = "manifest.json"
ENTRY = {"file": str, "fingerprint": str, "records": int}


@dataclass(frozen=True)
class ShardEntry:
    """What the manifest says of one shard. **Sensitive.**

    ``file``: name of the shard's file.
    ``fingerprint``: SHA-256 of its bytes: of the shard's records, their order and their classes,
        and of nothing else.
    """

    file: str
    fingerprint: str
    records: int

    @classmethod
    def read(cls, entries: list[dict[str, Any]]) -> list[ShardEntry]:
        """Make entries of what was read, each in the shape :data:`ENTRY`."""
        return [cls(*(entry[name] for name in ENTRY)) for entry in entries]


class ShardStore:
    """The shards of all teachers, each in a file of its own. Small, picklable, and without any record.

    A teacher's file holds the features and class numbers of its records in the order of the data set, and
    nothing that depends on anybody else's: neither owners and levels, nor positions, nor statistics.

    ``folder``: where :func:`~collegium.data.sharding.build.build_shards` wrote.
    ``build``: identifies what the shards were made from.
    ``sensitive_entries``: every teacher's file.
    ``categorical``: columns that are categories.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        path = self.folder / MANIFEST
        if not path.exists():
            raise InputError(f"{folder} holds no shards: build them with build_shards")
        known = read_json(
            path, {"format": int, "build": str, "categorical": [str], "shards": [ENTRY]}
        )
        if known["format"] != FORMAT:
            raise InputError(
                f"{path} is of format {known['format']}, this version reads {FORMAT}: delete "
                f"{folder} and run again"
            )
        self.build: str = known["build"]
        self.categorical: tuple[str, ...] = tuple(known["categorical"])
        self.sensitive_entries = tuple(ShardEntry.read(known["shards"]))

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as a path: a worker reads the manifest itself, and makes sure that it is the same."""
        return _reopened, (self.folder, self.build)

    @property
    def n_teachers(self) -> int:
        """Number of teachers, including those without any record."""
        return len(self.sensitive_entries)

    def load(self, number: int) -> tuple[pd.DataFrame, NDArray[np.intp]]:
        """Read one teacher's shard, and no other. **Sensitive.**

        ``number``: the teacher.
        Returns ``X`` (n_shard, n_features): features as they are in the data set.
        Returns ``y`` (n_shard,): class numbers.
        """
        import pyarrow as pa

        entry = self.sensitive_entries[number]
        path = self.folder / entry.file
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(
                f"{path} cannot be read ({error.strerror}): delete {self.folder} and run again"
            ) from None
        if hashlib.sha256(content).hexdigest() != entry.fingerprint:
            raise InputError(f"{path} is not what was written: delete {self.folder} and run again")
        table = pa.ipc.open_file(pa.BufferReader(content)).read_all()
        y = table.column(CLASS).to_numpy().astype(np.intp)
        return as_frame(table.drop_columns([CLASS]), self.categorical), y

    def prepared(self, number: int, preprocessing: Any | None) -> tuple[Any, NDArray[np.intp]]:
        """Read one teacher's shard through a transformer that was fitted on public records.

        ``number``: the teacher.
        ``preprocessing``: with ``transform``. None: records as they are.
        Raises InputError if the transformer fails; its message is not shown unless it is
            Collegium's own, since it may quote records.
        """
        X, y = self.load(number)
        if preprocessing is None or not len(y):
            return X, y
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # a warning about a shard would tell something about it
                return preprocessing.transform(X), y
        except CollegiumError:
            raise
        except Exception as error:
            failure = type(error).__name__
        raise InputError(
            f"a shard could not be preprocessed: {failure}, whose message is not shown because it may "
            "quote private records; try the preprocessing on public ones"
        )


def _reopened(folder: Path, build: str) -> ShardStore:
    store = ShardStore(folder)
    if store.build != build:
        raise InputError(f"the shards in {folder} were built anew in the meantime: run again")
    return store


def write_shards(
    folder: Path, bucket: pa.Table, first: int, end: int, known: Mapping[int, ShardEntry]
) -> list[ShardEntry]:
    """Cut a bucket into the files of its teachers; leave a file alone that is there already.

    ``bucket``: from :func:`~collegium.data.sharding.shuffle.gather_bucket`.
    ``first``, ``end``: the bucket's teachers.
    ``known``: what the store's manifest lists already.
    """
    teachers = bucket.column(TEACHER).to_numpy()
    order = np.argsort(teachers, kind="stable")
    ends = np.searchsorted(teachers[order], np.arange(first, end + 1))
    records = bucket.drop_columns([TEACHER]).combine_chunks()  # or each take would combine them
    entries = []
    for number in range(first, end):
        rows = order[ends[number - first] : ends[number - first + 1]]
        content = shard_bytes(records.take(rows))
        fingerprint = hashlib.sha256(content).hexdigest()
        entry = ShardEntry(f"{number:06d}-{fingerprint[:16]}.arrow", fingerprint, len(rows))
        if known.get(number) != entry or not (folder / entry.file).exists():
            _write(folder / entry.file, content)
        entries.append(entry)
    return entries


def shard_bytes(records: pa.Table) -> bytes:
    """Write records such that equal records make equal bytes.

    ``records`` must come from ``take``, which allocates anew: a slice would drag its neighbours' bits along
    in the padding.
    """
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, records.schema, options=write_options()) as writer:
        writer.write_batch(one_batch(records))
    content: bytes = sink.getvalue().to_pybytes()
    return content


def write_manifest(
    folder: Path, build: str, categorical: tuple[str, ...], entries: list[ShardEntry]
) -> None:
    """Make a store valid: until this is written, its files mean nothing."""
    content = {
        "format": FORMAT,
        "build": build,
        "categorical": list(categorical),
        "shards": [asdict(entry) for entry in entries],
    }
    write_json(folder / MANIFEST, content)


def remove_shards(folder: Path) -> None:
    """Remove a store, if there is one: the manifest first, so that a crash leaves files that mean nothing."""
    with contextlib.suppress(OSError):
        (folder / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _write(path: Path, content: bytes) -> None:
    """Write a shard. Its name and the manifest tell whether it is whole, so nothing waits for the disk."""
    with disk_trouble(path.parent):
        path.touch(mode=0o600)
        path.write_bytes(content)
