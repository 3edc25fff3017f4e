"""Asking many trained networks about the same records, as many side by side as there is room for."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from collegium.errors import ModelError
from collegium.models.neural.blueprint import Blueprint, draw_up
from collegium.models.neural.device_memory import Room, in_parts
from collegium.models.neural.groups import in_threads
from collegium.models.neural.inputs import as_records
from collegium.models.neural.machine import Machine

_LOGGER = logging.getLogger(__name__)
_CACHE_BYTES = 2 * 2**20
_GPU_BYTES = 2**30
_LEAST_RECORDS = 16


class TrainedNumbers(Protocol):
    """What of a trained network is needed to ask it (``TrainedNetwork`` holds it)."""

    @property
    def factory(self) -> Callable[..., Any]:
        """Makes a network of its kind."""

    @property
    def n_classes(self) -> int:
        """Its outputs."""

    @property
    def input_shape(self) -> tuple[int, ...]:
        """One record."""

    @property
    def sensitive_weights(self) -> NDArray[np.float32]:
        """Its parameters."""

    @property
    def sensitive_averages(self) -> NDArray[np.float32]:
        """Its buffers."""


def ask_networks(
    networks: Sequence[TrainedNumbers], X: Any, machine: Machine
) -> Iterator[NDArray[np.float32]]:
    """Ask networks of one kind about the same records.

    ``networks``: all from the same factory, with the same classes and records.
    ``X`` (n, ...): records.
    ``machine``: where. When a GPU's memory runs out, fewer networks or records are asked at once.
    Yields (n, n_classes): logits, network by network.
    """
    if not networks:
        return
    first = networks[0]
    blueprint = draw_up(first.factory, first.n_classes, first.input_shape)
    records = torch.from_numpy(as_records(X, first.input_shape))
    room = _AskingRoom(blueprint, machine, len(records))
    stop = threading.Event()

    def ask(numbers: list[int]) -> torch.Tensor:
        stack = blueprint.stack(len(numbers), machine.device)
        for row, number in enumerate(numbers):
            network = networks[number]
            weights = torch.from_numpy(network.sensitive_weights)
            stack.put(row, weights, torch.from_numpy(network.sensitive_averages))
        logits = torch.empty(len(numbers), len(records), first.n_classes)
        at_once = room.records(len(numbers))
        for start in range(0, len(records), at_once):
            if stop.is_set():
                raise KeyboardInterrupt
            part = records[start : start + at_once].to(machine.device)
            answers = stack.logits(part.expand(len(numbers), *part.shape))
            logits[:, start : start + at_once] = answers
        return logits

    def ask_group(numbers: list[int]) -> list[torch.Tensor]:
        return list(in_parts(ask, numbers, room, machine.device))

    size = room.networks
    groups = [
        list(range(start, min(start + size, len(networks))))
        for start in range(0, len(networks), size)
    ]
    threads = machine.threads if machine.device.type == "cpu" else 1
    for parts in in_threads(ask_group, groups, threads, stop):
        for logits in parts:
            yield from logits.numpy()


class _AskingRoom(Room):
    """Half as many networks each time, then half as many records.

    ``machine``: on a CPU one network is asked at a time: as in training, nothing depends on those
        beside it.
    ``n_records``: about how many records they are asked.
    """

    networks: int

    def __init__(self, blueprint: Blueprint, machine: Machine, n_records: int) -> None:
        on_cpu = machine.device.type == "cpu"
        weights = blueprint.layout.n_trained * 4
        super().__init__(1 if on_cpu else max(1, min(256, _GPU_BYTES // (weights + 1))))
        self._bytes = _CACHE_BYTES if on_cpu else _GPU_BYTES
        self._bytes_per_record = blueprint.activations * 4
        self._most_records = n_records

    def records(self, networks: int) -> int:
        """How many records so many networks are asked about at once."""
        fitting = self._bytes // (self._bytes_per_record * networks)
        return min(max(_LEAST_RECORDS, fitting), max(1, self._most_records))

    def shrink(self, tried: int) -> None:
        records = self._most_records = self.records(tried)
        if tried > 1:
            self.networks = tried // 2
        elif records > 1:
            self._most_records = records // 2
        else:
            raise ModelError(
                "one network and one record do not fit into the GPU's memory together: free some of it, use "
                "a smaller network, or device='cpu'"
            )
        _LOGGER.warning(
            "GPU out of memory with %d networks asked about %d records at once: going on with %d and %d",
            tried,
            records,
            self.networks,
            self._most_records,
        )
