"""From noisy gradients to a model: post-processing, which costs nobody anything."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collegium.dpsgd.settings import DPSGDSettings

Floats = NDArray[np.float64]


_SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda done: 1.0,
    "linear": lambda done: 1.0 - done,
    "cosine": lambda done: (1.0 + math.cos(math.pi * done)) / 2,
}


@dataclass(frozen=True, eq=False)
class State:
    """Where a descent stands; made of released values alone.

    ``step``: how many steps were taken, or lost.
    ``parameters``, ``velocity``: of the model, and of heavy-ball momentum.
    ``average``: mean of the ``averaged`` last iterates.
    """

    step: int
    parameters: Floats
    velocity: Floats
    average: Floats
    averaged: int = 0

    @classmethod
    def at(cls, start: Floats) -> State:
        """Stand at the start."""
        return cls(0, start, np.zeros_like(start), np.zeros_like(start))

    @property
    def model(self) -> Floats:
        """Parameters of what is learnt: the average, where there is one."""
        return self.average if self.averaged else self.parameters


def stepped(state: State, gradient: Floats, settings: DPSGDSettings, learning_rate: float) -> State:
    """Take one step along a noisy mean gradient.

    Heavy-ball momentum (Polyak 1964), and the mean of the last iterates (Polyak & Juditsky 1992).
    """
    velocity = settings.momentum * state.velocity + gradient
    size = learning_rate * _SCHEDULES[settings.schedule](state.step / settings.n_steps_taken)
    parameters = state.parameters - size * velocity
    average, averaged = state.average, state.averaged
    if state.step + 1 > (1 - settings.averaging) * settings.n_steps_taken:
        averaged += 1
        average = average + (parameters - average) / averaged
    return State(state.step + 1, parameters, velocity, average, averaged)
