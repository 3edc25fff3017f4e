"""The work folder: results of finished stages on disk, so that a killed run goes on."""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.durable import writing_durably

FORMAT = 1
"""Part of every key: raised when a stage's results would change."""

Arrays = dict[str, NDArray[Any]]


class WorkFolder:
    """Arrays by what they were computed from.

    Parameters
    ----------
    folder : Path or None
        None: nothing is kept, except in memory.

    Examples
    --------
    >>> work = WorkFolder(None)
    >>> made = work.arrays("sums", {"of": [1, 2]}, lambda: {"sum": np.array(3)})
    >>> int(made["sum"])
    3
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._memory: dict[str, Arrays] = {}

    def arrays(self, stage: str, recipe: Mapping[str, Any], make: Callable[[], Arrays]) -> Arrays:
        """Return what a stage made of a recipe, from the folder if it is there.

        Parameters
        ----------
        stage : str
            Name of a sub-folder.
        recipe : mapping
            Everything that the result depends on, as JSON.
        make : callable
            Computes the arrays.

        Notes
        -----
        Files appear under their name when they are complete, so a killed run leaves none that is
        half written. The recipe is stored inside and compared. A damaged file is made again.
        """
        text = json.dumps({"format": FORMAT, **recipe}, sort_keys=True, ensure_ascii=False)
        name = f"{stage}/{hashlib.sha256(text.encode()).hexdigest()[:20]}.npz"
        if self._folder is None:
            if name not in self._memory:
                self._memory[name] = make()
            return self._memory[name]
        path = self._folder / name
        known = _read(path)
        if known is not None and str(known.pop("recipe", "")) == text:
            return known
        arrays = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        with writing_durably(path) as file:
            np.savez_compressed(file, recipe=np.array(text), **arrays)  # type: ignore[arg-type]
        return arrays


def _read(path: Path) -> Arrays | None:
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {key: stored[key] for key in stored.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
        return None
