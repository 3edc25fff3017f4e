"""The distinguishing game against the steps of DP-SGD, for one owner of each budget group.

The attacker knows everything but what one owner's records are, sees every noisy sum, and has made records
whose clipped gradient is as long as its bound in every step. Whether these records are there, or blank (or
opposite ones, where a plan protects against replacement), is told apart by the sums along that gradient.
Plan, clipping, sampling and noise are those of the run that is audited; no private record is used. As in
:mod:`collegium.attacks.game`, events are learnt on half of the runs and judged on the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collegium.attacks.bounds import binomial_bounds, epsilon_from_rates, mu_from_rates
from collegium.attacks.distinguishers import choose_events
from collegium.attacks.game import FEWEST_RUNS, GameFinding
from collegium.checks import check_number
from collegium.dpsgd.grid import UNIT, noisy
from collegium.dpsgd.linear_sums import InMemory, blocks_of, to_features
from collegium.dpsgd.losses import CrossEntropy
from collegium.dpsgd.run import DPSGDRun
from collegium.dpsgd.sampling import Sample
from collegium.errors import InputError
from collegium.noise.sources import SecureNoise
from collegium.noise.sums import Integers, NoisySum
from collegium.personalisation.dpsgd_plan import reach

Floats = NDArray[np.float64]
_MOST_RECORDS = 64


def play_dpsgd(
    run: DPSGDRun,
    *,
    runs: int = 20_000,
    confidence: float = 0.95,
    noise: NoisySum | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[GameFinding]:
    """Play the game for one owner of each group.

    ``run``: of which plan, clipping and sampling are used, and nothing else.
    ``runs``: runs of DP-SGD on each side (one side of blanks for all groups, one for each group).
    ``confidence``: probability that *all* lower bounds of all groups hold, in (0, 1).
    ``noise``: of the mechanism; default: the operating system's.
    ``progress``: called with (runs done, runs in all).
    Returns: one for each group. With sampled owners nothing is claimed in μ, and its claim is infinite.
    """
    if runs < FEWEST_RUNS:
        raise InputError(f"an audit needs at least {FEWEST_RUNS} runs on each side, got {runs}")
    check_number("confidence", confidence, above=0, below=1)
    plan, source = run.plan, SecureNoise() if noise is None else noise
    exact, claimed = plan.accountant == "gaussian", plan.epsilon()
    squared = plan.event().mu_squared if exact else np.full(len(plan.groups), np.inf)
    error, total = (1 - confidence) / (4 * len(plan.groups)), 2 * runs * len(plan.groups)
    findings = []
    for number, (name, group) in enumerate(plan.groups.items()):
        owner = _Owner(clipped_canary(run, number), group.rate, reach(plan.neighbours) == 2)
        sides = []
        for side in (False, True):
            done = (2 * number + side) * runs
            sides.append(
                _seen(run, owner, side, runs, source, lambda step, done=done: progress(done, total))  # type: ignore[misc]
            )
        half = runs // 2
        learnt, judged = ([seen[:half] for seen in sides], [seen[half:] for seen in sides])
        events = choose_events(learnt[0], learnt[1], group.budget.delta, error)
        allowed = np.ones(runs - half, dtype=bool)
        counted = [[event.count(seen, allowed) for event in events] for seen in judged]
        _, false_high = binomial_bounds(counted[0], runs - half, error)
        true_low, _ = binomial_bounds(counted[1], runs - half, error)
        findings.append(
            GameFinding(
                group=name,
                budget=group.budget,
                lower_epsilon=float(
                    epsilon_from_rates(true_low[0], false_high[0], group.budget.delta)
                ),
                claim_epsilon=claimed[name],
                lower_mu=float(mu_from_rates(true_low[1], false_high[1])),
                claim_mu=float(np.nextafter(math.sqrt(squared[number]), np.inf)),
                true_positive_rate=counted[1][1] / (runs - half),
                false_positive_rate=counted[0][1] / (runs - half),
            )
        )
    return findings


@dataclass(frozen=True)
class _Owner:
    """Whoever is attacked.

    ``moved`` (2,): contribution to a step, in units of the grid.
    ``rate``: of taking part.
    ``opposite``: whether the other side has the opposite contribution, and not none.
    """

    moved: Integers
    rate: float
    opposite: bool

    def gives(self, side: bool) -> Integers:
        """Contribution on one side."""
        return self.moved if side else (-self.moved if self.opposite else 0 * self.moved)


def clipped_canary(run: DPSGDRun, group: int) -> Integers:
    """Clip, by the code that is audited, a gradient of two classes that is longer than any bound."""
    n = min(_MOST_RECORDS, 1 + math.ceil(2 * run.recipe.dpsgd.clip_norm))
    features = to_features(np.ones((n, 1)))
    owner, groups = np.zeros(n, dtype=np.intp), np.array([group])
    blocks = blocks_of(features, np.zeros(n, dtype=np.intp), owner, groups, 1)
    summands = InMemory(list(blocks), CrossEntropy(2), run.terms, n_threads=1)
    return summands.clipped_sum(np.zeros((2, 1)), Sample())[:, 0]


def _seen(
    run: DPSGDRun,
    owner: _Owner,
    side: bool,
    runs: int,
    noise: NoisySum,
    progress: Callable[[int], None],
) -> Floats:
    """Sums over all steps of many runs, shape (runs, 3): of both coordinates, and of log likelihoods."""
    sigma = run.plan.noise
    gives, other = owner.gives(side), owner.gives(False)
    here: Floats = owner.gives(True) * np.float64(UNIT)
    there: Floats = other * np.float64(UNIT)
    seen = np.zeros((runs, 3))
    for step in range(run.plan.steps):
        part = run.recipe.sample(step).takes_part(np.full(runs, owner.rate), "audit")
        total = np.where(part[:, None], gives, 0)
        released = noisy(total, sigma, noise, step=step)
        seen[:, :2] += released - there * owner.rate
        seen[:, 2] += log_ratio(released, here, there, sigma, owner.rate)
        progress(step)
    return seen


def log_ratio(
    released: Floats, here: Floats, there: Floats, sigma: float, rate: float | Floats
) -> Floats:
    """Log of how much likelier a step is with the records than with what stands in their place."""
    logs = []
    with np.errstate(divide="ignore"):
        absent, present = np.log1p(-np.asarray(rate)), np.log(rate)
    for mean in (here, there):
        of_part = ((released * mean).sum(axis=-1) - (mean**2).sum(axis=-1) / 2) / sigma**2
        logs.append(np.logaddexp(absent, present + of_part))
    return np.asarray(logs[0] - logs[1])
