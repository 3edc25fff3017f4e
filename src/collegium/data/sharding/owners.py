"""Counting owners exactly, without keeping their names."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collegium.errors import InputError

#: One owner of some records: two hashes of the name, and the group. 20 bytes.
OWNER = np.dtype([("hash", "<u8"), ("second", "<u8"), ("group", "<i4")])
_DRAWERS = 64
_PENDING = 65_536


class OwnerRegister:
    """Different owners, counted by 128 bits of hash.

    Notes
    -----
    Two owners are taken for one only if both 64-bit hashes collide: among n owners with probability
    below n²/2¹²⁹, that is 1.5e-25 for ten million. Memory is 20 bytes for each different owner (200 MB for
    ten million); records of the same owner cost nothing.

    Examples
    --------
    >>> register = OwnerRegister()
    >>> seen = np.array([(7, 1, 0), (7, 1, 0), (9, 1, 1)], dtype=OWNER)
    >>> register.add(seen)
    >>> register.sizes(2).tolist()
    [1, 1]
    """

    def __init__(self) -> None:
        self._known = [np.empty(0, OWNER) for _ in range(_DRAWERS)]
        self._pending: list[list[NDArray[np.void]]] = [[] for _ in range(_DRAWERS)]

    def add(self, seen: NDArray[np.void]) -> None:
        """Take in some owners, some of them perhaps once more; see :data:`OWNER`."""
        drawer = (seen["hash"] >> np.uint64(58)).astype(np.intp)
        order = np.argsort(drawer, kind="stable")
        ends = np.searchsorted(drawer[order], np.arange(_DRAWERS + 1))
        for number in range(_DRAWERS):
            part = seen[order[ends[number] : ends[number + 1]]]
            if not part.size:
                continue
            waiting = self._pending[number]
            waiting.append(part)
            if sum(map(len, waiting)) > max(_PENDING, len(self._known[number])):
                self._settle(number)

    def sizes(self, n_groups: int) -> NDArray[np.intp]:
        """Count the owners of every group."""
        counts = np.zeros(n_groups, dtype=np.intp)
        torn = 0
        for number in range(_DRAWERS):
            self._settle(number)
            known = self._known[number]
            same = _same_owner(known)
            # A third group of one owner is not a second torn owner.
            torn += int(np.count_nonzero(same & ~np.concatenate([[False], same[:-1]])))
            counts += np.bincount(known["group"], minlength=n_groups)
        if torn:
            raise InputError(
                f"{torn:,} owner(s) with two budgets: all records of one person need the same level"
            )
        return counts

    def knows(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Mark the hashes (the first of both) of owners who are here."""
        found = np.zeros(len(hashes), dtype=bool)
        for number in range(_DRAWERS):
            self._settle(number)
            found |= np.isin(hashes, self._known[number]["hash"])
        return found

    def _settle(self, number: int) -> None:
        together = np.concatenate([self._known[number], *self._pending[number]])
        self._known[number] = different_owners(together)
        self._pending[number] = []


def different_owners(seen: NDArray[np.void]) -> NDArray[np.void]:
    """Sort owners, each with each of its groups once."""
    ordered = seen[np.lexsort((seen["group"], seen["second"], seen["hash"]))]
    again = _same_owner(ordered) & (
        np.diff(ordered["group"], prepend=ordered["group"][:1] - 1) == 0
    )
    return np.asarray(ordered[~again])


def _same_owner(ordered: NDArray[np.void]) -> NDArray[np.bool_]:
    """Mark those who are the one before."""
    same = np.zeros(len(ordered), dtype=bool)
    same[1:] = ordered["hash"][1:] == ordered["hash"][:-1]
    same[1:] &= ordered["second"][1:] == ordered["second"][:-1]
    return same
