"""Levels as options: NAME=EPSILON, and NAME=EPSILON:PEOPLE."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from collegium.checks import exact_float
from collegium.errors import InputError

if TYPE_CHECKING:
    from collegium.budgets import Budget, Policy

_Read = TypeVar("_Read")


def parse_policy(given: list[str], delta: float) -> Policy:
    """Read levels written as NAME=EPSILON."""
    from collegium.budgets import Policy

    return Policy(_named(given, "NAME=EPSILON", "high=1", exact_float), delta)


def parse_levels(given: list[str], delta: float) -> tuple[dict[str, Budget], dict[str, int]]:
    """Read levels written as NAME=EPSILON:PEOPLE."""
    from collegium.budgets import Budget

    named = _named(given, "NAME=EPSILON:PEOPLE", "high=1:540", _epsilon_and_people)
    for name, (_, people) in named.items():
        if people < 1:
            raise InputError(f"level {name!r} has {people} people: give at least 1")
    return (
        {name: Budget(epsilon, delta) for name, (epsilon, _) in named.items()},
        {name: people for name, (_, people) in named.items()},
    )


def _epsilon_and_people(text: str) -> tuple[float, int]:
    epsilon, _, people = text.partition(":")
    return exact_float(epsilon), int(people)


def _named(
    given: list[str], form: str, example: str, read: Callable[[str], _Read]
) -> dict[str, _Read]:
    named: dict[str, _Read] = {}
    for text in given:
        name, _, rest = text.partition("=")
        try:
            if not name:
                raise ValueError
            value = read(rest)
        except OverflowError as error:
            raise InputError(f"--level {text!r}: {error}") from None
        except ValueError:
            raise InputError(
                f"--level {text!r} is not {form}: write, for instance, --level {example}"
            ) from None
        if name in named:
            raise InputError(f"level {name!r} was given twice: give each level once")
        named[name] = value
    return named
