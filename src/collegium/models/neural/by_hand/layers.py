"""Layers of many networks at once, each with its gradient written by hand.

Images are held as (networks, records, height, width, channels), vectors as (networks, records, units).
Writing gradients by hand, into memory that is kept from step to step, is what makes training on a
processor fast: the usual way spends more time on fresh memory and passes over it than on arithmetic.

A step may hold fewer records of some networks than of others. Missing ones are rows at the end, whose
contents are arbitrary but finite, and whose gradients are 0; only batch normalisation has to know them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (PyTorch's own name for it)
from torch import Tensor, nn

_aten = torch.ops.aten


class Step:
    """What layers need to know about a training step.

    ``sizes``: records of each network.
    ``device``: where the work is done.
    ``masks``: for each dropout layer (by its name), what it multiplies with, shape (k, width,
        *units).
    ``present`` (k, width, 1): 1 where a record is, 0 where none is; None if all networks have
        equally many.
    ``counts`` (k, 1, 1): records of each network.
    """

    def __init__(
        self,
        sizes: list[int],
        width: int,
        device: torch.device,
        masks: dict[str, Tensor] | None = None,
    ) -> None:
        self.width = width
        self.masks = masks or {}
        counts = torch.tensor(sizes, dtype=torch.float32, device=device)
        self.counts = counts[:, None, None]
        self.present: Tensor | None = None
        if min(sizes) < width:
            places = torch.arange(width, device=device)
            self.present = (places[None, :] < counts[:, None]).float()[:, :, None]


class Workspace:
    """Memory that is kept from step to step, by name; it grows when more is asked for."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._kept: dict[str, Tensor] = {}

    def take(self, name: str, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return memory of a shape, with whatever it held before."""
        size = math.prod(shape)
        kept = self._kept.get(name)
        if kept is None or kept.numel() < size:
            kept = self._kept[name] = torch.zeros(size, dtype=dtype, device=self._device)
        return kept[:size].view(shape)

    def __getstate__(self) -> Any:
        raise TypeError("a workspace holds what passed through a network, and is never stored")


class Layer(ABC):
    """One layer of k networks."""

    def __init__(self, device: torch.device) -> None:
        self.memory = Workspace(device)
        self.values: dict[str, Tensor] = {}
        self.gradients: dict[str, Tensor] = {}

    def see(self, values: dict[str, Tensor], gradients: dict[str, Tensor]) -> None:
        """Take note of where parameters and buffers lie, and where gradients are to be written."""
        self.values, self.gradients = values, gradients

    @abstractmethod
    def forward(self, x: Tensor, step: Step | None) -> Tensor:
        """Compute the output; ``step`` is None when the networks are only asked."""

    @abstractmethod
    def backward(self, gradient: Tensor, wanted: bool) -> Tensor:
        """Write the parameters' gradients, and return the input's if it is ``wanted``."""


class LinearLayer(Layer):
    """A dense layer."""

    def __init__(self, module: nn.Linear, device: torch.device, precision: torch.dtype) -> None:
        super().__init__(device)
        self.units = module.out_features
        self.has_bias = module.bias is not None
        self.precision = precision

    def forward(self, x: Tensor, step: Step | None) -> Tensor:
        """Compute x Wᵀ + b."""
        k, records = x.shape[:2]
        weight = self.values["weight"][:k]
        out = self.memory.take("out", k, records, self.units)
        if self.precision != torch.float32:
            x, weight = x.to(self.precision), weight.to(self.precision)
            out.copy_(torch.bmm(x, weight.mT))
        elif k == 1:
            torch.mm(x[0], weight[0].T, out=out[0])
        else:
            torch.bmm(x, weight.mT, out=out)
        self.x, self.weight = x, weight
        if self.has_bias:
            out += self.values["bias"][:k, None]
        return out

    def backward(self, gradient: Tensor, wanted: bool) -> Tensor:
        """Compute the gradients of W (gᵀ x), b (Σ g) and x (g W)."""
        k = len(gradient)
        if self.has_bias:
            torch.sum(gradient, dim=1, out=self.gradients["bias"][:k])
        if self.precision != torch.float32:
            gradient = gradient.to(self.precision)
            self.gradients["weight"][:k] = torch.bmm(gradient.mT, self.x)
            return torch.bmm(gradient, self.weight).float() if wanted else gradient
        grad_weight = self.gradients["weight"][:k]
        if k == 1:
            torch.mm(gradient[0].T, self.x[0], out=grad_weight[0])
        else:
            torch.bmm(gradient.mT, self.x, out=grad_weight)
        if not wanted:
            return gradient
        grad_x = self.memory.take("grad_x", *self.x.shape)
        if k == 1:
            torch.mm(gradient[0], self.weight[0], out=grad_x[0])
        else:
            torch.bmm(gradient, self.weight, out=grad_x)
        return grad_x


class ReLULayer(Layer):
    """The positive part; over its input where the layer before does not need that any more."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self.in_place = False

    def forward(self, x: Tensor, step: Step | None) -> Tensor:
        """Compute max(x, 0)."""
        self.out = x.relu_() if self.in_place else torch.relu(x)
        return self.out

    def backward(self, gradient: Tensor, wanted: bool) -> Tensor:
        """Let through what passed, over the gradient given."""
        _aten.threshold_backward.grad_input(gradient, self.out, 0, grad_input=gradient)
        return gradient


class FlattenLayer(Layer):
    """Images to vectors. Weights behind it are stored in the order that results, channels last."""

    def forward(self, x: Tensor, step: Step | None) -> Tensor:
        """Join all axes of a record."""
        self.shape = x.shape
        return x.reshape(*x.shape[:2], -1)

    def backward(self, gradient: Tensor, wanted: bool) -> Tensor:
        """Give records their axes back."""
        return gradient.reshape(self.shape)


class DropoutLayer(Layer):
    """Multiplication with masks that were drawn for each network from its own generator."""

    def __init__(self, name: str, device: torch.device) -> None:
        super().__init__(device)
        self.name = name

    def forward(self, x: Tensor, step: Step | None) -> Tensor:
        """Leave units out in training."""
        if step is None:
            return x
        self.mask = step.masks[self.name]
        return torch.mul(x, self.mask, out=self.memory.take("out", *x.shape))

    def backward(self, gradient: Tensor, wanted: bool) -> Tensor:
        """Leave the same units out."""
        return gradient.mul_(self.mask)


class AutomaticLayer(Layer):
    """Any layer without parameters that treats records one by one, differentiated by PyTorch."""

    def __init__(self, module: nn.Module, device: torch.device) -> None:
        super().__init__(device)
        self.module = module

    def forward(self, x: Tensor, step: Step | None) -> Tensor:
        """Call the module on all networks' records together."""
        records = x.flatten(0, 1)
        if x.dim() == 5:
            records = records.permute(0, 3, 1, 2)
        self.input = records.detach().requires_grad_(step is not None)
        with torch.set_grad_enabled(step is not None):
            self.output: Tensor = self.module(self.input)
        out: Tensor = self.output.detach()
        if x.dim() == 5:
            out = out.permute(0, 2, 3, 1)
        self.shape = x.shape
        return out.reshape(*x.shape[:2], *out.shape[1:])

    def backward(self, gradient: Tensor, wanted: bool) -> Tensor:
        """Ask PyTorch."""
        records = gradient.flatten(0, 1)
        if gradient.dim() == 5:
            records = records.permute(0, 3, 1, 2)
        (grad_x,) = torch.autograd.grad(self.output, self.input, records)
        if len(self.shape) == 5:
            grad_x = grad_x.permute(0, 2, 3, 1)
        return grad_x.reshape(self.shape).contiguous()


class MaxPoolLayer(Layer):
    """The maximum over windows of an image."""

    def __init__(self, module: nn.MaxPool2d, device: torch.device) -> None:
        super().__init__(device)
        self.how = (
            _pair(module.kernel_size),
            _pair(module.stride),
            _pair(module.padding),
            _pair(module.dilation),
            module.ceil_mode,
        )

    def forward(self, x: Tensor, step: Step | None) -> Tensor:
        """Find the maximum of each window, and where it is."""
        self.planes = x.flatten(0, 1).permute(0, 3, 1, 2)
        out, self.where = F.max_pool2d_with_indices(self.planes, *self.how)
        return _as_networks(out, len(x))

    def backward(self, gradient: Tensor, wanted: bool) -> Tensor:
        """Send gradients to where the maxima were."""
        k, records, _, _, channels = gradient.shape
        grad_x = self.memory.take("grad_x", len(self.planes), *self.planes.shape[2:], channels)
        _aten.max_pool2d_with_indices_backward.grad_input(
            gradient.flatten(0, 1).permute(0, 3, 1, 2),
            self.planes,
            *self.how,
            self.where,
            grad_input=grad_x.permute(0, 3, 1, 2),
        )
        return grad_x.view(k, records, *grad_x.shape[1:])


def _pair(value: Any) -> list[int]:
    return [value, value] if isinstance(value, int) else list(value)


def _as_networks(planes: Tensor, k: int) -> Tensor:
    """Turn (k · records, channels, height, width) into (k, records, height, width, channels)."""
    last = planes.permute(0, 2, 3, 1).contiguous()
    return last.view(k, -1, *last.shape[1:])
