"""Parameters and buffers of a network as one row of numbers, so that teachers stack into matrices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

# Every tensor starts on a cache line (16 floats of 4 bytes); the numbers in between stay 0.
_ALIGNMENT = 16


@dataclass(frozen=True)
class Slot:
    """Where one tensor lies in a row.

    ``name``: its name in the network's state.
    ``stored_shape``: its shape in the row.
    ``planes``: (outputs, channels, height, width) of a tensor that is stored with channels last.
    ``offset``: position of its first number.
    ``dtype``: its type in the network's state.
    """

    name: str
    shape: tuple[int, ...]
    stored_shape: tuple[int, ...]
    planes: tuple[int, int, int, int] | None
    offset: int
    dtype: torch.dtype

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)

    def store(self, value: Tensor) -> Tensor:
        """Order a tensor of the network's state as in the row, shape (size,)."""
        if self.planes is not None:
            value = value.reshape(self.planes).permute(0, 2, 3, 1)
        return value.reshape(-1)

    def restore(self, stored: Tensor) -> Tensor:
        """Undo :meth:`store`."""
        if self.planes is not None:
            outputs, channels, height, width = self.planes
            stored = stored.reshape(outputs, height, width, channels).permute(0, 3, 1, 2)
        return stored.reshape(self.shape).to(self.dtype)


class Layout:
    """How a network's tensors lie in two rows: one that is trained, one of buffers.

    ``network``: its parameters that require gradients make the first row; its other parameters and
        buffers (running averages) the second.
    ``channels_last``: names of weights that are stored with channels last, and the (channels,
        height, width) that each of their outputs sees.

    Examples
    --------
    >>> layout = Layout(nn.Linear(3, 2))
    >>> trained, buffers = layout.pack(nn.Linear(3, 2).state_dict())
    >>> trained.shape, buffers.shape
    (torch.Size([32]), torch.Size([0]))
    >>> sorted(layout.unpack(trained, buffers))
    ['bias', 'weight']
    """

    def __init__(
        self, network: nn.Module, channels_last: Mapping[str, tuple[int, int, int]] | None = None
    ) -> None:
        planes = channels_last or {}
        trained = [
            (name, value) for name, value in network.named_parameters() if value.requires_grad
        ]
        fixed = [
            *(
                (name, value)
                for name, value in network.named_parameters()
                if not value.requires_grad
            ),
            *network.named_buffers(),
        ]
        self.trained, self.n_trained = _slots(trained, planes)
        self.buffers, self.n_buffers = _slots(fixed, {})

    def pack(self, state: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Write a network's state into two rows of float32, shapes (n_trained,) and (n_buffers,)."""
        rows = torch.zeros(self.n_trained), torch.zeros(self.n_buffers)
        for row, slots in zip(rows, (self.trained, self.buffers), strict=True):
            for slot in slots:
                row[slot.offset : slot.offset + slot.size] = slot.store(state[slot.name].detach())
        return rows

    def unpack(self, trained: Tensor, buffers: Tensor) -> dict[str, Tensor]:
        """Read a network's state out of two rows."""
        return {
            slot.name: slot.restore(row[slot.offset : slot.offset + slot.size])
            for row, slots in ((trained, self.trained), (buffers, self.buffers))
            for slot in slots
        }

    def views(self, stacked: Tensor, slots: Iterable[Slot]) -> dict[str, Tensor]:
        """See the columns of stacked rows, shape (k, length), as tensors of shape (k, *stored_shape)."""
        return {
            slot.name: stacked[:, slot.offset : slot.offset + slot.size].view(
                -1, *slot.stored_shape
            )
            for slot in slots
        }


def _slots(
    tensors: Iterable[tuple[str, Tensor]], planes: Mapping[str, tuple[int, int, int]]
) -> tuple[tuple[Slot, ...], int]:
    slots = []
    offset = 0
    for name, value in tensors:
        shape = tuple(value.shape)
        stored_shape = shape
        image = planes.get(name)
        if image is not None:
            channels, height, width = image
            stored_shape = (shape[0], height, width, channels)
            if len(shape) == 2:  # a linear layer behind a flattened image
                stored_shape = (shape[0], height * width * channels)
        whole = None if image is None else (shape[0], *image)
        slots.append(Slot(name, shape, stored_shape, whole, offset, value.dtype))
        offset += -(-math.prod(shape) // _ALIGNMENT) * _ALIGNMENT
    return tuple(slots), offset
