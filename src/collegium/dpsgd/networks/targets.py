"""Targets that a loss does not take: refused before the first step, which would be charged."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (PyTorch's own name for it)
from numpy.typing import NDArray
from torch import Tensor, nn

from collegium.dpsgd.networks.errors import Loss, errors_of
from collegium.dpsgd.networks.redacted_errors import unquoted
from collegium.errors import WHERE, InputError, RecordError

LEFT_OUT = -100
"""A target that PyTorch's cross entropy leaves out."""


def refuse_targets(
    loss: Loss, output: Tensor, targets: Iterable[tuple[NDArray[np.intp], Tensor]]
) -> None:
    """Refuse targets that the loss does not take; no value of any is told.

    ``output`` (...): of the network, for one record of random numbers.
    ``targets``: rows, and their targets, of all records of who takes part, some at a time.
    Raises InputError if the loss fails on some, or they are no classes of the network.
    """
    left_out = _left_out(loss)
    for rows, some in targets:
        if left_out is not None and output.dim() and some.shape[1:] != output.shape:
            _refuse_classes(rows, some, output, left_out)
        outputs = output.expand(len(some), *output.shape)
        unquoted(
            partial(errors_of, loss, outputs, some.to(output.device)),
            f"the loss of the network's output (shape {tuple(output.shape)}) and a target (shape "
            f"{tuple(some.shape[1:])}, {some.dtype})",
            "give targets that the loss takes, or another loss",
        )


def _left_out(loss: Loss) -> int | None:
    """Say which target is left out by a cross entropy of classes; None for another loss."""
    if loss is F.cross_entropy:
        return LEFT_OUT
    return loss.ignore_index if type(loss) is nn.CrossEntropyLoss else None


def _refuse_classes(rows: NDArray[np.intp], targets: Tensor, output: Tensor, left_out: int) -> None:
    """Refuse what is no class number: on a GPU, it would end the process."""
    n_classes, places = output.shape[0], tuple(output.shape[1:])
    if tuple(targets.shape[1:]) != places or targets.dtype != torch.int64:
        raise InputError(
            f"cross entropy takes class numbers, of shape {places} for each record and torch.int64, and "
            f"targets are of shape {tuple(targets.shape[1:])} and {targets.dtype}: convert them, for "
            "instance with .long(), or give another loss"
        )
    wrong = ((targets < 0) | (targets >= n_classes)) & (targets != left_out)
    if bool(wrong.any()):
        raise RecordError(
            f"a target is none of the {n_classes} classes that the network tells apart (0 to "
            f"{n_classes - 1}), first {WHERE}: correct it, or give the network more outputs",
            int(rows[int(wrong.nonzero()[0, 0])]),
        )
