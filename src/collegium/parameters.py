"""Settings as frozen values: each field says its default, its meaning and what is allowed.

A study's TOML file, its JSON Schema, the commented example, the command line and the estimator are made from,
or checked by, the same fields, so that they cannot disagree.

Plain dataclasses, and not pydantic or attrs: a library of validators would add to the time that each
command takes to start, its messages name its own types over several lines where ours say in one line what
to do, and it converts what it is given (``"3"`` to 3, a list to a tuple), where scikit-learn's ``clone``
needs parameters back as they were given.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, ClassVar, cast

import numpy as np

from collegium.checks import check_choice, check_number, is_number, shown
from collegium.errors import InputError

MOST_WHOLE = 1_000_000_000
"""Largest whole number where nothing else is said: a larger one is a slip of the pen."""

_KINDS: dict[type, str] = {
    bool: "yes/no", int: "whole number", float: "number", str: "text", list: "list", dict: "table",
}  # fmt: skip
_FIELD = "setting"


class Searchable:
    """Base of frozen dataclasses of settings: shows its fields as scikit-learn's parameters.

    An estimator that holds one can be searched by ``name__field``; it replaces the value, which is frozen.

    Examples
    --------
    >>> from collegium import GNMax
    >>> GNMax(sigma=40).get_params()["sigma"]
    40
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Show every field by name; ``deep`` is there for scikit-learn, and changes nothing."""
        own = fields(cast(Any, self))
        return {field.name: getattr(self, field.name) for field in own if field.init}


@dataclass(frozen=True)
class Setting:
    """What is known of one field.

    ``default``: None: may be left out.
    ``kind``: "text", "path" (of a file or folder), "number", "whole number", "yes/no", "list",
        "table", or "text or list".
    ``choices``: allowed words; empty: any.
    ``example``: what the commented example shows where there is no default, as TOML.
    ``items``: kinds of what a list or table holds; empty: anything.
    ``least``, ``above``, ``most``, ``below``: between which a number lies, or each number of a
        table.
    ``also``: further whole numbers that are allowed, with what they mean.
    ``may_be_empty``: whether a text may be empty.
    ``advice``: what to do about a number that is out of range.
    """

    default: Any
    meaning: str
    kind: str
    choices: tuple[str, ...] = ()
    example: str = ""
    items: tuple[str, ...] = ()
    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    also: Mapping[int, str] = dataclasses.field(default_factory=dict)
    may_be_empty: bool = False
    advice: str = ""


def setting(default: Any, meaning: str, *, kind: str = "", **more: Any) -> Any:
    """Make a field of a dataclass that knows what it means and what is allowed.

    ``default``: None: may be left out, and ``kind`` must be given.
    ``kind``: default: that of the default.
    ``more``: further attributes of :class:`Setting`. Whole numbers lie between 1 and 1,000,000,000
        if nothing else is said.
    """
    kind = kind or _KINDS[type(default)]
    if kind == "whole number":
        more = {"least": 1, "most": MOST_WHOLE, **more}
    about = {_FIELD: Setting(default, meaning, kind, **more)}
    if isinstance(default, (list, dict)):
        return dataclasses.field(default_factory=lambda: copy.copy(default), metadata=about)
    return dataclasses.field(default=default, metadata=about)


def same_as(owner: type, name: str) -> Any:
    """Make a field with the default, meaning and limits of another class's.

    ``name``: of a field of it that was made by :func:`setting`.
    """
    known = settings_of(owner)[name]
    return dataclasses.field(default=known.default, metadata={_FIELD: known})


def settings_of(owner: Any) -> dict[str, Setting]:
    """List the settings of a dataclass, or of an instance, by name; its own before those that it inherits."""
    known = {f.name: f.metadata[_FIELD] for f in fields(owner) if _FIELD in f.metadata}
    own = vars(owner if isinstance(owner, type) else type(owner)).get("__annotations__", {})
    order = [*(name for name in own if name in known), *known]
    return {name: known[name] for name in dict.fromkeys(order)}


class Settings(Searchable):
    """Base of frozen dataclasses whose fields are made by :func:`setting`, and checked when one is made."""

    section: ClassVar[str] = ""

    def __post_init__(self) -> None:
        check_fields(self, self.section)


def check_fields(instance: Any, section: str = "") -> None:
    """Check every field of a dataclass that was made by :func:`setting`.

    ``instance``: not changed.
    ``section``: where it stands in a study's file, for messages.
    """
    for name, about in settings_of(instance).items():
        checked_value(f"{section}.{name}" if section else name, about, getattr(instance, name))


def checked_value(name: str, about: Setting, value: Any) -> Any:
    """Return a value as it was given, if its setting allows it.

    ``name``: what the message calls it.
    ``about``: what is allowed; None is, where it is the default.

    Examples
    --------
    >>> about = Setting("hash", "How owners are dealt.", "text", ("hash", "balanced"))
    >>> checked_value("teachers.assignment", about, "hash")
    'hash'
    >>> checked_value("teachers.assignment", about, "random")
    Traceback (most recent call last):
    collegium.errors.InputError: teachers.assignment must be one of hash, balanced, got 'random'
    """
    if value is None and about.default is None:
        return value
    if not _is(about.kind, value):
        kind = "true or false" if about.kind == "yes/no" else f"a {about.kind}"
        raise InputError(f"{name} must be {kind}, got {shown(value)}")
    if isinstance(value, str):
        _check_text(name, about, value)
    elif about.kind == "number":
        _check_number(name, about, value)
    elif about.kind == "whole number":
        _check_whole(name, about, value)
    elif isinstance(value, Mapping):
        _check_table(name, about, value)
    elif isinstance(value, Sequence):
        _check_list(name, about, value)
    return value


def _is(kind: str, value: Any) -> bool:
    """Tell whether a value is of a kind; the range of numbers is another question."""
    if isinstance(value, (bool, np.bool_)):
        return kind == "yes/no"
    if isinstance(value, str):
        return kind in ("text", "path", "text or list")
    if kind == "number":
        return is_number(value)
    types: dict[str, Any] = {
        "whole number": Integral, "list": Sequence, "text or list": Sequence, "table": Mapping,
    }  # fmt: skip
    return kind in types and isinstance(value, types[kind])


def _check_text(name: str, about: Setting, text: str) -> None:
    if "\0" in text:
        raise InputError(f"{name} must not contain the character \\0, got {shown(text)}")
    if not text.strip() and not about.may_be_empty:
        advice = "name a file or folder" if about.kind == "path" else "give a word"
        raise InputError(f"{name} must not be empty, got {shown(text)}: {advice}, or leave it out")
    if about.choices:
        check_choice(name, text, about.choices)


def _check_whole(name: str, about: Setting, number: int) -> None:
    if number in about.also:
        return
    least, most = int(cast(float, about.least)), int(cast(float, about.most))
    if number < least and about.also:
        others = " or ".join(f"{other} for {meaning}" for other, meaning in about.also.items())
        raise InputError(f"{name} must be at least {least}, or {others}, got {shown(number)}")
    if number < least:
        raise InputError(f"{name} must be at least {least}, got {shown(number)}")
    if number > most:
        raise InputError(f"{name} must be at most {most:,}, got {shown(number)}")


def _check_number(name: str, about: Setting, number: float) -> None:
    limits = {word: getattr(about, word) for word in ("least", "above", "most", "below")}
    try:
        check_number(name, number, **limits)
    except InputError as error:
        raise InputError(f"{error}: {about.advice}" if about.advice else str(error)) from None


def _check_list(name: str, about: Setting, given: Sequence[Any]) -> None:
    kinds = set()
    for value in given:
        fitting = [kind for kind in about.items if _is(kind, value)]
        kinds.add(fitting[0] if fitting else "something else")
        if fitting == ["number"]:
            _check_number(name, about, value)
    if "something else" in kinds or len(kinds) > 1:
        words = {"text": "text", "number": "numbers", "yes/no": "true and false"}
        allowed = ", or of ".join(words[kind] for kind in about.items)
        raise InputError(f"{name} must be a list of {allowed}, got {shown(given)}")


def _check_table(name: str, about: Setting, given: Mapping[str, Any]) -> None:
    for inner, value in given.items():
        path = f"{name}.{inner}"
        if not about.items:
            _refuse_dates(path, value)
            continue
        if not any(_is(kind, value) for kind in about.items):
            raise InputError(f"{path} must be a {' or a '.join(about.items)}, got {shown(value)}")
        if not isinstance(value, str):
            _check_number(path, about, value)


def _refuse_dates(name: str, value: Any) -> None:
    """Refuse what no model takes and no manifest can hold: TOML knows dates and times, too."""
    if isinstance(value, Mapping):
        for inner, below in value.items():
            _refuse_dates(f"{name}.{inner}", below)
    elif isinstance(value, list):
        for below in value:
            _refuse_dates(name, below)
    elif not isinstance(value, (str, int, float, bool)):
        raise InputError(f"{name} must be text, a number, a list or a table, got {shown(value)}")
