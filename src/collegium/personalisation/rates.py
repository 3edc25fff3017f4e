"""From budgets to a plan of a descent: rates, clips and noise that use each budget, and no more.

Everything here is public arithmetic on budgets and group sizes, matched by the groups' names.
Derivations: ``docs/descent.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.bookkeeping import MOST_CHARGES, add_repeatedly
from collegium.accounting.events import rounded_up
from collegium.accounting.gaussian import gdp_mu
from collegium.accounting.neighbours import Neighbours
from collegium.budgets import Budget
from collegium.checks import check_choice, check_whole, listed, shown
from collegium.errors import InputError
from collegium.personalisation.descent_plan import FULL_BATCH, DescentPlan, GroupSteps, reach

Floats = NDArray[np.float64]

KINDS = (FULL_BATCH, "sample", "scale", "uniform")
BOUNDS = ("weight", "clip")
ACCOUNTANTS = ("pld", "rdp")
_LEAST = 1e-30  # of the largest influence; below, ratios of influence leave the range of floats
_DOWN = 1 - 2.0**-50


def plan_descent(
    groups: Mapping[str, Budget],
    sizes: Mapping[str, int],
    *,
    steps: int,
    kind: str = FULL_BATCH,
    rate: float | None = None,
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE,
    accountant: str = "pld",
    bound: str = "weight",
    bins: int | None = None,
) -> DescentPlan:
    """Find the rates, clips and noise with which all groups' budgets run out at the last step.

    Parameters
    ----------
    groups : mapping of str to Budget
        What the owners of each group granted. ε = ∞ gets the influence of the most generous finite one.
    sizes : mapping of str to int
        Public number of owners of each of these groups; a group of 0 takes no part.
    steps : int
        How many, fixed beforehand.
    kind : {"full-batch", "sample", "scale", "uniform"}, default="full-batch"
        See :class:`DescentPlan`.
    rate : float, optional
        Mean probability with which an owner takes part in a step, in (0, 1); not for full batch.
    neighbours : Neighbours, default=ADD_OR_REMOVE
        Towards replacement, everybody moves a sum twice as far, and full batch has twice the noise.
    accountant : {"pld", "rdp"}, default="pld"
        Used where owners are sampled; full batch has an exact one.
    bound : {"weight", "clip"}, default="weight"
        See :class:`DescentPlan`.
    bins : int, optional
        Into how many steps of ε budgets are rounded down.

    Returns
    -------
    DescentPlan

    Raises
    ------
    InputError
        If a setting is not allowed, sizes are not those of the groups, nobody has a finite budget, or
        budgets are too far from each other to be planned together.

    Examples
    --------
    >>> people = {"high": Budget(1.0), "average": Budget(2.0), "low": Budget(3.0)}
    >>> plan = plan_descent(people, {"high": 54, "average": 37, "low": 9}, steps=100)
    >>> round(plan.noise, 6), {name: round(group.clip, 4) for name, group in plan.groups.items()}
    (25.313745, {'high': 0.6785, 'average': 1.2696, 'low': 1.8204})
    >>> {name: round(spent, 9) for name, spent in plan.epsilon().items()}
    {'high': 1.0, 'average': 2.0, 'low': 3.0}
    """
    check_choice("kind", kind, KINDS)
    check_choice("bound", bound, BOUNDS)
    check_choice("accountant", accountant, ACCOUNTANTS)
    check_whole("steps", steps, most=MOST_CHARGES)
    used = _with_owners(groups, sizes)
    if rate is not None:
        raise InputError(
            f"rate is for sampled owners, and full batch takes everybody in every step: leave it out, got "
            f"{shown(rate)}"
        )
    names, owners = list(used), np.array([sizes[name] for name in used], dtype=np.float64)
    granted = _granted_mu(used)
    allowed = influence_of(used, granted)
    if kind == "uniform":
        allowed = np.full_like(allowed, allowed.min())
    # mean = Σ (n/N) μ: shares first, so that nothing overflows.
    mean = math.fsum((owners / owners.sum() * allowed).tolist())
    clips = allowed / mean * _DOWN
    noise = reach(neighbours) * math.sqrt(steps) / mean
    spent = _spent_mu(clips, noise, steps, neighbours)
    while (spent > allowed).any():
        noise *= float(np.max(spent / allowed)) * (1 + 2.0**-48)
        spent = _spent_mu(clips, noise, steps, neighbours)
    utilisation = np.where(np.isinf(granted), 0.0, spent / granted)
    columns = zip(names, clips.tolist(), utilisation.tolist(), strict=True)
    return DescentPlan(
        kind=kind,
        bound=bound,
        steps=steps,
        noise=noise,
        groups={
            name: GroupSteps(used[name], sizes[name], 1.0, clip, min(1.0, share))
            for name, clip, share in columns
        },
        neighbours=neighbours,
        accountant="gaussian",
    )


def _with_owners(groups: Mapping[str, Budget], sizes: Mapping[str, int]) -> dict[str, Budget]:
    if set(sizes) != set(groups):
        odd = listed(sorted(set(sizes) ^ set(groups)), most=5)
        raise InputError(
            f"sizes must name the same groups as the budgets, and these are in one of them only: {odd}; give "
            "0 for a group without owners"
        )
    for name, size in sizes.items():
        check_whole(f"the size of group {name!r}", size, least=0)
    used = {name: budget for name, budget in groups.items() if sizes[name]}
    if not used:
        raise InputError("no group has an owner: there is nobody to learn from")
    if all(budget.is_unlimited for budget in used.values()):
        raise InputError(
            "every budget is unlimited, so that no noise follows from them: give at least one group a finite "
            "epsilon, or train without privacy"
        )
    return used


def _granted_mu(used: Mapping[str, Budget]) -> Floats:
    """μ that each budget buys, rounded down; ``inf`` where it is unlimited."""
    epsilon = np.array([budget.epsilon for budget in used.values()])
    delta = np.array([budget.delta for budget in used.values()])
    mu = np.empty_like(epsilon)
    for one in np.unique(delta):
        mu[delta == one] = gdp_mu(epsilon[delta == one], float(one))
    return mu


def influence_of(used: Mapping[str, Budget], granted: Floats) -> Floats:
    """μ that each group may spend: as granted, or the most generous finite one."""
    largest = float(granted[np.isfinite(granted)].max())
    allowed = np.minimum(granted, largest)
    least = int(np.argmin(allowed))
    if allowed[least] < _LEAST * largest:
        names = list(used)
        most = int(np.argmax(np.where(np.isfinite(granted), granted, -1.0)))
        raise InputError(
            f"groups {names[least]!r} (ε = {used[names[least]].epsilon:g}) and {names[most]!r} (ε = "
            f"{used[names[most]].epsilon:g}) cannot be planned together: beside the second, the first would "
            "have no influence at all; bring their budgets nearer to each other, or plan without one of them"
        )
    return allowed


def _spent_mu(clips: Floats, noise: float, steps: int, neighbours: Neighbours) -> Floats:
    """μ of all steps, rounded up as an account does that is charged with one after the other."""
    once = rounded_up((reach(neighbours) * clips / noise) ** 2)
    return np.sqrt(add_repeatedly(once, once, steps - 1)) * (1 + 2.0**-50)
