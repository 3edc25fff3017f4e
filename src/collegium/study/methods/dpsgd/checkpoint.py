"""What a study remembers of its training, on disk: which steps are charged, and where it stands."""

from __future__ import annotations

import contextlib
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
from collegium.study.checkpoint import ChargedSteps, drawing
from collegium.study.folder import StudyFolder
from collegium.study.manifest_check import ACCOUNTS, STATE, STEPS_ENDED
from collegium.study.parties import ALONE, Alone

_STRIDES = 50
_TAKEN = "taken"


class FolderDPSGDMemory(DPSGDMemory):
    """Memory of DP-SGD in a study's folder; one that was cut off goes on from it.

    Steps are charged in the journal, durably, before the first of them is taken, and the state (released
    values alone) is kept after the last, in a file that the journal vouches for: so a state that is older
    than the journal, or another run's, is refused before anything is drawn. What a crash took between the
    two is lost; with other parties, steps are kept one by one, and one that was cut off is taken up again.

    ``folder``: the study's. Nothing is written before it is open.
    ``steps``: of the whole training: a crash takes a fiftieth of them, at most.
    ``holds_same_study``: whether it holds this very study, so that what is slow to compute may be kept in it.
    ``parties``: that take the steps together.
    """

    def __init__(
        self,
        folder: StudyFolder,
        steps: int,
        holds_same_study: bool = True,
        parties: Alone = ALONE,
    ) -> None:
        self.takes_up = parties.takes_up
        self._study = folder
        self.folder = folder.vault if holds_same_study else None
        self.stride = 1 if self.takes_up else max(1, steps // _STRIDES)
        self._from = self._taken = 0
        self._steps = ChargedSteps(folder)

    def charged(self) -> int:
        """Recall how many steps were charged."""
        return self._steps.charged

    def charge(self, steps: int) -> None:
        """Charge steps up to this number, with room on the disk for what they bring."""
        self._from = steps - self.stride if self.takes_up else self.charged()
        if self.charged() < steps:
            self._steps.charge(steps)

    def is_all_taken(self, steps: int) -> bool:
        """Tell whether so many steps are charged, and none is left to be taken up."""
        if self.charged() < steps:
            return False
        state = self.state() if self.takes_up else None
        return not self.takes_up or (state is not None and state.step >= steps)

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

    def lose(self) -> None:
        """Count it as lost."""
        self._from += 1

    def _write(self, name: str, values: Mapping[str, Any]) -> None:
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **values)
        self._steps.keep(name, buffer.getvalue())

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
        with drawing(self._study, at_once=self.takes_up) as should_stop:
            yield should_stop

    def end(self) -> None:
        """Keep that all steps are taken, or lost; once."""
        if (self._study.path / STEPS_ENDED).exists():
            return
        done = {"steps": self.charged(), "lost": self.lost}
        self._study.write_json(self._study.path / STEPS_ENDED, done)

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
