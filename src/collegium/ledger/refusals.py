"""Why a release is refused: who has left, who grants something else, who cannot afford it."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.promises import ONLY_PURE, Promise
from collegium.budgets import Budgets
from collegium.checks import people
from collegium.errors import BudgetExceededError, LedgerError
from collegium.ledger.entries import Books, Release
from collegium.ledger.limits import Cost
from collegium.ledger.people import pairs


def refuse_who_left(known: Books, cohort: NDArray[np.intp]) -> None:
    """Refuse a release about people who have left. Raises LedgerError."""
    gone = [one.id for one in known.cohorts.values() if one.has_left]
    if count := int(np.isin(cohort, gone).sum()):
        raise LedgerError(
            f"{count:,} of {len(cohort):,} people have left: take their records out (in a study, "
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
                f"for {people(count)}, ε = {given.epsilon:g} (δ = {given.delta:g}) is granted here, "
                f"but ε = {its.epsilon:g} (δ = {its.delta:g}) in the ledger at {place}: a person has "
                "one budget for all releases, so give the ledger's, or, if they changed their mind, "
                "enter that with `collegium ledger change`; nothing was released"
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
            f"release {release.id!r} was not reserved for {count:,} of these {len(cohort):,} people: "
            "begin a new release"
        )


def require_still_granted(known: Books, cohort: NDArray[np.intp]) -> None:
    """Refuse to go on about people who have lowered their budgets below what is booked.

    Raises BudgetExceededError.
    """
    for one in set(cohort.tolist()) - {0}:
        now = known.standing(one)
        if not now.limit.allows(now.spent):
            raise BudgetExceededError(
                f"level {now.level!r} ({people(now.owners)}) now grants ε = {now.budget.epsilon:g}, "
                "less than its releases take, this one included: it cannot go on, and no more noise "
                "is drawn"
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
        if limit.promise is Promise.PURE and math.isinf(cost.pure_epsilon):
            raise BudgetExceededError(f"refused: {ONLY_PURE}; nothing was released")
        have = [
            f"{name} = {left_of_it:.4g} left of {all_of_it:.4g} (this may cost {its:.4g})"
            for name, left_of_it, all_of_it, its in (
                ("μ", left.mu_squared**0.5, limit.mu_squared**0.5, cost.mu_squared**0.5),
                ("ε", left.pure_epsilon, limit.pure_epsilon, cost.pure_epsilon),
                ("δ₀", left.delta_0, limit.delta_0, cost.delta_0),
            )
            if math.isfinite(all_of_it) and (its > left_of_it or not left_of_it)
        ]
        raise BudgetExceededError(
            f"refused: level {after.level!r} ({people(after.owners)}, ε = {after.budget.epsilon:g} at "
            f"δ = {after.budget.delta:g}) has {'; '.join(have)}: ask for at most what is left (a study "
            "that has begun must be planned anew, in another folder), or leave these people out; "
            "nothing was released"
        )
