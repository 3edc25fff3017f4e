"""Junction trees: which columns must be looked at together, so that some of their pairs fit exactly.

Eliminating columns one after the other, the cheapest first, joins what each leaves behind; the largest sets
that occur are cliques, and a spanning tree of them with the largest overlaps has the running intersection
property (Koller & Friedman 2009, *Probabilistic Graphical Models*, §9.4 and §10.4; Theorem 10.6 for the
spanning tree).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
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
    neighbours: dict[int, set[int]] = {one: set() for one in range(len(sizes))}
    for factor in factors:
        for one in factor:
            neighbours[one].update(factor)
    for one, others in neighbours.items():
        others.discard(one)
    logs = [math.log(size) for size in sizes]
    found: list[frozenset[int]] = []
    left = dict(neighbours)
    weights = {one: logs[one] + sum(logs[n] for n in others) for one, others in left.items()}
    while left:
        # The cheapest table first; where two cost the same, the one that needs fewer new edges.
        lightest = min(weights.values())
        ties = [one for one, weight in weights.items() if weight <= lightest + 1e-9]
        chosen = ties[0] if len(ties) == 1 else min(ties, key=lambda one: _fill(left, one))
        around = left.pop(chosen)
        del weights[chosen]
        clique = frozenset(around | {chosen})
        if not any(clique <= other for other in found):
            found.append(clique)
        for one in around:
            left[one] |= around
            left[one] -= {one, chosen}
        for one in around:
            weights[one] = logs[one] + sum(logs[n] for n in left[one])
    return [tuple(sorted(clique)) for clique in found]


def _fill(graph: dict[int, set[int]], node: int) -> int:
    around = graph[node]
    return sum(len(around - graph[one]) - 1 for one in around)


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
