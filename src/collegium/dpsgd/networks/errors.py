"""Errors at a network's outputs, for each record by itself."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812 (PyTorch's own name for it)
from torch import Tensor

Loss = Callable[[Tensor, Tensor], Tensor]
"""From the outputs and targets of a batch to a loss, as PyTorch's own; asked about one record at a time."""


def loss_of_one(loss: Loss, output: Tensor, target: Tensor) -> Tensor:
    """Ask for the loss of one record, as a batch of one: no loss can mix records then."""
    return loss(output.unsqueeze(0), target.unsqueeze(0)).sum()


def errors_of(loss: Loss, outputs: Tensor, targets: Tensor) -> Tensor:
    """Differentiate each record's loss with regard to its outputs."""
    if loss is F.cross_entropy and outputs.dim() == 2 and targets.dim() == 1:
        known = (targets >= 0)[:, None]  # PyTorch leaves out targets of -100
        errors = torch.softmax(outputs, 1)
        ones = torch.ones_like(known, dtype=errors.dtype)
        errors.scatter_add_(1, targets.clamp(min=0)[:, None], -ones)
        return torch.where(known, errors, 0)
    of_one = torch.func.grad(lambda output, target: loss_of_one(loss, output, target))
    each: Tensor = torch.func.vmap(of_one)(outputs, targets)
    return each
