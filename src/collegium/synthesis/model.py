"""A fitted table: what can be said of it, and rows drawn from it. Nothing in it is sensitive."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.checks import listed
from collegium.data.cells import Cells
from collegium.errors import InputError
from collegium.synthesis.belief import Beliefs
from collegium.synthesis.coarsening import Coarsening
from collegium.synthesis.junction_tree import Clique, JunctionTree
from collegium.synthesis.max_entropy import Marginal
from collegium.synthesis.rules import Rule
from collegium.synthesis.sampling import sample_codes

Floats = NDArray[np.float64]
_TRIES = 40
_ROUNDS = 20


@dataclass(frozen=True, eq=False)
class TableModel:
    """A distribution over cells, of largest entropy given noisy marginals.

    ``cells``: of each column. ``coarse``: which of them were put together.
    ``factors``, ``thetas``: log-potentials by columns; p ∝ exp of their sum.
    ``marginals``: what was measured, in coarse cells. ``rules``: what holds for every row.
    ``n_rows``: of the private table, as far as it is public.
    ``hidden``: cells of a column behind all others, that no row shows; 0: there is none. Its number is that
    of the last column, plus one.
    """

    cells: Cells
    coarse: tuple[Coarsening, ...]
    factors: tuple[Clique, ...]
    thetas: tuple[Floats, ...]
    marginals: tuple[Marginal, ...]
    rules: tuple[Rule, ...] = ()
    n_rows: int = 0
    hidden: int = 0

    @property
    def sizes(self) -> tuple[int, ...]:
        """Coarse cells of each column, and of the hidden one."""
        return (*(one.size for one in self.coarse), *([self.hidden] if self.hidden else []))

    @property
    def followed(self) -> tuple[Marginal, ...]:
        """Which of the measured marginals it was fitted to: those that its tree has room for."""
        if self.hidden:
            return self.marginals
        wholes = [set(factor) for factor in self.factors]
        return tuple(one for one in self.marginals if any(set(one.columns) <= w for w in wholes))

    @cached_property
    def _fitted(self) -> tuple[Beliefs, list[Floats]]:
        beliefs = Beliefs(JunctionTree.of(self.sizes, self.factors), self.factors)
        return beliefs, beliefs.tables(self.thetas)[0]

    def shares(self, columns: Clique) -> Floats:
        """Shares of coarse cells of columns that go into the fit together, or of one."""
        beliefs, tables = self._fitted
        return beliefs.marginal(tables, columns)

    def sample(self, n: int, rng: np.random.Generator, where: Sequence[Rule] = ()) -> pd.DataFrame:
        """Draw rows, in random order.

        ``where``: conditions that all of them satisfy.
        Raises InputError if no row can, or next to none.
        """
        return self.cells.frame(self.arrays(n, rng, where))

    def arrays(
        self, n: int, rng: np.random.Generator, where: Sequence[Rule] = ()
    ) -> dict[str, NDArray[Any]]:
        """The same as arrays of :meth:`collegium.Schema.arrays`, shape (n,) each."""
        beliefs, tables = self._where(where)
        rules = (*self.rules, *where)
        kept: list[dict[str, NDArray[Any]]] = []
        left = n
        for _ in range(_ROUNDS):
            coarse = sample_codes(beliefs.tree, tables, left, rng)
            drawn = self._within(coarse, rules, rng)
            holds = np.ones(left, dtype=bool)
            for rule in rules:
                holds &= rule.holds(drawn)
            kept.append(drawn if holds.all() else {k: v[holds] for k, v in drawn.items()})
            left -= int(holds.sum())
            if not left:
                return _joined(kept)
        asked = listed([str(one) for one in rules])
        if left == n:
            raise InputError(f"no row could be drawn that satisfies {asked}: ask for others")
        raise InputError(
            f"only {n - left:,} of {n:,} rows could be drawn that satisfy {asked}: ask for fewer"
        )

    def _where(self, where: Sequence[Rule]) -> tuple[Beliefs, list[Floats]]:
        if not where:
            return self._fitted
        factors = [*self.factors, *(one.columns for one in where)]
        beliefs = Beliefs(JunctionTree.of(self.sizes, factors), factors)
        tables, log_z = beliefs.tables(
            [*self.thetas, *(one.log_weights(self.coarse) for one in where)]
        )
        if not np.isfinite(log_z):
            raise InputError(
                f"no row satisfies {listed([str(one) for one in where])}: ask for others"
            )
        return beliefs, tables

    def _within(
        self, coarse: NDArray[np.int64], rules: Sequence[Rule], rng: np.random.Generator
    ) -> dict[str, NDArray[Any]]:
        """Draw a cell, and a value in it, for each coarse cell: again where a rule does not hold."""
        drawn = self._values(coarse, range(len(self.coarse)), rng)
        for _ in range(_TRIES if rules else 0):
            wrong = {rule: np.flatnonzero(~rule.holds(drawn)) for rule in rules}
            if not any(len(rows) for rows in wrong.values()):
                break
            for rule, rows in wrong.items():
                for name, values in self._values(coarse[rows], rule.columns, rng).items():
                    drawn[name][rows] = values
        return drawn

    def _values(
        self, coarse: NDArray[np.int64], columns: Iterable[int], rng: np.random.Generator
    ) -> dict[str, NDArray[Any]]:
        found: dict[str, NDArray[Any]] = {}
        for column in columns:
            one = self.cells.columns[column]
            cell = self.coarse[column].drawn(coarse[:, column], rng)
            found[one.name] = one.values(cell, rng.random(len(coarse)))
        return found


def _joined(parts: Sequence[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([one[name] for one in parts]) for name in parts[0]}
