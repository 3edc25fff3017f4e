"""The language of conditions on rows: one grammar for the command line, studies and Python.

.. code-block:: text

    condition = condition or condition | condition and condition | not condition | (condition)
              | COLUMN (== | != | < | <= | > | >=) LITERAL | NUMBER < COLUMN < NUMBER
              | COLUMN [not] between LITERAL and LITERAL
              | COLUMN [not] in (LITERAL, ...) | COLUMN is [not] missing | FLAG

In the place of a column: year(DATE), month(DATE), weekday(DATE) or age(DATE, DAY) of a column of dates. A
column that is not one word, and a category, may stand in quotes; a quote within is written twice.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from collegium.checks import is_number, nearest, shown
from collegium.conditions.columns import read_column
from collegium.conditions.conditions import (
    EVERYBODY,
    Among,
    Compare,
    IsMissing,
    Where,
    all_of,
    any_of,
    name_text,
)
from collegium.conditions.contradictions import refuse_contradiction
from collegium.conditions.words import (
    END,
    NUMBER_TOKEN,
    SIGN,
    Token,
    Words,
    begins_with_column,
    is_sql,
    pointing_at,
)
from collegium.data.date_format import day_number
from collegium.data.schema import Column, Schema
from collegium.data.schema_column import CATEGORY, DATE, FLAG, WHOLE
from collegium.errors import InputError

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_DEEPEST = 40
_MAY_BE_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")


def parse_where(text: str | None, schema: Schema) -> Where:
    """Read a condition on rows.

    Parameters
    ----------
    text : str or None
        None or blank: everybody.
    schema : Schema
        Public; columns and categories that are not in it are refused.

    Returns
    -------
    Where
        Frozen and in canonical form. A missing value satisfies no comparison, and no negation of one.

    Raises
    ------
    InputError
        In one line that points at the place.

    Examples
    --------
    >>> schema = Schema({
    ...     "age": {"kind": "whole", "bounds": [17, 90]},
    ...     "sex": {"kind": "category", "categories": ["F", "M"]},
    ...     "smoker": {"kind": "flag"},
    ... })
    >>> print(parse_where("not (smoker or age>39.0) and sex != 'M'", schema))
    age <= 39 and not smoker and sex == 'F'
    >>> parse_where("agee > 40", schema)
    Traceback (most recent call last):
    collegium.errors.InputError: 'agee > 40', at 'agee' (character 1): there is no column 'agee' in the
    schema: did you mean 'age'?
    """
    if text is not None and not isinstance(text, str):
        raise InputError(f'where must be text, such as "age >= 40", got a {type(text).__name__}')
    if text is None or not text.strip():
        return EVERYBODY
    if is_sql(text) and not begins_with_column(text, schema):
        raise InputError("this is SQL: give the condition alone, such as age >= 40")
    words = Words(text)
    where = read_where(words, schema)
    if words.next.kind != END:
        raise words.error("'and' or 'or' is missing before this")
    return where


def read_where(words: Words, schema: Schema) -> Where:
    """Read a condition as far as it goes; refuse one that nobody can meet."""
    return _Conditions(words, schema).read()


class _Conditions:
    """Reads conditions; each method takes whether what it reads is negated."""

    def __init__(self, words: Words, schema: Schema) -> None:
        self.words, self.schema, self.depth = words, schema, 0

    def read(self) -> Where:
        """Read all of a condition; refuse one that nobody can meet."""
        first = self.words.next
        where = self.any_of(False)
        with pointing_at(self.words, first):
            refuse_contradiction(where, self.schema)
        return where

    def any_of(self, negated: bool) -> Where:
        return self._joined("or", self.all_of, all_of if negated else any_of, negated)

    def all_of(self, negated: bool) -> Where:
        return self._joined("and", self.one, any_of if negated else all_of, negated)

    def _joined(
        self,
        word: str,
        read: Callable[[bool], Where],
        join: Callable[[list[Where]], Where],
        negated: bool,
    ) -> Where:
        parts = [read(negated)]
        while self.words.taken(word):
            parts.append(read(negated))
        return join(parts)

    def one(self, negated: bool) -> Where:
        while self.words.taken("not"):
            negated = not negated
        if self.words.next.kind == NUMBER_TOKEN:
            return self._between(negated)
        if not self.words.is_next("("):
            return self._of_column(negated)
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.words.error(f"at most {_DEEPEST} parentheses may be open at a time")
        self.words.take()
        inner = self.any_of(negated)
        self.words.expect(")")
        self.depth -= 1
        return inner

    def _between(self, negated: bool) -> Where:
        """Read ``20 <= age < 40``, or ``20 <= age``."""
        low = self.words.take()
        first = self.words.taken(*_MIRRORED)
        if first is None:
            raise self.words.error(
                "after a number, one of <, <=, > and >= is expected, then a column"
            )
        token = self.words.next
        name = read_column(self.words, self.schema)
        parts = [self._compared(name, token, _MIRRORED[first], low, negated)]
        if second := self.words.taken(*_MIRRORED):
            parts.append(self._compared(name, token, second, self.words.take(), negated))
        return any_of(parts) if negated else all_of(parts)

    def _of_column(self, negated: bool) -> Where:
        words = self.words
        token = words.next
        name = read_column(words, self.schema)
        column = self.schema[name]
        if operation := words.taken(*_COMPARISONS):
            return self._compared(name, token, operation, words.take(), negated)
        if words.taken("is"):
            return self._is(name, negated)
        if words.taken("like"):
            raise words.error(f"list what is meant: {name_text(name)} in ('…', '…')")
        if words.taken("not"):
            if not words.is_next("in", "between"):
                raise words.error("'in' or 'between' is expected after 'not' here")
            negated = not negated
        if words.taken("between"):
            parts = [self._compared(name, token, ">=", words.take(), negated)]
            words.expect("and")
            parts.append(self._compared(name, token, "<=", words.take(), negated))
            return any_of(parts) if negated else all_of(parts)
        if words.taken("in"):
            return self._in(name, token, negated)
        if column.kind == FLAG:
            return _among(name, column, [0 if negated else 1], False)
        what = "in ('…', '…')" if column.kind == CATEGORY else f">= {column.write(column.lower)}"
        raise words.error(f"a comparison is missing, such as {name_text(name)} {what}")

    def _is(self, name: str, negated: bool) -> Where:
        if self.words.taken("not"):
            negated = not negated
        if not self.words.taken("missing", "null"):
            raise self.words.error(
                "'missing' or 'not missing' is expected after 'is'; otherwise write =="
            )
        return IsMissing(name, not negated)

    def _in(self, name: str, token: Token, negated: bool) -> Where:
        column = self.schema[name]
        self.words.expect("(")
        literals = [self.words.take()]
        while self.words.taken(","):
            literals.append(self.words.take())
        self.words.expect(")")
        if column.kind in (CATEGORY, FLAG):
            codes = [self._place(name, column, literal) for literal in literals]
            with pointing_at(self.words, token):
                return _among(name, column, codes, negated)
        parts = [self._compared(name, token, "==", literal, negated) for literal in literals]
        return all_of(parts) if negated else any_of(parts)

    def _compared(
        self, name: str, token: Token, operation: str, literal: Token, negated: bool
    ) -> Where:
        column = self.schema[name]
        if negated:
            operation = _NEGATED[operation]
        if column.kind in (CATEGORY, FLAG):
            place = self._place(name, column, literal)
            if operation not in ("==", "!="):
                raise self.words.error(
                    f"{name!r} is a {column.kind}, which has no order: compare with == or in", token
                )
            with pointing_at(self.words, token):
                return _among(name, column, [place], operation == "!=")
        is_date = column.kind == DATE
        number = day_number(literal.value) if is_date else math.nan
        if is_date and math.isnan(number):
            raise self.words.error(
                f"{name!r} is a column of dates: compare it with a date, such as 2024-12-31",
                literal,
            )
        if not is_date and literal.kind != NUMBER_TOKEN:
            raise self.words.error(
                f"{name!r} is a column of numbers: compare it with a number", literal
            )
        written = None if is_date else column.number_format
        if written and written.decimal == "," and _MAY_BE_THOUSANDS.fullmatch(literal.value):
            raise self.words.error(
                f"{literal.value} may be {float(literal.value):g} or {literal.value.replace('.', '')}, since "
                f"the schema writes {name!r} as {column.written!r}: here a point stands before decimals",
                literal,
            )
        number = number if is_date else float(literal.value)
        with pointing_at(self.words, literal):
            if not is_number(number) or math.isinf(number):
                raise InputError("the number is too large to compute with")
            if column.is_whole:
                operation, number = _whole(operation, number)
            _refuse_nobody(name, column, operation, number)
        return Compare(name, operation, number + 0.0, is_date)  # no -0.0

    def _place(self, name: str, column: Column, literal: Token) -> int:
        """Find a category among those of the schema."""
        words = self.words
        if literal.kind in (END, SIGN):
            raise words.error("a value is expected here", literal)
        place = column.place_of(literal.value)
        if place < 0:
            hint = (
                "allowed are yes and no"
                if column.kind == FLAG
                else nearest(literal.value, list(column.keys))
            )
            raise words.error(
                f"{name!r} has no category {shown(literal.value)} in the schema: {hint}", literal
            )
        return place


def _whole(operation: str, number: float) -> tuple[str, float]:
    """Compare whole numbers with whole numbers, and with <= and >= alone."""
    if operation in ("<", ">="):
        number = float(math.ceil(number))
    elif operation in (">", "<="):
        number = float(math.floor(number))
    if operation == "<":
        return "<=", number - 1
    return (">=", number + 1) if operation == ">" else (operation, number)


def _refuse_nobody(name: str, column: Column, operation: str, number: float) -> None:
    """Refuse what no value within the bounds satisfies: to ask it would be paid for, too."""
    possible = {
        "==": column.lower <= number <= column.upper
        and (not column.is_whole or number == round(number)),
        "<": column.lower < number,
        "<=": column.lower <= number,
        ">": column.upper > number,
        ">=": column.upper >= number,
        "!=": True,
    }
    if not possible[operation]:
        whole = "whole numbers " if column.kind == WHOLE else ""
        raise InputError(
            f"nobody can be {operation} {column.write(number)}: {name!r} holds {whole}from "
            f"{column.write(column.lower)} to {column.write(column.upper)} in the schema, and others are "
            "clipped"
        )


def _among(name: str, column: Column, codes: list[int], excluded: bool) -> Where:
    """Name the smaller of some categories and all others."""
    chosen = set(codes)
    if excluded:
        chosen = set(range(len(column.keys))) - chosen
    if not chosen:
        raise InputError(
            f"nobody can be in none of the categories of {name!r}: ask for those missing"
        )
    if len(chosen) == len(column.keys):
        return IsMissing(name, missing=False)
    excluded = 2 * len(chosen) > len(column.keys)
    if excluded:
        chosen = set(range(len(column.keys))) - chosen
    places = tuple(sorted(chosen))
    names = tuple(column.keys[place] for place in places)
    return Among(name, places, names, excluded, column.kind == FLAG)
