"""Adam for stacked networks, each with its own step count and learning rate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import torch
from torch import Tensor

_BETAS = (0.9, 0.999)  # what the two moments keep


class StackedAdam:
    """Adam, or AdamW where there is weight decay, for the rows of a matrix of parameters.

    ``parameters``, ``gradients`` (rows, n): changed, and read, in place.
    ``epsilon``: added to the denominator.
    ``weight_decay``: decoupled: weights shrink by the learning rate times this at each step.
    ``first``, ``second`` (rows, n): running moments of the gradients.
    ``steps``: of each row.

    Notes
    -----
    One pass over memory: parameters, gradients and moments of a large network are far bigger than a
    processor's cache, and separate passes would cost more time than the network's own arithmetic.

    References
    ----------
    Kingma & Ba, "Adam" (ICLR 2015, arXiv 1412.6980v9), Algorithm 1; Loshchilov & Hutter, "Decoupled
    weight decay regularization" (ICLR 2019, arXiv 1711.05101v3), Algorithm 2.
    """

    def __init__(
        self,
        parameters: Tensor,
        gradients: Tensor,
        epsilon: float,
        weight_decay: float = 0.0,
    ) -> None:
        self._parameters = parameters
        self._gradients = gradients
        self._epsilon = epsilon
        self._weight_decay = weight_decay
        self.first = torch.zeros_like(parameters)
        self.second = torch.zeros_like(parameters)
        self.steps = [0] * len(parameters)

    def step(self, rates: Sequence[float]) -> None:
        """Take a step with the first rows, at a learning rate for each."""
        alike: defaultdict[tuple[float, int], list[int]] = defaultdict(list)
        for row, rate in enumerate(rates):
            self.steps[row] += 1
            alike[rate, self.steps[row]].append(row)
        with torch.no_grad():
            for (rate, step), rows in alike.items():
                if rows[-1] - rows[0] + 1 == len(rows):
                    self._step([slice(rows[0], rows[-1] + 1)], rate, step)
                else:
                    self._step(rows, rate, step)

    def move(self, rows: Sequence[int]) -> None:
        """Move the moments of these rows, which ascend, to the first rows."""
        for place, row in enumerate(rows):
            if place != row:
                self.first[place] = self.first[row]
                self.second[place] = self.second[row]
        self.steps[: len(rows)] = [self.steps[row] for row in rows]

    def _step(self, places: Sequence[slice | int], rate: float, step: int) -> None:
        update = torch._fused_adamw_ if self._weight_decay else torch._fused_adam_
        now = torch.tensor(float(step), device=self._parameters.device)
        update(
            [self._parameters[place] for place in places],
            [self._gradients[place] for place in places],
            [self.first[place] for place in places],
            [self.second[place] for place in places],
            [],
            [now] * len(places),
            lr=rate,
            beta1=_BETAS[0],
            beta2=_BETAS[1],
            weight_decay=self._weight_decay,
            eps=self._epsilon,
            amsgrad=False,
            maximize=False,
        )
