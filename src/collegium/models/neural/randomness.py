"""Every teacher's random numbers come from generators of its own, however teachers are grouped."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from collegium.models.global_generators import kept_generators


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed PyTorch's global generators, and put them back afterwards; one thread at a time.

    Examples
    --------
    >>> with seeded(1):
    ...     first = torch.rand(2)
    >>> with seeded(1):
    ...     again = torch.rand(2)
    >>> torch.equal(first, again)
    True
    """
    with kept_generators():
        torch.manual_seed(seed)
        yield


class MaskedDropout(nn.Module):
    """Dropout whose mask is given instead of drawn, as the buffer ``mask``."""

    mask: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.ones(()), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Multiply with the mask in training, do nothing otherwise."""
        return x * self.mask if self.training else x


@dataclass(frozen=True)
class DropoutPlace:
    """A dropout layer of a network.

    ``share``: what share of units it leaves out.
    ``units``: shape of what one record is multiplied with.
    """

    name: str
    share: float
    units: tuple[int, ...]

    def draw(self, records: int, generator: torch.Generator) -> Tensor:
        """Draw masks for records of one teacher, shape (records, *units)."""
        kept = torch.rand(records, *self.units, generator=generator) >= self.share
        return kept.float() / (1 - self.share) if self.share < 1 else torch.zeros_like(kept).float()


def replace_dropout(network: nn.Module, x: Tensor) -> tuple[nn.Module, list[DropoutPlace]]:
    """Copy a network, with masks to be given where dropout was.

    ``network``: left as it is.
    ``x`` (n, *record): passed through the network to see shapes; any values.
    Returns ``network``: with :class:`MaskedDropout` for every ``Dropout`` and ``Dropout2d``.
    Returns ``places``: the masks that it needs.
    """
    copied = copy.deepcopy(network).eval()
    shapes: dict[str, torch.Size] = {}
    found = {
        name: module
        for name, module in copied.named_modules()
        if type(module) in (nn.Dropout, nn.Dropout2d)
    }

    def watch(name: str) -> torch.utils.hooks.RemovableHandle:
        def note(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            shapes[name] = inputs[0].shape[1:]

        handle: torch.utils.hooks.RemovableHandle = found[name].register_forward_pre_hook(note)
        return handle

    handles = [watch(name) for name in found]
    with torch.no_grad():
        copied(x)
    for handle in handles:
        handle.remove()
    places = []
    for name, shape in shapes.items():
        module = found[name]
        units = tuple(shape)
        if type(module) is nn.Dropout2d:
            units = (units[0], *(1 for _ in units[1:]))
        places.append(DropoutPlace(name, float(module.p), units))
        parent, _, attribute = name.rpartition(".")
        setattr(copied.get_submodule(parent), attribute, MaskedDropout())
    return copied, places
