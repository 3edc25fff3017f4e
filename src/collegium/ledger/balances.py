"""What owners have left, each of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collegium.budgets import Budgets
from collegium.ledger.entries import Books
from collegium.ledger.limits import Lifetime


@dataclass(frozen=True, eq=False)
class Balance:
    """What some owners have left, each of shape (n_owners,).

    Attributes
    ----------
    cohort : ndarray of int
        Who has the same history; 0 for people whom the ledger does not know yet.
    share : ndarray of float64
        What a further release may cost the owner, as a share of all that the owner grants (of μ², or of ε
        where that is promised), from 0 to 1; 1 where that is infinite.
    untouched : ndarray of bool
        Whose records no release has used.
    has_left : ndarray of bool
        Of whom nothing more may be released.
    lifetime : Lifetime
        What the ledger promises everybody.
    last_use : tuple of str or None
        Name and day of the last release that used any of these records.
    """

    cohort: NDArray[np.intp]
    share: NDArray[np.float64]
    untouched: NDArray[np.bool_]
    has_left: NDArray[np.bool_]
    lifetime: Lifetime
    last_use: tuple[str, str] | None = None

    @classmethod
    def of_newcomers(cls, budgets: Budgets, lifetime: Lifetime = Lifetime()) -> Balance:  # noqa: B008
        """What people have left whom no ledger knows: all."""
        n = budgets.n_owners
        everybody, nobody = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
        return cls(np.zeros(n, np.intp), np.ones(n), everybody, nobody, lifetime)


def left_of(books: Books, budgets: Budgets, cohort: NDArray[np.intp]) -> Balance:
    """Say what owners of known cohorts have left; 0: who is new has everything."""
    everything = Balance.of_newcomers(budgets, books.lifetime)
    share, untouched, has_left = everything.share, everything.untouched, everything.has_left
    known = np.flatnonzero(cohort)
    found, which = np.unique(cohort[known], return_inverse=True)
    standings = [books.standing(one) for one in found.tolist()]
    share[known] = np.array([one.share_left for one in standings])[which]
    never = [one.spent.is_nothing and not one.has_left for one in standings]
    untouched[known] = np.array(never, dtype=bool)[which]
    has_left[known] = np.array([one.has_left for one in standings], dtype=bool)[which]
    return Balance(
        cohort, share, untouched, has_left, books.lifetime, _last_use(books, found.tolist())
    )


def _last_use(books: Books, cohorts: list[int]) -> tuple[str, str] | None:
    releases = [charge.release for one in cohorts for charge in books.charges_of(one)]
    if not releases:
        return None
    last = max(releases, key=lambda release: release.opened.number)
    return last.name, last.opened.at[:10]
