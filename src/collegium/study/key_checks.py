"""Whether a value in a study's TOML file is one that its key allows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from collegium.errors import ConfigError
from collegium.study.schema import Key

_WIDTH = 60  # of a value in a message, in letters


def checked_value(key: Key, value: Any) -> Any:
    """Return the value of a key, or its default where none was given.

    Parameters
    ----------
    key : Key
        From the schema.
    value : object
        As TOML gives it; None where the key was left out.

    Raises
    ------
    ConfigError
        If the value is of another type, out of range or not among the choices, or if something in a list
        or table is of another type.

    Examples
    --------
    >>> checked_value(Key("run", "jobs", "whole number", -1, "Parallel jobs."), None)
    -1
    """
    if value is None:
        return key.default
    if not _is(key.kind, value):
        kind = "true or false" if key.kind == "yes/no" else f"a {key.kind}"
        raise ConfigError(f"{key.path} must be {kind}, got {shown(value)}")
    if isinstance(value, str):
        _check_text(key, value)
    elif key.kind == "number":
        _refuse_too_large(key.path, value)
    elif key.kind == "whole number":
        _check_range(key, value)
    elif isinstance(value, list):
        _check_list(key, value)
    elif isinstance(value, Mapping):
        _check_table(key, value)
    return value


def shown(value: Any) -> str:
    """Write a value for a message, cut where it is long.

    Examples
    --------
    >>> shown(10**5000), shown("word"), len(shown("w" * 1000))
    ('a number of more than 4,300 digits', "'word'", 60)
    """
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write whole numbers of so many digits
        return "a number of more than 4,300 digits"
    except RecursionError:
        return "something nested too deeply"
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def _is(kind: str, value: Any) -> bool:
    """Tell whether a value is of a kind; the range of numbers is another question."""
    if isinstance(value, bool):
        return kind == "yes/no"
    if kind == "number":
        return isinstance(value, int) or (isinstance(value, float) and not math.isnan(value))
    types: dict[str, type] = {
        "text": str, "path": str, "whole number": int, "list": list, "table": Mapping,
    }  # fmt: skip
    return kind in types and isinstance(value, types[kind])


def _check_text(key: Key, text: str) -> None:
    if "\0" in text:
        raise ConfigError(f"{key.path} must not contain the character \\0, got {shown(text)}")
    if not text.strip() and not key.may_be_empty:
        advice = "name a file or folder" if key.kind == "path" else "give a word"
        raise ConfigError(
            f"{key.path} must not be empty, got {shown(text)}: {advice}, or leave it out"
        )
    if key.choices and text not in key.choices:
        raise ConfigError(f"{key.path} must be one of {', '.join(key.choices)}, got {shown(text)}")


def _check_range(key: Key, number: int) -> None:
    if number < key.least or (key.path == "run.jobs" and number == 0):
        raise ConfigError(f"{key.path} must be at least {key.least}, got {shown(number)}")
    if number > key.most:
        raise ConfigError(f"{key.path} must be at most {key.most:,}, got {shown(number)}")


def _check_list(key: Key, given: list[Any]) -> None:
    kinds = set()
    for value in given:
        fitting = [kind for kind in key.items if _is(kind, value)]
        kinds.add(fitting[0] if fitting else "something else")
        if fitting == ["number"]:
            _refuse_too_large(key.path, value)
    if "something else" in kinds or len(kinds) > 1:
        words = {"text": "text", "number": "numbers", "yes/no": "true and false"}
        allowed = ", or of ".join(words[kind] for kind in key.items)
        raise ConfigError(f"{key.path} must be a list of {allowed}, got {shown(given)}")


def _check_table(key: Key, given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        path = f"{key.path}.{name}"
        if not key.items:
            _refuse_dates(path, value)
            continue
        if not any(_is(kind, value) for kind in key.items):
            raise ConfigError(f"{path} must be a {' or a '.join(key.items)}, got {shown(value)}")
        _refuse_too_large(path, value)


def _refuse_too_large(name: str, number: float) -> None:
    try:
        float(number)
    except OverflowError:
        raise ConfigError(
            f"{name} is larger than any number that can be computed with, got {shown(number)}: at most "
            "1.7e308 is allowed, or inf"
        ) from None


def _refuse_dates(name: str, value: Any) -> None:
    """Refuse what no model takes and no manifest can hold: TOML knows dates and times, too."""
    if isinstance(value, Mapping):
        for inner, below in value.items():
            _refuse_dates(f"{name}.{inner}", below)
    elif isinstance(value, list):
        for below in value:
            _refuse_dates(name, below)
    elif not isinstance(value, (str, int, float, bool)):
        raise ConfigError(f"{name} must be text, a number, a list or a table, got {shown(value)}")
