"""What options of several commands have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer


def _path(text: str | Path) -> Path:
    """Read a path: an empty one would be the current folder, which nobody meant."""
    if not str(text).strip():
        raise typer.BadParameter("an empty name means nothing: name a folder, or leave it out.")
    return Path(text)


PATH_OPTION: dict[str, Any] = {"parser": _path, "metavar": "PATH"}
"""Settings of an option that names a file or folder."""
