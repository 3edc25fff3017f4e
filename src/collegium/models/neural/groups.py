"""Teachers in groups: each alone on a core of a processor, or as many as a GPU's memory holds."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from collegium.errors import ModelError
from collegium.models.neural.blueprint import Blueprint
from collegium.models.neural.checkpoints import Checkpoints, digest
from collegium.models.neural.device_memory import Room, in_parts
from collegium.models.neural.machine import Machine
from collegium.models.neural.recipes import TrainingRecipe
from collegium.models.neural.training import GroupTraining, Learner, Rows, State

_LOGGER = logging.getLogger(__name__)
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Shard:
    """What one teacher is made of: records, class numbers, and a public seed."""

    X: Tensor
    y: Tensor
    seed: int


def train_in_groups(
    blueprint: Blueprint,
    recipe: TrainingRecipe,
    shards: Sequence[Shard],
    machine: Machine,
    checkpoints: Checkpoints | None = None,
) -> list[Rows]:
    """Train one teacher per shard.

    ``shards``: one per teacher.
    ``checkpoints``: where to write progress, and to look for it first.
    Returns: rows of each teacher, on the CPU.
    """
    if not shards:
        return []
    work = _Work(blueprint, recipe, shards, machine, checkpoints)
    order = sorted(range(len(shards)), key=lambda number: -len(shards[number].y))
    size = machine.group_size_for(blueprint, recipe, len(shards[order[0]].y))
    if size > 1 and len(shards) > 1:
        _LOGGER.warning(
            "teachers are trained in groups of %d: sizes of other shards may change the rounding of one; "
            "group_size=1 rules that out",
            size,
        )
    threads = machine.threads if machine.device.type == "cpu" else 1
    size = min(size, -(-len(shards) // threads))
    groups = [order[first : first + size] for first in range(0, len(order), size)]
    done: dict[int, Rows] = {}
    for results in in_threads(work.train, groups, threads, work.stop):
        done.update(results)
    work.hand_over()
    return [done[number] for number in range(len(shards))]


class _TrainingRoom(Room):
    """Half as many teachers each time."""

    def shrink(self, tried: int) -> None:
        if tried == 1:
            raise ModelError(
                "one teacher alone does not fit into the GPU's memory: use a smaller network or "
                "batch_size, or device='cpu'"
            )
        self.networks = tried // 2
        _LOGGER.warning(
            "GPU out of memory with %d teachers side by side: going on with %d",
            tried,
            self.networks,
        )


class _Work:
    """Trains groups of teachers."""

    def __init__(
        self,
        blueprint: Blueprint,
        recipe: TrainingRecipe,
        shards: Sequence[Shard],
        machine: Machine,
        checkpoints: Checkpoints | None,
    ) -> None:
        self.blueprint, self.recipe, self.shards = blueprint, recipe, shards
        self.device = machine.device
        self.checkpoints = checkpoints
        self._keys: dict[int, str] = {}
        self.stop = threading.Event()
        self._room = _TrainingRoom()

    def train(self, numbers: list[int]) -> dict[int, Rows]:
        done: dict[int, Rows] = {}
        for part in in_parts(self._train, numbers, self._room, self.device):
            done.update(part)
        return done

    def _train(self, group: list[int]) -> dict[int, Rows]:
        done: dict[int, Rows] = {}
        states: dict[int, State] = {}
        learners = []
        first_weights = []
        for number in group:
            shard = self.shards[number]
            weights = self.blueprint.initial(shard.seed)
            state = self._begin(number, weights)
            if state is not None and "result" in state:
                done[number] = state["result"]
                continue
            if state is not None:
                states[number] = state
            X, y = shard.X.to(self.device), shard.y.to(self.device)
            learners.append(Learner.of(number, X, y, shard.seed, self.recipe))
            first_weights.append(weights)
        if not learners:
            return done
        training = GroupTraining(self.blueprint, self.recipe, learners, first_weights, self.device)
        for number, state in states.items():
            training.restore(number, state)
        trained = training.run(self._watch)
        if self.checkpoints is not None:
            for number, rows in trained.items():
                self.checkpoints.save(self._keys[number], {"result": rows})
        return done | trained

    def _begin(self, number: int, first_weights: Rows) -> State | None:
        if self.checkpoints is None:
            return None
        self._keys[number] = self._key(self.shards[number], first_weights)
        return self.checkpoints.begin(self._keys[number])

    def _watch(self, number: int, describe: Callable[[], State]) -> None:
        if self.stop.is_set():
            raise KeyboardInterrupt
        if self.checkpoints is not None and self.checkpoints.due(self._keys[number]):
            self.checkpoints.save(self._keys[number], describe())

    def hand_over(self) -> None:
        """Remove the checkpoints of teachers that the caller has now."""
        if self.checkpoints is not None:
            self.checkpoints.discard(self._keys.values())

    def _key(self, shard: Shard, first_weights: Rows) -> str:
        return digest(
            self.blueprint.description,
            repr(self.recipe),
            str(shard.seed),
            *(tensor.numpy().tobytes() for tensor in (*first_weights, shard.X, shard.y)),
        )


def in_threads(
    work: Callable[[list[int]], _Result],
    groups: Sequence[list[int]],
    threads: int,
    stop: threading.Event | None = None,
) -> Iterator[_Result]:
    """Do several groups at a time, each on one core; yield results in order.

    Notes
    -----
    A group that is alone has one core, too: threads inside an operation add in another order, and how many
    groups there are depends on other people's records.

    Sharing out groups beats sharing out every single operation: nobody waits for anybody, and what a
    group works on stays in its core's cache. PyTorch leaves Python's lock alone while it computes.
    """
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield from pool.map(work, groups)
    except BaseException:
        if stop is not None:
            stop.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(before)
