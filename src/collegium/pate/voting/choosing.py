"""Which row is asked about at which position: fixed beforehand, or chosen as outcomes come in.

A row may be chosen by looking at everything that was released so far, and the account stays what it is:

- **The price is not the row's.** Under the worst-case guarantee the price of position p follows from the
  ballot of position p (who votes, with which weight) and the noise. Whichever public record is asked about
  there, an owner with sensitivity Δ moves its counts by Δ at most. So each query is μ_p-GDP (and, for pure
  noise, ε_p-DP) *for every possible row*, hence also for a row that is a function of earlier outcomes.
- **Fully adaptive composition.** The filter stops before Σ μ_p² (or Σ ε_p) exceeds the budget, and is sound
  for queries that depend on earlier outcomes in any way (Rogers, Roth, Ullman & Vadhan 2016, arXiv
  1605.08294, for filters; Smith & Thakurta 2022, arXiv 2210.17520, for Gaussian DP; see
  :class:`~collegium.accounting.accountants.GaussianAccountant`).
- **The choice is post-processing.** A :class:`QueryChooser` is handed row numbers and released outcomes,
  never votes. It needs nothing else but public records.

Under a data-dependent guarantee this argument fails at its first step: there the price is computed from
the votes of the very record that is asked about. Choosing is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.errors import InputError
from collegium.pate.voting.noisy_maxima import Aggregator

if TYPE_CHECKING:
    from collegium.pate.voting.labelling import Outcome


@runtime_checkable
class QueryChooser(Protocol):
    """Chooses which public records to ask about next, from what was released."""

    def next(self, n: int, outcomes: Sequence[Outcome]) -> Sequence[int]:
        """Choose rows.

        ``n``: how many at most, 1 or more.
        ``outcomes``: everything that was released so far, in the order of asking. A choice must
            depend on nothing else that is not public; if it is a function of them, an interrupted
            job goes on as if nothing had happened.
        Returns: different rows that were not asked about, at most ``n``; none ends the job.
        """


def check_choosing(aggregator: Aggregator, guarantee: str) -> None:
    """Refuse to choose queries by outcomes where the account does not allow for it.

    Examples
    --------
    >>> from collegium.pate.voting.aggregators import GNMax
    >>> check_choosing(GNMax(sigma=40), "worst-case")
    >>> check_choosing(GNMax(sigma=40), "data-dependent")
    Traceback (most recent call last):
    collegium.errors.InputError: queries cannot be chosen actively under a data-dependent guarantee: ...
    """
    if guarantee != "worst-case":
        raise InputError(
            f"queries cannot be chosen actively under a {guarantee} guarantee: its price depends on the "
            "votes of the record asked about, so the choice would need an account of its own; use "
            "guarantee 'worst-case', or the order 'random' or 'coverage'"
        )
    if aggregator.consults_student:
        raise InputError(
            f"queries cannot be chosen actively with aggregator {aggregator.name!r}: it answers only where "
            "teachers contradict the student, and both would steer by one student; use 'confident' or "
            "'gnmax', or the order 'random' or 'coverage'"
        )


class Agenda:
    """Rows by position; no row stands at two positions, whoever chose it.

    ``order`` (n,): public order, or who chooses.
    ``n_rows``: public records that were voted on.
    ``max_queries``: most positions.
    ``limit``: most positions that can be asked.

    Examples
    --------
    >>> agenda = Agenda([3, 0, 2], n_rows=4)
    >>> agenda.block(1, 16, [])
    [0, 2]
    """

    def __init__(
        self, order: ArrayLike | QueryChooser, n_rows: int, max_queries: int | None = None
    ) -> None:
        self._n_rows = n_rows
        self._chooser: QueryChooser | None = None
        self._rows: list[int] = []
        self._taken: set[int] = set()  # the same rows, where they are chosen
        if isinstance(order, QueryChooser):
            self._chooser = order
            self.limit = n_rows if max_queries is None else min(max_queries, n_rows)
            return
        rows = np.asarray(order, dtype=np.intp)
        known = (rows >= 0) & (rows < n_rows)
        if not known.all() or np.unique(rows).size != rows.size:
            raise InputError(
                f"the order of queries must name different rows of the {n_rows} that were "
                "voted on: no query is asked twice"
            )
        self._rows = rows[:max_queries].tolist()
        self.limit = len(self._rows)

    @property
    def is_chosen(self) -> bool:
        """Whether rows are chosen as outcomes come in."""
        return self._chooser is not None

    def row(self, position: int) -> int:
        """Row at a position."""
        return self._rows[position]

    def rows(self, first: int, last: int) -> NDArray[np.intp]:
        """Rows at the positions from ``first`` to below ``last``, as far as they are known."""
        return np.asarray(self._rows[first:last], dtype=np.intp)

    def block(self, first: int, n: int, outcomes: Sequence[Outcome]) -> list[int]:
        """Decide on the next rows, from position ``first`` on.

        ``first``: number of positions that are settled.
        ``n``: how many rows at most.
        ``outcomes``: what was released so far.
        Raises InputError if somebody chose too many rows, rows that are not there, or a row twice;
            nothing was asked.
        """
        n = min(n, self.limit - first)
        known = self._rows[first : first + n]
        if known or self._chooser is None:
            return known
        chosen = [int(row) for row in self._chooser.next(n, tuple(outcomes))]
        fresh = {row for row in chosen if 0 <= row < self._n_rows and row not in self._taken}
        if len(chosen) > n or len(fresh) != len(chosen):
            raise InputError(
                f"{type(self._chooser).__name__} chose rows {chosen} at position {first}: allowed are at "
                f"most {n} different rows of {self._n_rows} that were not asked about; nothing was asked"
            )
        self._rows += chosen
        self._taken |= fresh
        return chosen

    def restore(self, position: int, row: int) -> None:
        """Take over, from a journal, what stands at a position.

        Raises InputError if it does not fit the order, or was asked about before.
        """
        if self._chooser is None:
            fits = position < self.limit and self._rows[position] == row
        else:
            fits = position == len(self._rows) < self.limit and 0 <= row < self._n_rows
            fits = fits and row not in self._taken
            if fits:
                self._rows.append(row)
                self._taken.add(row)
        if not fits:
            raise InputError(
                "the journal belongs to another order of queries: it is left untouched"
            )
