"""What options of several commands have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def _path(text: str | Path) -> Path:
    """Read a path: an empty one would be the current folder, which nobody meant."""
    if not str(text).strip():
        raise typer.BadParameter("an empty name means nothing: name a folder, or leave it out.")
    return Path(text)


def complete_study(incomplete: str) -> list[str]:
    """Name the TOML files in a folder; where none fits, the shell completes any file or folder."""
    folder = incomplete[: incomplete.rfind("/") + 1]
    try:
        return sorted(folder + path.name for path in Path(folder).glob("*.toml"))
    except OSError:
        return []


PATH_OPTION: dict[str, Any] = {"parser": _path, "metavar": "PATH"}
"""Settings of an option that names a file or folder."""

Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Print errors and the result's last line, and nothing else.",
        is_eager=True,
    ),
]

PageLanguage = Annotated[
    str,
    typer.Option(
        "--language",
        help="Language of the page: en, de, es, fr or pl. Names and levels stay as they are.",
        metavar="CODE",
    ),
]

HOW_VOTES_COUNT = "Who has how much influence, and how votes become answers"
GUARANTEE = "What is promised, and how much is asked"
WHOSE_ROWS = "Whose rows these are, and what they granted"
ON_LEDGER = "One account per person"
"""Panels of options, for commands that have many."""

Key = Annotated[
    Path | None,
    typer.Option(
        "--key", help="File of the ledger's key.", **PATH_OPTION, rich_help_panel=ON_LEDGER
    ),
]
AllowNewPeople = Annotated[
    bool,
    typer.Option(
        "--allow-new-people",
        help="Most of these people are new to a ledger that knows others.",
        rich_help_panel=ON_LEDGER,
    ),
]
NoiseSeed = Annotated[
    int | None,
    typer.Option(
        help="Seeded noise, for experiments: NOT PRIVATE.", min=0, rich_help_panel=GUARANTEE
    ),
]
PrivateTable = Annotated[
    str,
    typer.Argument(
        help="The private table: .csv, .csv.gz, .parquet (file or folder), .xlsx; or in a database: "
        "duckdb:///FILE#TABLE, sqlite:///FILE#TABLE, postgresql://USER@HOST/DATABASE#TABLE.",
        metavar="TABLE",
        show_default=False,
    ),
]
SchemaFile = Annotated[
    Path,
    typer.Option(
        "--schema",
        help="Public schema of the table (`collegium schema` drafts one).",
        **PATH_OPTION,
    ),
]
Levels = Annotated[
    str | None,
    typer.Option(
        help="The ε of each level: high=1,average=2,low=3.",
        metavar="NAME=EPSILON,…",
        rich_help_panel=WHOSE_ROWS,
    ),
]
Owner = Annotated[
    str | None,
    typer.Option(
        help="Column with the name of each row's person. Default: each row is another person's.",
        metavar="COLUMN",
        rich_help_panel=WHOSE_ROWS,
    ),
]
NeighboursOption = Annotated[
    str | None,
    typer.Option(
        help="zero-out hides whether a person's rows are there or blank; replace-one hides their "
        "contents, too. Default: what the ledger promises, or else zero-out.",
        rich_help_panel=GUARANTEE,
    ),
]
