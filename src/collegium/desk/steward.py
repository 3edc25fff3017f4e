"""Pages of those who keep the ledger: how people stand, releases, links, receipts, leavers."""

from __future__ import annotations

import io

import pandas as pd
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from collegium.accounting.promises import Promise
from collegium.checks import shown
from collegium.desk.books import Books
from collegium.desk.doorkeeper import Session, TooManyTriesError
from collegium.desk.pages import (
    COOKIE,
    books_of,
    form,
    message,
    page,
    rendered,
    sentence,
    sure,
    text_of,
    who,
)
from collegium.errors import InputError
from collegium.plain_text import csv_for_people
from collegium.report.ledger_words import (
    level_columns,
    release_line,
    what_happened,
)
from collegium.report.numbers import down
from collegium.report.receipt import receipt_of

_MOST_SHOWN = 500  # lines of a history on one page
_MOST_NAMES = 100_000


# Signing in and out


async def sign_in_page(request: Request) -> Response:
    """Ask for a secret."""
    return rendered(None, "sign_in.html.j2", 200, told="")


async def sign_in(request: Request) -> Response:
    """Take a secret, and begin a session."""
    books = books_of(request)
    async with request.form(max_files=0, max_fields=5) as sent:
        secret = str(sent.get("secret", ""))
    try:
        name = await run_in_threadpool(books.doorkeeper.sign_in, secret.strip())
    except TooManyTriesError as error:
        return rendered(None, "sign_in.html.j2", 429, told=sentence(error))
    if name is None:
        told = "This is neither the steward's secret nor the reader's."
        return rendered(None, "sign_in.html.j2", 403, told=told)
    answer = RedirectResponse("/", 303)
    is_secure = str(request.app.state.address).startswith("https:")
    answer.set_cookie(COOKIE, name, httponly=True, samesite="strict", secure=is_secure, path="/")
    return answer


async def sign_out(request: Request) -> Response:
    """End a session."""
    books, session = who(request)
    async with request.form(max_files=0, max_fields=5) as sent:
        if session is not None and session.take(str(sent.get("form", ""))):
            books.doorkeeper.sign_out(request.cookies.get(COOKIE))
    answer = RedirectResponse("/in", 303)
    answer.delete_cookie(COOKIE)
    return answer


# Pages


@page
def overview(request: Request, books: Books, session: Session) -> Response:
    """Show how people stand, what was released, and which levels there are to choose."""
    standings = books.ledger.standings()
    found = books.ledger.releases()
    releases = [release_line(*one) for one in found]
    return rendered(
        session,
        "overview.html.j2",
        standings=level_columns(standings) if standings else None,
        releases=releases,
        open=[(one.id, f"{one.name} ({one.id})") for one, _, _ in found if not one.is_settled],
        levels=levels_in_words(books),
        ledger=str(books.ledger),
    )


def levels_in_words(books: Books) -> dict[str, str]:
    """Say which budget each level grants."""
    is_pure = books.ledger.lifetime.promise is Promise.PURE
    levels = {} if books.stated is None else books.stated.policy.levels
    return {
        name: f"ε = {down(one.epsilon)}" + ("" if is_pure else f", δ = {down(one.delta)}")
        for name, one in levels.items()
    }


@page
def people_page(request: Request, books: Books, session: Session) -> Response:
    """Show the forms about people."""
    return rendered(
        session,
        "people.html.j2",
        counts=books.links.counts(),
        levels=books.levels,
        forms=[session.form() for _ in range(3)],
    )


@page
def history_page(request: Request, books: Books, session: Session) -> Response:
    """Show what happened, newest first."""
    entries = books.ledger.history()
    lines = [(one.number, one.at, what_happened(one)) for one in reversed(entries[-_MOST_SHOWN:])]
    return rendered(session, "history.html.j2", lines=lines, total=len(entries))


@form
def settle(request: Request, books: Books, session: Session, sent: FormData) -> Response:
    """End a reservation whose program is gone, at all that was reserved."""
    reason = text_of(sent, "reason")
    if not reason:
        raise InputError("say how it is known that its program is gone, and who says so")
    ended = books.ledger.end(text_of(sent, "name"), reason, nothing_was_drawn=False)
    return message(session, f"{ended.name} is settled: all that was reserved stays charged.")


@form
def make_links(request: Request, books: Books, session: Session, sent: FormData) -> Response:
    """Make links, and send them as a table: they are not kept."""
    table = text_of(sent, "table")
    names = books.tables.people(books.tables[table]) if table else _names_in(sent)
    days = text_of(sent, "days")
    if not days.isdecimal():
        raise InputError("say for how many days the links are good, as a whole number")
    there = books.with_links(names)
    if there and text_of(sent, "sure") != "yes":
        again = {"table": table} if table else {"names": "\n".join(names)}
        return sure(
            session,
            "Replace links?",
            "",
            [
                f"{there:,} of these {len(names):,} people have a link that opens their page. New links "
                "replace these: what was sent before opens nothing any more.",
            ],
            action="/people/links",
            yes="Yes, make new links",
            back="/people",
            fields={**again, "days": days},
        )
    tokens = books.make_links(names, int(days[:6]))
    address = str(request.app.state.address)
    links = [f"{address}/me/{token}/" for token in tokens]
    links_table = csv_for_people(pd.DataFrame({"person": names, "link": links}))
    return Response(
        links_table,
        media_type="text/csv; charset=utf-8",
        headers={"content-disposition": 'attachment; filename="links.csv"'},
    )


@form
def revoke_links(request: Request, books: Books, session: Session, sent: FormData) -> Response:
    """End the links of some people."""
    names = _names_in(sent)
    ended = books.revoke(names)
    without = len(names) - ended
    return message(
        session,
        f"{ended:,} {'link was' if ended == 1 else 'links were'} ended."
        + (
            f" {without:,} of these names had none: check that they are spelt as in the records."
            if without
            else ""
        ),
        back="/people",
    )


@form
def show_receipt(request: Request, books: Books, session: Session, sent: FormData) -> Response:
    """Show a person's receipt, as they see it."""
    name = _name_in(sent)
    account = books.ledger.account_of(name)
    receipt = receipt_of(name, account, books.ledger.neighbours)
    return rendered(session, "receipt_page.html.j2", text=receipt.as_text())


@form
def leaves(request: Request, books: Books, session: Session, sent: FormData) -> Response:
    """Enter that a person has left, after asking once."""
    name = _name_in(sent)
    account = books.ledger.account_of(name)
    if account is None:
        raise InputError(
            "the ledger knows nobody of this name, so nothing was changed: check that it is spelt as in the "
            "records"
        )
    if account.standing.has_left:
        return message(session, "This person has left already: nothing was changed.")
    if sent.get("sure") != "yes":
        return sure(
            session,
            "Does this person leave?",
            name,
            [
                "No further release will use their records, and their link opens nothing any more. What was "
                "released cannot be taken back, and what was spent stays in the ledger.",
            ],
            action="/people/leaves",
            yes="Yes, enter it",
            back="/people",
        )
    books.ledger.forget(name)
    books.revoke([name])
    return message(
        session,
        "No further release will use this person's records, and their link opens nothing. What was spent "
        "stays in the ledger. Tables, and models trained on them, are not changed.",
        back="/people",
    )


@form
def come_back(request: Request, books: Books, session: Session, sent: FormData) -> Response:
    """Enter that somebody who left is back."""
    books.come_back(_name_in(sent), text_of(sent, "level"))
    return message(
        session,
        "They are back, with all that was spent before. Their link has to be made anew.",
        back="/people",
    )


# What forms say


def _names_in(sent: FormData) -> list[str]:
    """Read names: each line of a field, as it is, or the first column of an uploaded file."""
    given = sent.get("file")
    if isinstance(given, UploadFile) and given.filename:
        lines = _first_column(given.file.read())
    else:
        lines = str(sent.get("names", "")).splitlines()
    names = list(dict.fromkeys(filter(None, map(str.strip, lines))))
    if not names:
        raise InputError("no name was given: write one in each line")
    odd = [one for one in names if not one.isprintable()]
    if odd:
        raise InputError(
            f"{len(odd):,} names cannot be printed, such as {shown(odd[0])}: give a text or CSV file"
        )
    if len(names) > _MOST_NAMES:
        raise InputError(f"{len(names):,} names were given: at most {_MOST_NAMES:,} at once")
    return names


def _first_column(content: bytes) -> list[str]:
    wrong = "give a text or CSV file in UTF-8, whose first column the names are"
    try:
        table = pd.read_csv(
            io.StringIO(content.decode("utf-8-sig")),
            header=None,
            dtype=str,
            keep_default_na=False,
            usecols=[0],
        )
    except UnicodeDecodeError:
        raise InputError(f"the file is no text: {wrong}") from None
    except pd.errors.EmptyDataError:
        return []
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise InputError(f"the file is no table ({reason}): {wrong}") from None
    return [str(one) for one in table[0]]


def _name_in(sent: FormData) -> str:
    name = str(sent.get("name", "")).strip()
    if not name:
        raise InputError("no name was given: write it as it is spelt in the records")
    return name
