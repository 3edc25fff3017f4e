"""Direct training, audited in one run: canaries in orthogonal directions, and all noisy sums are seen.

Canaries are invented owners of each group, and a fair coin of its own decides for each whether it is in. Each
has features of its own that nobody else has, and a gradient that is longer than any bound: so it moves its
own coordinates of every step's sum as far as an owner of its group may, and no others. The run is the real
one besides: its records, plan, clipping, coins of samples, and noise of the operating system everywhere.
The auditor sees every noisy sum (white box) and guesses the coins.

In the full batch scores are independent and normal with one standard deviation, so that the Gaussian fit
applies; what holds without that, of guesses under μ-GDP, stands beside it. Of sampled owners nothing is
claimed in μ: scores are likelihood ratios over all steps, and bounds are on ε.

**Nothing of such a run may be published**: its noisy sums were bought with real people's budgets.

References
----------
.. [1] M. Nasr, J. Hayes, T. Steinke, B. Balle, F. Tramèr, M. Jagielski, N. Carlini, A. Terzis, "Tight
   auditing of differentially private machine learning", USENIX Security 2023, arXiv 2302.07956: canary
   gradients, white box.
.. [2] T. Steinke, M. Nasr, M. Jagielski, "Privacy auditing with one (1) training run", NeurIPS 2023,
   arXiv 2305.08846.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from collegium.attacks.canary_finding import (
    CanaryFinding,
    draw_coins,
    judge_canaries,
    number_of_canaries,
)
from collegium.attacks.dpsgd_game import clipped_canary, log_ratio
from collegium.attacks.noise_capture import Listener
from collegium.checks import check_number
from collegium.dpsgd.grid import UNIT
from collegium.dpsgd.memory import DPSGDMemory
from collegium.dpsgd.run import DPSGDRun, Summands
from collegium.dpsgd.sampling import Sample
from collegium.errors import InputError
from collegium.noise.sources import SecureNoise
from collegium.noise.sums import Integers, Noise, NoisySum
from collegium.personalisation.dpsgd_plan import reach

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
_WIDTH = 2  # coordinates of a canary: a gradient of two classes


class _WithCanaries:
    """The real records' sums, and below them those of the canaries who are in. **Sensitive.**"""

    def __init__(
        self, records: Summands, n_features: int, moved: Integers, own: Floats, other: Integers
    ) -> None:
        self.records, self.n_features = records, n_features
        self.moved, self.rates, self.other = moved, own, other

    def clipped_sum(self, parameters: Floats, sample: Sample) -> Integers:
        real = self.records.clipped_sum(parameters[: self.n_features], sample)
        part = sample.takes_part(self.rates, "audit canaries")
        canaries = np.where(part[:, None], self.moved, 0).ravel()
        below = np.zeros((len(parameters) - self.n_features) * parameters.shape[1], dtype=np.int64)
        below[: len(canaries)] = canaries
        return np.concatenate([real, below.reshape(-1, parameters.shape[1])])


class _Listening(Listener):
    """Noise of another source; scores canaries by every noisy sum."""

    def __init__(
        self, source: NoisySum, n_features: int, score: Callable[[Floats], Floats]
    ) -> None:
        super().__init__(source)
        self.n_features, self.score = n_features, score
        self.scores: Floats | float = 0.0

    def noised(
        self, sensitive_sum: Integers, noise: Noise, *, query: int, purpose: str
    ) -> Integers:
        noisy = self._source.noised(sensitive_sum, noise, query=query, purpose=purpose)
        self.scores = self.scores + self.score(noisy[self.n_features :].ravel() * np.float64(UNIT))
        return noisy


def audit_dpsgd(
    run: DPSGDRun,
    *,
    canaries: int | None = None,
    confidence: float = 0.95,
    noise: NoisySum | None = None,
    generator: np.random.Generator | None = None,
) -> list[CanaryFinding]:
    """Train once with canaries, in memory, and bound what that leaks about each group.

    Parameters
    ----------
    run : DPSGDRun
        Its records, plan, steps and settings are used as they are, and none of its memory.
    canaries : int, optional
        Over all groups, in equal parts; default: 500 in each group.
    confidence : float, default=0.95
        Probability that *all* lower bounds of all groups hold.
    noise : NoisySum, optional
        Instead of cryptographic noise, to test the audit.
    generator : numpy.random.Generator, optional
        Of the canaries' coins; default: from the operating system.

    Returns
    -------
    list of CanaryFinding
        One for each group.

    Raises
    ------
    InputError
        If everybody has an own account (a filter), or there are too few canaries.
    """
    check_number("confidence", confidence, above=0, below=1)
    plan, settings = run.plan, run.recipe.dpsgd
    if settings.individual_filter is not None:
        raise InputError(
            "canaries are not known to an individual filter: leave dpsgd.individual_filter out"
        )
    total = number_of_canaries(len(plan.groups), canaries)
    group, is_in = draw_coins(len(plan.groups), total, generator)
    gives = np.stack([clipped_canary(run, number) for number in range(len(plan.groups))])[group]
    other = -gives if reach(plan.neighbours) == 2 else 0 * gives
    rates = np.array([one.rate for one in plan.groups.values()])[group]

    def score(seen: Floats) -> Floats:
        released = seen[: _WIDTH * len(group)].reshape(-1, _WIDTH)
        return log_ratio(
            released, gives * np.float64(UNIT), other * np.float64(UNIT), plan.noise, rates
        )

    n_features, outputs = run.n_parameters, run.loss.n_outputs
    wide = n_features + -(-_WIDTH * len(group) // outputs)
    run = copy.copy(run)
    run.memory = DPSGDMemory()
    if run.recipe.start is not None:
        start = np.zeros((wide, outputs))
        start[:n_features] = run.recipe.start
        run.recipe = replace(run.recipe, start=start)
    ear = _Listening(SecureNoise() if noise is None else noise, n_features, score)
    moved = np.where(is_in[:, None], gives, other)
    summands = _WithCanaries(run.summands(), n_features, moved, rates, other)
    learnt = run.descend(summands, wide, noise=ear)
    spent = {row.group: float(row.epsilon_spent) for row in learnt.privacy.groups}
    mus = dict.fromkeys(plan.groups, math.inf)
    if plan.accountant == "gaussian":
        squared = plan.event(settings.n_steps_taken).mu_squared
        mus = {name: math.sqrt(one) for name, one in zip(plan.groups, squared, strict=True)}
    return judge_canaries(
        np.asarray(ear.scores),
        is_in,
        group,
        {name: its.budget for name, its in plan.groups.items()},
        spent,
        mus,
        are_normal=plan.accountant == "gaussian",
        confidence=confidence,
    )
