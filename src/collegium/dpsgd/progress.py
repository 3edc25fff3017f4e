"""How DP-SGD gets on, told between two steps: made of released values alone, and the clock."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from collegium.dpsgd.optimiser import State
from collegium.dpsgd.steadiness import Steadiness
from collegium.personalisation.dpsgd_plan import DPSGDPlan
from collegium.runs.user_warnings import Warner

_EVERY_S = 1.0


@dataclass(frozen=True, eq=False)
class Progress:
    """Where DP-SGD stands: released, but for the clock, so that whatever follows from it costs nothing.

    Attributes
    ----------
    step, steps : int
        How many steps were taken, and how many are planned.
    seconds_left : float
        At the pace so far: by the clock, which no guarantee covers. Decide nothing by it.
    state : State
        Parameters and momentum.
    """

    step: int
    steps: int
    seconds_left: float
    state: State
    plan: DPSGDPlan
    make: Callable[[State], Any]

    @cached_property
    def epsilon(self) -> Mapping[str, float]:
        """What each owner of a group has spent by now, at the group's δ."""
        # With a filter, never more than planned.
        return self.plan.epsilon(min(self.step, self.plan.steps))

    @cached_property
    def model(self) -> Any:
        """The model as it is now, as a fitted estimator of scikit-learn that takes records as they are."""
        return self.make(self.state)


OnStep = Callable[[Progress], Any]


class Watch:
    """Tells of each step once, and whether to stop after it.

    ``on_step``: is told; it stops the training by returning True.
    ``steadiness``: looks at each state; what is lost is stopped.
    ``steps``: how many will be taken.
    """

    def __init__(
        self,
        plan: DPSGDPlan,
        make: Callable[[State], Any],
        on_step: OnStep | None,
        steadiness: Steadiness,
        steps: int,
    ) -> None:
        self._plan, self._make, self._on_step, self._steps = plan, make, on_step, steps
        self._steadiness = steadiness
        self._told, self._stopped, self._begun = 0, False, time.monotonic()

    def __call__(self, state: State) -> bool:
        """Tell of a state, unless it was told of before; whether to stop."""
        if state.step > self._told:
            self._told = state.step
            self._steadiness.look(state)
            self._stopped = self._steadiness.is_lost
            if self._on_step is not None:
                gone = time.monotonic() - self._begun
                left = gone * (self._steps / state.step - 1)
                told = Progress(state.step, self._steps, left, state, self._plan, self._make)
                self._stopped |= self._on_step(told) in (True, np.True_)
        return self._stopped


class Lines(Warner):
    """Writes how it gets on, with the time left, on standard error: what ``verbose`` asks for.

    ``verbose``: 0, nothing; 1, a line a second at most; more, each step.
    """

    def __init__(self, verbose: int) -> None:
        self._verbose, self._begun, self._written = verbose, 0.0, 0.0

    def stage(self, name: str, total: int | None = None) -> None:
        """Begin to count."""
        self._begun = self._written = time.monotonic()

    def advanced(self, done: int, total: int | None = None) -> None:
        """Write a line, if it is time to."""
        now = time.monotonic()
        is_last = done == total
        if not self._verbose or (
            self._verbose == 1 and now - self._written < _EVERY_S and not is_last
        ):
            return
        self._written, total = now, total or done
        left = (now - self._begun) * (total / done - 1)
        ends = "done" if is_last else f"{left:,.0f} s left"
        sys.stderr.write(f"step {done:,} of {total:,}, {ends}\n")
