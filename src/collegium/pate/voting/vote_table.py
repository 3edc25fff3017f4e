"""Tables of votes: one vote per teacher and query, or only the counts. **Sensitive.**"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.checks import check_whole
from collegium.errors import InputError

ABSTAIN = -1  # the vote of a teacher without any record; moves no count


class VoteTable:
    """Votes of all teachers on all queries. **Sensitive**: it never leaves the vault.

    Make one with :meth:`from_predictions` or :meth:`from_counts`.

    Attributes
    ----------
    n_queries, n_teachers, n_classes : int
        Size of the table.
    has_teachers : bool
        Whether it is known which teacher voted for what (needed for weights and participation).
    """

    def __init__(
        self,
        sensitive_table: NDArray[np.int32],
        n_teachers: int,
        n_classes: int,
        has_teachers: bool,
    ) -> None:
        self.sensitive_table = sensitive_table
        self.n_queries = int(sensitive_table.shape[0])
        self.n_teachers = n_teachers
        self.n_classes = n_classes
        self.has_teachers = has_teachers

    @classmethod
    def from_predictions(
        cls, predictions: ArrayLike, n_classes: int, *, allow_abstention: bool = False
    ) -> VoteTable:
        """Take the class that each teacher predicts for each query.

        Parameters
        ----------
        predictions : array-like of int, shape (n_queries, n_teachers)
            Classes 0 … n_classes − 1.
        n_classes : int
            Number of classes m, at least 2.
        allow_abstention : bool, default=False
            Whether −1 is allowed, for a teacher without any record.

        Raises
        ------
        InputError
            If the shape is wrong or a vote is not one of the classes.

        Examples
        --------
        >>> table = VoteTable.from_predictions([[0, 1, 1], [2, 2, 2]], n_classes=3)
        >>> table.counts(np.arange(2), np.ones(3))
        array([[1., 2., 0.],
               [0., 0., 3.]])
        """
        table = _whole_numbers(predictions, "votes")
        check_whole("n_classes", n_classes, least=0, most=2**31 - 1)
        if n_classes < 2:
            raise InputError(f"votes need at least 2 classes, got {n_classes}")
        lowest = ABSTAIN if allow_abstention else 0
        outside = (table < lowest) | (table >= n_classes)
        if outside.any():
            row, column = np.argwhere(outside)[0]
            raise InputError(
                f"{int(outside.sum())} vote(s) outside the classes 0 … {n_classes - 1}, first in row "
                f"{row + 1:,}, column {column + 1:,}: give class numbers, one column per teacher"
            )
        return cls(table, table.shape[1], n_classes, has_teachers=True)

    @classmethod
    def from_counts(cls, counts: ArrayLike) -> VoteTable:
        """Take the number of teachers that voted for each class.

        Parameters
        ----------
        counts : array-like of int, shape (n_queries, n_classes)
            Rows add up to the number of teachers.

        Raises
        ------
        InputError
            If a count is negative or the rows do not add up to one number of teachers.
        """
        table = _whole_numbers(counts, "vote counts")
        if table.shape[1] < 2:
            raise InputError(f"vote counts need at least 2 classes (columns), got {table.shape[1]}")
        if (table < 0).any():
            row = int(np.argwhere(table < 0)[0][0])
            raise InputError(f"a vote count is negative, first in row {row + 1:,}")
        totals = table.sum(axis=1)
        if (totals != totals[0]).any():
            row = int(np.flatnonzero(totals != totals[0])[0])
            raise InputError(
                f"vote counts must add up to the same number of teachers in every row: row 1 has "
                f"{totals[0]}, row {row + 1:,} has {totals[row]}"
            )
        if totals[0] == 0:
            raise InputError("vote counts are all 0: there is no teacher to ask")
        return cls(table, int(totals[0]), table.shape[1], has_teachers=False)

    def counts(
        self, queries: NDArray[np.intp], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Weighted vote counts. **Sensitive.**

        Parameters
        ----------
        queries : ndarray of int, shape (n,)
            Rows of the table.
        weights : ndarray of float64, shape (n_teachers,) or (n, n_teachers)
            Weight of each teacher, the same for all queries or one row per query; multiples of the
            grid, so that the sums are exact.

        Returns
        -------
        ndarray of float64, shape (n, n_classes)

        Raises
        ------
        InputError
            If only counts are known and some weight is not 1.
        """
        rows = self.sensitive_table[queries]
        if not self.has_teachers:
            if (weights != 1).any():
                raise InputError(
                    "vote counts do not say which teacher voted for what, so votes cannot be weighted "
                    "or left out: give one column per teacher instead"
                )
            return rows.astype(np.float64)
        counts = np.empty((len(rows), self.n_classes))
        for label in range(self.n_classes):
            chosen = rows == label
            if weights.ndim == 1:
                counts[:, label] = chosen @ weights
            else:
                counts[:, label] = np.where(chosen, weights, 0.0).sum(axis=1)
        return counts


def _whole_numbers(values: ArrayLike, name: str) -> NDArray[np.int32]:
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"{name} must be a table: its rows have different lengths") from None
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(
            f"{name} must be a table with at least one row and one column, got shape {array.shape}"
        )
    if array.dtype.kind not in "iufb":
        raise InputError(f"{name} must be whole numbers, got values of type {array.dtype}")
    if array.dtype.kind == "f" and (
        not np.isfinite(array).all() or (array != np.rint(array)).any()
    ):
        row, column = np.argwhere(~np.isfinite(array) | (array != np.rint(array)))[0]
        raise InputError(
            f"{name} must be whole numbers, but row {row + 1:,}, column {column + 1:,} has none"
        )
    if array.dtype.kind != "b" and (array.max() > 2**31 - 1 or array.min() < -(2**31)):
        raise InputError(f"{name} must be below 2^31")
    return np.asarray(array, dtype=np.int32)
