"""What every release begins with: files that stay as they were read, and a folder that is claimed for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from collegium.errors import InputError
from collegium.study.config import StudyConfig
from collegium.study.folder import StudyFolder
from collegium.study.frozen import FREE_INPUTS, free_keys


class SourceFiles:
    """The files that a release is made of, as they were when this was made: digests are of other rows than
    were read where one changes meanwhile.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._before = {path: _state_of(path) for path in paths}

    @classmethod
    def of(cls, config: StudyConfig) -> SourceFiles:
        """Take those that a study's settings name."""
        return cls(config.files().values())

    def require_unchanged(self) -> None:
        """Refuse to go on if one of them was changed since."""
        for path, before in self._before.items():
            if _state_of(path) != before:
                raise InputError(
                    f"{path} was changed while it was read: nothing was asked; run it again"
                )


def _state_of(path: Path) -> list[tuple[str, int, int]]:
    """Tell which files a table is in, how large, and of when: none where it is not there."""
    files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
    states = ((str(one), one.stat()) for one in files if one.exists())
    return [(name, one.st_size, one.st_mtime_ns) for name, one in states]


@dataclass(frozen=True)
class Identity:
    """What makes it this release and no other.

    ``settings``: everything that may change a result.
    ``inputs``: fingerprints of what was read.
    ``free_keys``: settings that may have changed since it began; told whether all was asked that will be.
    ``free_inputs``: likewise.
    """

    settings: dict[str, Any]
    inputs: dict[str, str]
    free_keys: Callable[[bool], Collection[str]] = lambda ended: ()
    free_inputs: Collection[str] = ()

    def claim(self, folder: StudyFolder) -> None:
        """Begin it in a folder, or check that the folder holds this very release."""
        folder.claim(*self._told(folder))

    def is_that_of(self, folder: StudyFolder) -> bool:
        """Tell whether a folder holds this very release, begun before; nothing is written.

        Raises StudyMismatchError if it holds another: before its ledger, in which that one has used what
            people had, is asked what is left of it.
        """
        if folder.holds(*self._told(folder)):
            return True
        folder.refuse_another(*self._told(folder))
        return False

    def _told(
        self, folder: StudyFolder
    ) -> tuple[dict[str, Any], dict[str, str], Collection[str], Collection[str]]:
        free = self.free_keys(folder.voting_has_ended())
        return self.settings, self.inputs, free, self.free_inputs


def identity_of(config: StudyConfig, fingerprints: dict[str, str]) -> Identity:
    """Tell what makes it this study and no other; ``fingerprints``: of what was read."""
    settings, free = config.kind.frozen(config), partial(free_keys, config)
    return Identity(settings, fingerprints, free, FREE_INPUTS)
