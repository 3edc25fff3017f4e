"""Hybrid: whoever grants alike shares teachers, whose votes weigh what the strictest of them granted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from collegium.budgets import Budget, Budgets
from collegium.parameters import same_as, setting
from collegium.personalisation.base import (
    Personalisation,
    finish_plan,
    members_only,
    whole_teachers,
)
from collegium.personalisation.bins import equal_waste, gathered, too_many
from collegium.personalisation.plan import Plan
from collegium.personalisation.rules import relative_influence
from collegium.personalisation.upsampling import Upsampling

Floats = NDArray[np.float64]

_MOST_BLOCKS = 600  # of budgets, between which pools may end
_MOST_UNITS = 32  # weights that are tried for a pool
_PRICE_OF_COPIES = 0.02  # of all that is granted, for training twice as long
_PRICE_OF_A_POOL = 1e-6  # of all that is granted: of equally good plans, the one with fewer pools


@dataclass(frozen=True)
class Hybrid(Personalisation):
    """Weight pools of people, and upsample within them; Δ = the weights of an owner's teachers together.

    People are sorted by what their budgets buy, and cut into pools, each with teachers of its own. The weight
    of a pool's teachers is one that its strictest members can afford; who grants twice as much is seen by two
    of them. A level that fills teachers gets them for itself, as under
    :class:`~collegium.personalisation.Weighting`; one too small for that shares them with those whose budgets
    are nearest, with or without duplicates, or keeps a teacher with few records and a small weight: whatever
    wastes least (thesis, §7.2). Any number of different budgets can be planned for.

    Parameters
    ----------
    max_duplicates : int, default=6
        Most teachers for one owner. Duplicates are made only where they save more than 2 % of all budgets
        for each doubling of the training time.
    noise_to_votes : float, optional
        Variance of the noise over that of the votes' own chance, for which weights are best. Very unequal
        weights cost votes: above a bound that follows from this number no weight rises any more. Default: a
        tenth of the number of teachers, as with the usual noise (σ = 0.16·k) and votes of which 85 % agree;
        with 250 teachers, that takes budgets some thirty times the mean (in μ). 1e9: weights are not bounded.

    Notes
    -----
    *Sensitivity.* An owner of a pool of weight w is seen by u of its teachers, and by no other: Δ = u·w, at
    most √2·u·w in L2 (``docs/personalisations.md``).

    *Vanishing* is no part of it: in every pool whose weight is not bounded somebody has used everything when
    voting ends, so none could go on alone.

    Examples
    --------
    >>> groups = {"one": Budget(0.1), "many": Budget(1.0), "some": Budget(2.0), "few": Budget(3.0)}
    >>> plan = Hybrid().plan(groups, {"one": 1, "many": 900, "some": 92, "few": 7}, 50)
    >>> plan.pools
    (('one',), ('many',), ('some', 'few'))
    >>> [(g.teachers, round(g.weight, 2), g.duplicates) for g in plan.groups.values()]
    [(1, 0.11, 1), (45, 0.94, 1), (5, 1.75, 1), (5, 1.75, 1)]
    >>> round(plan.efficiency, 3)
    0.999
    """

    max_duplicates: int = same_as(Upsampling, "max_duplicates")
    noise_to_votes: float | None = setting(
        None,
        "hybrid: variance of the noise over that of the votes' own chance, for which weights are best: the "
        "smaller, the less do weights differ; 1e9: budgets alone decide. Left out: a tenth of the teachers.",
        kind="number",
        least=0,
        most=1e9,
        example="20.0",
    )
    name: ClassVar[str] = "hybrid"
    rules: ClassVar[tuple[str, ...]] = ("exact",)

    def few_budgets(self, budgets: Budgets, n_teachers: int) -> Budgets:
        """Make one group of those who have the same say: of one pool, as many duplicates, and one δ."""
        if not too_many(budgets):
            return budgets
        groups, sizes = budgets.groups, budgets.public_sizes()
        unbounded = replace(
            self, noise_to_votes=1e9
        )  # bounds follow from what is granted: once is enough
        plan = unbounded.plan(groups, sizes, n_teachers)
        first = {name: ends[0] for name, ends in plan.teacher_ranges().items()}
        say_of = {
            name: (first[name], group.duplicates, group.budget.delta)
            for name, group in plan.groups.items()
            if not group.budget.is_unlimited
        }
        found = gathered(groups, sizes, say_of)
        return budgets.regrouped(found.groups, found.group_of, found.kept)

    def plan(self, groups: Mapping[str, Budget], sizes: Mapping[str, int], n_teachers: int) -> Plan:
        """Cut people into pools; see :meth:`Personalisation.plan`."""
        used = members_only(groups, sizes, n_teachers)
        influence = relative_influence(used, "exact")
        names = sorted(used, key=lambda group: (influence[group], group))
        owners = np.array([sizes[name] for name in names], dtype=np.float64)
        granted = np.array([influence[name] for name in names])
        noise = n_teachers / 10 if self.noise_to_votes is None else self.noise_to_votes
        says = np.minimum(granted, best_bound(granted, owners, noise))
        starts = equal_waste(says, owners, _MOST_BLOCKS)
        lowest, per_block = says[starts], np.add.reduceat(owners, starts)
        block_of = np.repeat(np.arange(len(starts)), np.diff([*starts.tolist(), len(names)]))
        pool_of, units, copies = _pools(lowest, per_block, n_teachers, self.max_duplicates)
        of_group = pool_of[block_of]
        quotas = {
            pool: n_teachers
            * float((owners * copies[block_of])[of_group == pool].sum() / owners.sum())
            for pool in range(len(units))
        }
        # Names of pools are numbers of equal length, so that ties are broken by what people granted.
        # A pool that does not fill its one teacher takes none away from the others.
        full = [quota for quota in quotas.values() if quota >= 1]
        total = max(round(sum(full)), len(full)) + len(quotas) - len(full)
        given = whole_teachers({f"{pool:06}": quota for pool, quota in quotas.items()}, total)
        teachers = np.array(list(given.values()))
        weights = units * total / float(teachers @ units)
        pools = tuple(
            tuple(names[i] for i in np.flatnonzero(of_group == pool)) for pool in range(len(units))
        )
        return finish_plan(
            self,
            n_nominal=n_teachers,
            n_teachers=total,
            mixed=False,
            used=used,
            sizes=sizes,
            teachers={
                name: int(teachers[pool]) for name, pool in zip(names, of_group, strict=True)
            },
            duplicates=dict(zip(names, copies[block_of].tolist(), strict=True)),
            weights={
                name: float(weights[pool]) for name, pool in zip(names, of_group, strict=True)
            },
            pools=pools,
        )


def best_bound(influence: Floats, owners: Floats, noise_to_votes: float) -> float:
    """Bound above which more influence of few costs votes more than noise; see ``docs/personalisations.md``.

    The c with c·E[min(μ, c)] = E[min(μ, c)²] + R, where R = ``noise_to_votes`` · E[μ]²: min(μ, c) maximises
    E[w]² / (E[w²] + R) over all 0 ≤ w ≤ μ.

    Parameters
    ----------
    influence : ndarray, shape (n,)
        μ that each budget buys, ascending.
    owners : ndarray, shape (n,)
        How many have it.
    noise_to_votes : float
        Variance of the noise over that of the votes' own chance, if weights were not bounded.

    Returns
    -------
    float
        ``inf`` where no bound helps.

    Examples
    --------
    >>> import numpy as np
    >>> mu, owners = np.array([1.0, 100.0]), np.array([99.0, 1.0])
    >>> best_bound(mu, owners, 100.0), round(best_bound(mu, owners, 1.0), 3)
    (inf, 5.0)
    """
    people = float(owners.sum())
    noise = noise_to_votes * float(owners @ influence / people) ** 2
    first = np.cumsum(owners * influence) / people  # E[μ; μ ≤ own]
    second = np.cumsum(owners * influence**2) / people
    # c·E[min] - E[min²] = c·E[μ; μ ≤ c] - E[μ²; μ ≤ c] rises with c: everybody above cancels.
    excess = influence * first - second - noise
    if excess[-1] <= 0:
        return float("inf")
    here = int(np.argmax(excess > 0))
    if not here:
        return float(influence[0])
    return float((noise + second[here - 1]) / first[here - 1])


def _pools(
    says: Floats, owners: Floats, n_teachers: int, most: int
) -> tuple[NDArray[np.intp], Floats, NDArray[np.intp]]:
    """Cut blocks of people into pools such that least is wasted.

    ``says`` (n,): influence that each block may have, ascending; ``owners`` (n,): people in it.
    Returns the pool of each block, the weight of each pool, and the duplicates of each block.
    """
    n, shard = len(says), float(owners.sum()) / n_teachers
    cost, unit = np.full((n, n), np.inf), np.zeros((n, n))
    mean = float(owners @ says / owners.sum())
    for first in range(n):
        cost[first, first:], unit[first, first:] = _costs(
            says[first:], owners[first:], shard, mean, most
        )
    best, began = np.zeros(n + 1), np.zeros(n + 1, dtype=np.intp)
    alone = _PRICE_OF_A_POOL * mean * float(owners.sum())
    for last in range(n):
        through = best[: last + 1] + cost[: last + 1, last] + alone
        began[last + 1] = int(np.argmin(through))
        best[last + 1] = through[began[last + 1]]
    cuts = [n]
    while cuts[-1]:
        cuts.append(int(began[cuts[-1]]))
    cuts = cuts[::-1]
    units = np.array([unit[a, b - 1] for a, b in pairwise(cuts)])
    pool_of = np.repeat(np.arange(len(units)), np.diff(cuts))
    return pool_of, units, _copies(says, units[pool_of], most)


def _copies(says: Floats, unit: Floats, most: int) -> NDArray[np.intp]:
    return np.clip(np.floor(says / unit + 1e-9), 1, most).astype(np.intp)


def _costs(
    says: Floats, owners: Floats, shard: float, mean: float, most: int
) -> tuple[Floats, Floats]:
    """Cost of the pools that begin at the first block and end at each, and the weights that make it so.

    In μ of one owner: what is granted and not used; 2 % of the mean for each duplicate; and where a pool
    is a part q < 1 of a teacher, (1 - q)² of that teacher's influence: its few records teach it little.
    """
    tried = np.unique(np.outer(says, 1 / np.arange(1, most + 1)))
    tried = tried[(tried <= says[0]) & (tried >= says[0] / most)]
    if len(tried) > _MOST_UNITS:
        tried = tried[np.linspace(0, len(tried) - 1, _MOST_UNITS).astype(np.intp)]
    copies = _copies(says[None, :], tried[:, None], most)
    people, seen = np.cumsum(owners), np.cumsum(owners * copies, axis=1)
    unused = np.cumsum(owners * (says - copies * tried[:, None]), axis=1)
    quota = seen / shard
    up = np.ceil(quota)
    rounding = np.where(quota < 1, np.inf, quota - np.floor(quota))
    rounding = np.minimum(rounding, up * (1 - quota / up) ** 2) * tried[:, None] * shard
    cost = unused + rounding + _PRICE_OF_COPIES * mean * (seen - people)
    cost[copies > np.maximum(1, np.floor(quota))] = np.inf  # an owner's teachers are different ones
    spent = np.maximum.accumulate(copies * tried[:, None] / says, axis=1)
    cost[spent < 1 - 1e-6] = np.inf  # somebody uses everything
    chosen = np.argmin(cost, axis=0)
    columns = np.arange(len(says))
    return cost[chosen, columns], tried[chosen]
