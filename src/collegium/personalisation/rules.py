"""How much influence a budget buys, relative to the other budgets.

Everywhere else in the package influence is a plain number per group; here is the only place where it is
derived from (ε, δ).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np

from collegium.accounting.gaussian import gdp_mu
from collegium.budgets import Budget
from collegium.errors import InputError

Name = TypeVar("Name", bound=Hashable)

RULES = ("exact", "budget", "sqrt")
_ONE_BY_ONE = 100  # their bits are those of the plans of studies that were begun
_LEAST = 1e-30  # of the largest influence; below, ratios of influence leave the range of floats


def relative_influence(budgets: Mapping[str, Budget], rule: str = "exact") -> dict[str, float]:
    """Influence of each group that lets the budgets run out together, up to a common factor.

    ``budgets``: the groups that have members.
    ``rule``: ``exact``: ∝ μ(ε, δ), the Gaussian-DP parameter that the budget allows. An owner of
        sensitivity Δ has μ² = Δ² · (checks/σ_T² + 2 · answers/σ²), so all groups meet their μ at
        the same query exactly when Δ ∝ μ (Dong, Roth & Su 2022, Cor. 2.13 and 3.3). ``budget``: ∝
        ε, as the PoPETs 2023 paper sets its weights (Appendix C) and the thesis its experiments
        (§6.2.2). ``sqrt``: ∝ √ε, the thesis's reading of the loose bound.
    Returns: positive numbers, the largest is 1. A group with ε = ∞ gets as much influence as the
        most generous finite budget, not more: unlimited influence would silence everybody else.

    Examples
    --------
    >>> groups = {"high": Budget(1.0), "low": Budget(3.0)}
    >>> round(relative_influence(groups)["high"], 4), round(relative_influence(groups, "budget")["high"], 4)
    (0.3728, 0.3333)
    """
    if rule not in RULES:
        raise InputError(f"unknown weight rule {rule!r}: allowed are {', '.join(RULES)}")

    limited = {name: budget for name, budget in budgets.items() if not budget.is_unlimited}
    if rule == "exact":
        finite = mu_of(limited)
    else:
        root = rule == "sqrt"
        finite = {g: math.sqrt(b.epsilon) if root else b.epsilon for g, b in limited.items()}
    largest = max(finite.values(), default=1.0)
    least = min(finite, key=lambda name: finite[name], default=None)
    if least is not None and finite[least] < _LEAST * largest:
        most = max(finite, key=lambda name: finite[name])
        raise InputError(
            f"groups {least!r} (ε = {budgets[least].epsilon:g}) and {most!r} (ε = {budgets[most].epsilon:g}) "
            "cannot be planned together: beside the second, the first would have no influence at all; bring "
            "their budgets nearer to each other, or plan without one of the groups"
        )
    return {name: finite.get(name, largest) / largest for name in budgets}


def mu_of(budgets: Mapping[Name, Budget]) -> dict[Name, float]:
    """μ of each finite budget: one by one, or where they are many all of one δ at once."""
    if len(budgets) <= _ONE_BY_ONE:
        return {name: gdp_mu(budget.epsilon, budget.delta) for name, budget in budgets.items()}
    epsilon = np.array([budget.epsilon for budget in budgets.values()])
    delta = np.array([budget.delta for budget in budgets.values()])
    mu = np.empty_like(epsilon)
    for one in np.unique(delta):
        mu[delta == one] = gdp_mu(epsilon[delta == one], float(one))
    return dict(zip(budgets, mu.tolist(), strict=True))
