"""The desk command: pages in a browser for those who keep a ledger, and for each person in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from collegium.cli.console import out
from collegium.cli.ledger import KeyFile, Place, opened
from collegium.cli.options import PATH_OPTION
from collegium.errors import InputError


def desk(
    place: Place,
    levels: Annotated[
        Path,
        typer.Option(
            "--levels",
            help="TOML file with the levels that people may choose: a study's, or one with levels and delta "
            "alone.",
            metavar="FILE",
            show_default=False,
        ),
    ],
    key: KeyFile = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            help="Where the desk keeps its links, its secrets' hashes and its log. Default: LEDGER.desk, "
            "beside the ledger.",
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
) -> None:
    """Open a desk: pages for those who keep the ledger, and one page for each person, with a link.

    The first start prints two secrets, once: the steward's, who may change things, and a reader's.

    Example: collegium desk people.ledger --levels policy.toml
    """
    try:
        from collegium.desk.application import listening_at, serve
    except ImportError:
        raise InputError(
            "a desk needs packages that are not here: install collegium with its extra 'desk'"
        ) from None
    from urllib.parse import urlsplit

    from collegium.desk.books import Books
    from collegium.study.policy_file import read_policy

    if address is not None and (
        urlsplit(address).scheme not in ("http", "https")
        or not urlsplit(address).hostname
        or urlsplit(address).path not in ("", "/")
    ):
        raise InputError(
            f"--address {address!r} is none of a whole site: write, for instance, https://privacy.example.org"
        )
    if folder is None:
        if "://" in place:
            raise InputError("a ledger on a server has no folder beside it: give --folder")
        folder = Path(f"{place}.desk")
    ledger, stated = opened(place, key), read_policy(levels)
    listening = listening_at(host, port)  # before secrets are made, and shown once
    books = Books(ledger, stated, folder)
    try:
        for role, secret in books.new_secrets.items():
            out.print(f"The {role}'s secret, shown once: {secret}", soft_wrap=True, markup=False)

        def ready(shown: str) -> None:
            out.print(f"The desk is open at {shown} – Ctrl-C closes it.", soft_wrap=True)

        serve(books, listening, address, folder / "access.log", ready)
    finally:
        books.close()
