"""Which column says what: class, level and owner; all others are features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.checks import listed
from collegium.data.sharding.source import RecordSource, as_frame, values_of
from collegium.errors import InputError, counted
from collegium.names import as_names
from collegium.personalisation.partition import owner_hashes

if TYPE_CHECKING:
    import pyarrow as pa

Unwanted = Callable[[pd.DataFrame], NDArray[np.bool_]]


@dataclass(frozen=True)
class Roles:
    """What the columns of private records mean.

    ``level``: column with the privacy level, or with ε.
    ``owner``: column that says whose record it is. None: a record's row in the data set names its
        owner.
    ``exclude``: columns that are no features.
    ``unwanted``: takes the features of some records (a DataFrame) and marks those to leave out.
        Must be picklable, and look at each record alone.
    """

    target: str
    level: str
    owner: str | None = None
    exclude: tuple[str, ...] = ()
    unwanted: Unwanted | None = None

    def features(self, source: RecordSource) -> tuple[str, ...]:
        """Name the features, in the order of the data set."""
        named = {"target": self.target, "level": self.level, "owner": self.owner}
        named |= {f"exclude {column!r}": column for column in self.exclude}
        for role, column in named.items():
            if column is not None and column not in source.columns:
                raise InputError(
                    f"{role} names column {column!r}, which is not there: the columns are "
                    f"{listed(source.columns)}"
                )
        left = tuple(name for name in source.columns if name not in named.values())
        if not left:
            raise InputError(
                f"{str(source.path)!r} has no column besides target, level and owner: add features to learn "
                "from"
            )
        return left

    def taught(
        self,
        first_row: int,
        table: pa.Table,
        features: Sequence[str],
        categorical: Sequence[str],
        silent: NDArray[np.bool_],
    ) -> tuple[pa.Table, NDArray[np.intp]]:
        """Leave out who granted nothing, then the unwanted; return the others, and their rows.

        ``silent`` (n,): whose records these are: from :meth:`Granted.silent`.
        """
        rows = np.arange(first_row, first_row + len(table), dtype=np.intp)
        if silent.any():
            kept = np.flatnonzero(~silent)
            table, rows = table.take(kept), rows[kept]
        if self.unwanted is None:
            return table, rows
        kept = np.flatnonzero(~self.unwanted(as_frame(table.select(features), categorical)))
        return table.take(kept), rows[kept]

    def names(self, table: pa.Table, rows: NDArray[np.intp]) -> NDArray[Any]:
        """Name the owner of each record."""
        if self.owner is None:
            return rows
        names = values_of(table, self.owner)
        unnamed = np.flatnonzero(pd.isna(names))
        if unnamed.size:
            raise InputError(
                f"{unnamed.size} record(s) without an owner, first {counted(rows[unnamed[0]])}: name the "
                "owner of each record"
            )
        return names


def record_hashes(names: NDArray[Any], key: bytes) -> NDArray[np.uint64]:
    """Hash the owners of records, each name once; see :func:`owner_hashes`."""
    owner, unique = pd.factorize(names)
    hashes = owner_hashes(np.asarray(unique), key)
    return np.asarray(hashes[owner])


def second_hashes(names: NDArray[Any], salt: str = "0123456789123456") -> NDArray[np.uint64]:
    """Hash owners a second time, without key: tells two owners apart whose keyed hashes collide.

    ``salt``: 16 characters; another one makes other hashes.

    Examples
    --------
    >>> a, b = second_hashes(np.array([0.0, -0.0]))
    >>> a == b
    np.True_
    """
    return np.asarray(
        pd.util.hash_array(as_names(names), hash_key=salt, categorize=False), dtype=np.uint64
    )
