"""One person's page: what their link opens, and the forms on it."""

from __future__ import annotations

from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from collegium.desk.books import Books
from collegium.report.languages import Language
from collegium.report.own_page import (
    CHANGED_MEANWHILE,
    ENTERED,
    NOTHING_CHOSEN,
    closed_page,
    language_among,
)

_TOLD = {"entered": ENTERED, "changed": CHANGED_MEANWHILE, "nothing": NOTHING_CHOSEN}


def own_page(request: Request) -> Response:
    """Show a person their account, and what they can choose."""
    told = _TOLD.get(request.query_params.get("told", ""), "")
    return _for_person(
        request,
        lambda books, name, language: HTMLResponse(books.own_page(name, language, told).as_html()),
    )


def leaving_page(request: Request) -> Response:
    """Ask once whether they want to leave."""
    return _for_person(
        request,
        lambda books, name, language: HTMLResponse(
            books.own_page(name, language, leaving=True).as_html()
        ),
    )


async def choose(request: Request) -> Response:
    """Enter their choice."""
    form = await request.form(max_files=0, max_fields=10)
    level, version = str(form.get("level", "")), str(form.get("version", ""))

    def enter(books: Books, name: str, language: Language) -> Response:
        names = books.levels
        if not level.isdecimal() or int(level[:6]) >= len(names):
            return _back(request, language, "nothing")
        done = books.choose(name, names[int(level[:6])], version)
        return _back(request, language, "entered" if done else "changed")

    return await run_in_threadpool(_for_person, request, enter)


async def leave(request: Request) -> Response:
    """Enter that they leave."""
    form = await request.form(max_files=0, max_fields=10)
    sure, version = form.get("sure") == "yes", str(form.get("version", ""))

    def enter(books: Books, name: str, language: Language) -> Response:
        done = sure and books.leave(name, version)
        return _back(request, language, "entered" if done else "changed")

    return await run_in_threadpool(_for_person, request, enter)


def _for_person(request: Request, does: Callable[[Books, str, Language], Response]) -> Response:
    """Do it for the person whose link this is; one that opens nothing says the same everywhere."""
    request.scope["role"] = "person"
    given = request.query_params.get("language")
    language = language_among(given, request.headers.get("accept-language", "")[:200])
    books: Books = request.app.state.books
    name = books.links.name_of(request.path_params["token"])
    return HTMLResponse(closed_page(language), 404) if name is None else does(books, name, language)


def _back(request: Request, language: Language, told: str) -> Response:
    token = request.path_params["token"]
    return RedirectResponse(f"/me/{token}/?language={language.code}&told={told}", 303)
