"""Pages of questions: their price before, their interval after."""

from __future__ import annotations

import hashlib

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from collegium.desk.books import Books
from collegium.desk.doorkeeper import Session
from collegium.desk.pages import form, number_of, page, rendered, sentence, text_of
from collegium.desk.questions import Asked, Price
from collegium.errors import InputError

_EXAMPLES = "count\nmean age by sex\nmedian age where sex = 'F'"


@page
def questions_page(request: Request, books: Books, session: Session) -> Response:
    """Show the form of questions, and what was answered before."""
    return _form(books, session)


def _form(books: Books, session: Session, told: str = "", sent: FormData | None = None) -> Response:
    private = [one for one in books.tables.all() if not one.is_public and one.owner]
    askable = [one for one in private if books.tables.schema_file(one).is_file()]
    return rendered(
        session,
        "questions.html.j2",
        400 if told else 200,
        told=told,
        given={
            name: "" if sent is None else text_of(sent, name)
            for name in ("questions", "percent", "table")
        },
        tables=[one.name for one in askable],
        unready=[one.name for one in private if one not in askable],
        examples=_EXAMPLES,
        earlier=[(one.name, given) for one in private if (given := books.questions.earlier(one))],
    )


@form
def prices(request: Request, books: Books, session: Session, sent: FormData) -> Response:
    """Say what questions would cost, and ask whether they are to be asked."""
    try:
        return _with_price(books, session, sent)
    except InputError as error:  # what was written stays on the page
        return _form(books, session, sentence(error), sent)


def _with_price(books: Books, session: Session, sent: FormData) -> Response:
    asked = _asked(books, sent)
    return _priced(session, asked, books.questions.prices(asked, _levels(books)))


def _priced(session: Session, asked: Asked, found: list[Price], told: str = "") -> Response:
    return rendered(
        session,
        "prices.html.j2",
        table=asked.table.name,
        prices=found,
        seen=_seen(found),
        questions="\n".join(asked.questions),
        percent=f"{100 * asked.share:g}",
        told=told,
    )


def _seen(prices: list[Price]) -> str:
    """Name what somebody was shown: whoever asks has seen the price that they pay."""
    return hashlib.sha256(repr(prices).encode()).hexdigest()


@form
def answers(request: Request, books: Books, session: Session, sent: FormData) -> Response:
    """Ask, and show the answers."""
    asked = _asked(books, sent)
    now = books.questions.prices(asked, _levels(books))
    if text_of(sent, "seen") != _seen(now):
        told = "The price has changed since you saw it, so nothing was asked: look at it again."
        return _priced(session, asked, now, told)
    found = books.questions.answers(asked, _levels(books))
    return rendered(session, "answers.html.j2", table=asked.table.name, answers=found)


def _asked(books: Books, sent: FormData) -> Asked:
    questions = filter(None, (line.strip() for line in text_of(sent, "questions").splitlines()))
    percent = number_of(sent, "percent", "the share of what people have left")
    return Asked(
        books.tables[text_of(sent, "table")], tuple(dict.fromkeys(questions)), percent / 100
    )


def _levels(books: Books) -> str:
    assert books.policy  # refused where there is none
    return str(books.levels_file)
