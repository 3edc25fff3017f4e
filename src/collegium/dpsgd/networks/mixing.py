"""Networks in which records meet before gradients are clipped: refused, with the layer that does it.

What one record does to another's output, no clipping bounds: the other's gradient changes as well.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parameter import is_lazy

from collegium.dpsgd.networks.owner_sums import per_record
from collegium.errors import InputError
from collegium.models.global_generators import kept_generators, seed_generators
from collegium.models.trial import one_line_about

_PROBES = 3
_TOLERANCE = 1e-3
_INSTEAD = "use nn.GroupNorm, which normalises each record by itself"


def refuse_mixing(module: nn.Module, record: Tensor) -> Tensor:
    """Refuse a network whose output for one record depends on another, or on who drew random numbers before.

    Layers that are known to mix records are refused by their type; others are found by a probe, which looks
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
        If records meet in the network, it keeps statistics of what it sees, draws from a generator of its
        own, or cannot be applied or differentiated.
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
            before, again, after = (_traces(module, batch) for batch in (one, one, other))
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
    for (path, layer, output), (_, _, repeated) in zip(before, again, strict=False):
        if not _same(output, repeated, first=0):
            raise InputError(
                f"{_name(path, layer)} gave something else under the same seeds, so it, or what is before "
                "it, draws from a generator of its own: use nn.Dropout, or the global generators of torch, "
                "numpy or random"
            )
    for (path, layer, output), (_, _, changed) in zip(before, after, strict=False):
        if not _same(output, changed, first=1):
            raise InputError(
                f"{_name(path, layer)} mixes the records of a batch: one changed another's output; "
                "use layers that treat each record by itself (records are the first axis)"
            )
    _refuse_turns(module, one[:1].expand(_PROBES, *record.shape))
    whole: Tensor = before[-1][2]
    return whole[0]


def _refuse_turns(module: nn.Module, alike: Tensor) -> None:
    """Refuse a network that cannot be differentiated, or whose equal records get unequal random numbers."""
    gradients = per_record(module, lambda outputs, _: outputs.sum(), alike.device)
    seeds = torch.zeros(len(alike), dtype=torch.int64, device=alike.device)
    try:
        with kept_generators():
            parts = gradients.parts(alike, alike, seeds)
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise InputError(
            f"{_name('', module)} cannot be differentiated record by record ({reason}): use layers that "
            "torch.func.vmap takes, and nn.Dropout for what is random"
        ) from None
    for part in parts:
        rows = part.rows(torch.ones(len(alike), dtype=torch.float64, device=alike.device))
        if not _same(rows, rows[:1].expand_as(rows), first=1):
            raise InputError(
                f"{_name('', module)} draws random numbers for one record after the other, so that who is "
                "missing would change all behind: use nn.Dropout for what is random"
            )


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
    try:
        with torch.no_grad(), kept_generators():
            seed_generators(0)
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


def _same(output: Any, changed: Any, first: int) -> bool:
    """Tell whether outputs are the same for the records from the first on."""
    if output is None or changed is None:
        return True
    if output.shape != changed.shape:
        return False
    rest, others = output[first:].double(), changed[first:].double()
    scale = float(rest.nan_to_num(0, 0, 0).abs().max()) if rest.numel() else 0.0
    return torch.allclose(rest, others, rtol=0, atol=_TOLERANCE * (scale + 1e-6), equal_nan=True)


def _name(path: str, layer: nn.Module) -> str:
    kind = f"a layer {type(layer).__name__}"
    return f"{kind} ({path!r})" if path else f"the network {type(layer).__name__}"
