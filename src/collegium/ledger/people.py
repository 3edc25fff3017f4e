"""Owners as a ledger knows them: whom it is about, what each pays, and who has one history from now on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.budgets import Budgets
from collegium.errors import InputError
from collegium.ledger.chain import Key
from collegium.ledger.limits import Cost
from collegium.ledger.transaction import Transaction
from collegium.names import as_names
from collegium.zero_and_public_budgets import require_budgets


class People:
    """Owners as the ledger knows them."""

    def __init__(self, key: Key, budgets: Budgets) -> None:
        self._key, self.budgets = key, budgets
        if not budgets.named:
            raise InputError(
                "a ledger knows people by their names, and these budgets have none (a row's position "
                "is not a name): give owners="
            )
        require_budgets(budgets)
        self._ids = np.empty(budgets.n_owners, dtype=object)
        self._ids[:] = list(key.owners(map(str, as_names(budgets.owners).tolist())))

    def ids_of(self, chosen: NDArray[Any]) -> list[bytes]:
        """Hashes of some of their names."""
        ids: list[bytes] = self._ids[chosen].tolist()
        return ids

    def tags(self, chosen: NDArray[Any]) -> int:
        """What proves that just these are in a cohort."""
        return self._key.members(self.ids_of(chosen))

    def look_up(self, transaction: Transaction) -> NDArray[np.intp]:
        """Cohort of each, shape (n_owners,); 0 for people who are new."""
        return np.array(transaction.cohorts_of(self._ids.tolist()), dtype=np.intp)


def by_part(
    budgets: Budgets, costs: Mapping[str, Cost] | Sequence[Cost], parts: ArrayLike | None
) -> tuple[list[Cost], NDArray[np.intp]]:
    """Tie costs to owners: by the name of their level, or by their part."""
    if isinstance(costs, Mapping) != (parts is None):
        raise InputError(
            "give costs by level ({'high': Cost(…), …}), or a list of costs together with "
            "parts, the part of each person"
        )
    if isinstance(costs, Mapping):
        return list(in_order(costs, budgets.group_names)), budgets.owner_group
    given = np.asarray(parts)
    if given.shape != (budgets.n_owners,) or (given.size and given.dtype.kind not in "iu"):
        raise InputError(
            f"parts must be {budgets.n_owners:,} whole numbers, one for each person, got shape "
            f"{given.shape}"
        )
    if given.size and not 0 <= given.min() <= given.max() < len(costs):
        raise InputError(f"parts must be numbers from 0 to {len(costs) - 1}")
    return list(costs), given.astype(np.intp)


def in_order(costs: Mapping[str, Cost], levels: Sequence[str]) -> tuple[Cost, ...]:
    """Put costs into the order of levels."""
    if set(costs) != set(levels):
        raise InputError(
            f"costs must have one for each of the levels {', '.join(levels)}, got {', '.join(costs)}"
        )
    return tuple(costs[level] for level in levels)


def divide(
    transaction: Transaction,
    people: People,
    cohort: NDArray[np.intp],
    parts: NDArray[np.intp],
) -> list[list[int]]:
    """Split cohorts whose owners will not have one history any more; returns who is in which part.

    ``cohort`` (n_owners,): 0 for those who take no part.
    """
    charges: list[list[int]] = []
    takes_part = np.flatnonzero(cohort)
    by_cohort = takes_part[np.lexsort((parts[takes_part], cohort[takes_part]))]
    for its in alike(by_cohort, cohort):
        old = int(cohort[its[0]])
        in_parts = alike(its, parts)
        everybody = len(its) == transaction.books.cohorts[old].members
        stays = max(in_parts, key=len) if everybody else None
        for chosen in in_parts:
            new = old
            if chosen is not stays:
                new = transaction.changes.split(old, people.ids_of(chosen), people.tags(chosen))
            charges.append([new, int(parts[chosen[0]])])
    return sorted(charges)


def alike(places: NDArray[np.intp], *values: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Divide places, which are in the order of their values, into those of equal values."""
    if not len(places):
        return []
    changes = np.any([np.diff(one[places]) for one in values], axis=0)
    return np.split(places, np.flatnonzero(changes) + 1)


def pairs(first: NDArray[np.intp], second: NDArray[np.intp]) -> list[tuple[int, int]]:
    """Name each pair that occurs, once; no number is below 0."""
    width = int(second.max(initial=0)) + 1
    found: list[int] = np.unique(first * width + second).tolist()
    return [divmod(one, width) for one in found]
