"""The key of a vault, and what is sealed with it: nothing that was not written under it is unpickled.

Each vault has a key of its own, for its owner's eyes only. Lines of the journal are chained with it, and
teachers are stored with an HMAC of their place and content, which is checked before they are read.
"""

from __future__ import annotations

import io
import os
import secrets
from pathlib import Path
from typing import Any

import joblib

from collegium.durable import read_sealed, write_durably, write_sealed
from collegium.errors import InputError, StudyMismatchError

KEY_FILE = "key"
KEY_BYTES = 32


def make_key(vault: Path) -> None:
    """Make a key, and keep it in the vault (mode 0600)."""
    write_durably(vault / KEY_FILE, secrets.token_bytes(KEY_BYTES), private=True)


def read_key(vault: Path) -> bytes:
    """Read a vault's key. Raises StudyMismatchError if others could have read it, or it is damaged."""
    path = vault / KEY_FILE
    if os.name != "nt" and path.stat().st_mode & 0o077:
        raise StudyMismatchError(
            f"{path} may be read by others, so it proves nothing: if nobody has read it, `chmod 600` it"
        )
    key = path.read_bytes()
    if len(key) != KEY_BYTES:
        raise StudyMismatchError(
            f"{path} is damaged: nothing was changed; restore it from a backup"
        )
    return key


def store_model(vault: Path, path: Path, model: Any) -> None:
    """Write a model into the vault, sealed."""
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    write_sealed(
        path, buffer.getbuffer(), private=True, key=read_key(vault), about=_about(vault, path)
    )


def load_model(vault: Path, path: Path) -> Any:
    """Read back what :func:`store_model` wrote; anything else is refused, and not unpickled."""
    try:
        content = sealed_content(vault, path)
    except OSError:
        content = None
    if content is None:
        raise InputError(
            f"{path} is not what this study wrote there, and was not read: delete it and run again"
        )
    try:
        return joblib.load(io.BytesIO(content))
    except Exception as error:  # unpickling may raise anything
        raise InputError(
            f"{path} cannot be read ({type(error).__name__}): delete it and run again"
        ) from None


def sealed_content(vault: Path, path: Path) -> bytes | None:
    """Read the bytes that :func:`store_model` sealed, without unpickling; None if it is not that."""
    return read_sealed(path, key=read_key(vault), about=_about(vault, path))


def _about(vault: Path, path: Path) -> str:
    return path.relative_to(vault).as_posix()
