"""The receipt command: one person's account in plain words, or everybody's."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from collegium.cli.console import out
from collegium.cli.ledger import KeyFile, opened, require_column
from collegium.cli.options import PATH_OPTION, PageLanguage
from collegium.errors import WHERE, InputError, RecordError

INDEX = "index.csv"


def receipt(
    place: Annotated[
        str,
        typer.Option(
            "--ledger", help="A file, or postgresql://USER@HOST/DATABASE.", show_default=False
        ),
    ],
    owner: Annotated[
        str | None, typer.Argument(help="Name of the person.", show_default=False)
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(
            "--all",
            help="Instead of one name: CSV or Parquet file with the names of all people who get a "
            "receipt (a ledger keeps no names).",
            **PATH_OPTION,
        ),
    ] = None,
    column: Annotated[
        str | None,
        typer.Option(
            "--owner",
            help="With --all: column with the names, if there are others.",
            show_default=False,
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="With --all: new or empty folder for the pages, which are numbered; index.csv lists "
            "whose each one is.",
            **PATH_OPTION,
        ),
    ] = None,
    key: KeyFile = None,
    language: PageLanguage = "en",
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Write a page instead of text.", **PATH_OPTION),
    ] = None,
    text: Annotated[
        bool, typer.Option("--text", help="With --all: write text instead of pages.")
    ] = False,
) -> None:
    """Show one person's account: what they chose, what used their records, what remains, what it means.

    With --all, write a page for everybody, in a folder that only you can read. In its index.csv, a name
    that a spreadsheet would take for a formula has an apostrophe before it.

    Example: collegium receipt patient-17 --ledger people.ledger --html receipt.html

    Example: collegium receipt patient-17 --ledger people.ledger --language de

    Example: collegium receipt --all patients.csv --owner patient --ledger people.ledger --out receipts
    """
    if (owner is None) == (names is None):
        raise InputError("give one name, or a table of names with --all")
    if owner is not None:
        if folder is not None or column is not None or text:
            raise InputError("--out, --owner and --text go with --all; one receipt goes to --html")
        _one(owner, place, key, html, language)
    if names is not None:
        if html is not None:
            raise InputError("--html is for one receipt: with --all, give a folder with --out")
        if folder is None:
            raise InputError("--all needs a folder for the pages: give --out FOLDER")
        _all(names, column, place, key, folder, "txt" if text else "html", language)


def _one(owner: str, place: str, key: Path | None, html: Path | None, language: str) -> None:
    from collegium.checks import shown
    from collegium.cli.outputs import refuse_taken
    from collegium.durable import write_durably
    from collegium.report.languages import Language
    from collegium.report.receipt import receipt_of

    spoken = Language(language)
    if html is not None:
        refuse_taken(html)
    ledger = opened(place, key)
    account = ledger.account_of(owner)
    if account is None:
        raise InputError(
            f"the ledger {place} has no account of {shown(owner)}, so no release entered there has used "
            "records under this name: check that it is spelt as in the records"
        )
    written = receipt_of(owner, account, ledger.neighbours, spoken)
    if html is None:
        for line in written.as_text().splitlines():
            out.print(line, soft_wrap=True)
        return
    write_durably(html, written.as_html().encode(), private=True)
    out.print(f"Wrote {html}.", soft_wrap=True)


def _all(
    names: Path,
    column: str | None,
    place: str,
    key: Path | None,
    folder: Path,
    kind: str,
    language: str,
) -> None:
    import pandas as pd

    from collegium.plain_text import csv_for_people
    from collegium.report.languages import Language
    from collegium.report.receipt import texts_of

    spoken = Language(language)
    owners = _owners(names, column)
    ledger = opened(place, key)
    accounts = ledger.accounts_of(owners)
    _make_empty(folder)
    digits = len(str(len(owners)))
    files = [f"{number:0{digits}}.{kind}" for number in range(1, len(owners) + 1)]
    texts = texts_of(owners, accounts, ledger.neighbours, html=kind == "html", language=spoken)
    index = csv_for_people(pd.DataFrame({"owner": owners, "file": files})).decode()
    _write(folder, itertools.chain(zip(files, texts, strict=True), [(INDEX, index)]))
    out.print(
        f"Wrote {len(owners):,} receipts into {folder}; {INDEX} lists whose each one is.",
        soft_wrap=True,
    )
    if unknown := accounts.count(None):
        out.print(
            f"{unknown:,} of these names are not in the ledger: check that they are spelt as in the "
            "records.",
            soft_wrap=True,
        )


def _owners(table: Path, column: str | None) -> list[str]:
    """Read the names, each once, in their order."""
    import numpy as np

    from collegium.data.datasets.table_files import read_table
    from collegium.names import as_names

    rows = read_table(table, as_text=True)
    if column is None:
        if len(rows.columns) != 1:
            raise InputError(
                f"{table} has {len(rows.columns):,} columns: say which of them holds the names, with --owner "
                "COLUMN"
            )
        (column,) = rows.columns
    require_column(rows, column, table)
    spelt = as_names(rows[column])
    unnamed = np.flatnonzero([name is None for name in spelt])
    if unnamed.size:
        raise RecordError(
            f"{table}: {unnamed.size:,} rows without a name, first {WHERE}: give a name in each row",
            unnamed[0],
        )
    if not spelt.size:
        raise InputError(f"{table} has no rows: give a table with a row for each person")
    return list(dict.fromkeys(spelt.tolist()))


def _make_empty(folder: Path) -> None:
    """Make a folder that nobody else can read."""
    from collegium.cli.outputs import refuse_among_a_studys_files
    from collegium.durable import private_folder

    refuse_among_a_studys_files(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: give a folder, new or empty")
    if folder.exists() and any(folder.iterdir()):
        raise InputError(
            f"{folder} is not empty, so nothing was written: give a new folder, or an empty one"
        )
    private_folder(folder.resolve())
    folder.chmod(0o700)


def _write(folder: Path, files: Iterable[tuple[str, str]]) -> None:
    """Write all of them, or none: without the index, which comes last, nobody could tell whose they are."""
    made: list[Path] = []
    try:
        for name, text in files:
            made.append(folder / name)
            descriptor = os.open(made[-1], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
                file.write(text)
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        raise
