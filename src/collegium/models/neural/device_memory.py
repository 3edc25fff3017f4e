"""What a GPU's memory holds is found out by trying: less at once, and on, whenever it runs out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeVar

import torch

_Result = TypeVar("_Result")


class Room(ABC):
    """How many networks are dealt with side by side.

    ``networks``: at most so many at first; None: as many as are given.
    ``networks``: at most so many from now on.
    """

    def __init__(self, networks: int | None = None) -> None:
        self.networks = networks

    @abstractmethod
    def shrink(self, tried: int) -> None:
        """Make do with less, memory having run out with ``tried`` networks, and say so in one line."""


def in_parts(
    work: Callable[[list[int]], _Result], numbers: list[int], room: Room, device: torch.device
) -> Iterator[_Result]:
    """Do work on networks in parts for which there is room; what ran out of memory is done again.

    ``work``: ``work(part)`` deals with some of the numbers.
    Yields: what ``work`` returned, part by part, in order.
    """
    waiting = deque([numbers])
    while waiting:
        part = waiting.popleft()
        if room.networks is not None and len(part) > room.networks:
            waiting.extendleft([part[room.networks :], part[: room.networks]])
            continue
        out_of_memory = False
        try:
            result = work(part)
        except torch.OutOfMemoryError:
            out_of_memory = True
        if not out_of_memory:
            yield result
            continue
        # Outside of the handler, which holds on to the memory of what was tried.
        if device.type == "cuda":
            torch.cuda.empty_cache()
        room.shrink(len(part))
        waiting.appendleft(part)
