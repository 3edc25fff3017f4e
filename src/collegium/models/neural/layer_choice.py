"""Which layers are differentiated by hand, and which layer of ours stands for which of PyTorch's."""

from __future__ import annotations

import torch
from torch import nn

from collegium.models.neural.by_hand.convolution import ConvolutionLayer
from collegium.models.neural.by_hand.layers import (
    AutomaticLayer,
    DropoutLayer,
    FlattenLayer,
    Layer,
    LinearLayer,
    MaxPoolLayer,
    ReLULayer,
)
from collegium.models.neural.by_hand.normalisation import BatchNormLayer, NormalisedMaximumLayer

_ELEMENTWISE = (
    nn.ELU,
    nn.GELU,
    nn.Hardswish,
    nn.LeakyReLU,
    nn.ReLU6,
    nn.SiLU,
    nn.Sigmoid,
    nn.Softplus,
    nn.Tanh,
)
_PLANAR = (nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d, nn.AvgPool2d, nn.ZeroPad2d)


def _leaves(network: nn.Module, prefix: str = "") -> list[tuple[str, nn.Module]] | None:
    """List a network's layers in order, or None if it is more than layers in a row."""
    if type(network) is not nn.Sequential:
        return None
    leaves: list[tuple[str, nn.Module]] = []
    for name, module in network.named_children():
        if type(module) is nn.Sequential:
            leaves += _leaves(module, f"{prefix}{name}.") or []
        else:
            leaves.append((prefix + name, module))
    return leaves


def layers_by_hand(
    network: nn.Module, input_shape: tuple[int, ...], device: torch.device, precision: torch.dtype
) -> list[tuple[str, Layer]] | None:
    """Find a layer of ours for each of a network's, or None if there is none for one of them.

    ``network``: only layers in a row can be found.
    ``device``: where the layers keep their memory.
    Returns: with the name of the module that each stands for.
    """
    leaves = _leaves(network)
    if leaves is None or len({id(module) for _, module in leaves}) < len(leaves):
        return None
    if not all(parameter.requires_grad for parameter in network.parameters()):
        return None
    layers: list[tuple[str, Layer]] = []
    shape = torch.Size(input_shape)
    reordered = False  # units of a flattened image stand in another order than PyTorch's
    for name, module in leaves:
        layer = _layer(name, module, len(shape), device, precision)
        if layer is None or (reordered and isinstance(module, nn.BatchNorm1d | nn.Dropout)):
            return None
        if isinstance(layer, ReLULayer) and layers:
            layer.in_place = _may_be_overwritten(layers[-1][1])
        if isinstance(module, nn.Flatten) and len(shape) == 3:
            reordered = shape[0] > 1 and shape[1] * shape[2] > 1
        elif isinstance(module, nn.Linear):
            reordered = False
        layers.append((name, layer))
        with torch.no_grad():
            shape = module.eval()(torch.zeros(1, *shape)).shape[1:]
    return _joined(layers, device) if len(shape) == 1 and not reordered else None


def _joined(layers: list[tuple[str, Layer]], device: torch.device) -> list[tuple[str, Layer]]:
    """Join batch normalisation with a maximum behind it."""
    joined: list[tuple[str, Layer]] = []
    for name, layer in layers:
        before = joined[-1][1] if joined else None
        if isinstance(layer, MaxPoolLayer) and isinstance(before, BatchNormLayer) and before.affine:
            joined[-1] = joined[-1][0], NormalisedMaximumLayer(before, layer, device)
        else:
            joined.append((name, layer))
    return joined


def _may_be_overwritten(layer: Layer) -> bool:
    """Say whether a layer needs its output no more once it has been read."""
    if isinstance(layer, BatchNormLayer):
        return layer.affine
    return isinstance(layer, ConvolutionLayer | LinearLayer | MaxPoolLayer)


def _layer(
    name: str,
    module: nn.Module,
    axes: int,
    device: torch.device,
    precision: torch.dtype,
) -> Layer | None:
    kind = type(module)
    if axes not in (1, 3) or module._forward_hooks or module._forward_pre_hooks:
        return None
    if isinstance(module, nn.Linear) and kind is nn.Linear:
        return LinearLayer(module, device, precision) if axes == 1 else None
    if isinstance(module, nn.Conv2d) and kind is nn.Conv2d:
        usual = module.groups == 1 and module.padding_mode == "zeros"
        known = usual and not isinstance(module.padding, str)
        return ConvolutionLayer(module, device, precision) if known else None
    if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d) and kind in (
        nn.BatchNorm1d,
        nn.BatchNorm2d,
    ):
        running = module.track_running_stats and module.momentum is not None
        return BatchNormLayer(module, device) if running else None
    if kind is nn.ReLU:
        return ReLULayer(device)
    if isinstance(module, nn.MaxPool2d) and kind is nn.MaxPool2d and axes == 3:
        return None if module.return_indices else MaxPoolLayer(module, device)
    if isinstance(module, nn.Flatten) and kind is nn.Flatten:
        return FlattenLayer(device) if (module.start_dim, module.end_dim) == (1, -1) else None
    if kind in (nn.Dropout, nn.Dropout2d) and (kind is nn.Dropout or axes == 3):
        return DropoutLayer(f"{name}.mask", device)
    if kind in _ELEMENTWISE or (kind in _PLANAR and axes == 3):
        return AutomaticLayer(module, device)
    return None


def images_behind(
    network: nn.Module, input_shape: tuple[int, ...]
) -> dict[str, tuple[int, int, int]]:
    """Find the weights that are stored with channels last: kernels, and the layer behind an image.

    ``network``: for which :func:`layers_by_hand` found layers.
    Returns: the (channels, height, width) that each output of a weight sees, by the weight's name.
    """
    found: dict[str, tuple[int, int, int]] = {}
    shape = torch.Size(input_shape)
    flattened: torch.Size | None = None
    for name, module in _leaves(network) or []:
        if isinstance(module, nn.Conv2d):
            channels, height, width = module.weight.shape[1:]
            found[f"{name}.weight"] = (channels, height, width)
        elif isinstance(module, nn.Linear):
            if flattened is not None:
                found[f"{name}.weight"] = (flattened[0], flattened[1], flattened[2])
            flattened = None
        elif isinstance(module, nn.Flatten) and len(shape) == 3:
            flattened = shape
        with torch.no_grad():
            shape = module.eval()(torch.zeros(1, *shape)).shape[1:]
    return found
