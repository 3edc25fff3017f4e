"""The language of questions and of ``where``: one grammar for the command line, studies and Python.

.. code-block:: text

    question  = kind columns [by columns] [where condition]
              | share where condition [by columns] [among condition]
              | difference of kind column by column [between GROUP and GROUP] [where condition]
    kind      = count | count people | sum | mean | var | std | median | quantile(LEVEL)
              | quantiles(LEVEL, ...) of | histogram | crosstab | share of | top NUMBER of
              | cov | corr | ridge COLUMN on columns
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from collegium.checks import check_is, is_number, nearest, shown
from collegium.data.date_format import day_number
from collegium.data.date_parts import PARTS, DatePart
from collegium.data.schema import Column, Schema
from collegium.data.schema_column import CATEGORY, DATE, FLAG, TEXT, WHOLE
from collegium.errors import InputError
from collegium.statistics.conditions import (
    EVERYBODY,
    KEYWORDS,
    Among,
    Compare,
    IsMissing,
    Where,
    all_of,
    any_of,
    name_text,
)
from collegium.statistics.contradictions import refuse_contradiction
from collegium.statistics.phrasings import nearest_clause
from collegium.statistics.query import Query, checked, refuse_unknown_kind
from collegium.statistics.sql import is_sql, refusal_of_sql
from collegium.statistics.words import END, NUMBER_TOKEN, SIGN, WORD_TOKEN, Token, Words

__all__ = ["EVERYBODY", "Query", "Where", "checked_question", "parse_question", "parse_where"]

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
    if is_sql(text):
        raise InputError("this is SQL: give the condition alone, such as age >= 40")
    words = Words(text)
    where = _Conditions(words, schema).read()
    if words.next.kind != END:
        raise words.error("'and' or 'or' is missing before this")
    return where


def parse_question(text: str, schema: Schema) -> Query:
    """Read a question.

    Parameters
    ----------
    text : str
        For instance ``"mean income by sex where age >= 40"``.
    schema : Schema
        Public.

    Returns
    -------
    Asked
        Frozen and in canonical form: questions that ask the same are equal.

    Raises
    ------
    InputError
        In one line that points at the place. SQL is refused with the question that asks the same.

    Examples
    --------
    >>> schema = Schema({"age": {"kind": "whole", "bounds": [17, 90]}, "smoker": {"kind": "flag"}})
    >>> print(parse_question("quantile(.50) age where age>=40.0 by smoker", schema))
    median age by smoker where age >= 40
    >>> parse_question("SELECT AVG(age) FROM people WHERE age > 39", schema)
    Traceback (most recent call last):
    collegium.errors.InputError: SQL is not understood; ask instead: mean age where age >= 40
    """
    if not isinstance(text, str) or not text.strip():
        raise InputError(
            f'a question must be text, such as "count where age >= 40", got {shown(text)}'
        )
    if is_sql(text):
        raise refusal_of_sql(text, lambda asked: parse_question(asked, schema))
    words = Words(text)
    head = words.take()
    with _pointing_at(words, head):
        if head.kind != WORD_TOKEN:
            raise InputError("a question begins with what to compute, such as mean or count")
        refuse_unknown_kind(head.value, words.text[head.start :])
    kind = head.value.casefold()
    differs = kind == "difference"
    if differs:
        words.taken("of", "in")
        head = words.take()
        if head.kind != WORD_TOKEN or head.value.casefold() == "difference":
            raise words.error(
                "what differs is missing, as in: difference of mean income by sex between 'F' and 'M'",
                head,
            )
        with _pointing_at(words, head):
            refuse_unknown_kind(head.value, words.text[head.start :])
        kind = head.value.casefold()
    if kind == "count" and words.taken("people"):
        kind = "people"
    level = _level(words) if kind == "quantile" else None
    levels = _levels(words) if kind == "quantiles" else ()
    most = _most(words) if kind == "top" else 0
    if kind not in ("count", "people"):
        words.taken("of")
    columns = _columns_of(kind, words, schema)
    allowed = ["by", "where", *(["between"] if differs else [])]
    of_condition = kind == "share" and not columns
    asked = _clauses(words, schema, [*allowed, *(["among"] if of_condition else [])], of_condition)
    apart = tuple(asked["between"]) if differs else None
    with _pointing_at(words, head):
        return checked(
            kind,
            columns,
            level,
            asked["by"],
            asked["where"],
            schema,
            levels=levels,
            holds=asked["holds"],
            apart=apart,
            most=most,
        )


def _clauses(
    words: Words, schema: Schema, allowed: Sequence[str], of_condition: bool
) -> dict[str, Any]:
    """Read what stands behind the columns.

    ``of_condition``: whether 'where' says what a share is of, and 'among' whose rows.
    """
    asked: dict[str, Any] = {"by": (), "where": EVERYBODY, "between": (), "holds": None}
    seen: set[str] = set()
    while (clause := words.next).kind != END:
        word = words.taken(*allowed)
        if word is None:
            meant = nearest_clause(clause.value)
            hint = f"; did you mean {meant}?" if meant else ""
            raise words.error(f"'by' or 'where' is expected here, or the end{hint}")
        if word in seen:
            raise words.error(f"there are two {word!r}: join them", clause)
        seen.add(word)
        if word == "by":
            asked["by"] = tuple(_names(words, schema))
        elif word == "between":
            first = words.take().value
            words.expect("and")
            asked["between"] = (first, words.take().value)
        else:
            name = "holds" if of_condition and word == "where" else "where"
            asked[name] = _Conditions(words, schema).read()
    return asked


def checked_question(
    kind: str,
    columns: Sequence[str] = (),
    level: float | None = None,
    by: Sequence[str] = (),
    where: Where | str | None = EVERYBODY,
    schema: Schema | None = None,
    **more: Any,
) -> Query:
    """Make a question of its parts.

    Parameters
    ----------
    kind : str
        One of :data:`collegium.statistics.query.KINDS`, or ``"median"``.
    columns : list of str
        Whose values; of ``"ridge"``, the first is what is explained.
    level : float, optional
        Of a quantile.
    by : list of str
        Columns with public keys.
    where : str or Where, optional
        Whose rows; default: everybody's.
    schema : Schema
        Public.
    **more
        ``levels`` of several quantiles; ``holds``, the condition of a share.

    Raises
    ------
    InputError
        If a column is not in the schema, is of another kind than is asked for, or has no public keys to
        group by; if something is missing.

    Examples
    --------
    >>> schema = Schema({"age": {"kind": "whole", "bounds": [17, 90]}, "smoker": {"kind": "flag"}})
    >>> print(checked_question("median", ["age"], by=["smoker"], where="age > 39", schema=schema))
    median age by smoker where age >= 40
    """
    check_is("schema", schema, Schema, "read one with Schema.read(path)")
    assert schema is not None
    condition = where if isinstance(where, Where) else parse_where(where, schema)
    return checked(kind, columns, level, by, condition, schema, **more)


def _level(words: Words) -> float:
    inside = words.taken("(")
    token = words.take()
    if token.kind != NUMBER_TOKEN:
        raise words.error("quantile needs a level first, such as quantile(0.9) income", token)
    if inside:
        words.expect(")")
    return float(token.value)


def _levels(words: Words) -> tuple[float, ...]:
    words.expect("(")
    found = [words.take()]
    while words.taken(","):
        found.append(words.take())
    for token in found:
        if token.kind != NUMBER_TOKEN:
            raise words.error(
                "quantiles need levels first, such as quantiles(0.1, 0.5) of income", token
            )
    words.expect(")")
    return tuple(float(token.value) for token in found)


def _most(words: Words) -> int:
    token = words.take()
    if token.kind != NUMBER_TOKEN or not token.value.isdigit():
        raise words.error("top needs a number first, such as top 5 of ward", token)
    return int(token.value)


def _columns_of(kind: str, words: Words, schema: Schema) -> tuple[str, ...]:
    if words.next.kind == END or words.is_next("by", "where", "among"):
        return ()
    inside = words.taken("(")
    if inside and words.taken(")"):
        return ()
    columns = _names(words, schema)
    if kind == "ridge" and not inside:
        words.expect("on")
        columns += _names(words, schema)
    if inside:
        words.expect(")")
    return tuple(columns)


def _names(words: Words, schema: Schema) -> list[str]:
    names = [_column(words, schema)]
    while words.taken(","):
        names.append(_column(words, schema))
    return names


def _part_of_date(words: Words, schema: Schema) -> str | None:
    """Read ``year(visit)`` or ``year of visit``, and ``age of birth at 2024-12-31``."""
    token, after = words.next, words.after
    if token.kind != WORD_TOKEN or token.value.casefold() not in PARTS:
        return None
    inside = after.kind == SIGN and after.value == "("
    if not inside and not (after.kind == WORD_TOKEN and after.value.casefold() == "of"):
        return None
    words.take(), words.take()
    part, on = token.value.casefold(), ""
    source = _column(words, schema)
    if part == "age":
        words.expect("," if inside else "at")
        day = words.take()
        if math.isnan(day_number(day.value)):
            raise words.error("the day is expected here, such as 2024-12-31", day)
        on = day.value
    if inside:
        words.expect(")")
    found = DatePart(part, source, on)
    with _pointing_at(words, token):
        _ = schema[found.name]
    return found.name


def _column(words: Words, schema: Schema) -> str:
    if part := _part_of_date(words, schema):
        return part
    token = words.next
    if token.kind in (END, SIGN, NUMBER_TOKEN) or (
        token.kind == WORD_TOKEN and token.value.casefold() in KEYWORDS
    ):
        raise words.error("the name of a column is expected here")
    with _pointing_at(words, token):
        if schema[token.value].kind == TEXT:
            raise InputError(
                f"column {token.value!r} is text in the schema, and text cannot be asked about: "
                "declare its categories"
            )
    words.take()
    return token.value


@contextmanager
def _pointing_at(words: Words, token: Token) -> Iterator[None]:
    """Let errors about what a word says point at it."""
    try:
        yield
    except InputError as error:
        raise words.error(str(error), token) from None


class _Conditions:
    """Reads conditions; each method takes whether what it reads is negated."""

    def __init__(self, words: Words, schema: Schema) -> None:
        self.words, self.schema, self.depth = words, schema, 0

    def read(self) -> Where:
        """Read all of a condition; refuse one that nobody can meet."""
        first = self.words.next
        where = self.any_of(False)
        with _pointing_at(self.words, first):
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
        name = _column(self.words, self.schema)
        parts = [self._compared(name, token, _MIRRORED[first], low, negated)]
        if second := self.words.taken(*_MIRRORED):
            parts.append(self._compared(name, token, second, self.words.take(), negated))
        return any_of(parts) if negated else all_of(parts)

    def _of_column(self, negated: bool) -> Where:
        words = self.words
        token = words.next
        name = _column(words, self.schema)
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
            with _pointing_at(self.words, token):
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
            with _pointing_at(self.words, token):
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
        with _pointing_at(self.words, literal):
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
