"""One person's page: what their link opens, and the forms on it."""

from __future__ import annotations

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
    language, books = _language(request), _books(request)
    name = books.links.name_of(request.path_params["token"])
    if name is None:
        return _closed(language)
    told = _TOLD.get(request.query_params.get("told", ""), "")
    return HTMLResponse(books.own_page(name, language, told).as_html())


def leaving_page(request: Request) -> Response:
    """Ask once whether they want to leave."""
    language, books = _language(request), _books(request)
    name = books.links.name_of(request.path_params["token"])
    if name is None:
        return _closed(language)
    return HTMLResponse(books.own_page(name, language, leaving=True).as_html())


async def choose(request: Request) -> Response:
    """Enter their choice."""
    form = await request.form(max_files=0, max_fields=10)
    return await run_in_threadpool(
        _choose, request, str(form.get("level", "")), str(form.get("version", ""))
    )


def _choose(request: Request, level: str, version: str) -> Response:
    language, books = _language(request), _books(request)
    name = books.links.name_of(request.path_params["token"])
    if name is None:
        return _closed(language)
    names = books.levels
    if not level.isdecimal() or int(level[:6]) >= len(names):
        return _back(request, language, "nothing")
    done = books.choose(name, names[int(level[:6])], version)
    return _back(request, language, "entered" if done else "changed")


async def leave(request: Request) -> Response:
    """Enter that they leave."""
    form = await request.form(max_files=0, max_fields=10)
    return await run_in_threadpool(
        _leave, request, form.get("sure") == "yes", str(form.get("version", ""))
    )


def _leave(request: Request, sure: bool, version: str) -> Response:
    language, books = _language(request), _books(request)
    name = books.links.name_of(request.path_params["token"])
    if name is None:
        return _closed(language)
    done = sure and books.leave(name, version)
    return _back(request, language, "entered" if done else "changed")


def _books(request: Request) -> Books:
    books: Books = request.app.state.books
    request.scope["role"] = "person"
    return books


def _language(request: Request) -> Language:
    given = request.query_params.get("language")
    return language_among(given, request.headers.get("accept-language", "")[:200])


def _back(request: Request, language: Language, told: str) -> Response:
    token = request.path_params["token"]
    return RedirectResponse(f"/me/{token}/?language={language.code}&told={told}", 303)


def _closed(language: Language) -> Response:
    return HTMLResponse(closed_page(language), 404)
