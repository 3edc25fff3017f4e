"""A published synthetic table, read again: nothing of it is run."""

from __future__ import annotations

from pathlib import Path

from collegium.errors import InputError
from collegium.study.released_files import released_content
from collegium.synthesis.synthesizer import Synthesizer

MODEL = "model.json"


def published_table(folder: Path) -> Synthesizer:
    """Find the distribution that a study published, and read it.

    ``folder``: a study's folder, its release, or the file itself.
    Raises InputError if there is none, or it is not as it was released.
    """
    for place in (folder, folder / MODEL, folder / "release" / MODEL):
        if place.is_file():
            released_content(place)  # held against the digests beside it
            return Synthesizer.load(place)
    raise InputError(
        f"there is no synthetic table in {folder}: give the folder of a study that published one, or its "
        "release"
    )
