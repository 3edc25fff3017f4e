"""The desk command: pages in a browser for those who keep a ledger, and for each person in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from collegium.cli.console import out
from collegium.cli.ledger import KeyFile, Place, opened
from collegium.cli.options import PATH_OPTION
from collegium.errors import InputError

if TYPE_CHECKING:
    from collegium.ledger.ledger import Ledger


def desk(
    place: Place,
    levels: Annotated[
        Path | None,
        typer.Option(
            "--levels",
            help="TOML file with the levels that people may choose: a study's, or one with levels and delta "
            "alone. Default: they are set at the desk.",
            metavar="FILE",
        ),
    ] = None,
    key: KeyFile = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            help="Where the desk keeps its tables, studies, links, secrets' hashes and log. Default: "
            "LEDGER.desk, beside the ledger.",
            **PATH_OPTION,
        ),
    ] = None,
    port: Annotated[int, typer.Option(help="0: any that is free.", min=0, max=65535)] = 8765,
    host: Annotated[
        str,
        typer.Option(
            help="Which of this machine's addresses to listen on. Any but the default lets others reach it, "
            "without encryption: put a proxy with TLS before it."
        ),
    ] = "127.0.0.1",
    address: Annotated[
        str | None,
        typer.Option(
            help="Under which people reach it, if not this machine alone does: links begin with it, such as "
            "https://privacy.example.org.",
            show_default=False,
        ),
    ] = None,
    browser: Annotated[
        bool,
        typer.Option(
            help="Whether to open it in this machine's browser, where a terminal shows this."
        ),
    ] = True,
) -> None:
    """Open a desk: pages for those who keep the ledger, and one page for each person, with a link.

    The steward brings tables, sets levels, sends links, asks questions and runs studies there; the ledger is
    made if it is not there. The first start prints two secrets, once: the steward's, who may change things,
    and a reader's.

    Example: collegium desk people.ledger
    """
    try:
        from collegium.desk.application import LOCAL, listening_at, serve
    except ImportError:
        raise InputError(
            "a desk needs packages that are not here: install collegium with its extra 'desk'"
        ) from None
    import threading

    from collegium.desk.books import Books
    from collegium.durable import private_folder

    if address is not None and not _is_site(address):
        raise InputError(
            f"--address {address!r} is none of a whole site: write, for instance, https://privacy.example.org"
        )
    if folder is None:
        if "://" in place:
            raise InputError("a ledger on a server has no folder beside it: give --folder")
        folder = Path(f"{place}.desk")
    listening = listening_at(host, port)  # before secrets are made, and shown once
    try:
        private_folder(folder)
    except OSError as error:
        raise InputError(
            f"{folder} cannot be the desk's folder ({error.strerror}): give another one with --folder"
        ) from None
    ledger = _opened_or_made(place, key)
    books = Books(ledger, levels, folder, None if key is None else key.resolve())
    try:
        for role, secret in books.new_secrets.items():
            out.print(f"The {role}'s secret, shown once: {secret}", soft_wrap=True, markup=False)

        def ready(shown: str) -> None:
            out.print(f"The desk is open at {shown} – Ctrl-C closes it.", soft_wrap=True)
            if browser and out.is_terminal and host == LOCAL:
                threading.Thread(target=_open_browser, args=(shown,), daemon=True).start()

        serve(books, listening, address, folder / "access.log", ready)
    finally:
        books.close()


def _is_site(address: str) -> bool:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(address)
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    more = (parts.path.strip("/"), parts.query, parts.fragment, parts.username, parts.password)
    return parts.scheme in ("http", "https") and is_whole and not any(more)


def _open_browser(address: str) -> None:
    import webbrowser

    if not webbrowser.open(address):
        out.print("No browser was found here: open the address in one yourself.", soft_wrap=True)


def _opened_or_made(place: str, key: Path | None) -> Ledger:
    from collegium.accounting.neighbours import Neighbours
    from collegium.cli.outputs import refuse_no_folder
    from collegium.ledger.places import Place as At

    if "://" in place:
        return opened(place, key)
    refuse_no_folder(Path(place))  # a name that is misspelt makes no folder
    ledger = At(place, key).opened()  # refuses one that is gone
    if ledger is None:
        ledger = At(place, key).made(Neighbours.ADD_OR_REMOVE)
        out.print(f"Made the ledger {ledger}. It knows nobody yet.", soft_wrap=True)
    return ledger
