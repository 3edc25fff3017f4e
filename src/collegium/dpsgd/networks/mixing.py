"""Networks in which records meet before gradients are clipped: refused, with the layer that does it.

What one record does to another's output, no clipping bounds: the other's gradient changes as well.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parameter import is_lazy

from collegium.errors import InputError
from collegium.models.trial import one_line_about

_PROBES = 3
_TOLERANCE = 1e-3
_INSTEAD = "use nn.GroupNorm, which normalises each record by itself"


def refuse_mixing(module: nn.Module, record: Tensor) -> Tensor:
    """Refuse a network whose output for one record depends on another.

    Layers that are known to do so are refused by their type; others are found by a probe, which looks
    at random numbers in the shape of a record, never at records.

    Parameters
    ----------
    module : nn.Module
        As it will be trained. Unchanged.
    record : Tensor
        One, for its shape and type; nothing else of it is used.

    Returns
    -------
    Tensor
        The output for one record of random numbers.

    Raises
    ------
    InputError
        If records meet in the network, it keeps statistics of what it sees, or it cannot be applied.
    """
    for path, layer in module.named_modules():
        if isinstance(layer, _BatchNorm):
            raise InputError(f"{_name(path, layer)} mixes the records of a batch: {_INSTEAD}")
        if getattr(layer, "track_running_stats", False):
            raise InputError(
                f"{_name(path, layer)} keeps running statistics of private records: give it "
                "track_running_stats=False, or use nn.GroupNorm"
            )
    if any(is_lazy(p) for p in (*module.parameters(), *module.buffers())):
        raise InputError(
            "the network has layers whose shapes are not known yet: apply it to a public record once"
        )
    kept_in = next(module.parameters()).dtype
    if record.is_floating_point() and kept_in.is_floating_point and record.dtype != kept_in:
        try:
            return _probe(module, record)
        except InputError as error:
            raise InputError(
                f"{error}; records are {record.dtype} and the network's parameters {kept_in}: convert one of "
                "both, for instance with X.float()"
            ) from None
    return _probe(module, record)


def _probe(module: nn.Module, record: Tensor) -> Tensor:
    """Change one of several records, with the same random numbers inside, and look at the others."""
    device = next(module.parameters()).device
    kept = {name: buffer.clone() for name, buffer in module.named_buffers()}
    one, other = (probe.to(device) for probe in _probes(record))
    try:
        with one_line_about(type(module).__name__, "applied to random numbers"):
            before, after = _traces(module, one), _traces(module, other)
        for name, buffer in module.named_buffers():
            if not torch.equal(buffer, kept[name]):
                raise InputError(
                    f"the network changes its buffer {name!r} when it sees records: statistics of private "
                    f"records cannot be kept; {_INSTEAD}"
                )
    finally:
        with torch.no_grad():
            for name, buffer in module.named_buffers():
                buffer.copy_(kept[name])
    for (path, layer, output), (_, _, changed) in zip(before, after, strict=False):
        if not _same(output, changed):
            raise InputError(
                f"{_name(path, layer)} mixes the records of a batch: one changed another's output; "
                "use layers that treat each record by itself (records are the first axis)"
            )
    whole: Tensor = before[-1][2]
    return whole[0]


def _probes(record: Tensor) -> tuple[Tensor, Tensor]:
    """Make two batches that differ in their first record."""
    shape = (_PROBES, *record.shape)
    if record.is_floating_point():
        generator = torch.Generator().manual_seed(0)
        one = torch.randn(shape, generator=generator).to(record.dtype)
        other = one.clone()
        other[0] = 3 * other[0].flip(0) + 1 if record.dim() else 3 * other[0] + 1
        return one, other
    one = torch.zeros(shape, dtype=record.dtype)
    other = one.clone()
    other[0] = 1
    return one, other


def _traces(module: nn.Module, batch: Tensor) -> list[tuple[str, nn.Module, Any]]:
    """Apply the network, and keep what each layer gave, innermost first."""
    seen: list[tuple[str, nn.Module, Any]] = []

    def watch(path: str) -> Any:
        def keep(layer: nn.Module, _: Any, output: Any) -> None:
            first = output[0] if isinstance(output, tuple) and output else output
            seen.append((path, layer, first.detach().clone() if _is_batch(first) else None))

        return keep

    handles = [layer.register_forward_hook(watch(path)) for path, layer in module.named_modules()]
    devices = [batch.device] if batch.device.type == "cuda" else []
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=devices):
            torch.manual_seed(0)
            output = module(batch)
    finally:
        for handle in handles:
            handle.remove()
    if not _is_batch(output):
        raise InputError(
            "the network's output must be one tensor with a row for each record, got "
            f"{tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__}"
        )
    return seen


def _is_batch(output: Any) -> bool:
    return isinstance(output, Tensor) and output.dim() > 0 and len(output) == _PROBES


def _same(output: Any, changed: Any) -> bool:
    if output is None or changed is None:
        return True
    if output.shape != changed.shape:
        return False
    rest, others = output[1:].double(), changed[1:].double()
    scale = float(rest.nan_to_num(0, 0, 0).abs().max()) if rest.numel() else 0.0
    return torch.allclose(rest, others, rtol=0, atol=_TOLERANCE * (scale + 1e-6), equal_nan=True)


def _name(path: str, layer: nn.Module) -> str:
    kind = f"a layer {type(layer).__name__}"
    return f"{kind} ({path!r})" if path else f"the network {type(layer).__name__}"
