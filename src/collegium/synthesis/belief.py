"""Belief propagation on a junction tree: the marginals of p(x) ∝ exp Σ_c θ_c(x_c), exactly.

Tables are kept as numbers, not logarithms: each is scaled by its largest entry, and messages by theirs, so
that what underflows is a probability below 1e-300 of its table's largest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from collegium.synthesis.junction_tree import Clique, JunctionTree

Floats = NDArray[np.float64]


class Beliefs:
    """Marginals of all cliques.

    ``tree``: the cliques. ``factors``: columns of each factor.
    """

    def __init__(self, tree: JunctionTree, factors: Sequence[Clique]) -> None:
        self.tree, self.factors = tree, tuple(factors)
        self._homes = [tree.home_of(factor) for factor in factors]
        cliques, separators = tree.cliques, tree.separators
        self._shapes = [tuple(tree.sizes[one] for one in clique) for clique in cliques]
        self._factor_shapes = [
            _spread(factor, cliques[home], tree.sizes)
            for factor, home in zip(factors, self._homes, strict=True)
        ]
        self._factor_axes = [
            _axes_outside(factor, cliques[home])
            for factor, home in zip(factors, self._homes, strict=True)
        ]
        self._children: list[list[int]] = [[] for _ in cliques]
        for child, parent in enumerate(tree.parents):
            if parent >= 0:
                self._children[parent].append(child)
        self._up_axes = [_axes_outside(s, c) for s, c in zip(separators, cliques, strict=True)]
        self._up_shapes = [
            _spread(s, c, tree.sizes) for s, c in zip(separators, cliques, strict=True)
        ]
        inside = [cliques[p] if p >= 0 else () for p in tree.parents]
        self._down_axes = [_axes_outside(s, c) for s, c in zip(separators, inside, strict=True)]
        self._down_shapes = [
            _spread(s, c, tree.sizes) for s, c in zip(separators, inside, strict=True)
        ]

    def tables(
        self, thetas: Sequence[Floats], masks: Mapping[int, Floats] | None = None
    ) -> tuple[list[Floats], float]:
        """Compute every clique's marginal.

        ``thetas``: log-potential of each factor, in its shape. ``masks``: 0 or 1 for each cell of some
        columns: cells of weight 0 do not occur.
        Returns: tables that add up to 1 (all 0 where nothing is possible), and log Z (-inf then).
        """
        logs: list[Floats | None] = [None] * len(self._shapes)
        for theta, home, shape in zip(thetas, self._homes, self._factor_shapes, strict=True):
            spread = theta.reshape(shape)
            before = logs[home]
            logs[home] = (
                np.array(np.broadcast_to(spread, self._shapes[home])) if before is None else before
            )
            if before is not None:
                before += spread
        log_z = 0.0
        own: list[Floats] = []
        for log, shape in zip(logs, self._shapes, strict=True):
            if log is None:
                own.append(np.ones(shape))
                continue
            top = float(log.max())
            if top == -math.inf:
                return [np.zeros(one) for one in self._shapes], -math.inf
            log_z += top
            log -= top
            own.append(np.exp(log, out=log))
        for column, mask in (masks or {}).items():
            home = self.tree.home_of((column,))
            own[home] = own[home] * mask.reshape(
                _spread((column,), self.tree.cliques[home], self.tree.sizes)
            )
        return self._propagated(own, log_z)

    def _propagated(self, own: list[Floats], log_z: float) -> tuple[list[Floats], float]:
        parents = self.tree.parents
        up: list[Floats] = [np.empty(0)] * len(own)
        collected = own
        for child in range(len(own) - 1, -1, -1):
            table = collected[child]
            if parents[child] < 0:
                continue
            message = table.sum(axis=self._up_axes[child])
            top = float(message.max())
            if not top > 0.0:
                return [np.zeros_like(one) for one in own], -math.inf
            log_z += math.log(top)
            up[child] = message / top
            parent = parents[child]
            collected[parent] = collected[parent] * up[child].reshape(self._down_shapes[child])
        for node in range(len(own)):
            parent = parents[node]
            if parent < 0:
                total = float(collected[node].sum())
                if not total > 0.0:
                    return [np.zeros_like(one) for one in own], -math.inf
                log_z += math.log(total)
                collected[node] = collected[node] / total
                continue
            marginal = collected[parent].sum(axis=self._down_axes[node])
            sent = collected[node].sum(axis=self._up_axes[node])
            ratio = np.divide(marginal, sent, out=np.zeros_like(marginal), where=sent > 1e-280)
            collected[node] = collected[node] * ratio.reshape(self._up_shapes[node])
        return collected, log_z

    def marginals(self, tables: Sequence[Floats]) -> list[Floats]:
        """Sum the cliques' tables to those of the factors."""
        return [
            tables[home].sum(axis=axes) if axes else tables[home]
            for home, axes in zip(self._homes, self._factor_axes, strict=True)
        ]

    def marginal(self, tables: Sequence[Floats], factor: Clique) -> Floats:
        """Sum a clique's table to some of its columns."""
        home = self.tree.home_of(factor)
        return np.asarray(tables[home].sum(axis=_axes_outside(factor, self.tree.cliques[home])))


def _axes_outside(factor: Clique, clique: Clique) -> tuple[int, ...]:
    return tuple(axis for axis, one in enumerate(clique) if one not in factor)


def _spread(factor: Clique, clique: Clique, sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(sizes[one] if one in factor else 1 for one in clique)
