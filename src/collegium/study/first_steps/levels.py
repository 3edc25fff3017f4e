"""What privacy levels mean: given, asked, or that the column holds ε itself."""

from __future__ import annotations

from typing import Any

from collegium.budgets import Policy
from collegium.checks import exact_float
from collegium.errors import InputError
from collegium.study.first_steps.inference import holds_epsilon
from collegium.study.first_steps.prompts import Draft, Question

NUMBERS = "numbers"
"""The answer that ε itself stands there."""
_EXAMPLE = "high=1,average=2,low=3"


def ask_levels(draft: Draft, source: str | None) -> dict[str, Any] | None:
    """Find what levels mean, as keys of [privacy]; None where nobody says it.

    ``source``: column or file that holds them, if it is known.
    """
    if draft.given.levels is not None:
        return read_levels(draft.given.levels)
    if source is not None and holds_epsilon(source):
        draft.prompts.tell(
            f"privacy.levels: none; by its name, {source!r} holds epsilon as a number (--levels overrules it)"
        )
        return {}
    place = "there" if source is None else f"in {source!r}"
    return draft.prompts.ask(
        Question(
            f"Which epsilon does each privacy level {place} stand for (smaller protects more)? For instance "
            f"{_EXAMPLE}; {NUMBERS!r} if the values {place} are epsilon itself",
            f"--levels NAME=EPSILON,… (the epsilon of each privacy level, for instance {_EXAMPLE}; "
            f"{NUMBERS}: the values are epsilon itself)",
            read_levels,
        )
    )


def read_levels(text: str) -> dict[str, Any]:
    """Read ``NAME=EPSILON,…``, or that levels are numbers, as keys of [privacy].

    Examples
    --------
    >>> read_levels("high=1, low=inf"), read_levels("numbers")
    ({'levels': {'high': 1.0, 'low': inf}}, {})
    """
    if text == NUMBERS:
        return {}
    levels: dict[str, float] = {}
    for part in map(str.strip, text.split(",")):
        name, epsilon = _level(part)
        if name in levels:
            raise InputError(f"--levels names {name!r} twice: give each level once")
        levels[name] = epsilon
    Policy(levels)
    return {"levels": levels}


def _level(part: str) -> tuple[str, float]:
    name, _, number = part.rpartition("=")
    try:
        if not name.strip() or set(name) & set(";="):
            raise ValueError
        return name.strip(), exact_float(number)
    except OverflowError as error:
        raise InputError(f"--levels {part!r}: {error}") from None
    except ValueError:
        raise InputError(
            f"--levels {part!r} is not NAME=EPSILON: write, for instance, {_EXAMPLE}"
        ) from None
