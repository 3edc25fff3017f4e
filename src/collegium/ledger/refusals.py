"""Why a release is refused: who has left, who grants something else, who cannot afford it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from collegium.budgets import Budgets
from collegium.errors import BudgetExceededError, LedgerError
from collegium.ledger.entries import Books, Release
from collegium.ledger.limits import Cost
from collegium.ledger.people import pairs


def refuse_who_left(known: Books, cohort: NDArray[np.intp]) -> None:
    """Refuse a release about people who have left. Raises LedgerError."""
    gone = [one.id for one in known.cohorts.values() if one.has_left]
    if count := int(np.isin(cohort, gone).sum()):
        raise LedgerError(
            f"{count:,} of {len(cohort):,} owners have left: take their records out of the data (in a study, "
            "`collegium forget` does that); nothing was released"
        )


def require_same_budgets(
    known: Books, budgets: Budgets, cohort: NDArray[np.intp], place: str
) -> None:
    """Refuse people who grant something else here than in the ledger. Raises LedgerError."""
    for old, code in pairs(cohort, budgets.owner_group):
        its, given = known.cohorts.get(old), budgets.groups[budgets.group_names[code]]
        if its is not None and its.budget != given:
            count = int(((cohort == old) & (budgets.owner_group == code)).sum())
            raise LedgerError(
                f"{count:,} owners grant ε = {its.epsilon:g} (δ = {its.delta:g}) in the ledger at "
                f"{place}, but ε = {given.epsilon:g} (δ = {given.delta:g}) here, and a person has one budget "
                "over all releases: give that one in every policy, or, if they changed their mind, say so "
                "with `collegium ledger change`; nothing was released"
            )


def require_charged(known: Books, release: Release, cohort: NDArray[np.intp]) -> None:
    """Refuse people whom a release was not reserved for. Raises LedgerError."""
    charged = [
        one
        for one in set(cohort.tolist()) - {0}
        if any(charge.release.id == release.id for charge in known.charges_of(one))
    ]
    if count := int((~np.isin(cohort, charged)).sum()):
        raise LedgerError(
            f"release {release.id!r} was not reserved for {count:,} of {len(cohort):,} owners: begin a new "
            "one"
        )


def require_still_granted(known: Books, cohort: NDArray[np.intp]) -> None:
    """Refuse to go on about people who have lowered their budgets below what is booked.

    Raises BudgetExceededError.
    """
    for one in set(cohort.tolist()) - {0}:
        now = known.standing(one)
        if not now.limit.allows(now.spent):
            raise BudgetExceededError(
                f"{now.owners:,} owners of level {now.level!r} now grant less (ε = {now.budget.epsilon:g}) "
                "than is booked with this release: nothing more is drawn"
            )


def require_affordable(known: Books, release: Release, cohorts: Iterable[int]) -> None:
    """Refuse a release, taken into the books already, that any cohort cannot afford.

    Raises BudgetExceededError: names level, what is left, and what it may cost.
    """
    for cohort in cohorts:
        after = known.standing(cohort)
        if after.limit.allows(after.spent):
            continue
        before, cost = [], Cost(0.0)
        for charge in known.charges_of(cohort):
            if charge.release is release:
                cost = charge.cost
            else:
                before.append(charge.cost)
        limit, left = after.limit, after.limit.left(Cost.total(before))
        if cost.alone is not None:
            raise BudgetExceededError(
                f"refused: this release was to take the whole budget of {after.owners:,} owners of level "
                f"{after.level!r} (ε = {after.budget.epsilon:g} at δ = {after.budget.delta:g}), and "
                "something else has used their records: begin it anew, with what is left; nothing was "
                "released"
            )
        have = [
            f"{name} = {left_of_it:.4g} left of {all_of_it:.4g}, and this may cost {its:.4g}"
            for name, left_of_it, all_of_it, its in (
                ("μ", left.mu_squared**0.5, limit.mu_squared**0.5, cost.mu_squared**0.5),
                ("δ₀", left.delta_0, limit.delta_0, cost.delta_0),
            )
            if its > left_of_it or not left_of_it
        ]
        raise BudgetExceededError(
            f"refused: {after.owners:,} owners of level {after.level!r} (ε = {after.budget.epsilon:g} at δ = "
            f"{after.budget.delta:g}) have {'; '.join(have)}: ask for at most what is left (a study that "
            "was begun is planned anew in another folder, --out), or leave them out; nothing was released"
        )
