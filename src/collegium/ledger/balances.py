"""What owners have left, each of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collegium.budgets import Budgets
from collegium.ledger.entries import Books
from collegium.ledger.limits import DELTA_0_SHARE, Limit


@dataclass(frozen=True, eq=False)
class Balance:
    """What some owners have left, each of shape (n_owners,).

    Attributes
    ----------
    cohort : ndarray of int
        Who has the same history; 0 for people whom the ledger does not know yet.
    mu_squared : ndarray of float64
        What a further release may cost the owner in μ².
    share : ndarray of float64
        The same as a share of all that the owner grants, from 0 to 1; 1 where that is infinite.
    untouched : ndarray of bool
        Whose records no release has used.
    last_use : tuple of str or None
        Name and day of the last release that used any of these records.
    """

    cohort: NDArray[np.intp]
    mu_squared: NDArray[np.float64]
    share: NDArray[np.float64]
    untouched: NDArray[np.bool_]
    last_use: tuple[str, str] | None = None

    @classmethod
    def of_newcomers(cls, budgets: Budgets, share: float = DELTA_0_SHARE) -> Balance:
        """What people have left whom no ledger knows: all."""
        granted = np.array(
            [Limit.of(budgets.groups[name], share).mu_squared for name in budgets.group_names]
        )[budgets.owner_group]
        n = budgets.n_owners
        return cls(np.zeros(n, np.intp), granted, np.ones(n), np.ones(n, dtype=bool))


def left_of(books: Books, budgets: Budgets, cohort: NDArray[np.intp]) -> Balance:
    """Say what owners of known cohorts have left; 0: who is new has everything."""
    everything = Balance.of_newcomers(budgets, books.share)
    granted, left = everything.mu_squared, everything.mu_squared.copy()
    untouched = everything.untouched
    known = np.flatnonzero(cohort)
    found, which = np.unique(cohort[known], return_inverse=True)
    standings = [books.standing(one) for one in found.tolist()]
    of_each = [0.0 if one.has_left else one.left.mu_squared for one in standings]
    never = [one.spent.is_nothing and not one.has_left for one in standings]
    left[known] = np.array(of_each)[which]
    untouched[known] = np.array(never, dtype=bool)[which]
    with np.errstate(invalid="ignore"):
        share = np.where(np.isinf(granted), 1.0, left / granted)
    return Balance(cohort, left, share, untouched, _last_use(books, found.tolist()))


def _last_use(books: Books, cohorts: list[int]) -> tuple[str, str] | None:
    releases = [charge.release for one in cohorts for charge in books.charges_of(one)]
    if not releases:
        return None
    last = max(releases, key=lambda release: release.opened.number)
    return last.name, last.opened.at[:10]
