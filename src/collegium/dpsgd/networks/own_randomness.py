"""Random numbers inside a private step: each record's own, whoever else is there.

What an owner may move a sum by is bounded by the owner's clip only if all others' contributions stay as they
are without that owner. So for any outcome of the randomness, a contribution may depend on its owner's own
records alone. Masks that are drawn one after the other from one generator break this: without the first
owner, everybody behind is given another mask, and under a known seed the sum moves by many clips.

Here everything random follows from a key that the operating system gives to the step, the owner's *name*,
and the record's number among that owner's records, never from a place in a batch or in the table. Given the
key, a contribution is then a function of its owner's records, and the sum moves by one clip at most,
whatever the key is; with the key drawn independently of the data, the guarantee follows as without random
layers (joint convexity, as for the coins). Where rows have no names, a row's position is its name, and the
same holds for rows that are blanked, as the neighbours of this guarantee are. Since nothing rests on masks
being hard to guess, a fast mixing of 64 bits is enough to make many of one key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F  # noqa: N812 (PyTorch's own name for it)
from numpy.typing import NDArray
from torch import Tensor
from torch.overrides import TorchFunctionMode

from collegium.dpsgd.sampling import Sample

_STEP = -7046029254386353131  # SplitMix64 (Steele, Lea & Flood 2014): 2^64 / golden ratio, made odd
_FIRST, _SECOND = -4658895280553007687, -7723592293110705685
_AXES_OF_A_UNIT: Mapping[Callable[..., Tensor], int] = {
    F.dropout: 0,
    F.dropout1d: 1,
    F.dropout2d: 2,
    F.dropout3d: 3,
}


def names_as_numbers(names: NDArray[Any]) -> NDArray[np.int64]:
    """Give each owner's name a number that depends on nothing else; 7 and "7" are one name."""
    text = np.array([str(name) for name in names.tolist()], dtype=object)
    hashed: NDArray[np.uint64] = pd.util.hash_array(text, categorize=False)
    return hashed.view(np.int64)


def seeds_of_records(
    sample: Sample, owners: NDArray[np.int64], numbers: NDArray[np.intp]
) -> Tensor:
    """Seed what is random about each record in one step.

    ``owners`` (n,): whose it is, as :func:`names_as_numbers` has it.
    ``numbers`` (n,): the record's number among its owner's.
    Returns (n,): int64.
    """
    own = _mixed(torch.from_numpy(owners) ^ _seed_of(sample, "records"))
    return _mixed(own + torch.from_numpy(numbers) * _STEP)


def seed_of_all(sample: Sample) -> int:
    """Seed what is random in one step and the same for all records."""
    return _seed_of(sample, "all records")


def another(seed: int, number: int) -> int:
    """Make one more seed of one, for a generator of Python, NumPy or PyTorch."""
    return _wrapped(seed + number * _STEP)


def others(seeds: Tensor, number: int) -> Tensor:
    """Make one more seed of each, for masks."""
    return _mixed(seeds + _wrapped(number * _STEP))


class OwnMasks(TorchFunctionMode):
    """While it is entered, dropout takes each record's mask from that record's seed.

    ``seeds`` (n,): of the records on the first axis; or of one record, shape (), to which everything belongs.
    """

    def __init__(self, seeds: Tensor) -> None:
        super().__init__()
        self._seeds, self._calls = seeds, 0

    def __torch_function__(
        self,
        func: Any,
        types: Sequence[Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """See TorchFunctionMode: every function of PyTorch is called through here."""
        if func in _AXES_OF_A_UNIT:
            return self._dropout(func, *args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))

    def _dropout(
        self,
        kind: Callable[..., Tensor],
        x: Tensor,
        p: float = 0.5,
        training: bool = True,
        inplace: bool = False,
    ) -> Tensor:
        if not training or not 0 < p < 1:  # nothing is drawn
            return kind(x, p, training, inplace)
        axes = 1 if kind is F.dropout2d and x.dim() == 3 else _AXES_OF_A_UNIT[kind]
        shape = (*x.shape[: x.dim() - axes], *[1] * axes)
        mask = self._kept(p, shape).to(x.dtype) * (1 / (1 - p))
        return x.mul_(mask) if inplace else x * mask

    def _kept(self, p: float, shape: tuple[int, ...]) -> Tensor:
        """Draw which units stay, each with probability 1 - p."""
        units = int(np.prod(shape)) // self._seeds.numel()
        self._calls += 1
        seeds = others(self._seeds, self._calls)
        places = torch.arange(units, device=seeds.device) * _STEP
        return (_mixed(seeds.unsqueeze(-1) + places) >= int(p * 2.0**64) - 2**63).reshape(shape)


def _seed_of(sample: Sample, what: str) -> int:
    key = hashlib.shake_256((sample.key or b"") + what.encode()).digest(8)
    return int.from_bytes(key, "little", signed=True)


def _wrapped(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def _mixed(words: Tensor) -> Tensor:
    """SplitMix64's mixing, in int64: products wrap, and shifts fill up with zeros."""
    words = (words ^ ((words >> 30) & (2**34 - 1))) * _FIRST
    words = (words ^ ((words >> 27) & (2**37 - 1))) * _SECOND
    return words ^ ((words >> 31) & (2**33 - 1))
