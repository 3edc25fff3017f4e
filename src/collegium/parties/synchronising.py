"""Folders of parties that are on different machines, made alike through one that all of them reach.

Nothing here is trusted: what counts in a file is what its party signed. A file is brought once, and never
replaced; files of other names stay where they are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from collegium.durable import write_durably
from collegium.errors import InputError

MOST_BYTES = 32 * 2**20
"""Of all files that are brought at once, if there are several."""
_NAME = re.compile(r"([a-z0-9][a-z0-9-]{0,80}/){0,2}[a-z0-9][a-z0-9-]{0,40}\.json")


def names_in(folder: Path) -> list[str]:
    """List the files of parties in a folder: of releases, and of their sums."""
    found = (path.relative_to(folder).as_posix() for path in folder.glob("**/*.json"))
    return sorted(
        name for name in found if _NAME.fullmatch(name) and not (folder / name).is_symlink()
    )


def lacking(folder: Path, known: Collection[str]) -> dict[str, bytes]:
    """Read the files that another folder does not have yet, the first of them if they are many.

    ``known``: names of those that it has.
    """
    found: dict[str, bytes] = {}
    room = MOST_BYTES
    for name in names_in(folder):
        if name in known:
            continue
        content = (folder / name).read_bytes()
        room -= len(content)
        if found and room < 0:
            break
        found[name] = content
    return found


def taken(folder: Path, files: Mapping[str, bytes]) -> int:
    """Write the files that are not there, and tell how many that were.

    Raises InputError for a name that leaves the folder, and for another version of a file that is there;
    nothing is written then.
    """
    new = {}
    for name, content in files.items():
        if not _NAME.fullmatch(name):
            raise InputError(f"{name!r} cannot be the name of a file of parties: nothing was taken")
        path = folder / name
        if not path.exists():
            new[path] = content
        elif path.read_bytes() != content:
            raise InputError(
                f"{name} is there already with another content, and no file is replaced: look who wrote it"
            )
    for path, content in new.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, content)
    return len(new)
