"""Junction trees: which columns must be looked at together, so that some of their pairs fit exactly.

Eliminating columns one after the other, the cheapest first, joins what each leaves behind; the largest sets
that occur are cliques, and a spanning tree of them with the largest overlaps has the running intersection
property (Koller & Friedman 2009, *Probabilistic Graphical Models*, §9.4 and §10.4; Theorem 10.6 for the
spanning tree).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

Clique = tuple[int, ...]


@dataclass(frozen=True)
class JunctionTree:
    """Cliques in an order in which each one's parent comes before it.

    ``sizes``: cells of each column. ``cliques``: sorted columns of each; every column is in one.
    ``parents``: number of each one's parent; -1: it is a root.
    """

    sizes: tuple[int, ...]
    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], factors: Iterable[Clique]) -> JunctionTree:
        """Find a tree in which each factor's columns are within one clique."""
        cliques = _cliques(sizes, factors)
        order, parents = _spanning_tree(cliques)
        return cls(tuple(sizes), tuple(cliques[one] for one in order), tuple(parents))

    @cached_property
    def separators(self) -> tuple[Clique, ...]:
        """Columns that each clique shares with its parent."""
        return tuple(
            tuple(one for one in clique if parent >= 0 and one in self.cliques[parent])
            for clique, parent in zip(self.cliques, self.parents, strict=True)
        )

    @property
    def n_cells(self) -> int:
        """Cells of all cliques together."""
        return sum(self.table_size(clique) for clique in self.cliques)

    def table_size(self, clique: Clique) -> int:
        """Cells of one table."""
        return math.prod(self.sizes[one] for one in clique)

    def home_of(self, factor: Clique) -> int:
        """Find the smallest clique that has all of a factor's columns."""
        wanted = set(factor)
        homes = [n for n, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(homes, key=lambda n: self.table_size(self.cliques[n]))


def cells_needed(sizes: Sequence[int], factors: Iterable[Clique]) -> int:
    """Count the cells of a junction tree for these factors."""
    return sum(math.prod(sizes[one] for one in clique) for clique in _cliques(sizes, factors))


def _cliques(sizes: Sequence[int], factors: Iterable[Clique]) -> list[Clique]:
    """Eliminate columns; sets of columns are whole numbers, a bit for each."""
    around = [0] * len(sizes)
    for factor in factors:
        whole = sum(1 << one for one in set(factor))
        for one in factor:
            around[one] |= whole & ~(1 << one)
    logs = [math.log(size) for size in sizes]
    # Of the table that eliminating each column would make.
    weights = {one: logs[one] + _sum_of(logs, around[one]) for one in range(len(sizes))}
    found: list[int] = []
    while weights:
        # The cheapest table first; where two cost the same, the one that needs fewer new edges.
        lightest = min(weights.values()) + 1e-9
        ties = [one for one, weight in weights.items() if weight <= lightest]
        chosen = ties[0] if len(ties) == 1 else min(ties, key=lambda one: _fill(around, one))
        del weights[chosen]
        neighbours = around[chosen]
        clique = neighbours | (1 << chosen)
        if not any(clique & ~other == 0 for other in found):
            found.append(clique)
        for one in _members(neighbours):
            before = around[one]
            around[one] = (before | neighbours) & ~(1 << one) & ~(1 << chosen)
            weights[one] += _sum_of(logs, around[one] & ~before) - logs[chosen]
    return [tuple(_members(clique)) for clique in found]


def _members(columns: int) -> Iterator[int]:
    while columns:
        lowest = columns & -columns
        yield lowest.bit_length() - 1
        columns ^= lowest


def _sum_of(logs: Sequence[float], columns: int) -> float:
    return sum(logs[one] for one in _members(columns))


def _fill(around: Sequence[int], node: int) -> int:
    """Count the edges that eliminating a column would add, twice."""
    own = around[node]
    return sum((own & ~around[one] & ~(1 << one)).bit_count() for one in _members(own))


def _spanning_tree(cliques: Sequence[Clique]) -> tuple[list[int], list[int]]:
    """Join cliques by their largest overlaps (Prim). Returns their order, and each one's parent in it."""
    sets = [set(clique) for clique in cliques]
    order, parents = [0], [-1]
    best = {n: (len(sets[n] & sets[0]), 0) for n in range(1, len(cliques))}
    while best:
        chosen = max(best, key=lambda n: best[n][0])
        overlap, place = best.pop(chosen)
        order.append(chosen)
        parents.append(place if overlap else -1)
        here = len(order) - 1
        for n in best:
            shared = len(sets[n] & sets[chosen])
            if shared > best[n][0]:
                best[n] = (shared, here)
    return order, parents
