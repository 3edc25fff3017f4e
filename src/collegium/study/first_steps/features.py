"""The features of tables: which columns are left out, and how the others are read."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import pandas as pd

from collegium.checks import listed
from collegium.data.column_types import NUMBER, TEXT, ColumnTypes, UnclearDecimalError
from collegium.errors import InputError
from collegium.study.first_steps import inference
from collegium.study.first_steps.look import PRIVATE, PUBLIC, TEST
from collegium.study.first_steps.prompts import Begun, Question


def choose_features(begun: Begun, special: Sequence[str]) -> dict[str, Any]:
    """Choose the features; return what has to be said of them: keys of [data].

    ``special``: columns of another meaning: target, level, owner.
    """
    look = begun.look
    excluded = dict.fromkeys(name for name in begun.wanted.exclude if name not in special)

    def leave_out(names: Sequence[str], why: str) -> None:
        new = [name for name in names if name not in {*special, *excluded}]
        excluded.update(dict.fromkeys(new))
        if new:
            begun.talk.tell(f"data.exclude: {listed(map(repr, new), 8)}; {why}")

    def left() -> list[str]:
        return [name for name in look.common if name not in {*special, *excluded}]

    everywhere = dict.fromkeys(name for role in look.headers for name in look.columns(role))
    leave_out(list(filter(is_unnamed, everywhere)), "no name, as of row numbers that to_csv writes")
    for role in look.headers:
        other = PUBLIC if role == PRIVATE else PRIVATE
        strays = [name for name in look.columns(role) if name not in look.columns(other)]
        leave_out(strays, f"not in {begun.name(other)}")
    leave_out(
        inference.identifiers(left(), look.public),
        f"called as numbers of people or records are, with many values in {begun.name(PUBLIC)}",
    )
    decimal = _decimal(begun, look.public[left()])
    leave_out(
        inference.all_different(left(), look.public, decimal),
        "text that differs in more than half of the public records teaches hardly anything",
    )
    features = left()
    _check(begun, features)
    return {
        **({"exclude": list(excluded)} if excluded else {}),
        **_reading(begun, look.public[features], decimal),
    }


def is_unnamed(column: str) -> bool:
    """Tell whether a reader of tables made the name of a column whose header is blank."""
    return column.startswith("Unnamed: ") and column.removeprefix("Unnamed: ").isdecimal()


def _check(begun: Begun, features: Sequence[str]) -> None:
    look = begun.look
    if not features:
        raise InputError(
            f"no column is left to learn from: {begun.name(PRIVATE)} and {begun.name(PUBLIC)} have in common "
            f"{listed(look.common, 8)}; give public records with the same features"
        )
    lacks = [name for name in features if TEST in look.headers and name not in look.columns(TEST)]
    if lacks:
        raise InputError(
            f"{begun.name(TEST)} lacks {listed(lacks, 8)}: it needs the same features; or leave them out "
            "with --exclude"
        )


def _decimal(begun: Begun, features: pd.DataFrame) -> str:
    """Find what stands before decimals."""

    def read(text: str) -> str:
        if text not in (",", "."):
            raise InputError(f"--decimal must be , or . and not {text!r}")
        return text

    if begun.wanted.decimal is not None:
        return read(begun.wanted.decimal)
    if not begun.look.has_characters(PUBLIC):
        return "."
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said later, of the features that are left
            return ColumnTypes.of(features, characters=True).decimal
    except UnclearDecimalError as error:
        answer = begun.talk.ask(
            Question(
                f"{str(error).partition(':')[0]}. What stands before decimals, a comma or a point (, or .)?",
                f"--decimal , or --decimal . ({str(error).partition(':')[0]})",
                read,
            )
        )
        begun.talk.settle()
        return str(answer)


def _reading(begun: Begun, features: pd.DataFrame, decimal: str) -> dict[str, Any]:
    """Find the types of the features; return what has to be said of how files are read."""
    look, tell, public = begun.look, begun.talk.tell, begun.name(PUBLIC)
    characters, given = look.has_characters(PUBLIC), begun.wanted.decimal
    keys: dict[str, Any] = {}
    if look.separator is not None:
        keys["separator"] = look.separator
    if given is not None or decimal != ".":
        keys["decimal"] = decimal
    gaps = inference.numbers_with_gaps(features, decimal) if characters else {}
    for name, mark in gaps.items():
        tell(f"data.types: {name!r} holds numbers; {mark!r} marks missing ones in {public}")
    declared = dict.fromkeys(gaps, NUMBER)
    if gaps:
        keys["types"] = declared
    types = ColumnTypes.of(features, declared=declared, decimal=decimal, characters=characters)
    told = [f"separated by {look.separator!r}"] if look.separator is not None else []
    if decimal != ".":
        told.append("decimals behind a comma")
    for one, words in ((NUMBER, "of numbers"), (TEXT, "of text")):
        names = [name for name, kind in types.kinds.items() if kind == one]
        if names:
            told.append(f"{len(names)} {words} ({', '.join(names[:6])}{', …' * (len(names) > 6)})")
    tell(f"features: {'; '.join(told)}; as {public} shows")
    return keys
