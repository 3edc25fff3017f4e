"""Gradients of single records of common layers, from one pass forwards and one backwards over the errors.

A layer's gradient for a record is made of what went into the layer and of the error that comes back to it:
one pass over a whole micro-batch gives both for every record. No hooks, and no gradients of parameters.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (PyTorch's own name for it)
from torch import Tensor, nn

from collegium.dpsgd.networks.errors import Loss, errors_of
from collegium.dpsgd.networks.own_randomness import OwnMasks
from collegium.dpsgd.networks.parts import Outer, Part, Rows
from collegium.models.neural.by_hand.layers import Workspace

_APART = (
    nn.Identity, nn.Tanh, nn.Sigmoid, nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.SELU, nn.GELU, nn.SiLU,
    nn.Mish, nn.Softplus, nn.Softsign, nn.Hardtanh, nn.Hardswish, nn.Dropout, nn.MaxPool2d, nn.AvgPool2d,
    nn.AdaptiveAvgPool2d,
)  # fmt: skip
"""Layers without parameters that treat each record by itself, whatever their settings."""


def handles(module: nn.Module) -> bool:
    """Tell whether a network is a plain sequence of layers whose gradients are known here.

    Nothing in such a sequence can mix records: each type is one whose meaning is known, and no subclass.
    """
    layers = list(_flat(module, ""))
    parameters = [id(p) for _, layer in layers for p in layer.parameters(recurse=False)]
    whole = {id(p) for p in module.parameters()}
    return len(parameters) == len(whole) and all(_is_known(layer) for _, layer in layers)


def _is_known(layer: nn.Module) -> bool:
    if layer._forward_hooks or layer._forward_pre_hooks or hasattr(layer, "parametrizations"):
        return False
    kind = type(layer)
    if kind in _APART:
        return not getattr(layer, "inplace", False)
    if isinstance(layer, nn.Flatten):
        return kind is nn.Flatten and layer.start_dim >= 1
    if isinstance(layer, nn.Conv2d):
        plain = layer.groups == 1 and layer.padding_mode == "zeros"
        return kind is nn.Conv2d and plain and not isinstance(layer.padding, str)
    return kind in (nn.Linear, nn.GroupNorm, nn.LayerNorm)


def _flat(module: nn.Module, path: str) -> Iterator[tuple[str, nn.Module]]:
    if type(module) is not nn.Sequential:
        yield path, module
        return
    for name, inner in module._modules.items():  # also those that occur twice
        assert inner is not None
        yield from _flat(inner, f"{path}.{name}" if path else name)


class ByLayer:
    """Gradients of the records of a micro-batch, for sequences that :func:`handles` accepts."""

    def __init__(self, module: nn.Module, loss: Loss, device: torch.device) -> None:
        self._loss = loss
        self._layers: list[_Known | nn.Module] = []
        for path, layer in _flat(module, ""):
            known = _KNOWN.get(type(layer))
            trained = any(p.requires_grad for p in layer.parameters(recurse=False))
            self._layers.append(known(path, layer, device) if known and trained else layer)
        self._known = [layer for layer in self._layers if isinstance(layer, _Known)]
        self._images_last = device.type == "cpu"

    def parts(self, records: Tensor, targets: Tensor, seeds: Tensor) -> list[Part]:
        """Compute the gradients of all records. **Sensitive.**"""
        x = records
        if self._images_last and x.dim() == 4:
            x = _channels_last(x)
        with torch.enable_grad(), OwnMasks(seeds):
            for layer in self._layers:
                x = layer.forward(x)
        errors = errors_of(self._loss, x.detach(), targets).contiguous()  # scaled in place later
        outputs = [layer.output for layer in self._known]
        found = torch.autograd.grad(x, outputs, errors)
        made: list[Part] = []
        for layer, error in zip(self._known, found, strict=True):
            made += layer.parts(error)
        return made

    def in_order(self, name: str, total: Tensor) -> Tensor:
        """Bring a sum of gradients of one parameter into the order of the parameter's entries."""
        for layer in self._known:
            if name == f"{layer.path}weight":
                return layer.in_order(total)
        return total


class _Known(ABC):
    """A layer whose gradients are known: it remembers what went in and, for errors, what came out."""

    def __init__(self, path: str, module: nn.Module, device: torch.device) -> None:
        self.path = f"{path}." if path else ""
        self.memory = Workspace(device)
        self.input = self.output = torch.empty(0)
        self.trained = {n for n, p in module.named_parameters(recurse=False) if p.requires_grad}

    def forward(self, x: Tensor) -> Tensor:
        """Compute the output, from which errors will be asked for."""
        self.input = x.detach()
        self.output = self.compute(x)
        if not self.output.requires_grad:
            self.output.requires_grad_()
        return self.output

    def parts(self, errors: Tensor) -> list[Part]:
        """Make the parts of all trained parameters."""
        made = [self.weight(errors)] if "weight" in self.trained else []
        if "bias" in self.trained:
            made.append(Rows(f"{self.path}bias", self.bias(errors)))
        return made

    def in_order(self, total: Tensor) -> Tensor:
        """Bring the weight's sum into its parameter's order."""
        return total

    @abstractmethod
    def compute(self, x: Tensor) -> Tensor:
        """Apply the layer, with its parameters as constants."""

    @abstractmethod
    def weight(self, errors: Tensor) -> Part:
        """Make the gradients of the weight."""

    @abstractmethod
    def bias(self, errors: Tensor) -> Tensor:
        """Make the gradients of the bias, shape (n, size)."""


def _constant(parameter: Tensor | None) -> Tensor | None:
    return None if parameter is None else parameter.detach()


class _Dense(_Known):
    def __init__(self, path: str, module: nn.Linear, device: torch.device) -> None:
        super().__init__(path, module, device)
        self.module = module

    def compute(self, x: Tensor) -> Tensor:
        return F.linear(x, self.module.weight.detach(), _constant(self.module.bias))

    def weight(self, errors: Tensor) -> Part:
        name, shape = f"{self.path}weight", (len(errors), *self.module.weight.shape)
        into = self.memory.take("rows", *shape, dtype=errors.dtype)
        if errors.dim() == 2:
            return Outer(name, errors, self.input, into)
        places = errors.flatten(1, -2), self.input.flatten(1, -2)
        torch.bmm(places[0].mT, places[1], out=into)
        return Rows(name, into.flatten(1))

    def bias(self, errors: Tensor) -> Tensor:
        return errors if errors.dim() == 2 else errors.flatten(1, -2).sum(1)


class _Convolution(_Known):
    def __init__(self, path: str, module: nn.Conv2d, device: torch.device) -> None:
        super().__init__(path, module, device)
        self.module = module
        self.settings: Any = (module.stride, module.padding, module.dilation)
        self.down, self.across = (int(pad) for pad in module.padding)

    def compute(self, x: Tensor) -> Tensor:
        weight = self.module.weight.detach()
        if x.is_contiguous(memory_format=torch.channels_last):
            weight = _channels_last(weight)
        return F.conv2d(x, weight, _constant(self.module.bias), *self.settings)

    def weight(self, errors: Tensor) -> Part:
        """Multiply errors with what lay under them: kernels as (height, width, channels)."""
        n, kernels = errors.shape[:2]
        under = self._patches(*errors.shape[2:])
        flat = errors.permute(0, 2, 3, 1).reshape(n, -1, kernels)
        into = self.memory.take("rows", n, kernels, under.shape[2], dtype=errors.dtype)
        torch.bmm(flat.mT, under, out=into)
        return Rows(f"{self.path}weight", into.flatten(1))

    def _patches(self, height: int, width: int) -> Tensor:
        x = self.input.permute(0, 2, 3, 1)
        padded = F.pad(x, (0, 0, self.across, self.across, self.down, self.down)).contiguous()
        n, _, _, channels = padded.shape
        whole, by_row, by_column, by_channel = padded.stride()
        (down, across), (tall, wide) = self.module.stride, self.module.kernel_size
        (spread_down, spread_across) = self.module.dilation
        seen = padded.as_strided(
            (n, height, width, tall, wide, channels),
            (
                whole,
                by_row * int(down),
                by_column * int(across),
                by_row * int(spread_down),
                by_column * int(spread_across),
                by_channel,
            ),
        )
        patches = self.memory.take("patches", *seen.shape, dtype=x.dtype)
        patches.copy_(seen)
        return patches.view(n, height * width, -1)

    def bias(self, errors: Tensor) -> Tensor:
        return errors.sum((2, 3))

    def in_order(self, total: Tensor) -> Tensor:
        kernels, channels, height, width = self.module.weight.shape
        return total.view(kernels, height, width, channels).permute(0, 3, 1, 2).flatten()


class _Normalisation(_Known):
    """Normalisation within a record: of groups of channels, or of the last axes."""

    def __init__(
        self, path: str, module: nn.GroupNorm | nn.LayerNorm, device: torch.device
    ) -> None:
        super().__init__(path, module, device)
        self.module = module

    def compute(self, x: Tensor) -> Tensor:
        return self._applied(x, _constant(self.module.weight), _constant(self.module.bias))

    def _applied(self, x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
        if isinstance(self.module, nn.GroupNorm):
            return F.group_norm(x, self.module.num_groups, weight, bias, self.module.eps)
        shape = list(self.module.normalized_shape)
        return F.layer_norm(x, shape, weight, bias, self.module.eps)

    def weight(self, errors: Tensor) -> Part:
        normal = self._applied(self.input, None, None)
        return Rows(f"{self.path}weight", self.bias(errors * normal))

    def bias(self, errors: Tensor) -> Tensor:
        if isinstance(self.module, nn.GroupNorm):
            return errors.flatten(2).sum(2) if errors.dim() > 2 else errors
        size = math.prod(self.module.normalized_shape)
        return errors.reshape(len(errors), -1, size).sum(1)


_KNOWN = {
    nn.Linear: _Dense,
    nn.Conv2d: _Convolution,
    nn.GroupNorm: _Normalisation,
    nn.LayerNorm: _Normalisation,
}


def _channels_last(images: Tensor) -> Tensor:
    """Lay channels beside each other, also where there is but one, so that what follows is, too."""
    return torch.empty_like(images, memory_format=torch.channels_last).copy_(images)
