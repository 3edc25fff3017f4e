"""The desk as a web application: which address shows which page, and how it is served."""

from __future__ import annotations

import errno
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from collegium.desk import level_pages, people, question_pages, steward, study_pages, table_pages
from collegium.desk.books import Books
from collegium.desk.guard import Guard, Log, TooLargeError
from collegium.desk.tables import MOST_BYTES
from collegium.errors import InputError
from collegium.report.page import environment

LOCAL = "127.0.0.1"
UPLOADS = "/tables/new"
_LOCAL_NAMES = {"localhost", LOCAL, "::1"}


def application(books: Books, address: str, log: Log) -> Guard:
    """Make the application.

    Parameters
    ----------
    books : Books
    address : str
        Under which people reach it, such as ``https://privacy.example.org``; it is what links begin with.
    log : callable
        Is given a line for each request: when, which page, with what end, and in which role.

    Returns
    -------
    ASGI application
    """
    routes = [
        Route("/style.css", style),
        Route("/favicon.ico", no_icon),
        Route("/", steward.overview),
        Route("/in", steward.sign_in_page),
        Route("/in", steward.sign_in, methods=["POST"]),
        Route("/out", steward.sign_out, methods=["POST"]),
        Route("/people", steward.people_page),
        Route("/people/links", steward.make_links, methods=["POST"]),
        Route("/people/revoke", steward.revoke_links, methods=["POST"]),
        Route("/people/receipt", steward.show_receipt, methods=["POST"]),
        Route("/people/leaves", steward.leaves, methods=["POST"]),
        Route("/people/back", steward.come_back, methods=["POST"]),
        Route("/history", steward.history_page),
        Route("/releases/settle", steward.settle, methods=["POST"]),
        Route("/levels", level_pages.levels_page),
        Route("/levels", level_pages.set_levels, methods=["POST"]),
        Route("/levels/explained", level_pages.explained),
        Route("/tables", table_pages.tables_page),
        Route(UPLOADS, table_pages.add_table, methods=["POST"]),
        Route("/tables/{name}", table_pages.table_page),
        Route("/tables/{name}/owner", table_pages.set_owner, methods=["POST"]),
        Route("/tables/{name}/levels", table_pages.enter_levels, methods=["POST"]),
        Route("/tables/{name}/draft", table_pages.draft_schema, methods=["POST"]),
        Route("/tables/{name}/schema", table_pages.set_schema, methods=["POST"]),
        Route("/tables/{name}/remove", table_pages.remove_table, methods=["POST"]),
        Route("/questions", question_pages.questions_page),
        Route("/questions/prices", question_pages.prices, methods=["POST"]),
        Route("/questions/answers", question_pages.answers, methods=["POST"]),
        Route("/studies", study_pages.studies_page),
        Route("/studies", study_pages.make_study, methods=["POST"]),
        Route("/studies/{name}", study_pages.study_page),
        Route("/studies/{name}/plan", study_pages.plan_page),
        Route("/studies/{name}/plan", study_pages.plan_study, methods=["POST"]),
        Route("/studies/{name}/run", study_pages.run_study, methods=["POST"]),
        Route("/studies/{name}/stop", study_pages.stop_study, methods=["POST"]),
        Route("/studies/{name}/settings", study_pages.change_study, methods=["POST"]),
        Route("/studies/{name}/remove", study_pages.remove_study, methods=["POST"]),
        Route("/studies/{name}/release/{file}", study_pages.released_file),
        Route("/me/{token}", with_slash),
        Route("/me/{token}/", people.own_page),
        Route("/me/{token}/choice", people.choose, methods=["POST"]),
        Route("/me/{token}/leave", people.leaving_page),
        Route("/me/{token}/leave", people.leave, methods=["POST"]),
    ]
    made = Starlette(
        routes=routes, exception_handlers={TooLargeError: _too_large, Exception: _failed}
    )
    made.state.books, made.state.address = books, address.rstrip("/")
    names = _LOCAL_NAMES | {urlsplit(address).hostname or LOCAL}
    return Guard(made, names, log, {UPLOADS: MOST_BYTES})


def style(request: Request) -> Response:
    """Send the style of all pages."""
    text = environment().get_template("desk_style.css.j2").render()
    return Response(text, media_type="text/css", headers={"cache-control": "max-age=300"})


def no_icon(request: Request) -> Response:
    """Send nothing to browsers that ask for a picture of the site."""
    return Response(status_code=204)


def with_slash(request: Request) -> Response:
    """Go on where the address of a link was cut off at its end."""
    return RedirectResponse(f"/me/{request.path_params['token']}/", 303)


def _too_large(request: Request, error: Exception) -> Response:
    return HTMLResponse(f"<!DOCTYPE html><title>Collegium</title><p>{error}.</p>", 413)


def _failed(request: Request, error: Exception) -> Response:
    """Say that something is wrong here, and nothing of what it is about."""
    return HTMLResponse(
        "<!DOCTYPE html><title>Collegium</title><p>Something is wrong in the desk itself. What was entered "
        "before is kept; go back, look whether this was, and tell whoever runs it.</p>",
        500,
    )


def listening_at(host: str, port: int) -> socket.socket:
    """Take a port. Raises InputError if it cannot be used."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        if isinstance(error, socket.gaierror) or getattr(error, "errno", 0) == errno.EADDRNOTAVAIL:
            raise InputError(
                f"{host} is no address of this machine ({reason}): give another --host"
            ) from None
        raise InputError(
            f"port {port} of {host} cannot be used ({reason}): end what uses it, or give another --port"
        ) from None
    return listening


def serve(
    books: Books,
    listening: socket.socket,
    address: str | None,
    log_file: Path,
    ready: Callable[[str], None],
) -> None:
    """Serve the desk until it is ended.

    ``ready``: is given its address, when it can be called.
    """
    host, port = listening.getsockname()[:2]
    shown = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    with log_file.open("a", encoding="utf-8") as kept:
        log_file.chmod(0o600)

        def log(line: str) -> None:
            print(line, file=kept, flush=True)

        app = application(books, address or shown, log)
        tempfile.tempdir = str(books.incoming)  # what is sent lies nowhere else on the way
        config = uvicorn.Config(app, access_log=False, log_level="critical", server_header=False)
        ready(shown)
        uvicorn.Server(config).run(sockets=[listening])
