"""Records whose rows have labels (a pandas index): two columns about them must have these in one order.

NumPy goes by positions: a column in another order would give everybody somebody else's budget or class.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from collegium.errors import InputError


def index_of(given: Any) -> pd.Index | None:
    """Take the labels of rows, where something has them."""
    index = getattr(given, "index", None)  # a list has a method of that name
    return index if isinstance(index, pd.Index) else None


def refuse_other_order(**given: Any) -> pd.Index | None:
    """Refuse things about the same records whose rows have the same labels in another order, or other ones.

    Rows that are merely numbered from 0 say nothing, unless they are the same numbers in another order.

    ``given``: by name (``_`` for a blank), pandas objects, Budgets, or what has no index.
    Returns: the labels of all rows, where one of them has any.

    Examples
    --------
    >>> y = pd.Series(["no", "yes"], index=["Ann", "Bob"])
    >>> refuse_other_order(private_records=[[1], [2]], labels=y).tolist()
    ['Ann', 'Bob']
    >>> refuse_other_order(private_records=y[::-1], labels=y)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    collegium.errors.InputError: private records and labels have one index in two orders, ...
    """
    known: dict[str, pd.Index] = {}
    for name, value in given.items():
        index = index_of(value)
        if index is None:
            continue
        for before, other in known.items():
            if len(index) == len(other) and not index.equals(other):
                same = bool(index.isin(other).all() and other.isin(index).all())
                if same or not (_is_numbered(index) or _is_numbered(other)):
                    raise _disagree(before, name, same)
        known[name] = index
    return min(known.values(), key=_is_numbered, default=None)


def _is_numbered(index: pd.Index) -> bool:
    return bool(index.equals(pd.RangeIndex(len(index))))


def _disagree(one: str, other: str, same: bool) -> InputError:
    what = "one index in two orders" if same else "two indexes that disagree"
    return InputError(
        f"{one.replace('_', ' ')} and {other.replace('_', ' ')} have {what}, but go by position: bring one "
        "into the other's order with .loc[other.index], or, if positions are right, give both with "
        ".reset_index(drop=True)"
    )
