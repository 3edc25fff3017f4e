"""Was the learning rate too large? Told from released and public numbers, never from a private loss.

Gradients are clipped, so training whose steps are too long does not run away: it jumps from one side of the
valley to the other for ever. Then what is released turns around from step to step, far more than its noise,
whose size is known, explains. With noisy gradients g_t in d parameters, each with noise of variance τ², over
the second half of K steps,

    signal = Σ‖g_t‖² − K·d·τ²,   turns = Σ‖g_t+1 − g_t‖² − 2(K − 1)·d·τ²

estimate the same sums without noise. Of steady training, turns are a small part of the signal; of one that
jumps, up to four times as much. Jumps that hardly move a score do no harm, and are not told of.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collegium.dpsgd.by_rule import by_noise
from collegium.dpsgd.losses import Loss
from collegium.dpsgd.optimiser import State
from collegium.dpsgd.settings import DPSGDSettings
from collegium.personalisation.dpsgd_plan import FULL_BATCH, DPSGDPlan

_LEAST_STEPS = 4
_ABOVE_NOISE = 4.0
_TURNS = 1.0
_TURNS_OF_SAMPLES = 2.5
"""A fresh sample in each step turns the gradient, too: twice its own part of the signal."""
_TIMES_RULE = 8.0
_ADVICE = "give a smaller one, or leave it out"


def too_large_for_noise(settings: DPSGDSettings, plan: DPSGDPlan, rate: float, loss: Loss) -> str:
    """Say so if weights will be noise for the most part: known before anything is spent. Else empty.

    ``rate``: the learning rate, as asked for or by rule.
    """
    usual = by_noise(settings, plan, loss)
    if rate <= _TIMES_RULE * usual:
        return ""
    return (
        f"learning_rate = {rate:g} is {rate / usual:.2g} times as large as the noise allows (about "
        f"{usual:.2g} for these budgets and so many people): the model will be noise for the most part; "
        f"{_ADVICE}"
    )


class Steadiness:
    """Looks at each state of DP-SGD: sees whether it jumps.

    ``loss``: of its unit, a step must move the score of a row of unit length by one to be told of.
    ``is_lost``: whether parameters are no finite numbers any more.
    """

    def __init__(self, settings: DPSGDSettings, plan: DPSGDPlan, loss: Loss) -> None:
        self._far = loss.unit
        self._momentum, self._from = settings.momentum, settings.n_steps_taken // 2
        self._variance = (plan.noise * settings.clip_norm / plan.divisor) ** 2
        by_rule = settings.learning_rate is None
        self._advice = "give one that is a fourth of it" if by_rule else _ADVICE
        self._turns = _TURNS if plan.kind == FULL_BATCH else _TURNS_OF_SAMPLES
        self._velocity: NDArray[np.float64] | None = None
        self._parameters: NDArray[np.float64] | None = None
        self._gradient: NDArray[np.float64] | None = None
        self._squares = self._differences = self._moved = 0.0
        self._steps = self._seen = 0
        self.is_lost = False

    def look(self, state: State) -> bool:
        """Look at the state after a step, once; tell whether it is lost."""
        if state.step <= self._seen:
            return self.is_lost
        self._seen = state.step
        if not np.isfinite(state.parameters).all():
            self.is_lost = True
            return True
        before, self._velocity = self._velocity, state.velocity
        stood, self._parameters = self._parameters, state.parameters
        if before is None or stood is None or state.step <= self._from:
            return False
        gradient = state.velocity - self._momentum * before
        if self._gradient is not None:
            self._differences += float(np.sum((gradient - self._gradient) ** 2))
        self._squares += float(np.sum(gradient**2))
        self._moved += float(np.sum((state.parameters - stood) ** 2))
        self._gradient, self._steps = gradient, self._steps + 1
        return False

    def complaint(self, rate: float) -> str:
        """Say so if the training jumped; empty if it did not.

        ``rate``: the learning rate.
        """
        if self.is_lost:
            return f"learning_rate = {rate:g} is too large: the model is no number any more; {self._advice}"
        if self._gradient is None or self._steps < _LEAST_STEPS:
            return ""
        noise = self._steps * self._gradient.size * self._variance
        signal = self._squares - noise
        turns = self._differences - 2 * noise * (self._steps - 1) / self._steps
        if signal <= _ABOVE_NOISE * noise or turns <= self._turns * signal:
            return ""
        if self._moved <= self._steps * self._far**2:
            return ""
        return (
            f"learning_rate = {rate:g} is too large: to the last, steps jumped from one side to the other, "
            f"far more than their noise explains; {self._advice}"
        )
