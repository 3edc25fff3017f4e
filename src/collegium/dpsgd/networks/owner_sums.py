"""Clipped sums of a network's gradients, owner by owner, exactly on a grid.

An owner's contribution is the sum of the gradients of all the owner's records, weighted, clipped once, and
rounded towards zero to the grid of :mod:`collegium.dpsgd.grid`. Contributions are then whole numbers, and
their sum is exact: it does not depend on the order, on micro-batches, or on the number of threads.

What is exact, and what is assumed. Exact: each contribution is on the grid and its norm at most the owner's
clip, also after rounding (norms are computed in double precision, with room for their own rounding); sums;
noise. So taking one owner's contribution out moves the sum by at most the clip, whatever floats did before.
Assumed: that *other* owners' contributions stay as they are, bit for bit, when one owner's records change.
Nothing that is computed here for one record takes another's value; but gradients are computed for a
micro-batch at a time in single precision, by kernels of PyTorch and its libraries, and these must not let one
record's value reach another's result through rounding. They do not when shapes and places are the same:
micro-batches have a fixed size, an owner who is drawn keeps the place even if the records are blank, and a
test compares bits. For an owner who is not there at all, others move to other places, where kernels may round
differently in the last bits (relative 10⁻⁷): the guarantee is about records that are blanked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from collegium.dpsgd.grid import UNIT
from collegium.dpsgd.networks.by_layer import ByLayer, handles
from collegium.dpsgd.networks.by_transform import ByTransform
from collegium.dpsgd.networks.errors import Loss
from collegium.dpsgd.networks.own_randomness import another, others
from collegium.dpsgd.networks.parts import Part, Rows
from collegium.models.global_generators import kept_generators, seed_generators
from collegium.noise.sums import Integers

Floats = NDArray[np.float64]
MICRO_BATCH = 64
SLACK = 1 - 2.0**-22
"""Room for rounding: a factor, an error times it, and their product are off by 2^-24 each at most, in single
precision; a norm in double precision, of fewer than 2^26 numbers, by less than 2^-26."""
MOST_PARAMETERS = 2**26
MOST_TOGETHER = 2**12
"""Rows whose sum in double precision is exact: each entry is below 2^40, since clips are below 2^10."""


class PerRecord(Protocol):
    """Gradients of the records of a micro-batch."""

    def parts(self, records: Tensor, targets: Tensor, seeds: Tensor) -> list[Part]:
        """Compute them; what is random about a record follows from its seed. **Sensitive.**"""
        ...

    def in_order(self, name: str, total: Tensor) -> Tensor:
        """Bring a sum of gradients of one parameter into the order of the parameter's entries."""
        ...


def per_record(module: nn.Module, loss: Loss, device: torch.device) -> PerRecord:
    """Choose how: layer by layer for plain sequences of known layers, function transforms for all others."""
    return ByLayer(module, loss, device) if handles(module) else ByTransform(module, loss)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Records of the owners who take part in a step. **Sensitive.**

    ``rows`` (n,): where each record is; an owner's stand together.
    ``starts`` (n_owners,): where in ``rows`` each owner's begin.
    ``clips`` (n_owners,): bound of each owner's contribution, in units of the clip norm.
    ``weights`` (n_owners,): what gradients are multiplied by before they are clipped.
    ``seeds`` (n,): of what is random about each record (:mod:`collegium.dpsgd.networks.own_randomness`).
    ``seed_of_all``: of what is random and the same for all records.
    """

    rows: NDArray[np.intp]
    starts: NDArray[np.intp]
    clips: Floats
    weights: Floats
    seeds: Tensor
    seed_of_all: int


Read = Callable[[NDArray[np.intp], Tensor], Sequence[tuple[Tensor, Tensor]]]
"""Gives the records of some rows, with their seeds, and their targets; several times if each has several
variants, whose gradients are averaged before anything else."""


class OwnerSums:
    """Clipped sums of one network's gradients.

    ``module``: records must not meet in it (:mod:`collegium.dpsgd.networks.mixing`).
    ``clip_norm``: what one unit of clips is, as a norm of gradients.
    ``micro_batch``: how many records are computed together; bounds memory, changes bits.
    """

    def __init__(
        self, module: nn.Module, loss: Loss, clip_norm: float, micro_batch: int = MICRO_BATCH
    ) -> None:
        trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
        self._device = next(iter(trained.values())).device
        self._sizes = {name: p.numel() for name, p in trained.items()}
        self._gradients = per_record(module, loss, self._device)
        self._scale = 1 / (clip_norm * UNIT)
        self._clip_norm = clip_norm
        self._micro_batch = micro_batch

    def clipped_sum(self, drawn: Drawn, read: Read) -> Integers:
        """Sum the contributions of the owners who take part, in units of the grid. **Sensitive.**

        Returns (n_parameters,): in the order of the module's trained parameters.
        """
        totals = {
            name: torch.zeros(size, dtype=torch.int64, device=self._device)
            for name, size in self._sizes.items()
        }
        ends = np.append(drawn.starts[1:], len(drawn.rows))
        with kept_generators():
            for first, last in _together(drawn.starts, ends, self._micro_batch):
                counts = (ends - drawn.starts)[first:last]
                its = slice(drawn.starts[first], ends[last - 1])
                parts, norms = self._of_owners(drawn, its, counts, read)
                factors = _factors(
                    norms.cpu().numpy() / self._clip_norm,
                    drawn.clips[first:last],
                    drawn.weights[first:last],
                )
                scaled = torch.from_numpy(factors * self._scale).to(self._device)
                for part in parts:
                    for some in torch.split(_towards_zero(part.rows(scaled)), MOST_TOGETHER):
                        totals[part.name] += some.sum(0, dtype=torch.float64).to(torch.int64)
        ordered = [self._gradients.in_order(name, total) for name, total in totals.items()]
        return torch.cat(ordered).cpu().numpy()

    def _of_owners(
        self, drawn: Drawn, its: slice, counts: NDArray[np.intp], read: Read
    ) -> tuple[list[Part], Tensor]:
        """Compute each owner's gradient, and its norm: the sum over records of the mean over variants."""
        rows, seeds = drawn.rows[its], drawn.seeds[its]
        variants = read(rows[: self._micro_batch], seeds[: self._micro_batch])
        if len(counts) == len(rows) and len(variants) == 1:
            return self._of_records(*variants[0], seeds, drawn.seed_of_all, 0)
        sums = {
            name: torch.zeros(len(counts), size, dtype=torch.float64, device=self._device)
            for name, size in self._sizes.items()
        }
        owner = torch.from_numpy(np.repeat(np.arange(len(counts)), counts)).to(self._device)
        for first in range(0, len(rows), self._micro_batch):
            some = slice(first, first + self._micro_batch)
            read_now = variants if first == 0 else read(rows[some], seeds[some])
            for number, (records, targets) in enumerate(read_now):
                share = torch.full((self._micro_batch,), 1 / len(variants), device=self._device)
                own = seeds[some], drawn.seed_of_all, number
                for part in self._of_records(records, targets, *own)[0]:
                    found = part.rows(share)[: len(records)]
                    sums[part.name].index_add_(0, owner[some], found.double())
        owners: list[Part] = [Rows(name, total) for name, total in sums.items()]
        return owners, _sound_norms(owners)

    def _of_records(
        self, records: Tensor, targets: Tensor, seeds: Tensor, seed_of_all: int, variant: int
    ) -> tuple[list[Part], Tensor]:
        """Compute gradients and norms of a micro-batch, filled up to its size; what is no number is 0."""
        missing = self._micro_batch - len(records)
        given = records, targets, others(seeds, variant)
        filled = (_filled(values, missing).to(self._device) for values in given)
        seed_generators(another(seed_of_all, variant))
        parts = self._gradients.parts(*filled)
        return parts, _sound_norms(parts)


def _factors(norms: Floats, clips: Floats, weights: Floats) -> Floats:
    """Find what gradients are multiplied by, to be within their clips; 0 for what is no number or nobody's.

    ``norms``: in units of the clip norm; behind those of the owners, of what a micro-batch was filled with.
    """
    filled = np.zeros((2, len(norms)))
    filled[:, : len(clips)] = clips, weights
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.minimum(filled[1], filled[0] / norms) * SLACK
    return np.where(np.isfinite(norms) & (norms > 0), factors, 0.0)


def _sound_norms(parts: list[Part]) -> Tensor:
    """Compute norms over all parts; gradients that are no numbers are made 0, whose factors will be 0."""
    norms = torch.stack([part.squared_norms() for part in parts]).sum(0).sqrt()
    unsound = ~torch.isfinite(norms)
    if bool(unsound.any()):
        for part in parts:
            part.forget(unsound)
    return norms


def _towards_zero(rows: Tensor) -> Tensor:
    if rows.device.type == "cpu":  # several times faster than PyTorch's own
        np.trunc(rows.numpy(), out=rows.numpy())
        return rows
    return rows.trunc_()


def _filled(values: Tensor, missing: int) -> Tensor:
    if not missing:
        return values
    return torch.cat([values, values.new_zeros((missing, *values.shape[1:]))])


def _together(
    starts: NDArray[np.intp], ends: NDArray[np.intp], most: int
) -> Iterator[tuple[int, int]]:
    """Split owners into runs with at most so many records; who has more is alone."""
    first = 0
    while first < len(starts):
        last = int(np.searchsorted(ends, starts[first] + most, side="right"))
        last = max(last, first + 1)
        yield first, last
        first = last
