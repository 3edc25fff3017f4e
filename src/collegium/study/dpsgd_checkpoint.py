"""What a study remembers of its training, on disk: which steps are charged, and where it stands."""

from __future__ import annotations

import contextlib
import errno
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.dpsgd.memory import DPSGDMemory
from collegium.dpsgd.optimiser import State
from collegium.errors import StudyMismatchError
from collegium.study.folder import StudyFolder
from collegium.study.journal import FileJournal
from collegium.study.manifest_check import ACCOUNTS, DESCENT_ENDED, STATE
from collegium.study.votes_checkpoint import interruptible

_STRIDES = 50
_FIRST_ROOM = 2**20
_TAKEN = "taken"


class FolderDPSGDMemory(DPSGDMemory):
    """Memory of DP-SGD in a study's folder; one that was cut off goes on from it.

    Steps are charged in the journal, durably, before the first of them is taken, and the state (released
    values alone) is kept after the last, in a file that the journal vouches for: so a state that is older
    than the journal, or another run's, is refused before anything is drawn. What a crash took between the
    two is lost.

    ``folder``: the study's. Nothing is written before it is open.
    ``steps``: of the whole training: a crash takes a fiftieth of them, at most.
    ``holds_same_study``: whether it holds this very study, so that what is slow to compute may be kept in it.
    """

    def __init__(self, folder: StudyFolder, steps: int, holds_same_study: bool = True) -> None:
        self._study = folder
        self.folder = folder.vault if holds_same_study else None
        self.stride = max(1, steps // _STRIDES)
        self._from = self._taken = 0
        self._room = _FIRST_ROOM

    @property
    def _journal(self) -> FileJournal:
        assert self._study.journal is not None, "a folder is claimed before steps are taken"
        return self._study.journal

    def charged(self) -> int:
        """Recall how many steps were charged."""
        return self._journal.steps

    def charge(self, steps: int) -> None:
        """Charge steps up to this number, with room on the disk for what they bring."""
        self._from = self.charged()
        self._journal.charge_steps(steps, self._room)

    def state(self) -> State | None:
        """Recall where the training stood after the last steps that were kept."""
        path = self._study.path / STATE
        if not path.exists():
            return None
        with _reading(path), np.load(path, allow_pickle=False) as kept:
            self._taken = int(kept[_TAKEN])
            values = {one.name: kept[one.name] for one in fields(State)}
            return State(**{**values, "step": int(values["step"])})

    def keep(self, state: State) -> None:
        """Keep where it stands; nothing that is not released is in it."""
        taken = self._taken + state.step - self._from
        values = {one.name: getattr(state, one.name) for one in fields(state)}
        self._write(STATE, {_TAKEN: np.int64(taken), **values})
        self._taken = taken

    def _write(self, name: str, values: Mapping[str, Any]) -> None:
        """Write arrays, in the room that was set aside if there is no other."""
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **values)
        content = buffer.getvalue()
        try:
            self._study.write_bytes(self._study.path / name, content)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            self._journal.give_room_back()
            self._study.write_bytes(self._study.path / name, content)
        self._room = max(self._room, 2 * len(content))

    def sensitive_accounts(self) -> dict[str, NDArray[Any]] | None:
        """Recall what owners have left in DP-SGD with a filter. **Sensitive.**"""
        path = self._study.path / ACCOUNTS
        if not path.exists():
            return None
        with _reading(path), np.load(path, allow_pickle=False) as kept:
            return {name: kept[name] for name in kept.files}

    def keep_accounts(self, sensitive_accounts: dict[str, NDArray[Any]]) -> None:
        """Keep that, in the vault."""
        self._write(ACCOUNTS, sensitive_accounts)

    @contextlib.contextmanager
    def descending(self) -> Iterator[Callable[[], bool]]:
        """Lend what tells, between two steps, whether to stop: Ctrl-C was pressed."""
        with interruptible() as should_stop:
            try:
                yield should_stop
            finally:
                self._journal.give_room_back()

    def end(self) -> None:
        """Keep that all steps are taken, or lost; once."""
        if (self._study.path / DESCENT_ENDED).exists():
            return
        done = {"steps": self.charged(), "lost": self.lost}
        self._study.write_json(self._study.path / DESCENT_ENDED, done)

    @property
    def lost(self) -> int:
        """How many steps were charged, and are in no model."""
        return self.charged() - self._taken


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, OSError, EOFError, KeyError, TypeError):
        raise StudyMismatchError(
            f"{path} is not what this study wrote there: no step was taken; restore the whole folder "
            "from one backup"
        ) from None
