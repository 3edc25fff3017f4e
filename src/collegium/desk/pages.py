"""What all pages of steward and reader share: who may see them, forms that are sent once, messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, wraps
from types import MappingProxyType
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from collegium.desk.books import Books
from collegium.desk.doorkeeper import Session
from collegium.desk.guard import MOST_BYTES
from collegium.errors import CollegiumError, InputError
from collegium.report.page import environment

COOKIE = "collegium-desk"
WATCHING = "watching"
"""In the address of a page that the browser opens again by itself: it keeps no session from ending."""
_OF_DOCUMENTS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
}

Handler = Callable[[Request], Awaitable[Response]]
Page = Callable[[Request, Books, Session], Response]
Form = Callable[[Request, Books, Session, FormData], Response]


def page(does: Page) -> Handler:
    """Show a page to whoever has signed in; anybody else is asked for a secret."""

    @wraps(does)
    async def handler(request: Request) -> Response:
        books, session = who(request)
        if session is None:
            return RedirectResponse("/in", 303)
        return await run_in_threadpool(_said, does, request, books, session)

    return handler


def form(does: Form) -> Handler:
    """Take a form that the steward was shown, once."""

    @wraps(does)
    async def handler(request: Request) -> Response:
        books, session = who(request)
        if session is None:
            return RedirectResponse("/in", 303)
        if not session.may_write:  # before anything of it is read
            return message(session, "Only the steward can do that: sign in as one.", 403)
        try:
            async with request.form(max_files=1, max_fields=40, max_part_size=MOST_BYTES) as sent:
                if not session.take(str(sent.get("form", ""))):
                    return message(
                        session,
                        "Nothing was done: this form was sent before, or is too old. Open the page again.",
                        409,
                    )
                return await run_in_threadpool(_said, does, request, books, session, sent)
        except OSError as error:
            return _disk(session, error)

    return handler


def _said(does: Callable[..., Response], request: Request, *given: Any) -> Response:
    session = given[1]
    try:
        return does(request, *given)
    except CollegiumError as error:
        above = request.url.path.rstrip("/").rpartition("/")[0] if request.method == "POST" else ""
        return message(session, sentence(error), 400, above or request.url.path)
    except OSError as error:
        return _disk(session, error)


def sentence(error: Exception) -> str:
    """Write an error as a sentence."""
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."


def _disk(session: Session, error: OSError) -> Response:
    reason = error.strerror or "its disk cannot be used"
    return message(session, f"The desk cannot write ({reason}): nothing was changed.", 507)


def books_of(request: Request) -> Books:
    """Find what the desk keeps."""
    books: Books = request.app.state.books
    return books


def who(request: Request) -> tuple[Books, Session | None]:
    """Find who has signed in."""
    books = books_of(request)
    is_watching = WATCHING in request.query_params
    session = books.doorkeeper.session(request.cookies.get(COOKIE), is_seen=not is_watching)
    if session is not None:
        request.scope["role"] = session.role
    return books, session


def text_of(sent: FormData, name: str) -> str:
    """Read a field of a form; empty where it is missing."""
    given = sent.get(name, "")
    return "" if isinstance(given, UploadFile) else given.strip()


def number_of(sent: FormData, name: str, what: str) -> float:
    """Read a number of a form, with a point or a comma. Raises InputError: ``what`` it should be."""
    text = text_of(sent, name)
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise InputError(f"{what} must be a number, such as 1.5") from None


@cache
def _environment() -> Environment:
    base = environment()
    assert base.loader is not None
    return base.overlay(loader=ChoiceLoader([PackageLoader("collegium", "desk"), base.loader]))


def rendered(session: Session | None, template: str, status: int = 200, **slots: Any) -> Response:
    """Write a page. Its forms have one name, ``form``: of each page one form is sent."""
    text = (
        _environment()
        .get_template(template)
        .render(
            session=session,
            may_write=bool(session and session.may_write),
            form=None if session is None else session.form(),
            **slots,
        )
    )
    return HTMLResponse(text, status)


def sure(
    session: Session,
    title: str,
    name: str,
    lines: Sequence[str],
    *,
    action: str,
    yes: str,
    back: str,
    choice: str = "",
    fields: Mapping[str, str] = MappingProxyType({}),
) -> Response:
    """Ask once before something is done.

    ``name``: about what or whom. ``lines``: what it means. ``action``: where the form goes; ``back``: where
    who says no does. ``choice``: what else can be said with a tick. ``fields``: what the form says again.
    """
    slots: dict[str, Any] = {"title": title, "name": name, "lines": lines, "action": action}
    slots |= {"yes": yes, "back": back, "choice": choice, "fields": {"name": name, **fields}}
    return rendered(session, "sure.html.j2", **slots)


def document(text: str) -> Response:
    """Show a page that stands by itself: it has its style in it, and may do nothing."""
    return HTMLResponse(text, headers=_OF_DOCUMENTS)


def message(session: Session, text: str, status: int = 200, back: str = "") -> Response:
    """Say in a sentence what was done, or was not. ``back``: where to go from there."""
    title = "Done" if status == 200 else "Not done"
    return rendered(session, "message.html.j2", status, text=text, title=title, back=back)
