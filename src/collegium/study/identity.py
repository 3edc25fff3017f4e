"""What every study begins with: its files are read and stay as they are, and its folder is claimed for it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from collegium.errors import InputError
from collegium.parameters import settings_of
from collegium.study.config import StudyConfig
from collegium.study.folder import StudyFolder
from collegium.study.frozen import FREE_INPUTS, Settings, free_keys, frozen_settings
from collegium.study.sections import SECTIONS


class Fingerprinted(Protocol):
    """What records of a study were read from."""

    @property
    def fingerprints(self) -> dict[str, str]: ...  # noqa: D102


class SourceFiles:
    """The files that a study reads, as they were when this was made: digests are of other rows than were read
    where one changes meanwhile.

    ``config``: of the study.
    """

    def __init__(self, config: StudyConfig) -> None:
        named = {
            f"{section}.{name}"
            for section, keys in config.public().items()
            for name in keys
            if settings_of(SECTIONS[section])[name].kind == "path"
        }
        paths = [config.path(key) for key in sorted(named)]
        self._before = {path: _state_of(path) for path in paths if path is not None}

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


def claim(folder: StudyFolder, config: StudyConfig, data: Fingerprinted) -> None:
    """Begin a study in a folder, or check that it holds this very study."""
    folder.claim(*_identity(config, data), *_free(config, folder))


def holds_same_study(folder: StudyFolder, config: StudyConfig, data: Fingerprinted) -> bool:
    """Tell whether a folder holds this very study, begun before; nothing is written.

    Raises StudyMismatchError if it holds another: before its ledger, in which that one has used what people
        had, is asked what is left of it.
    """
    told = (*_identity(config, data), *_free(config, folder))
    if folder.holds(*told):
        return True
    folder.refuse_another(*told)
    return False


def _identity(config: StudyConfig, data: Fingerprinted) -> tuple[Settings, dict[str, str]]:
    """Settings and inputs that make it this study and no other."""
    return frozen_settings(config, config.aggregator()), data.fingerprints


def _free(config: StudyConfig, folder: StudyFolder) -> tuple[frozenset[str], frozenset[str]]:
    """Settings and inputs that may have changed since it began."""
    return free_keys(config, folder.voting_has_ended()), FREE_INPUTS
