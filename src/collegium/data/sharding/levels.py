"""Privacy levels of records that are read piece by piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.budgets import DEFAULT_DELTA, NOTHING, Budgets, Policy, unknown_level
from collegium.checks import exact_floats
from collegium.errors import InputError, counted
from collegium.names import as_names

_MOST_LEVELS = 1000


@dataclass(frozen=True)
class Granted:
    """How a column of levels is to be understood.

    ``policy``: what each level means. None: the column holds ε.
    ``delta``: δ where the column holds ε.
    """

    policy: Policy | None = None
    delta: float = DEFAULT_DELTA

    def different(
        self, column: NDArray[Any], rows: NDArray[np.intp]
    ) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """Find the different levels of some records, and check that each is allowed.

        ``column`` (n,): level, or ε, of each record.
        ``rows`` (n,): where the records are in the data set, for messages.
        Returns ``levels``: the different levels.
        Returns ``codes`` (n,): position in ``levels`` of each record.
        """
        codes, unique = pd.factorize(column if self.policy is None else as_names(column))
        levels = np.asarray(unique)
        if self.policy is None:
            levels = _numbers(levels)
            wrong = np.flatnonzero(~(levels >= 0))
        else:
            known = pd.Index(list(self.policy.names))
            wrong = np.flatnonzero(known.get_indexer(pd.Index(levels.astype(object))) < 0)
        bad = np.flatnonzero((codes < 0) | np.isin(codes, wrong))
        if bad.size:
            first, where = codes[bad[0]], int(rows[bad[0]])
            if self.policy is not None:
                level = None if first < 0 else str(levels[first])
                raise unknown_level(level, self.policy.names, bad.size, where)
            raise InputError(
                f"{bad.size:,} record(s) with a privacy budget that is not a number of at least 0, first "
                f"{counted(where)}: give a positive ε, or 0 for people who grant nothing"
            )
        if len(levels) > _MOST_LEVELS:
            raise InputError(
                f"more than {_MOST_LEVELS} different privacy levels: round ε to fewer values"
            )
        return levels, np.asarray(codes, dtype=np.intp)

    def silent(self, column: NDArray[Any]) -> NDArray[np.bool_]:
        """Mark the records of people who granted nothing; nothing else is checked.

        ``column`` (n,): level, or ε, of each record.
        """
        if self.policy is None:
            epsilons = exact_floats(column)
            return np.zeros(len(column), dtype=bool) if epsilons is None else epsilons == 0
        silent = self._silent_levels
        if not silent:
            return np.zeros(len(column), dtype=bool)
        codes, unique = pd.factorize(column)
        is_silent = pd.Index(as_names(unique)).isin(silent)
        return np.asarray(np.append(is_silent, False)[codes])  # -1: it has none

    @property
    def nothing(self) -> Any:
        """The level, or ε, of all who granted nothing, however many such levels there are."""
        return self._silent_levels[0] if self.policy is not None else 0.0

    @property
    def _silent_levels(self) -> list[str]:
        outside = {} if self.policy is None else self.policy.outside
        return [name for name, kind in outside.items() if kind == NOTHING]

    def groups(self, levels: NDArray[Any]) -> tuple[pd.Index, Budgets]:
        """Give each level with a budget its group, in the order in which budgets in memory have them.

        ``levels``: all different levels of all records.
        Returns ``index``: level of each group, for looking up.
        Returns ``budgets``: one made-up owner per group: only names and budgets of the groups mean
            something.
        """
        if self.policy is None:
            values = np.unique(levels)
            if len(values) > _MOST_LEVELS:
                raise InputError(
                    f"more than {_MOST_LEVELS} different privacy levels: round ε to fewer values"
                )
            return pd.Index(values), Budgets.from_epsilons(values, self.delta)
        names = list(self.policy.levels)
        return pd.Index(names), self.policy.assign(names)


def _numbers(levels: NDArray[Any]) -> NDArray[np.float64]:
    numbers = exact_floats(levels)
    if numbers is None:
        raise InputError(
            "privacy budgets must be numbers, got text: give ε per record, or name the levels in a policy"
        )
    return numbers
