"""Steps over samples that a ledger can add to other releases: within a μ, but for a small δ₀.

Poisson samples are not μ-Gaussian-DP, and an account of (ε, δ) says nothing about several releases. Their
cost in the common currency (μ, δ₀) does (:mod:`collegium.accounting.currency`); so it is what must fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from collegium.accounting.gaussian import gdp_epsilon, gdp_mu
from collegium.budgets import Budget
from collegium.errors import InputError
from collegium.personalisation.dpsgd_plan import EXACT, DPSGDPlan
from collegium.personalisation.rates import plan_dpsgd

_ROUNDS = 12
_NEAR = 0.995  # of its μ: a group that uses so much of it is not planned anew
_BELOW = 1e-3  # below 1, in logarithms: where the next round is aimed at
_SLOPES = 0.3, 3.0  # of log share over log μ


def plan_that_adds_up(
    groups: Mapping[str, Budget],
    sizes: Mapping[str, int],
    delta_0: Mapping[str, float],
    **how: Any,
) -> DPSGDPlan:
    """Plan steps that cost the owners of each group no more than their budget's μ, but for δ₀.

    A plan that was found for (ε, δ) costs a little more than its μ, as δ₀ cuts a long tail of losses: it is
    found anew, for budgets whose μ are smaller by as much, until all groups fit and use nearly all they have.

    Parameters
    ----------
    groups, sizes
        As for :func:`~collegium.personalisation.rates.plan_dpsgd`.
    delta_0 : mapping of str to float
        What each group may leak outright.
    **how
        More of its parameters.

    Returns
    -------
    DPSGDPlan
        Utilisations are shares of μ.

    Raises
    ------
    InputError
        As there; or if no plan was found that fits.
    """
    asked, found = dict(groups), None
    before: dict[str, tuple[float, float]] = {}
    for _ in range(_ROUNDS):
        plan = plan_dpsgd(asked, sizes, **how)
        if plan.accountant == EXACT:
            return plan
        used = _shares_of_mu(plan, groups, delta_0)
        if max(used.values()) <= 1:
            kept = {
                name: replace(group, budget=groups[name], utilisation=used[name])
                for name, group in plan.groups.items()
            }
            found = replace(plan, groups=kept)
        again = dict(asked)
        for name, share in used.items():
            if share and not _NEAR <= share <= 1:
                again[name], before[name] = _scaled(
                    asked[name], groups[name], share, before.get(name)
                )
        if again == asked:
            break
        asked = again
    if found is None:
        raise InputError(
            "no plan of sampled steps was found that a ledger can add to other releases: take everybody in "
            'every step (sampling = "full-batch")'
        )
    return found


def _shares_of_mu(
    plan: DPSGDPlan, groups: Mapping[str, Budget], delta_0: Mapping[str, float]
) -> dict[str, float]:
    """What share of its μ each group uses; 0 where there is no limit."""
    event, shares = plan.event(), {}
    for cohort, name in enumerate(plan.groups):
        budget = groups[name]
        shares[name] = 0.0
        if not budget.is_unlimited:
            mu = event.bound(cohort, delta_0[name]).mu
            shares[name] = mu / gdp_mu(budget.epsilon, budget.delta) * (1 + 2.0**-48)
    return shares


def _scaled(
    asked: Budget, granted: Budget, share: float, before: tuple[float, float] | None
) -> tuple[Budget, tuple[float, float]]:
    """Ask for a budget with which the share is next to 1, by a secant; at most for what is granted.

    ``before``: log μ and log share of the round before. Also returns those of this one.
    """
    at, off = math.log(gdp_mu(asked.epsilon, asked.delta)), math.log(share)
    slope = 1.0
    if before is not None and at != before[0]:
        slope = min(max((off - before[1]) / (at - before[0]), _SLOPES[0]), _SLOPES[1])
    mu = math.exp(at - (off + _BELOW) / slope)
    epsilon = min(float(gdp_epsilon(mu, asked.delta)), granted.epsilon)
    return Budget(epsilon, asked.delta), (at, off)
