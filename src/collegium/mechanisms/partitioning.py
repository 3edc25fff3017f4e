"""Partitioning mechanisms: people of similar budgets together, each part with the budget of its strictest."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.accounting.events import PureNoise
from collegium.accounting.neighbours import Neighbours
from collegium.budgets import Budgets
from collegium.checks import check_callable, check_is, check_whole
from collegium.errors import InputError
from collegium.mechanisms.people import as_column, refuse_other_lengths
from collegium.personalisation.bins import gathered

Floats = NDArray[np.float64]
Utility = Callable[[float, int], float]
"""What a part of a smallest ε and so many people is worth; the utilities of parts add up."""

_MOST_LEVELS = 3000


@dataclass(frozen=True, eq=False)
class Partition:
    """People in parts, each with the budget of its strictest member.

    Attributes
    ----------
    part : ndarray of int, shape (n_people,)
        Of each person; 0 has the smallest budgets.
    epsilons : ndarray, shape (n_parts,)
        ε of each part: the smallest of its members.
    waste : float
        Σ (ε_i - ε of the part)², what privacy-aware partitioning minimises.
    """

    part: NDArray[np.intp]
    epsilons: Floats
    waste: float

    def records(self, part: int) -> NDArray[np.intp]:
        """Positions of a part's people: what a mechanism of ``epsilons[part]`` runs on.

        Parts are disjoint, and who is in which follows from budgets alone, which are public: a person pays
        for the mechanism of their own part only, and any ensemble of the results is post-processing.
        """
        return np.flatnonzero(self.part == part)

    def event(self) -> PureNoise:
        """Return what mechanisms of these ε, one on each part, cost people of each part."""
        return PureNoise(self.epsilons, neighbours=Neighbours.ADD_OR_REMOVE)


def wasted(epsilons: ArrayLike, part: ArrayLike) -> float:
    """Sum over parts of the squared budget that goes unused: Σ (ε_i - min ε of the part)².

    Examples
    --------
    >>> epsilons = [0.1, 0.1, 0.2, 0.9, 1.0]
    >>> [round(wasted(epsilons, np.arange(5) >= cut), 2) for cut in (1, 2, 3, 4)]
    [1.46, 1.13, 0.02, 0.65]
    """
    budgets, numbers = as_column("epsilons", epsilons), as_column("part", part)
    refuse_other_lengths(epsilons=budgets, part=numbers)
    _, which = np.unique(numbers, return_inverse=True)
    least = np.full(int(which.max()) + 1, np.inf)
    np.minimum.at(least, which, budgets)
    return float(((budgets - least[which]) ** 2).sum())


def privacy_aware(epsilons: ArrayLike, n_parts: int, *, least: int = 1) -> Partition:
    """Cut people, sorted by budget, into parts that waste the least of what was granted.

    Parameters
    ----------
    epsilons : array-like of float, shape (n_people,)
        ε of each person, above 0.
    n_parts : int
        How many parts; not more than there are different budgets.
    least : int, default=1
        Fewest people in a part: mechanisms need some.

    Returns
    -------
    Partition

    Raises
    ------
    InputError
        If there are not so many budgets or people, or more than 3,000 different budgets.

    Notes
    -----
    Definition 4 of Li, Xiong, Ji & Jiang [1]_, who try all cuts; here it is found by dynamic programming, in
    O(n_parts · levels²). People of equal budgets stay together: moving those of the lower part to the higher
    one, whose strictest they then are, wastes less. (With ``least`` above 1 a cut between equals could be
    necessary where none between different ones leaves enough people; it is refused.)

    Each part has less data, and every result its own noise: with one mechanism over all people whose
    influence follows budgets (weights, rates, clips) nothing is cut. It is here for comparison.

    References
    ----------
    .. [1] H. Li, L. Xiong, Z. Ji, X. Jiang, "Partitioning-based mechanisms under personalized differential
       privacy", PAKDD 2017.

    Examples
    --------
    >>> cut = privacy_aware([0.1, 0.1, 0.2, 0.9, 1.0], 2)
    >>> cut.part.tolist(), cut.epsilons.tolist(), round(cut.waste, 6)
    ([0, 0, 0, 1, 1], [0.1, 0.9], 0.02)
    """
    levels = _Levels(epsilons, least)
    check_whole("n_parts", n_parts)
    counts, sums, squares = (
        np.concatenate([[0.0], np.cumsum(levels.people * levels.budget**power)])
        for power in range(3)
    )

    def worth(first: int) -> Floats:
        """Minus the waste of a part from this level to before each later one."""
        low, ends = levels.budget[first], np.arange(first + 1, len(levels.budget) + 1)
        unused = squares[ends] - squares[first] - 2 * low * (sums[ends] - sums[first])
        return np.asarray(-np.maximum(unused + low**2 * (counts[ends] - counts[first]), 0.0))

    starts = levels.best_cuts(levels.gains(worth), n_parts, exactly=True)
    if starts is None:
        raise InputError(
            f"{len(levels.budget)} different budgets of {int(counts[-1])} people cannot be cut into "
            f"{n_parts} parts of at least {least}: ask for fewer or smaller parts"
        )
    return levels.cut_at(starts)


def utility_based(
    epsilons: ArrayLike, utility: Utility, *, most_parts: int | None = None, least: int = 1
) -> Partition:
    """Cut people, sorted by budget, into the parts that are worth the most together.

    Parameters
    ----------
    epsilons, least
        As in :func:`privacy_aware`.
    utility : callable
        ``utility(epsilon, n_people)``: what a mechanism of ε on so many people is worth. Of public numbers
        only: a utility that looks at data would have to be paid for.
    most_parts : int, optional
        Most parts; default: as many as are worth it.

    Returns
    -------
    Partition

    Raises
    ------
    InputError
        If a utility is not finite, or everybody together are fewer than ``least``.

    Notes
    -----
    Definition 5 of Li, Xiong, Ji & Jiang (PAKDD 2017), by dynamic programming over all cuts and numbers of
    parts. Which utility adds up? Precision does: independent unbiased results with variances v_j, weighted
    by 1/v_j, have the variance 1/Σ(1/v_j). The example is that of a mean of values of range 1 and standard
    deviation s with Laplace noise; the best partition is then the best such ensemble.

    Examples
    --------
    >>> epsilons = np.repeat([0.1, 0.12, 1.0], [50, 40, 10])
    >>> precision = lambda epsilon, n: 1 / (0.5**2 / n + 2 / (epsilon * n) ** 2)
    >>> cut = utility_based(epsilons, precision)
    >>> cut.epsilons.tolist(), np.bincount(cut.part).tolist()
    ([0.1, 1.0], [90, 10])
    """
    levels = _Levels(epsilons, least)
    check_callable("utility", utility, "it is called with a part's ε and its number of people")
    ends = np.concatenate([[0], np.cumsum(levels.people)])

    def worth(first: int) -> Floats:
        low = float(levels.budget[first])
        values = np.array([utility(low, int(end - ends[first])) for end in ends[first + 1 :]])
        if not np.isfinite(values).all():
            raise InputError(f"the utility of a part of ε = {low:g} is not finite: give a number")
        return values

    most = len(levels.budget) if most_parts is None else most_parts
    check_whole("most_parts", most)
    starts = levels.best_cuts(levels.gains(worth), most, exactly=False)
    if starts is None:
        raise InputError(
            f"all people together are fewer than least = {least}: ask for smaller parts"
        )
    return levels.cut_at(starts)


def in_parts(budgets: Budgets, cut: Callable[[Floats], Partition]) -> Budgets:
    """Give everybody the budget of the strictest in their part: PATE's teachers by partition.

    Parameters
    ----------
    budgets : Budgets
        Who granted what.
    cut : callable
        From one ε per owner to a partition: ``lambda epsilons: privacy_aware(epsilons, 2)``.

    Returns
    -------
    Budgets
        Of the same records and owners, with a group for each part. Under
        :class:`~collegium.Weighting` each part then has teachers of its own, as in the general partitioning
        mechanism (thesis, Definition 3.9), and the vote is its ensemble; its ``kept`` is the share of all
        that was granted (in μ) that is not wasted. Who granted without limit stays apart.

    Notes
    -----
    Neighbouring data sets have the same partition, as it is a function of budgets and group sizes.
    :class:`~collegium.Hybrid` wastes less: within its parts, who grants more is seen by more teachers.

    Examples
    --------
    >>> from collegium import Policy, Weighting
    >>> policy = Policy({"a": 0.1, "b": 0.2, "c": 0.9, "d": 1.0})
    >>> parts = in_parts(policy.assign([*"aabcd"] * 100), lambda epsilons: privacy_aware(epsilons, 2))
    >>> {name: (budget.epsilon, parts.group_sizes()[name]) for name, budget in parts.groups.items()}
    {'ε=0.1 to 0.2': (0.1, 300), 'ε=0.9 to 1': (0.9, 200)}
    >>> plan = Weighting().plan(parts.groups, parts.public_sizes(), 50)
    >>> {name: group.teachers for name, group in plan.groups.items()}
    {'ε=0.1 to 0.2': 30, 'ε=0.9 to 1': 20}
    """
    check_is("budgets", budgets, Budgets, "make them by policy.assign(column)")
    sizes = budgets.public_sizes()
    names = [g for g in budgets.group_names if sizes[g] and not budgets.groups[g].is_unlimited]
    if not names:
        raise InputError("nobody granted a finite budget, so there is nothing to cut")
    each = np.repeat([budgets.groups[g].epsilon for g in names], [sizes[g] for g in names])
    part = cut(each).part
    ends = np.cumsum([0, *(sizes[g] for g in names)])[:-1]
    bins: dict[str, Hashable] = {g: int(part[end]) for g, end in zip(names, ends, strict=True)}
    found = gathered(budgets.groups, sizes, bins)
    return budgets.regrouped(found.groups, found.group_of, found.kept)


class _Levels:
    """Different budgets in ascending order, how many people have each, and the best way to cut them."""

    def __init__(self, epsilons: ArrayLike, least: int) -> None:
        check_whole("least", least)
        given = as_column("epsilons", epsilons)
        if (given <= 0).any():
            raise InputError("epsilons must be above 0: leave out people who grant nothing")
        self.given, self.least = given, least
        self.budget, self.level, self.people = np.unique(
            given, return_inverse=True, return_counts=True
        )
        if len(self.budget) > _MOST_LEVELS:
            raise InputError(
                f"{len(self.budget):,} different budgets are more than {_MOST_LEVELS:,}: round them down"
            )

    def gains(self, worth: Callable[[int], Floats]) -> Floats:
        """Worth of the part from each level (row) to before each later one (column); -inf if too small."""
        n, ends = len(self.budget), np.concatenate([[0], np.cumsum(self.people)])
        gain = np.full((n, n + 1), -np.inf)
        for first in range(n):
            enough = ends[first + 1 :] - ends[first] >= self.least
            gain[first, first + 1 :] = np.where(enough, worth(first), -np.inf)
        return gain

    def best_cuts(self, gain: Floats, parts: int, *, exactly: bool) -> list[int] | None:
        """Levels at which parts begin, for the largest sum of their worths; None if there are none.

        ``exactly``: so many parts; otherwise at most.
        """
        n = len(gain)
        if not exactly and parts >= n:
            return self._best_of_any_number(gain)
        best = np.full(n + 1, -np.inf)
        best[0], values, back = 0.0, [-np.inf], []
        for _ in range(min(parts, n)):
            together = best[:n, None] + gain
            back.append(np.argmax(together, axis=0))
            best = np.max(together, axis=0)
            values.append(float(best[n]))
        number = parts if exactly else int(np.argmax(values))
        if number >= len(values) or values[number] == -np.inf:
            return None
        starts, end = [], n
        for came_from in reversed(back[:number]):
            end = int(came_from[end])
            starts.append(end)
        return starts[::-1]

    def _best_of_any_number(self, gain: Floats) -> list[int] | None:
        n = len(gain)
        best, back = np.full(n + 1, -np.inf), np.zeros(n + 1, dtype=np.intp)
        best[0] = 0.0
        for end in range(1, n + 1):
            together = best[:end] + gain[:end, end]
            back[end] = np.argmax(together)
            best[end] = together[back[end]]
        if best[n] == -np.inf:
            return None
        starts, end = [], n
        while end:
            end = int(back[end])
            starts.append(end)
        return starts[::-1]

    def cut_at(self, starts: list[int]) -> Partition:
        part = (np.searchsorted(starts, self.level, side="right") - 1).astype(np.intp)
        return Partition(part, self.budget[starts], wasted(self.given, part))
