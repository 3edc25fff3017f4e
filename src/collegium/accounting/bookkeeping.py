"""Book-keeping of accounts: adding a cost many times, what is left, and states that go through JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.errors import InputError
from collegium.json_files import number_as_json

Floats = NDArray[np.float64]

#: Counts beyond this cannot be told from infinity.
MOST_CHARGES = 2**53


def add_up(total: Floats, cost: Floats) -> Floats:
    """Add, rounded up: a sum of floats is never below the sum of the numbers."""
    summed = np.asarray(total + cost)
    np.nextafter(summed, np.inf, out=summed, where=cost > 0)
    return summed


def left_over(budget: Floats, spent: Floats) -> Floats:
    """Subtract, rounded down and never below 0; an infinite budget stays infinite."""
    with np.errstate(invalid="ignore"):
        left = np.where(np.isinf(budget), np.inf, budget - spent)
    np.nextafter(left, 0.0, out=left, where=(spent > 0) & np.isfinite(left))
    return np.asarray(np.maximum(left, 0.0))


def add_repeatedly(total: Floats, cost: Floats, times: int) -> Floats:
    """Add a cost many times, each time rounded up: bit for bit what a loop over ``add_up`` gives.

    Between two powers of two the floats are equally spaced, so each addition adds the same rounded
    amount (after the first, also if the cost lies half-way between two floats: adding rounds to the even
    one, then up to the odd one next to it). All additions within such a range are made at once, which
    takes a few steps for each doubling of the total.

    ``total``, ``cost``: at least 0; may be infinite.
    ``times``: between 0 and ``MOST_CHARGES``.
    """
    total = np.array(total, dtype=np.float64)
    left = np.where((cost > 0) & np.isfinite(total), times, 0)
    while (going := left > 0).any():
        with np.errstate(all="ignore"):
            one = add_up(total, cost)
            two = add_up(one, cost)
            three = add_up(two, cost)
            end = np.ldexp(1.0, np.frexp(one)[1])
            step = two - one
            steady = (three - two == step) & (three < end) & np.isfinite(one)
            skipped = np.where(steady, np.floor((end - one) / step) - 2, 0)
        skipped = np.clip(np.where(going, skipped, 0), 0, np.maximum(left - 1, 0)).astype(np.int64)
        total = np.where(going, one + np.where(skipped > 0, skipped * step, 0.0), total)
        left = np.where(going & np.isfinite(total), left - 1 - skipped, 0)
    return total


def as_json(values: Floats) -> Any:
    """Make nested lists of numbers, exact in JSON; infinity, which JSON lacks, becomes ``"inf"``."""
    if values.ndim:
        return [as_json(row) for row in values]
    return number_as_json(float(values))


def from_json(content: Any, name: str, shape: tuple[int, ...]) -> Floats:
    """Read what :func:`as_json` made.

    Raises InputError if it is anything else, or of another shape, or has a negative number or NaN.
    """
    flat: list[float] = []
    _flatten(content, flat, name, shape)
    return np.array(flat, dtype=np.float64).reshape(shape)


def _flatten(content: Any, into: list[float], name: str, shape: tuple[int, ...]) -> None:
    if shape:
        if not isinstance(content, list) or len(content) != shape[0]:
            raise _damaged(name)
        for row in content:
            _flatten(row, into, name, shape[1:])
        return
    value = math.inf if content == "inf" else content
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise _damaged(name)
    into.append(float(value))


def _damaged(name: str) -> InputError:
    return InputError(
        f"the state of an account is damaged at {name!r}: nothing was restored; take another copy"
    )


def require_same(state: Any, expected: Mapping[str, Any]) -> None:
    """Refuse the state of another account.

    Raises InputError if the state is no mapping, or a public entry is not as expected. Amounts are not
        repeated.
    """
    if not isinstance(state, Mapping):
        raise InputError(
            "the state of an account must be what `state()` returned: nothing was restored"
        )
    for name, value in expected.items():
        if name not in state:
            raise _damaged(name)
        if state[name] != value:
            raise InputError(
                f"the state belongs to another account: its {name} differs ({_short(state[name])} instead "
                f"of {_short(value)}); nothing was restored"
            )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
