"""Budgets as fine as people are, in few groups: each as strict as its strictest member."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collegium.budgets import Budget, Budgets
from collegium.personalisation.rules import mu_of

Floats = NDArray[np.float64]

MOST_BUDGETS = 200
"""Different budgets that are planned and accounted for one by one; more are put into so many groups."""
_HALVINGS = 60


def equal_waste(granted: Floats, owners: Floats, most: int) -> NDArray[np.intp]:
    """Cut sorted budgets into bins such that each wastes as much as any other.

    A bin wastes what its members grant above its strictest one: Σ owners·(granted - lowest). Where bins are
    narrow, the cuts for which all waste the same waste least together (``docs/personalisations.md``).

    Parameters
    ----------
    granted : ndarray, shape (n,)
        What each budget buys, ascending.
    owners : ndarray, shape (n,)
        How many have it.
    most : int
        Bins, at most.

    Returns
    -------
    ndarray of int
        Where each bin begins; of equal budgets, all are in one.

    Examples
    --------
    >>> import numpy as np
    >>> equal_waste(np.array([1.0, 1.1, 3.0, 3.2, 9.0]), np.ones(5), 3).tolist()
    [0, 2, 4]
    """
    value, which = np.unique(granted, return_index=True)
    people = np.add.reduceat(owners, which)
    if len(value) <= most:
        return which.astype(np.intp)
    counts = np.concatenate([[0.0], np.cumsum(people)])
    sums = np.concatenate([[0.0], np.cumsum(people * value)])
    low, high = 0.0, float(sums[-1])
    found = _greedy(value, counts, sums, high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        tried = _greedy(value, counts, sums, middle)
        if len(tried) <= most:
            high, found = middle, tried
        else:
            low = middle
    return which[found].astype(np.intp)


def _greedy(value: Floats, counts: Floats, sums: Floats, allowed: float) -> NDArray[np.intp]:
    """Begin a bin where the one before would waste more than is allowed."""
    starts = [0]
    while True:
        first = starts[-1]
        left, right = (
            first + 1,
            len(value) + 1,
        )  # the bin ends before the largest end that is allowed
        while right - left > 1:
            end = (left + right) // 2
            wasted = sums[end] - sums[first] - value[first] * (counts[end] - counts[first])
            left, right = (end, right) if wasted <= allowed else (left, end)
        if left == len(value):
            return np.array(starts, dtype=np.intp)
        starts.append(left)


@dataclass(frozen=True)
class Gathered:
    """Groups that were put together.

    ``groups``: the new ones, each with the budget of its strictest member.
    ``group_of``: new group of each old one that has owners.
    ``kept``: share of all that was granted (in μ, of finite budgets) that the new ones grant.
    """

    groups: Mapping[str, Budget]
    group_of: Mapping[str, str]
    kept: float


def few_groups(groups: Mapping[str, Budget], sizes: Mapping[str, int], most: int) -> Gathered:
    """Put groups together that grant nearly the same; those without owners are left out.

    ``most``: how many there may be afterwards, beside unlimited ones. Of several δ, each has its part: those
    of different δ do not mix.
    """
    used = {g: one for g, one in groups.items() if sizes[g] and not one.is_unlimited}
    mu = mu_of(used)
    bin_of: dict[str, Hashable] = {}
    for delta in sorted({one.delta for one in used.values()}):
        names = sorted((g for g in used if used[g].delta == delta), key=lambda g: (mu[g], g))
        granted = np.array([mu[g] for g in names])
        owners = np.array([sizes[g] for g in names], dtype=np.float64)
        starts = equal_waste(granted, owners, max(1, most * len(names) // len(used)))
        numbers = np.searchsorted(starts, np.arange(len(names)), side="right")
        bin_of |= dict(zip(names, ((delta, n) for n in numbers.tolist()), strict=True))
    return gathered(groups, sizes, bin_of)


def gathered(
    groups: Mapping[str, Budget], sizes: Mapping[str, int], bin_of: Mapping[str, Hashable]
) -> Gathered:
    """Make one group of those in one bin, which grants the smallest ε and δ of any member.

    ``bin_of``: bin of each group with owners; who is in none, an unlimited budget say, stays as it is.
    """
    members: dict[Hashable, list[str]] = {}
    for name in groups:
        if sizes[name]:
            members.setdefault(bin_of.get(name, (name,)), []).append(name)
    made: dict[str, Budget] = {}
    group_of: dict[str, str] = {}
    for its in members.values():
        budgets = [groups[name] for name in its]
        low = Budget(min(b.epsilon for b in budgets), min(b.delta for b in budgets))
        name = its[0]
        if len(its) > 1:
            high = max(b.epsilon for b in budgets)
            name = f"ε={low.epsilon:.4g} to {high:.4g}"
            while name in made or name in groups:
                name = f"{name}, from {its[0]}"
        made[name] = low
        group_of.update(dict.fromkeys(its, name))
    finite = {g: one for g, one in groups.items() if sizes[g] and not one.is_unlimited}
    mu = mu_of({**finite, **{("new", g): one for g, one in made.items() if not one.is_unlimited}})
    all_of_it = sum(sizes[g] * mu[g] for g in finite)
    kept = sum(sizes[g] * mu["new", group_of[g]] for g in finite) / all_of_it if finite else 1.0
    return Gathered(made, group_of, min(1.0, kept))


def few_budgets(budgets: Budgets, most: int = MOST_BUDGETS) -> Budgets:
    """Put budgets into bins where there are too many different ones; otherwise give them back.

    A bin grants what its strictest member grants, so nobody's own budget is exceeded. Bins are a function of
    budgets and group sizes, which are public.

    Parameters
    ----------
    budgets : Budgets
        Who granted what.
    most : int, default=200
        Different budgets that are left as they are, and bins otherwise.

    Returns
    -------
    Budgets
        Its ``kept`` is the share of all that was granted (in μ) that the bins grant.

    Examples
    --------
    >>> people = Budgets.from_epsilons([0.5, 1.0, 1.01, 1.02, 3.0])
    >>> few_budgets(people, 3).group_sizes()
    {'ε=0.5': 1, 'ε=1 to 1.02': 3, 'ε=3': 1}
    """
    if not too_many(budgets, most):
        return budgets
    found = few_groups(budgets.groups, budgets.public_sizes(), most)
    return budgets.regrouped(found.groups, found.group_of, found.kept)


def too_many(budgets: Budgets, most: int = MOST_BUDGETS) -> bool:
    """Whether there are more budgets than are worked with one by one, and they can be put together."""
    sizes = budgets.public_sizes()
    return budgets.in_memory and sum(sizes[name] > 0 for name in budgets.groups) > most


def said_of(before: Budgets, after: Budgets) -> str:
    """Say what was put together, for the user; empty if nothing was."""
    if after is before:
        return ""
    different = sum(size > 0 for size in before.public_sizes().values())
    return (
        f"{different:,} different budgets were put into {len(after.groups):,} groups, each as strict as its "
        f"strictest member: nobody pays more than they granted, and {100 * after.kept:.1f} % of all that was "
        "granted (in μ) is kept"
    )
