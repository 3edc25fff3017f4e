"""The ledgers that this user's programs have used: places of files, and nothing else.

It is a help, no promise: it shows that people are in another ledger already, and that a ledger is gone.
Servers are not in it: an address may hold a password.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from filelock import FileLock, Timeout

from collegium.durable import write_durably

_PATIENCE_S = 5.0


def list_file() -> Path:
    """File with the list, in the user's state folder."""
    state = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification asks to ignore a relative path.
    home = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    return home / "collegium" / "ledgers.json"


def resolved(url: str) -> str:
    """Where a ledger's file is, whatever the working folder; a server's address as it is."""
    return url if "://" in url else str(Path(url).resolve())


def known_ledgers() -> dict[str, Path | None]:
    """List ledgers, as far as they are told, with the files of their keys (None: beside them)."""
    try:
        rows = json.loads(list_file().read_bytes())
        return {str(url): Path(key) if key else None for url, key in rows}
    except (OSError, ValueError, TypeError):
        return {}


def note(url: str, key: Path | None) -> None:
    """Add a ledger to the list."""
    if "://" in url or resolved(url) in known_ledgers():
        return
    # A list that cannot be written, or that another program does not let go of, is no reason to stop.
    with contextlib.suppress(OSError, Timeout):
        list_file().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with FileLock(list_file().with_suffix(".lock"), timeout=_PATIENCE_S, mode=0o600):
            rows = known_ledgers()  # others may have added theirs meanwhile
            rows[resolved(url)] = key and key.resolve()
            _write(rows)


def _write(rows: dict[str, Path | None]) -> None:
    written = json.dumps([[one, file and str(file)] for one, file in rows.items()])
    write_durably(list_file(), written.encode(), private=True)
