"""A trained network: the numbers alone, which need PyTorch only to be asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """One trained network, as numbers.

    ``factory``: ``factory(n_classes, input_shape)`` makes a network of its kind.
    ``sensitive_averages``: its buffers (running averages of batch normalisation).
    """

    factory: Callable[..., Any]
    n_classes: int
    input_shape: tuple[int, ...]
    sensitive_weights: NDArray[np.float32]
    sensitive_averages: NDArray[np.float32]

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """Return the probability of each class, shape (n, n_classes)."""
        from collegium.models.neural.machine import find_machine
        from collegium.models.neural.predicting import ask_networks

        (logits,) = ask_networks([self], X, find_machine("cpu"))
        shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
        result: NDArray[np.float32] = shifted / shifted.sum(axis=1, keepdims=True)
        return result

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return class numbers, shape (n,)."""
        numbers: NDArray[np.int64] = self.predict_proba(X).argmax(axis=1)
        return numbers

    def module(self) -> torch.nn.Module:
        """Return an ordinary PyTorch network with these weights, in evaluation mode."""
        import torch

        from collegium.models.neural.blueprint import draw_up

        weights = torch.from_numpy(self.sensitive_weights)
        averages = torch.from_numpy(self.sensitive_averages)
        blueprint = draw_up(self.factory, self.n_classes, self.input_shape)
        return blueprint.module(weights, averages)
