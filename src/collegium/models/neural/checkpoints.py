"""Where teachers stand in training, kept on disk. Sensitive: a folder like this belongs in a vault."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from collegium.durable import read_sealed, write_sealed
from collegium.errors import InputError

_LOGGER = logging.getLogger(__name__)
State = dict[str, Any]
SECONDS = 30.0
"""How long a teacher trains before it is written (again), at the end of an epoch."""


class Checkpoints:
    """A folder with one file per teacher that is being trained.

    A file is complete or not there (:mod:`collegium.durable`), and carries a digest: training never goes
    on from a damaged one. Only its owner may read it. A file's name is a digest of all that its content
    follows from, so that nothing is ever resumed with other records, another seed or other settings.

    ``folder``: made, readable by its owner only, if it is not there.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._last: dict[str, float] = {}
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"the checkpoint folder {str(folder)!r} cannot be made: {error.strerror}; name another"
            ) from None

    def begin(self, key: str) -> State | None:
        """Start a teacher's clock, and return where it stood, if that is known."""
        self._last[key] = time.monotonic()
        return self.load(key)

    def due(self, key: str) -> bool:
        """Say whether a teacher is to be written."""
        return time.monotonic() - self._last[key] >= SECONDS

    def load(self, key: str) -> State | None:
        """Read where a teacher stood; None if nothing usable is there."""
        path = self._path(key)
        if not path.exists():
            return None
        try:
            content = read_sealed(path)
            if content is not None:
                state: State = torch.load(
                    io.BytesIO(content), map_location="cpu", weights_only=True
                )
                return state
            trouble = "damaged, or written by another version"
        except Exception as error:
            trouble = type(error).__name__
        _LOGGER.warning("a checkpoint cannot be read (%s); its teacher starts again", trouble)
        return None

    def save(self, key: str, state: State) -> None:
        """Write where a teacher stands, or leave what was there."""
        content = io.BytesIO()
        torch.save(state, content)
        write_sealed(self._path(key), content.getbuffer(), private=True)
        self._last[key] = time.monotonic()

    def discard(self, keys: Iterable[str]) -> None:
        """Remove teachers that have been handed over."""
        for key in keys:
            self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.checkpoint"


def digest(*parts: bytes | str) -> str:
    """Name what a teacher follows from: its parts, each with its length, hashed.

    Examples
    --------
    >>> digest("ab", "c") == digest("a", "bc")
    False
    """
    hashed = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        hashed.update(len(data).to_bytes(8, "big"))
        hashed.update(data)
    return hashed.hexdigest()
