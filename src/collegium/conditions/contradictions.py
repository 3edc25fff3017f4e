"""Conditions that nobody can meet, by the public schema alone: to ask about them would be paid for, too.

Each condition is looked at column by column: which values of one column it leaves, whatever the others are.
Parts that must all hold leave what each of them leaves; of parts of which one must hold, together what any
leaves. No part that somebody could meet is refused; what only several columns together exclude is not found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.conditions.conditions import Compare, Several, Where
from collegium.data.schema import Column, Schema
from collegium.data.schema_column import CATEGORY, FLAG
from collegium.errors import InputError

_Values = Mapping[str, NDArray[Any]]
_Left = Mapping[str, NDArray[np.bool_]]


def refuse_contradiction(where: Where, schema: Schema) -> None:
    """Refuse a condition of which a part leaves no value of some column.

    Raises InputError, which names what excludes each other.

    Examples
    --------
    >>> from collegium.conditions.parser import parse_where
    >>> schema = Schema({"age": {"kind": "whole", "bounds": [0, 99]}})
    >>> parse_where("age > 50 and age < 40", schema)
    Traceback (most recent call last):
    collegium.errors.InputError: 'age > 50 and age < 40', at 'age' (character 1): nobody can meet age <= 39
    and age >= 51 at once: take one out, or join them with or
    """
    if isinstance(where, Several):
        numbers: dict[str, set[float]] = {name: set() for name in where.columns}
        for part in _leaves(where):
            if isinstance(part, Compare):
                numbers[part.column].add(part.number)
        _left_by(where, {name: _some_of_each(schema[name], numbers[name]) for name in numbers})


def _leaves(where: Where) -> Iterator[Where]:
    if isinstance(where, Several):
        for part in where.parts:
            yield from _leaves(part)
    else:
        yield where


def _some_of_each(column: Column, numbers: set[float]) -> NDArray[Any]:
    """A value of each kind that conditions can tell apart: those they name, some between, a missing one."""
    if column.kind in (CATEGORY, FLAG):
        return np.arange(-1, len(column.keys))
    named = sorted(
        {column.lower, column.upper, *(n for n in numbers if column.lower < n < column.upper)}
    )
    low, high = np.array(named[:-1]), np.array(named[1:])
    between = np.floor(low) + 1 if column.is_whole else low + (high - low) / 2
    return np.concatenate([named, between[between < high], [np.nan]])


def _left_by(where: Where, values: _Values) -> _Left:
    """Tell by column which values a condition leaves; a column that is not named has all of its own."""
    if not isinstance(where, Several):
        (name,) = where.columns
        return {name: where.mask(values)}
    parts = [_left_by(part, values) for part in where.parts]
    if not where.all:
        everywhere = set.intersection(*(set(part) for part in parts))
        return {name: reduce(np.logical_or, (part[name] for part in parts)) for name in everywhere}
    left: dict[str, NDArray[np.bool_]] = {}
    for part in parts:
        for name, mask in part.items():
            left[name] = left[name] & mask if name in left else mask
            if not left[name].any():
                its = [str(one) for one in where.parts if name in one.columns]
                told = " and ".join(f"({one})" if " or " in one else one for one in its)
                raise InputError(
                    f"nobody can meet {told} at once: take one out, or join them with or"
                )
    return left
