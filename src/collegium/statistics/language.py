"""The language of questions: one grammar for the command line, studies and Python.

.. code-block:: text

    question  = kind columns [by columns] [where condition]
              | share where condition [by columns] [among condition]
              | difference of kind column by column [between GROUP and GROUP] [where condition]
    kind      = count | count people | sum | mean | var | std | median | quantile(LEVEL)
              | quantiles(LEVEL, ...) of | histogram | crosstab | share of | top NUMBER of
              | cov | corr | ridge COLUMN on columns

What a condition and a column are, and how they are written: :mod:`collegium.conditions.parser`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from collegium.checks import check_is, shown
from collegium.conditions.columns import read_column
from collegium.conditions.conditions import EVERYBODY, Where
from collegium.conditions.parser import parse_where, read_where
from collegium.conditions.words import END, NUMBER_TOKEN, WORD_TOKEN, Words, is_sql, pointing_at
from collegium.data.schema import Schema
from collegium.errors import InputError
from collegium.statistics.phrasings import nearest_clause
from collegium.statistics.query import Query, checked, refuse_unknown_kind
from collegium.statistics.sql import refusal_of_sql

__all__ = ["Query", "checked_question", "parse_question"]


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
    with pointing_at(words, head):
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
        with pointing_at(words, head):
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
    with pointing_at(words, head):
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
            asked[name] = read_where(words, schema)
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
    names = [read_column(words, schema)]
    while words.taken(","):
        names.append(read_column(words, schema))
    return names
