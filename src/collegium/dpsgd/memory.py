"""What DP-SGD remembers: nothing beyond the process, or (in a study) what a crash must not lose."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from collegium.dpsgd.optimiser import State


class DPSGDMemory:
    """Memory that lives and dies with the process. A study's overrides every method.

    Attributes
    ----------
    folder : Path or None
        Where features that are slow to compute may be kept.
    stride : int
        How many steps are charged, and then kept, together: what a crash loses at most.
    takes_up : bool
        Whether a step that was charged, and is not kept, is taken up again, as parties do that sum together:
        what they have posted for it stands. Otherwise it is lost.
    """

    folder: Path | None = None
    takes_up: bool = False
    stride: int = 1_000_000_000

    def charged(self) -> int:
        """Recall how many steps were charged: noise may have been drawn for each of them."""
        return 0

    def charge(self, steps: int) -> None:
        """Keep durably that steps up to this number are charged, before the first of them is taken."""

    def state(self) -> State | None:
        """Recall where the training stood after the last steps that were kept."""
        return None

    def keep(self, state: State) -> None:
        """Keep where it stands."""

    def lose(self) -> None:
        """Learn that the step which was charged last is in no model."""

    def sensitive_accounts(self) -> dict[str, NDArray[Any]] | None:
        """Recall what owners have left in DP-SGD with a filter, as it was kept last."""
        return None

    def keep_accounts(self, sensitive_accounts: dict[str, NDArray[Any]]) -> None:
        """Keep that, in the vault, before the state to which it belongs."""

    @contextlib.contextmanager
    def descending(self) -> Iterator[Callable[[], bool]]:
        """Lend what tells, between two steps, whether to stop for now."""
        yield lambda: False
