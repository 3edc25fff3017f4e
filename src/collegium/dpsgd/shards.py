"""Clipped sums over records that are not in memory: a map over shards of owners, and a sum of whole numbers.

A shard holds all records of its owners in one file: rounded features, in the order in which blocks take
them. What a worker returns is a vector of whole numbers, and adding these up gives the same bits whatever the
number of shards and workers, and whoever was asked twice. Noise is drawn once, by who asked
(:meth:`collegium.dpsgd.run.DPSGDRun.descend`), after the step was charged: a worker that is lost costs time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from collegium.dpsgd.linear_sums import Block, Terms, lengths_of, owners_together
from collegium.dpsgd.losses import Loss
from collegium.dpsgd.sampling import Sample
from collegium.errors import CollegiumError, InputError
from collegium.models.threads import in_threads
from collegium.noise.sums import Integers
from collegium.workers.engines import Workers
from collegium.workers.opaque_payload import LentPayload, OpaquePayload
from collegium.workers.rounds import run_in_rounds

Floats = NDArray[np.float64]
Records = NDArray[np.void]
_CHUNK = 16_384  # records that are seen as floats at a time
_TASKS = 4  # for each worker in each step


def record_type(n_features: int) -> np.dtype[np.void]:
    """Make the type of a record in a shard."""
    fields: list[tuple[Any, ...]] = [
        ("features", np.int16, (n_features,)),
        ("length", np.float64),
        ("target", np.int32),
        ("group", np.int32),
        ("per_owner", np.int32),
    ]
    return np.dtype(fields, align=True)


def rows_of(features: NDArray[np.int16], codes: NDArray[np.intp]) -> Records:
    """Make what a shard holds of records, each by itself; whose they are is filled in by :func:`in_order`."""
    rows = np.zeros(len(features), record_type(features.shape[1]))
    rows["features"], rows["target"] = features, codes
    for first in range(0, len(features), _CHUNK):
        some = slice(first, first + _CHUNK)
        rows["length"][some] = lengths_of(features[some])
    return rows


def in_order(rows: Records, owner: NDArray[np.intp], groups: NDArray[np.intp]) -> Records:
    """Bring the records of some owners into the order of blocks. **Sensitive.**

    ``owner`` (n_records,): position in ``groups`` of each record's owner.
    ``groups`` (n_owners,): position of each owner's group in the plan.
    """
    together = np.bincount(owner, minlength=len(groups))[owner]
    rows["per_owner"], rows["group"] = together, groups[owner]
    return np.asarray(rows[np.lexsort((owner, together))])  # stable: of an owner, in their order


def blocks_in(records: Records, n_outputs: int, name: str) -> Iterator[Block]:
    """Take the records of a shard block by block. **Sensitive.**

    ``name``: tells these records from those of other shards, for the coins.
    """
    per_owner = np.asarray(records["per_owner"])
    ends = [*(np.flatnonzero(np.diff(per_owner)) + 1).tolist(), len(records)]
    start, n_features = 0, records.dtype["features"].shape[0]
    for end in ends if len(records) else []:
        count = int(per_owner[start])
        rows = count * owners_together(count, n_features, n_outputs)
        for first in range(start, end, rows):
            some = records[first : min(first + rows, end)]
            yield Block(
                some["features"],
                np.ascontiguousarray(some["length"]),
                np.ascontiguousarray(some["target"]),
                some["group"][::count].astype(np.intp),
                count,
                f"{name}|{count}|{first - start}",
            )
        start = end


@dataclass(frozen=True, eq=False)
class ShardFiles:
    """Shards on disk, one file each; small, picklable, and without any record.

    ``files``: by shard.
    ``n_features``: of the model, with the constant.
    """

    files: tuple[Path, ...]
    n_features: int

    def records(self, number: int) -> Records:
        """Map a shard: it is read as it is used, and takes no memory beyond that. **Sensitive.**"""
        path, kind = self.files[number], record_type(self.n_features)
        try:
            if not path.stat().st_size:  # which cannot be mapped
                return np.empty(0, kind)
            return np.asarray(np.memmap(path, kind, mode="r"))
        except (OSError, ValueError) as error:
            raise InputError(
                f"{path} cannot be read ({type(error).__name__}): delete {path.parent} and run again"
            ) from None


@dataclass(frozen=True)
class Step:
    """What a step asks of every shard. **Sensitive**: the key of a sample tells who takes part."""

    parameters: Floats = field(repr=False)
    loss: Loss
    terms: Terms
    sample: Sample

    def over(self, records: Records, number: int) -> Integers:
        """Sum over the records of a shard."""
        total = np.zeros(self.parameters.shape, dtype=np.int64)
        for block in blocks_in(records, self.loss.n_outputs, f"shard {number}"):
            total += block.clipped_sum(self.parameters, self.loss, self.terms, self.sample)
        return total


@dataclass(frozen=True, eq=False)
class ShardSums:
    """Clipped sums over shards, by threads of this process, or by an engine's workers. **Sensitive.**

    Workers that see the files of this process map them. Others get each shard once, and keep it: with a step
    only its parameters and the key of its sample travel.

    ``workers``: default: threads.
    ``n_threads``: default: as many as BLAS would use.
    """

    shards: ShardFiles
    loss: Loss
    terms: Terms
    workers: Workers | None = None
    n_threads: int | None = None
    _sent: dict[int, LentPayload] = field(default_factory=dict)

    def clipped_sum(self, parameters: Floats, sample: Sample) -> Integers:
        """Sum over all shards: exact, in any order."""
        step = Step(parameters, self.loss, self.terms, sample)
        total = np.zeros(parameters.shape, dtype=np.int64)
        numbers = range(len(self.shards.files))
        if self.workers is None:

            def of_shard(number: int) -> Integers:
                return step.over(self.shards.records(number), number)

            for part in in_threads(of_shard, numbers, self.n_threads):
                total += part
            return total

        def receive(number: int, part: Integers) -> None:
            np.add(total, part, out=total)

        size = 1
        if self.workers.share_files:
            size = max(1, len(numbers) // (_TASKS * self.workers.count))
        batches = [list(numbers[first : first + size]) for first in numbers[::size]]
        run_in_rounds(
            batches, lambda: self._asker(step), self.workers, receive, "summed", what="shard(s)"
        )
        return total

    def _asker(self, step: Step) -> Callable[[list[int]], Any]:
        """Make what asks workers, in one round."""
        assert self.workers is not None
        if self.workers.share_files:
            return lambda batch: joblib.delayed(_sum_files)(self.shards, batch, step)
        for number in range(len(self.shards.files)):  # to workers, unless it is there
            known = self._sent.get(number)
            if known is None or not self.workers.still_has(known):
                self._sent[number] = self.workers.deposit(
                    OpaquePayload(self.shards.records(number))
                )
        return lambda batch: joblib.delayed(_sum_sent)([(n, self._sent[n]) for n in batch], step)


def _sum_files(shards: ShardFiles, batch: list[int], step: Step) -> list[tuple[int, Integers]]:
    return [(number, _shielded(step, shards.records(number), number)) for number in batch]


def _sum_sent(sent: list[tuple[int, LentPayload]], step: Step) -> list[tuple[int, Integers]]:
    return [(number, _shielded(step, lent.get().content, number)) for number, lent in sent]


def _shielded(step: Step, records: Records, number: int) -> Integers:
    """Sum, and let no message of a failure out: it may quote private records."""
    try:
        return step.over(records, number)
    except CollegiumError:
        raise
    except Exception as error:
        failure = type(error).__name__
    raise InputError(
        f"the clipped sum of a shard failed: {failure}, whose message is not shown because it may quote "
        "private records; see whether a few records work in memory"
    )
