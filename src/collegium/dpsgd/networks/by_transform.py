"""Gradients of single records of any module, by PyTorch's function transforms."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from collegium.dpsgd.networks.errors import Loss, loss_of_one
from collegium.dpsgd.networks.own_randomness import OwnMasks
from collegium.dpsgd.networks.parts import Part, Rows


class ByTransform:
    """Gradients of the records of a micro-batch: the module is applied to each record by itself.

    It sees batches of one, so that records cannot meet in it, whatever it does. Dropout has a mask for each
    record; all else that draws from PyTorch's generators draws once for all records.
    """

    def __init__(self, module: nn.Module, loss: Loss) -> None:
        self._module = module
        self._trained = {n: p for n, p in module.named_parameters() if p.requires_grad}
        self._rest: dict[str, Tensor] = dict(module.named_buffers())
        self._rest |= {n: p for n, p in module.named_parameters() if not p.requires_grad}
        self._loss = loss

        def loss_on(
            trained: dict[str, Tensor], record: Tensor, target: Tensor, seed: Tensor
        ) -> Tensor:
            values = {**trained, **self._rest}
            with OwnMasks(seed):
                output = torch.func.functional_call(self._module, values, (record.unsqueeze(0),))
            return loss_of_one(self._loss, output.squeeze(0), target)

        self._gradients = torch.func.vmap(
            torch.func.grad(loss_on), in_dims=(None, 0, 0, 0), randomness="same"
        )

    def parts(self, records: Tensor, targets: Tensor, seeds: Tensor) -> list[Part]:
        """Compute the gradients of all records. **Sensitive.**"""
        now = {name: value.detach() for name, value in self._trained.items()}
        return [
            Rows(
                name, rows.flatten(1).clone()
            )  # two parameters may share one; scaled in place later
            for name, rows in self._gradients(now, records, targets, seeds).items()
        ]

    def in_order(self, name: str, total: Tensor) -> Tensor:
        """Give the sum back: it is in the parameter's order."""
        return total
