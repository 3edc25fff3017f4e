"""What canaries of one run showed, whatever ran: bounds by their scores, beside what the account claims."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.gaussian import gdp_epsilon
from collegium.accounting.statement import ceil_decimals, floor_decimals
from collegium.attacks.finding import Finding
from collegium.attacks.score_bounds import ScoreBounds, bounds_of_scores
from collegium.budgets import Budget
from collegium.checks import check_whole

Floats = NDArray[np.float64]
CANARIES_EACH = 500


def number_of_canaries(groups: int, canaries: int | None) -> int:
    """Check how many there are to be over all groups; default: 500 in each."""
    total = CANARIES_EACH * groups if canaries is None else canaries
    check_whole("canaries", total)
    return total


def draw_coins(
    groups: int, canaries: int, generator: np.random.Generator | None
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Deal canaries to groups in equal parts, and throw a fair coin for each: group, and whether it is in.

    ``generator``: default: from the operating system.
    """
    random = np.random.default_rng() if generator is None else generator
    group = np.repeat(np.arange(groups), canaries // groups)
    return group, random.integers(0, 2, len(group)) == 1


@dataclass(frozen=True, kw_only=True)
class CanaryFinding(Finding):
    """What the scores of one group's canaries showed.

    ``bounds``: all of them. ``claim_mu``: what the account charged; infinite where nothing is claimed in μ.
    ``are_normal``: whether scores are independent and normal, so that the Gaussian fit applies; where they
        are not, the theorem about guesses is what is held against the claim.
    """

    bounds: ScoreBounds
    claim_mu: float
    are_normal: bool

    legend: ClassVar[str] = (
        "guesses: however canaries' scores depend on one another; fit: where they are independent and normal"
    )

    @property
    def lower_mu(self) -> float:
        """The bound that is held against the claim."""
        return self.bounds.fitted_mu if self.are_normal else self.bounds.guessed_mu

    @property
    def holds(self) -> bool:
        """Whether every lower bound is below what is claimed."""
        bounds = self.bounds
        in_mu = max(self.lower_mu, bounds.guessed_mu) <= self.claim_mu
        return super().holds and bounds.guessed_epsilon <= self.claim_epsilon and in_mu

    @property
    def of_mu(self) -> tuple[float, float, float] | None:
        """Lower bound and claim, which is what was to be spent; None where nothing is claimed in μ."""
        if math.isinf(self.claim_mu):
            return None
        return self.lower_mu, self.claim_mu, self.claim_mu

    def cells(self) -> dict[str, str]:
        """Write bounds on μ beside the claim, where there is one, and count canaries."""
        written = {}
        if math.isfinite(self.claim_mu):
            if self.are_normal:
                written["μ, fit"] = floor_decimals(self.bounds.fitted_mu, 3)
            written["μ, guesses"] = floor_decimals(self.bounds.guessed_mu, 3)
            written["claimed μ"] = ceil_decimals(self.claim_mu, 3)
        return written | {"canaries": f"{self.bounds.n_in + self.bounds.n_out:,}"}

    def numbers(self) -> dict[str, Any]:
        """All bounds; ε of those on μ at the group's δ."""
        return {
            "claim_mu": self.claim_mu if math.isfinite(self.claim_mu) else None,
            "fit_applies": self.are_normal,
            "bounds": self.bounds.to_json(self.budget.delta),
        }


def judge_canaries(
    scores: Floats,
    is_in: NDArray[np.bool_],
    group: NDArray[np.intp],
    budgets: Mapping[str, Budget],
    spent: Mapping[str, float],
    mus: Mapping[str, float],
    *,
    are_normal: bool,
    confidence: float,
) -> list[CanaryFinding]:
    """Judge the canaries of each group.

    ``scores``, ``is_in``, ``group`` (n_canaries,): larger where "in" is likelier; the coins; and position of
        each one's group among ``budgets``.
    ``spent``, ``mus``: by group, what the account charged, in ε at the group's δ and in μ (infinite: nothing
        is claimed in it).
    ``confidence``: probability that all lower bounds of all groups hold.
    Raises InputError if a group has fewer than ten canaries in, or out.
    """
    error = (1 - confidence) / (3 * len(budgets))  # the fit, and guesses twice
    findings = []
    for number, (name, budget) in enumerate(budgets.items()):
        own = group == number
        bounds = bounds_of_scores(scores[own & is_in], scores[own & ~is_in], budget.delta, error)
        lower = bounds.guessed_epsilon
        if math.isfinite(mus[name]):
            shown = bounds.fitted_mu if are_normal else bounds.guessed_mu
            lower = max(lower, gdp_epsilon(shown, budget.delta))
        findings.append(
            CanaryFinding(
                group=name,
                budget=budget,
                lower_epsilon=lower,
                claim_epsilon=spent[name],
                bounds=bounds,
                claim_mu=float(np.nextafter(mus[name], np.inf)),
                are_normal=are_normal,
            )
        )
    return findings
