"""Who is taught by whom, as records: the shard of every teacher."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collegium.budgets import Budgets
from collegium.errors import InputError

ASSIGNMENTS = ("hash", "balanced")


def check_assignment(name: str) -> None:
    """Refuse an unknown way of assigning owners to teachers."""
    if name not in ASSIGNMENTS:
        raise InputError(f"unknown assignment {name!r}: allowed are {', '.join(ASSIGNMENTS)}")


class Assignment:
    """Which teachers see which records.

    ``owner_teachers`` (n_owners, most duplicates): teachers of each owner, padded with -1.
    ``n_teachers``: number of teachers, including those without any record.
    """

    def __init__(
        self,
        budgets: Budgets,
        owner_teachers: NDArray[np.int32],
        n_teachers: int,
    ) -> None:
        self.owner_teachers = owner_teachers
        self.n_teachers = n_teachers
        record_teachers = owner_teachers[budgets.record_owner]
        records, columns = np.nonzero(record_teachers >= 0)
        teachers = record_teachers[records, columns]
        order = np.lexsort((records, teachers))
        self._records = records[order]
        counts = np.bincount(teachers, minlength=n_teachers)
        self._offsets = np.concatenate([[0], np.cumsum(counts)])

    def records_of(self, teacher: int) -> NDArray[np.intp]:
        """Positions of the records that a teacher sees, ascending."""
        return self._records[self._offsets[teacher] : self._offsets[teacher + 1]]

    def shards(self) -> list[NDArray[np.intp]]:
        """Positions of the records of every teacher."""
        return [self.records_of(teacher) for teacher in range(self.n_teachers)]
