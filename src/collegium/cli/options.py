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
    """Complete the name of a TOML file; where there is none, the shell completes any file or folder."""
    begun = Path(incomplete)
    folder, name = (
        (begun, "") if incomplete.endswith("/") or not incomplete else (begun.parent, begun.name)
    )
    try:
        found = sorted(path.name for path in folder.glob("*.toml") if path.name.startswith(name))
    except OSError:
        return []
    before = incomplete[: len(incomplete) - len(name)]
    return [before + file for file in found]


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

HOW_VOTES_COUNT = "Who has how much influence, and how votes become answers"
GUARANTEE = "What is promised, and how much is asked"
ON_LEDGER = "One account per person"
"""Panels of options, for commands that have many."""
