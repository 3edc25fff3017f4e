"""Trained networks: the numbers alone, and how to ask many of them about the same records."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from collegium.neural.records import as_records

if TYPE_CHECKING:
    import torch

    from collegium.neural.blueprint import Blueprint
    from collegium.neural.groups import Machine

_CACHE_BYTES = 2 * 2**20
_GPU_BYTES = 2**30


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """One trained network, as numbers.

    Attributes
    ----------
    factory : callable
        ``factory(n_classes, input_shape)`` makes a network of its kind.
    n_classes : int
        Its outputs.
    input_shape : tuple of int
        One record.
    sensitive_weights : ndarray of float32
        Its parameters.
    sensitive_averages : ndarray of float32
        Its buffers (running averages of batch normalisation).
    """

    factory: Callable[..., Any]
    n_classes: int
    input_shape: tuple[int, ...]
    sensitive_weights: NDArray[np.float32]
    sensitive_averages: NDArray[np.float32]

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """Return the probability of each class, shape (n, n_classes)."""
        from collegium.neural.machine import find_machine

        (logits,) = ask_networks([self], X, find_machine("cpu", None))
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

        from collegium.neural.blueprint import draw_up

        weights = torch.from_numpy(self.sensitive_weights)
        averages = torch.from_numpy(self.sensitive_averages)
        blueprint = draw_up(self.factory, self.n_classes, self.input_shape)
        return blueprint.module(weights, averages)


def ask_networks(
    networks: Sequence[TrainedNetwork], X: Any, machine: Machine
) -> Iterator[NDArray[np.float32]]:
    """Ask networks of one kind about the same records.

    Parameters
    ----------
    networks : sequence of TrainedNetwork
        All from the same factory, with the same classes and records.
    X : array-like, shape (n, ...)
        Records.
    machine : Machine
        Where.

    Yields
    ------
    ndarray of float32, shape (n, n_classes)
        Logits, network by network.

    Raises
    ------
    InputError
        If the records do not fit the networks.
    """
    import torch

    from collegium.neural.blueprint import draw_up
    from collegium.neural.groups import in_threads

    if not networks:
        return
    first = networks[0]
    blueprint = draw_up(first.factory, first.n_classes, first.input_shape)
    records = torch.from_numpy(as_records(X, first.input_shape)).to(machine.device)
    at_once = _side_by_side(blueprint, machine)
    stop = threading.Event()

    def ask(numbers: list[int]) -> torch.Tensor:
        stack = blueprint.stack(len(numbers), machine.device)
        for row, number in enumerate(numbers):
            network = networks[number]
            weights = torch.from_numpy(network.sensitive_weights)
            stack.put(row, weights, torch.from_numpy(network.sensitive_averages))
        logits = torch.empty(len(numbers), len(records), first.n_classes)
        chunk = _records_at_once(blueprint, machine, len(numbers))
        for start in range(0, len(records), chunk):
            if stop.is_set():
                raise KeyboardInterrupt
            part = records[start : start + chunk]
            logits[:, start : start + chunk] = stack.logits(part.expand(len(numbers), *part.shape))
        return logits

    groups = [
        list(range(start, min(start + at_once, len(networks))))
        for start in range(0, len(networks), at_once)
    ]
    threads = machine.threads if machine.device.type == "cpu" else 1
    for logits in in_threads(ask, groups, threads, stop):
        yield from logits.numpy()


def _side_by_side(blueprint: Blueprint, machine: Machine) -> int:
    if machine.device.type == "cpu":
        return 1  # as in training: nothing of the networks beside it
    weights = blueprint.layout.n_trained * 4
    return max(1, min(256, _GPU_BYTES // (weights + 1)))


def _records_at_once(blueprint: Blueprint, machine: Machine, networks: int) -> int:
    budget = _CACHE_BYTES if machine.device.type == "cpu" else _GPU_BYTES
    return max(16, budget // (blueprint.activations * 4 * networks))
