"""How a column is written in a condition or a question: its name, or a part of a date."""

from __future__ import annotations

import math

from collegium.conditions.conditions import KEYWORDS
from collegium.conditions.words import END, NUMBER_TOKEN, SIGN, WORD_TOKEN, Words, pointing_at
from collegium.data.date_format import day_number
from collegium.data.date_parts import PARTS, DatePart
from collegium.data.schema import Schema
from collegium.data.schema_column import TEXT
from collegium.errors import InputError


def read_column(words: Words, schema: Schema) -> str:
    """Read a column that can be asked about; return its name, or that of a part of a date."""
    if part := _part_of_date(words, schema):
        return part
    token = words.next
    if token.kind in (END, SIGN, NUMBER_TOKEN) or (
        token.kind == WORD_TOKEN and token.value.casefold() in KEYWORDS
    ):
        raise words.error("the name of a column is expected here")
    with pointing_at(words, token):
        if schema[token.value].kind == TEXT:
            raise InputError(
                f"column {token.value!r} is text in the schema, and text cannot be asked about: "
                "declare its categories"
            )
    words.take()
    return token.value


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
    source = read_column(words, schema)
    if part == "age":
        words.expect("," if inside else "at")
        day = words.take()
        if math.isnan(day_number(day.value)):
            raise words.error("the day is expected here, such as 2024-12-31", day)
        on = day.value
    if inside:
        words.expect(")")
    found = DatePart(part, source, on)
    with pointing_at(words, token):
        _ = schema[found.name]
    return found.name
