"""Both ends of the scale: who granted nothing, and who gave the records to everybody.

Whoever loads records calls :func:`has_budget` before anything is learnt, encoded, split or counted, and
goes on with what is left, as if the others were not in the table. Then :func:`split_by_level` takes out
the records that are public: the student (or a model that is trained directly) gets them as they are, and
no teacher does. Their owners are in no group, and no account knows them.

A person whose records say both one and another level is refused, as everywhere (:class:`Budgets`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.budgets import NOTHING, PUBLIC, Budgets
from collegium.errors import InputError, PrivacyWarning

Rows = NDArray[np.intp]
Tell = Callable[[str], None]
EVERYBODY_SILENT = (
    "everybody granted nothing (ε = 0): there is nothing to learn from; give records of somebody who granted "
    "something"
)


def _warn(line: str) -> None:
    warnings.warn(line, PrivacyWarning, stacklevel=4)


@dataclass(frozen=True, eq=False)
class Apart:
    """Private records, and those whose owners let them be published.

    ``private``, ``public``: positions of the records.
    ``budgets``: of the private ones.
    """

    private: Rows
    public: Rows
    budgets: Budgets


@dataclass(frozen=True, eq=False)
class PublicRecords:
    """Records, with classes, of people who let them be published: for the student alone.

    ``X``: with the columns and types of the other records.
    ``codes``: their class numbers.
    """

    X: Any
    codes: NDArray[np.intp]


def has_budget(budgets: Budgets, tell: Tell = _warn) -> Rows:
    """Find the records of all who granted anything; who granted nothing is counted, on the screen alone.

    Raises InputError if nobody did.

    Examples
    --------
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", PrivacyWarning)
    ...     has_budget(Budgets.from_epsilons([1, 0, 2])).tolist()
    [0, 2]
    """
    return granting_rows(_of(budgets, NOTHING), budgets.record_owner, tell)


def granting_rows(is_silent: NDArray[np.bool_], owners: NDArray[Any], tell: Tell = _warn) -> Rows:
    """Find the records of all who granted anything, given whose records are of people who granted nothing.

    ``is_silent``, ``owners`` (n_records,): whether that record's owner granted nothing, and who that is.
    """
    rows = np.flatnonzero(~is_silent)
    if not rows.size:
        raise InputError(EVERYBODY_SILENT)
    if rows.size < is_silent.size:
        tell_of_silent(len(set(owners[is_silent].tolist())), is_silent.size - rows.size, tell)
    return rows


def tell_of_silent(n_owners: int, n_records: int, tell: Tell = _warn) -> None:
    """Say how many granted nothing. How many is published nowhere: results are those without them."""
    tell(
        f"{n_owners:,} owner(s) granted nothing (ε = 0): their {n_records:,} record(s) are not used"
    )


def split_by_level(budgets: Budgets, tell: Tell = _warn, learner: str = "the student") -> Apart:
    """Tell the records whose owners let them be published from the private ones.

    ``budgets``: of people who all granted something: :func:`has_budget`. Returned as they are if nobody's
        records are public.
    ``learner``: what learns from public records.

    Raises InputError if nobody's are private.
    """
    rows, public = np.arange(budgets.n_records), np.empty(0, dtype=np.intp)
    if not budgets.public_levels:
        return Apart(rows, public, budgets)
    is_public = _of(budgets, PUBLIC)
    rows, public = np.flatnonzero(~is_public), np.flatnonzero(is_public)
    if not rows.size:
        raise InputError(
            "everybody's records are public: there is nothing to protect; train a model on them as they are"
        )
    if public.size:
        tell(
            f"{len(set(budgets.record_owner[public].tolist())):,} owner(s) let their records be published: "
            f"{learner} learns from these {public.size:,} record(s) as they are, with NO PRIVACY"
        )
    return Apart(rows, public, subset(budgets, rows))


def subset(budgets: Budgets, rows: Rows) -> Budgets:
    """Take the budgets of some records, with the group sizes that were declared for all."""
    if rows.size == budgets.n_records:
        return budgets
    part = budgets[rows]
    part.declared_sizes = budgets.declared_sizes
    return part


def require_budgets(budgets: Budgets) -> None:
    """Refuse people who are in no group: where budgets are kept, they have none."""
    outside = int((budgets.owner_group < 0).sum())
    if outside:
        raise InputError(
            f"{outside:,} owner(s) have no budget, since they granted nothing (ε = 0) or their records are "
            "public: leave them out; their records take part in nothing that an account could count"
        )


def _of(budgets: Budgets, kind: int) -> NDArray[np.bool_]:
    return np.asarray((budgets.owner_group == kind)[budgets.record_owner])
