"""Many networks of one kind, trained and asked together: what every way of batching them offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F  # noqa: N812 (PyTorch's own name for it)
from torch import Tensor, nn

from collegium.models.neural.by_hand.layers import Layer, Step
from collegium.models.neural.layout import Layout, Slot
from collegium.models.neural.randomness import seeded

Masks = dict[str, Tensor]


@dataclass(frozen=True)
class StepInput:
    """What belongs to one training step besides records and targets.

    ``sizes``: records of each network.
    ``masks``: what each dropout layer multiplies with, shape (k, width, *units).
    ``seeds``: for networks that draw from PyTorch's global generator.
    """

    sizes: list[int]
    masks: Masks = field(default_factory=dict)
    seeds: list[int] = field(default_factory=list)


class Stack(ABC):
    """Room for several networks of one kind, one per row.

    A call works on the first k rows, k being the number of networks that records are given for.

    ``layout``: how a network lies in a row.
    ``rows``: how many networks there is room for.
    ``trained``, ``gradients`` (rows, layout.n_trained): parameters, and the gradients of the last
        step.
    ``buffers`` (rows, layout.n_buffers): running averages.
    """

    #: Whether a step may hold fewer records of some networks than of others.
    takes_unequal_steps: bool

    def __init__(self, layout: Layout, rows: int, device: torch.device) -> None:
        self.layout = layout
        self.device = device
        self.trained = torch.zeros(rows, layout.n_trained, device=device)
        self.gradients = torch.zeros(rows, layout.n_trained, device=device)
        self.buffers = torch.zeros(rows, layout.n_buffers, device=device)

    def put(self, row: int, trained: Tensor, buffers: Tensor) -> None:
        """Write one network into a row."""
        self.trained[row] = trained
        self.buffers[row] = buffers

    def move(self, rows: Sequence[int]) -> None:
        """Move the networks of these rows, which ascend, to the first rows."""
        for place, row in enumerate(rows):
            if place != row:
                self.put(place, self.trained[row], self.buffers[row])

    @abstractmethod
    def backpropagate(self, x: Tensor, targets: Tensor, step: StepInput) -> None:
        """Write the gradients of every network's mean loss, and update its running averages.

        ``x`` (k, width, *record): records; those of network i beyond ``step.sizes[i]`` are absent,
            whatever they hold.
        ``targets`` (k, width, n_classes): probabilities.
        ``step``: how many records each network has, and its random numbers.
        """

    @abstractmethod
    def logits(self, x: Tensor) -> Tensor:
        """Ask every network about its records: (k, n, *record) to (k, n, n_classes)."""


class HandBatched(Stack):
    """Networks made of layers that :mod:`collegium.models.neural.by_hand.layers` knows.

    ``layers`` (name, Layer): in order, with the name of the module that each stands for.
    """

    takes_unequal_steps = True

    def __init__(
        self,
        layout: Layout,
        rows: int,
        device: torch.device,
        layers: Sequence[tuple[str, Layer]],
    ) -> None:
        super().__init__(layout, rows, device)
        self._layers = [layer for _, layer in layers]
        values = layout.views(self.trained, layout.trained)
        values.update(layout.views(self.buffers, layout.buffers))
        gradients = layout.views(self.gradients, layout.trained)
        for name, layer in layers:
            layer.see(_of(name, values), _of(name, gradients))
        learning = [number for number, layer in enumerate(self._layers) if layer.gradients]
        self._first = learning[0] if learning else len(self._layers)

    def backpropagate(self, x: Tensor, targets: Tensor, step: StepInput) -> None:
        """See :meth:`Stack.backpropagate`."""
        masks = {name: _channels_last(mask) for name, mask in step.masks.items()}
        shared = Step(step.sizes, x.shape[1], self.device, masks)
        with torch.no_grad():
            gradient = torch.softmax(self._forward(x, shared), dim=2)
            gradient -= targets
            gradient /= shared.counts
            if shared.present is not None:
                gradient *= shared.present
            for number in range(len(self._layers) - 1, self._first - 1, -1):
                gradient = self._layers[number].backward(gradient, number > self._first)

    def logits(self, x: Tensor) -> Tensor:
        """See :meth:`Stack.logits`."""
        with torch.no_grad():
            return self._forward(x, None)

    def _forward(self, x: Tensor, step: Step | None) -> Tensor:
        x = _channels_last(x)
        for layer in self._layers:
            x = layer.forward(x, step)
        return x


def _of(module: str, tensors: Masks) -> Masks:
    """Pick the tensors of one module, by their names in it."""
    return {
        name.removeprefix(module + "."): value
        for name, value in tensors.items()
        if name.rpartition(".")[0] == module
    }


def _channels_last(x: Tensor) -> Tensor:
    return x.permute(0, 1, 3, 4, 2).contiguous() if x.dim() == 5 else x


class Functional(Stack):
    """Networks of any kind: one function of stacked parameters, mapped over them by ``torch.func``.

    ``network``: the kind; its own parameters are not used. Dropout layers have been replaced by
        :class:`~collegium.models.neural.randomness.MaskedDropout`.
    ``precision``: what PyTorch's automatic mixed precision uses.
    ``singly``: call the network for one teacher after another, each time with PyTorch's global
        generator seeded: for networks that cannot be mapped, or that draw random numbers of their
        own.
    """

    takes_unequal_steps = False

    def __init__(
        self,
        layout: Layout,
        rows: int,
        device: torch.device,
        network: nn.Module,
        precision: torch.dtype,
        singly: bool,
    ) -> None:
        super().__init__(layout, rows, device)
        self._network = network.to(device)
        self._precision = precision
        self.singly = singly

    def backpropagate(self, x: Tensor, targets: Tensor, step: StepInput) -> None:
        """See :meth:`Stack.backpropagate`."""
        self._network.train()
        if self.singly:
            for row, (size, seed) in enumerate(zip(step.sizes, step.seeds, strict=True)):
                with seeded(seed):
                    self._same_size([row], size, x, targets, step.masks)
            return
        for size in sorted(set(step.sizes)):
            rows = [row for row, own in enumerate(step.sizes) if own == size]
            self._same_size(rows, size, x, targets, step.masks)

    def logits(self, x: Tensor) -> Tensor:
        """See :meth:`Stack.logits`."""
        self._network.eval()
        with torch.no_grad():
            if self.singly:
                return torch.stack(
                    [self._call(*self._state([row], 0), x[row]).float() for row in range(len(x))]
                )
            ask = torch.func.vmap(self._call)
            result: Tensor = ask(*self._state(list(range(len(x)))), x).float()
        return result

    def _same_size(
        self, rows: list[int], size: int, x: Tensor, targets: Tensor, masks: Masks
    ) -> None:
        def loss(
            trained: Masks, buffers: Masks, masks: Masks, x: Tensor, targets: Tensor
        ) -> tuple[Tensor, Masks]:
            own = {name: value.clone() for name, value in buffers.items()}
            logits = self._call(trained, {**own, **masks}, x)
            return F.cross_entropy(logits.float(), targets), own

        gradient_of = torch.func.grad(loss, has_aux=True)
        if self.singly:
            row = rows[0]
            given = {name: mask[row, :size] for name, mask in masks.items()}
            results = gradient_of(*self._state(rows, 0), given, x[row, :size], targets[row, :size])
        else:
            given = {name: mask[rows, :size] for name, mask in masks.items()}
            results = torch.func.vmap(gradient_of, randomness="error")(
                *self._state(rows), given, x[rows, :size], targets[rows, :size]
            )
        self._write(self.gradients, self.layout.trained, rows, results[0])
        self._write(self.buffers, self.layout.buffers, rows, results[1])

    def _call(self, trained: Masks, buffers: Masks, x: Tensor) -> Tensor:
        mixed = self._precision != torch.float32
        with torch.autocast(self.device.type, torch.bfloat16, enabled=mixed):
            result: Tensor = torch.func.functional_call(self._network, (trained, buffers), (x,))
        return result

    def _state(self, rows: list[int], only: int | None = None) -> tuple[Masks, Masks]:
        trained = self.layout.views(self.trained[rows], self.layout.trained)
        buffers = self.layout.views(self.buffers[rows], self.layout.buffers)
        for slot in self.layout.buffers:
            buffers[slot.name] = buffers[slot.name].to(slot.dtype)
        if only is None:
            return trained, buffers
        return (
            {name: value[only] for name, value in trained.items()},
            {name: value[only] for name, value in buffers.items()},
        )

    @staticmethod
    def _write(target: Tensor, slots: tuple[Slot, ...], rows: list[int], values: Masks) -> None:
        for slot in slots:
            columns = slice(slot.offset, slot.offset + slot.size)
            value = values[slot.name].detach().reshape(len(rows), slot.size)
            target[rows, columns] = value.to(target.dtype)
