"""From budgets to a plan of DP-SGD: rates, clips and noise that use each budget, and no more.

Everything here is public arithmetic on budgets and group sizes, matched by the groups' names. Each kind of
plan is a function from budgets to clips, rates and one noise; :func:`plan_dpsgd` makes the plan of them.
Derivations: ``docs/dpsgd-proofs.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.bookkeeping import MOST_CHARGES, add_repeatedly
from collegium.accounting.calibration import noise_for, rates_and_noise
from collegium.accounting.events import rounded_up
from collegium.accounting.gaussian import gdp_mu
from collegium.accounting.neighbours import Neighbours
from collegium.accounting.subsampled import ACCOUNTS
from collegium.budgets import Budget
from collegium.checks import check_choice, check_is, check_number, check_whole, listed, shown
from collegium.errors import InputError
from collegium.personalisation.dpsgd_plan import (
    EXACT,
    FULL_BATCH,
    DPSGDPlan,
    GroupSteps,
    granted_mu,
    reach,
)

Floats = NDArray[np.float64]

KINDS = (FULL_BATCH, "sample", "scale", "uniform")
BOUNDS = ("weight", "clip")
DEFAULT_BINS = 16
_LEAST = 1e-30  # of the largest influence; below, ratios of influence leave the range of floats
_DOWN = 1 - 2.0**-50


def plan_dpsgd(
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
) -> DPSGDPlan:
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
        See :class:`~collegium.personalisation.dpsgd_plan.DPSGDPlan`. With ``sample``, a group whose rate
        would have to be above 1 has rate 1 and a larger clip. ``uniform`` is full batch without a rate.
    rate : float, optional
        Mean probability with which an owner takes part in a step, in (0, 1); not for full batch.
    neighbours : Neighbours, default=ADD_OR_REMOVE
        Towards replacement, full batch has twice the noise, and sampled owners are refused.
    accountant : {"pld", "rdp"}, default="pld"
        Used where owners are sampled; full batch has an exact one.
    bound : {"weight", "clip"}, default="weight"
        See :class:`~collegium.personalisation.dpsgd_plan.DPSGDPlan`.
    bins : int, optional
        Into how many steps of log ε budgets are rounded down, so that few rates have to be found; what that
        wastes shows in the plan's utilisation. Default: not at all in full batch; with sampled owners 16,
        where there are more than 16 different budgets.

    Returns
    -------
    DPSGDPlan

    Raises
    ------
    InputError
        If a setting is not allowed, sizes are not those of the groups, nobody has a finite budget, budgets
        are too far from each other to be planned together, or the accountant cannot show so small an ε.

    Examples
    --------
    >>> people = {"high": Budget(1.0), "average": Budget(2.0), "low": Budget(3.0)}
    >>> sizes = {"high": 54, "average": 37, "low": 9}
    >>> plan = plan_dpsgd(people, sizes, steps=100)
    >>> round(plan.noise, 6), {name: round(group.clip, 4) for name, group in plan.groups.items()}
    (25.313745, {'high': 0.6785, 'average': 1.2696, 'low': 1.8204})
    >>> {name: round(spent, 9) for name, spent in plan.epsilon().items()}
    {'high': 1.0, 'average': 2.0, 'low': 3.0}
    >>> plan = plan_dpsgd(people, sizes, steps=150, kind="sample", rate=0.1, accountant="rdp")
    >>> round(plan.noise, 4), {name: round(group.rate, 4) for name, group in plan.groups.items()}
    (3.5548, {'high': 0.0673, 'average': 0.1273, 'low': 0.1839})
    """
    check_choice("kind", kind, KINDS)
    Neighbours.checked("neighbours", neighbours)
    check_choice("bound", bound, BOUNDS)
    check_choice("accountant", accountant, ACCOUNTS)
    check_whole("steps", steps, most=MOST_CHARGES)
    if bins is not None:
        check_whole("bins", bins)
    used = _with_owners(groups, sizes)
    sampled = kind != FULL_BATCH and not (kind == "uniform" and rate is None)
    _check_rate(kind, rate, sampled)
    if sampled and neighbours is not Neighbours.ADD_OR_REMOVE:
        raise InputError(
            f"samples of owners are accounted for where {Neighbours.ADD_OR_REMOVE.in_words}, and not where "
            f"{neighbours.in_words}: take everybody in every step ({FULL_BATCH}), whose account covers that"
        )
    owners = np.array([sizes[name] for name in used], dtype=np.float64)
    granted = granted_mu(list(used.values()))
    _require_comparable(used, granted)
    chosen, which = _classes(used, granted, bins or (DEFAULT_BINS if sampled else None))
    shares = np.bincount(which, weights=owners) / owners.sum()
    if sampled:
        assert rate is not None
        found = _SAMPLED[kind](chosen, shares, float(rate), int(steps), accountant)
    else:
        found = _full_batch(chosen, shares, int(steps), neighbours, kind == "uniform")
    columns = zip(used, found.rates[which].tolist(), found.clips[which].tolist(), strict=True)
    plan = DPSGDPlan(
        kind=kind,
        bound=bound,
        steps=int(steps),
        noise=found.noise,
        groups={name: GroupSteps(used[name], sizes[name], q, c, 0.0) for name, q, c in columns},
        neighbours=neighbours,
        accountant=accountant if sampled else EXACT,
    )
    return _verified(plan, granted)


@dataclass(frozen=True)
class _Budgets:
    """The different budgets to be planned for, all finite: (ε, δ), and the μ that they buy; shape (n,)."""

    epsilon: Floats
    delta: Floats
    mu: Floats


@dataclass(frozen=True)
class _Found:
    """Clips and rates of the different budgets, shape (n,), and the noise that belongs to them."""

    clips: Floats
    rates: Floats
    noise: float


def _full_batch(
    budgets: _Budgets, shares: Floats, steps: int, neighbours: Neighbours, uniform: bool
) -> _Found:
    """Clips ∝ μ: the closed form. A sum moves by `reach` clips, so that μ² = steps·(reach·clip/noise)²."""
    influence = np.full_like(budgets.mu, budgets.mu.min()) if uniform else budgets.mu
    mean = math.fsum((shares * influence).tolist())
    clips = influence / mean * _DOWN
    noise = reach(neighbours) * math.sqrt(steps) / mean
    while (excess := _spent_mu(clips, noise, steps, neighbours) / budgets.mu).max() > 1:
        noise *= float(excess.max()) * (1 + 2.0**-48)
    return _Found(clips, np.ones_like(clips), noise)


def _spent_mu(clips: Floats, noise: float, steps: int, neighbours: Neighbours) -> Floats:
    """μ of all steps, rounded up as an account does that is charged with one after the other."""
    once = rounded_up((reach(neighbours) * clips / noise) ** 2)
    return np.sqrt(add_repeatedly(once, once, steps - 1)) * (1 + 2.0**-50)


def _sample(b: _Budgets, shares: Floats, rate: float, steps: int, account: str) -> _Found:
    """Equal clips, rates that rise with ε; a group at rate 1 has the clip that uses its budget."""
    noise, rates = rates_and_noise(
        b.epsilon.tolist(), b.delta.tolist(), shares.tolist(), rate, steps, account
    )
    affordable = b.mu * noise / math.sqrt(steps) * (1 - 2.0**-44)
    return _Found(np.where(rates == 1, np.maximum(affordable, 1.0), 1.0), rates, noise)


def _scale(b: _Budgets, shares: Floats, rate: float, steps: int, account: str) -> _Found:
    """Equal rates; a group that needs noise σ alone has a clip ∝ 1/σ, and clips are 1 on average."""
    budgets = zip(b.epsilon.tolist(), b.delta.tolist(), strict=True)
    alone = np.array([noise_for(*budget, rate, steps, account) for budget in budgets])
    noise = 1 / math.fsum((shares / alone).tolist())
    return _Found(noise / alone * _DOWN, np.full_like(alone, rate), noise)


def _uniform(b: _Budgets, shares: Floats, rate: float, steps: int, account: str) -> _Found:
    """Everybody at one rate and one clip, with the noise that the strictest budget needs."""
    everybody = {(float(b.epsilon[i]), float(b.delta[i])) for i in _pareto(b)}
    noise = max(noise_for(*budget, rate, steps, account) for budget in everybody)
    return _Found(np.ones_like(b.mu), np.full_like(b.mu, rate), noise)


_SAMPLED = {"sample": _sample, "scale": _scale, "uniform": _uniform}


def _pareto(b: _Budgets) -> list[int]:
    """Budgets that no other one is stricter than in both ε and δ."""
    order = np.lexsort((b.delta, b.epsilon))
    kept: list[int] = []
    for i in order.tolist():
        if not kept or b.delta[i] < b.delta[kept[-1]]:
            kept.append(i)
    return kept


def _classes(
    used: Mapping[str, Budget], granted: Floats, bins: int | None
) -> tuple[_Budgets, NDArray[np.intp]]:
    """Find the different budgets to plan for, and which of them each group has.

    An unlimited one becomes the most generous finite one. With bins, ε is rounded down to the smallest in a
    bin of log ε, and δ to the smallest of those in one power of ten: so nobody's budget is exceeded.
    """
    largest = int(np.argmax(np.where(np.isfinite(granted), granted, -1.0)))
    budgets = np.array([(budget.epsilon, budget.delta) for budget in used.values()])
    budgets[np.isinf(granted)] = budgets[largest]
    mu = np.where(np.isinf(granted), granted[largest], granted)
    _, first, which = np.unique(budgets, axis=0, return_index=True, return_inverse=True)
    which = which.reshape(-1)
    if bins is None or len(first) <= bins:
        return _Budgets(budgets[first, 0], budgets[first, 1], mu[first]), which
    logs, decades = np.log(budgets[first, 0]), np.floor(np.log10(budgets[first, 1]))
    width = float(np.ptp(logs)) / bins or 1.0
    steps = np.minimum(np.floor((logs - logs.min()) / width), bins - 1)
    _, binned = np.unique(np.stack([steps, decades]), axis=1, return_inverse=True)
    binned = binned.reshape(-1)
    lowest = np.full((binned.max() + 1, 2), np.inf)
    np.minimum.at(lowest, binned, budgets[first])
    of_bins = np.array([gdp_mu(epsilon, delta) for epsilon, delta in lowest.tolist()])
    return _Budgets(lowest[:, 0], lowest[:, 1], of_bins), binned[which]


def _verified(plan: DPSGDPlan, granted: Floats) -> DPSGDPlan:
    """Ask the plan's own account what each group spends, and keep what share of its budget (in μ) that is."""
    over = plan.over_budget
    if plan.accountant == EXACT:
        spent = plan.mu_spent
    else:
        budgets = [group.budget for group in plan.groups.values()]
        pairs = [(e, b.delta) for e, b in zip(plan.epsilon().values(), budgets, strict=True)]
        known = {pair: gdp_mu(*pair) for pair in set(pairs)}
        spent = np.array([known[pair] for pair in pairs])
    if over:
        name = over[0]
        raise InputError(
            f"no plan was found that keeps the budget of group {name!r} (ε = "
            f"{plan.groups[name].budget.epsilon:g}): use another accountant, or take everybody in every step "
            f"({FULL_BATCH})"
        )
    shares = np.where(np.isinf(granted), 0.0, np.minimum(spent / granted, 1.0)).tolist()
    groups = {
        name: replace(group, utilisation=share)
        for (name, group), share in zip(plan.groups.items(), shares, strict=True)
    }
    return replace(plan, groups=groups)


def _check_rate(kind: str, rate: float | None, sampled: bool) -> None:
    if not sampled:
        if rate is not None:
            raise InputError(
                f"rate is for sampled owners, and full batch takes everybody in every step: leave it out, "
                f"got {shown(rate)}"
            )
        return
    if rate is None:
        raise InputError(
            f"kind={kind!r} needs the mean rate with which owners take part in a step: give rate, for "
            "instance 0.1"
        )
    check_number("rate", rate)
    if not 0 < rate < 1:
        raise InputError(
            f"rate is a probability above 0 and below 1, got {shown(rate)}: for everybody in every step, use "
            f"kind={FULL_BATCH!r} without a rate"
        )


def _with_owners(groups: Mapping[str, Budget], sizes: Mapping[str, int]) -> dict[str, Budget]:
    for argument, given, method in (
        ("groups", groups, "groups"),
        ("sizes", sizes, "public_sizes()"),
    ):
        check_is(argument, given, Mapping, f"give budgets.{method}")
    for name, budget in groups.items():
        check_is(f"the budget of group {name!r}", budget, Budget, "write Budget(ε, δ)")
    if set(sizes) != set(groups):
        odd = listed(sorted(map(str, set(sizes) ^ set(groups))), most=5)
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


def _require_comparable(used: Mapping[str, Budget], granted: Floats) -> None:
    names = list(used)
    least, most = int(np.argmin(granted)), int(np.argmax(np.where(np.isinf(granted), -1, granted)))
    if granted[least] < _LEAST * granted[most]:
        raise InputError(
            f"groups {names[least]!r} (ε = {used[names[least]].epsilon:g}) and {names[most]!r} (ε = "
            f"{used[names[most]].epsilon:g}) cannot be planned together: beside the second, the first would "
            "have no influence at all; bring their budgets nearer to each other, or plan without one of them"
        )
