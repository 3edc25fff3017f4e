"""Words, numbers and signs of a text, each with its place, so that a message can point at it."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from collegium.checks import shown
from collegium.conditions.conditions import WORD
from collegium.errors import InputError

MOST_CHARACTERS = 4_000
WORD_TOKEN, NUMBER_TOKEN, TEXT_TOKEN, SIGN, END = "word", "number", "text", "sign", "end"
_TOKENS = re.compile(
    rf"""\s*(?:
    (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`)
    |(?P<date>\d{{4}}-\d{{2}}-\d{{2}})(?![\w.-])
    |(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    |(?P<word>{WORD})
    |(?P<sign>==|!=|<>|<=|>=|[=<>≤≥≠(),])
    )""",
    re.VERBOSE,
)
_SQL = re.compile(
    r"\s*(select|with|insert|update|delete|create|drop|alter|explain)\b", re.IGNORECASE
)
_ALIKE = {"=": "==", "<>": "!=", "≠": "!=", "≤": "<=", "≥": ">="}


@dataclass(frozen=True)
class Token:
    """One word, number, text in quotes, or sign.

    ``value``: what it says: without quotes; signs in one spelling.
    ``start``, ``end``: its place in the question.
    """

    kind: str
    value: str
    start: int
    end: int


class Words:
    """The tokens of one text, read from the left."""

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > MOST_CHARACTERS:
            raise InputError(
                f"a question may have at most {MOST_CHARACTERS:,} characters, got {len(text):,}: ask "
                "less at once"
            )
        self._tokens = list(self._split())
        self._place = 0

    def _split(self) -> list[Token]:
        tokens, place = [], 0
        while self.text[place:].strip():
            found = _TOKENS.match(self.text, place)
            if found is None:
                start = place + len(self.text[place:]) - len(self.text[place:].lstrip())
                bad = Token(SIGN, self.text[start], start, start + 1)
                what = "the quote has no end" if bad.value in "'\"`" else "not understood"
                raise self.error(what, bad)
            kind = str(found.lastgroup)
            raw = found.group(kind)
            value = raw[1:-1].replace(2 * raw[0], raw[0]) if kind == TEXT_TOKEN else raw
            start, place = found.span(kind)
            tokens.append(Token(kind, _ALIKE.get(value, value), start, place))
        return tokens

    @property
    def next(self) -> Token:
        """What comes next, without taking it."""
        if self._place < len(self._tokens):
            return self._tokens[self._place]
        return Token(END, "", len(self.text), len(self.text))

    @property
    def after(self) -> Token:
        """What comes behind the next one."""
        place = self._place + 1
        end = Token(END, "", len(self.text), len(self.text))
        return self._tokens[place] if place < len(self._tokens) else end

    def take(self) -> Token:
        """Take what comes next."""
        token = self.next
        self._place += 1
        return token

    def is_next(self, *words: str) -> bool:
        """Tell whether one of some keywords or signs comes next."""
        token = self.next
        return token.kind in (WORD_TOKEN, SIGN) and token.value.casefold() in words

    def taken(self, *words: str) -> str | None:
        """Take one of some keywords or signs, if it comes next."""
        return self.take().value.casefold() if self.is_next(*words) else None

    def expect(self, word: str) -> None:
        """Take a keyword or sign, or refuse what comes instead."""
        if not self.taken(word):
            raise self.error(f"{shown(word)} is missing")

    def error(self, what: str, token: Token | None = None) -> InputError:
        """Make the one-line error that points at a place; default: at what comes next.

        ``what``: what is wrong, and what to do.
        """
        token = token or self.next
        if token.kind == END:
            return InputError(f"{shown(self.text)}, at the end: {what}")
        piece = self.text[token.start : token.end]
        return InputError(
            f"{shown(self.text)}, at {shown(piece)} (character {token.start + 1}): {what}"
        )


@contextmanager
def pointing_at(words: Words, token: Token) -> Iterator[None]:
    """Let errors about what a word says point at it."""
    try:
        yield
    except InputError as error:
        raise words.error(str(error), token) from None


def begins_with_column(text: str, names: Container[str]) -> bool:
    """Tell whether a text begins with the name of a column: one may be called as a word of SQL is."""
    found = re.match(rf"\s*({WORD})", text)
    return found is not None and found.group(1) in names


def is_sql(text: str) -> bool:
    """Tell whether a text begins as a statement of SQL does."""
    return bool(_SQL.match(text))
