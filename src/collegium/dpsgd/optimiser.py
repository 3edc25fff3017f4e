"""From noisy gradients to a model: post-processing, which costs nobody anything."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from collegium.dpsgd.settings import DPSGDSettings

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class State:
    """Where DP-SGD stands; made of released values alone.

    ``step``: how many steps were taken, or lost.
    ``parameters``, ``velocity``: of the model, and of heavy-ball momentum.
    ``looks`` (n, 2, d), ``counts`` (n,): where gradients were drawn, their mean, and how many they were, of
        :mod:`collegium.dpsgd.public_solver`; else empty.
    """

    step: int
    parameters: Floats
    velocity: Floats
    looks: Floats = field(default_factory=lambda: np.zeros((0, 2, 0)))
    counts: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    @classmethod
    def at(cls, start: Floats) -> State:
        """Stand at the start."""
        return cls(0, start, np.zeros_like(start))


def stepped(state: State, gradient: Floats, settings: DPSGDSettings, learning_rate: float) -> State:
    """Take one step along a noisy mean gradient, with heavy-ball momentum (Polyak 1964)."""
    velocity = settings.momentum * state.velocity + gradient
    parameters = state.parameters - learning_rate * velocity
    return replace(state, step=state.step + 1, parameters=parameters, velocity=velocity)
