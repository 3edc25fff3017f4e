"""What is drawn for a synthetic table, and what it costs everybody: public numbers alone.

At most three Gaussian events, planned beforehand, each of which takes a share of everybody's μ²:

first
    noisy counts of all (column, target) pairs, or of single columns where there is no target;
scores
    of all other pairs at once: how far, in L1, their counts are from what the first stage lets expect;
pairs
    noisy counts of the pairs that the scores chose.

A person of weight w whose records are there or blank moves each marginal by at most w in L2, so m of them
by √m·w, and each score by at most w, as ‖H - Ĥ‖₁ moves by no more than ‖H‖₁ does. Where records may be
replaced instead, a marginal moves by √2·w, and a score by 2·w. With noise of standard deviation √m·σ on
every number a stage costs μ² = (c·w/σ)², however many numbers it draws: c is 1, √2 or 2 (Dong, Roth & Su
2022, arXiv 1905.02383v3, Theorem 2.7; their Corollary 3.3 adds the stages up, also as each is chosen in the
light of the ones before).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.events import Event
from collegium.accounting.neighbours import Neighbours
from collegium.budgets import Budget
from collegium.noise.sums import Noise
from collegium.personalisation.rules import mu_of
from collegium.weighted_sums.weighing import Weighing
from collegium.weighted_sums.weights import weights_of

Floats = NDArray[np.float64]
FIRST, SCORES, PAIRS = "first", "scores", "pairs"

WEAK = 300.0
"""The signal below which nothing but the target is measured: other pairs are hardly worth their noise."""
_FEW, _MANY = 350.0, 1_150.0
"""Between these shares go from those of weak signals to those of strong ones."""
_SHARES = {  # of μ², with few people and with many: first, scores; the rest is for pairs
    "both": ((0.80, 0.05), (0.40, 0.05)),
    "fidelity": ((0.60, 0.05), (0.25, 0.05)),
}
_LARGEST_MU = 50.0  # who grants everything weighs as much as the most generous budget, or this


@dataclass(frozen=True, eq=False)
class Stage:
    """One draw.

    ``name``; ``share``: of everybody's μ². ``weighing``: weights, and the standard deviation of noise on
    one number alone. ``event``: what it costs.
    """

    name: str
    share: float
    weighing: Weighing
    event: Event

    def sd(self, count: int) -> float:
        """Standard deviation of the noise on so many scores or marginals, in units of weight."""
        return self.weighing.scale * math.sqrt(max(count, 1)) * (1 + 2.0**-40)

    def noise(self, count: int) -> Noise:
        """The noise itself."""
        return Noise.in_votes("gaussian", self.sd(count))


@dataclass(frozen=True, eq=False)
class Stages:
    """All draws, in order.

    ``goal``: as it was chosen. ``signal``: Σ n·μ of the weights, over √k for k marginals of the first
    stage: by how many standard deviations of its noise the whole table is above nothing.
    """

    goal: str
    signal: float
    drawn: tuple[Stage, ...]

    @classmethod
    def of(
        cls,
        groups: Mapping[str, Budget],
        people: NDArray[np.int64],
        *,
        goal: str,
        has_target: bool,
        n_first: int,
        n_candidates: int,
        cells_each: float,
        is_structured: bool,
        most_rows: int,
        neighbours: Neighbours,
        rule: str,
        part: float = 1.0,
    ) -> Stages:
        """Plan them.

        ``people`` (n_groups,): of each group.
        ``n_first``: marginals of the first stage. ``n_candidates``: pairs among which scores choose.
        ``cells_each``: cells of a typical marginal.
        ``is_structured``: what is measured together is given, so that nothing is chosen.
        ``most_rows``: rows for which an owner counts at most.
        ``rule``: of weights. ``part``: of everybody's μ² that all stages take.
        """
        bounds = _bounds(groups)
        blanked = neighbours is Neighbours.ADD_OR_REMOVE
        far = 1.0 if blanked else math.sqrt(2)
        spread = (1 - 1 / cells_each) / cells_each
        noise = (far * most_rows) ** 2 * n_first * 2 / part
        weights = weights_of(rule, bounds, people, noise, spread)
        signal = float(people @ weights) * math.sqrt(part / n_first)
        goal = chosen_goal(goal, signal, has_target)
        shares = _shares(goal, signal, n_candidates if not is_structured else 0, is_structured)
        diameters = {FIRST: far, SCORES: 1.0 if blanked else 2.0, PAIRS: far}
        stages = []
        for name, share in shares.items():
            prices = weights * math.sqrt(share * part)
            weighing = Weighing.of(prices, False, most_rows, diameters[name])
            event = weighing.event(diameters[name], neighbours)
            stages.append(Stage(name, share, weighing, event))
        return cls(goal, signal, tuple(stages))

    def __getitem__(self, name: str) -> Stage:
        return next(one for one in self.drawn if one.name == name)

    def has(self, name: str) -> bool:
        """Whether there is a stage of this name."""
        return any(one.name == name for one in self.drawn)

    @property
    def weights(self) -> Floats:
        """Weight of each group's people; the largest is 1."""
        return self.drawn[0].weighing.weights


def chosen_goal(goal: str, signal: float, has_target: bool) -> str:
    """Choose what "auto" is."""
    if goal != "auto":
        return goal
    if not has_target:
        return "fidelity"
    return "target" if signal < WEAK else "both"


def _shares(goal: str, signal: float, n_candidates: int, is_structured: bool) -> dict[str, float]:
    if goal == "target" or (not n_candidates and not is_structured):
        return {FIRST: 1.0}
    few, many = _SHARES[goal]
    at = math.log(max(signal, 1.0) / _FEW) / math.log(_MANY / _FEW)
    at = min(max(at, 0.0), 1.0)
    first, scores = (low + at * (high - low) for low, high in zip(few, many, strict=True))
    if is_structured:
        return {FIRST: first, PAIRS: 1 - first}
    return {FIRST: first, SCORES: scores, PAIRS: 1 - first - scores}


def _bounds(groups: Mapping[str, Budget]) -> Floats:
    """μ that each group grants; who grants everything counts as the most generous of the others."""
    limited = mu_of({name: one for name, one in groups.items() if not one.is_unlimited})
    most = max(limited.values(), default=_LARGEST_MU)
    return np.array([limited.get(name, most) for name in groups])
