"""A fit of a generative model with ears on its parts: what teachers, student and noise are given.

Nothing of the model is replaced or guessed at: it runs as it is, and what is written down is what it uses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from collegium.attacks.noise_capture import Listener
from collegium.budgets import Budgets
from collegium.noise.grid import GRID
from collegium.noise.sources import SecureNoise, SeededNoise
from collegium.noise.sums import Integers, Noise, NoisySum

if TYPE_CHECKING:
    from collegium.generative.pate_gan_run import PATEGANRun

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Neighbouring:
    """Two tables that differ in one owner's rows, and how a fit is begun on either.

    ``begin``: from a table, its budgets and a source of noise to a run before its first step.
    ``tables``: both, each with its budgets. ``group``: of the owner who differs.
    """

    begin: Callable[[Any, Budgets, NoisySum], PATEGANRun]
    tables: tuple[tuple[Any, Budgets], tuple[Any, Budgets]]
    group: str


@dataclass(frozen=True, eq=False)
class Draw:
    """One draw of noise: what it was added to, what came out, and what had been charged until then.

    ``sums``, ``noisy``: in steps of the grid. ``sigma``: in votes. ``mu_squared`` (n_cohorts,).
    """

    sums: Integers
    noisy: Integers
    sigma: float
    mu_squared: Floats


class EarOnNoise(Listener):
    """Noise of another source, or forced outputs, with everything that it was added to.

    ``forced``: outputs of an earlier run, draw by draw; what is left over is drawn.
    """

    def __init__(self, source: NoisySum, forced: Sequence[Integers] = ()) -> None:
        super().__init__(source)
        self._forced = list(forced)
        self.draws: list[Draw] = []
        self.charged: Callable[[], Floats] = lambda: np.zeros(0)

    def noised(
        self, sensitive_sum: Integers, noise: Noise, *, query: int, purpose: str
    ) -> Integers:
        """Draw, or repeat what was forced, and remember all of it."""
        place = len(self.draws)
        if place < len(self._forced) and self._forced[place].shape == sensitive_sum.shape:
            noisy = self._forced[place]
        else:
            noisy = self._source.noised(sensitive_sum, noise, query=query, purpose=purpose)
        self.draws.append(
            Draw(sensitive_sum.copy(), noisy, noise.scale * GRID, np.array(self.charged()))
        )
        return noisy


@dataclass(eq=False)
class Transcript:
    """What was heard of one fit.

    ``run``: with its plan, account and columns. ``draws``: of noise.
    ``taught``: of each step, the rows that every teacher drew, and which teachers have rows. **Sensitive.**
    ``shown``: digests of all that the student learnt from.
    ``ended``: digest of student and generator at the end.
    ``persistent``: whether the teachers at the end are those of the beginning.
    """

    run: PATEGANRun
    draws: list[Draw]
    taught: list[tuple[NDArray[np.int64], NDArray[np.bool_]]] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    ended: str = ""
    persistent: bool = True


def record(
    neighbouring: Neighbouring,
    side: int,
    source: NoisySum | None = None,
    forced: Sequence[Integers] = (),
) -> Transcript:
    """Run a fit on one of the two tables, and listen.

    ``side``: 0 or 1. ``source``: of noise; default: the system's.
    ``forced``: outputs of another run.
    """
    frame, budgets = neighbouring.tables[side]
    ear = EarOnNoise(source or SecureNoise(), forced)
    run = neighbouring.begin(frame, budgets, ear)
    heard = Transcript(run, ear.draws)
    account: Any = run.account
    ear.charged = lambda: account.mu_squared
    teachers, student = run.teachers, run.student
    step, learn = teachers.step, student.learn

    def step_heard(rows: Any, has_rows: Any, generated: Any) -> None:
        heard.taught.append((rows.numpy().copy(), has_rows.numpy().copy()))
        step(rows, has_rows, generated)

    def learn_heard(generated: Any, shares: Any, steps: int) -> None:
        heard.shown.append(_digest(np.asarray(generated), np.asarray(shares), np.array([steps])))
        learn(generated, shares, steps)

    teachers.step, student.learn = step_heard, learn_heard  # type: ignore[method-assign, assignment]
    run.train()
    heard.persistent = run.teachers is teachers
    parts = [*run.student.network.parameters(), *run.generator.parameters()]
    heard.ended = _digest(*(part.detach().numpy() for part in parts))
    return heard


def replayed(
    neighbouring: Neighbouring, seed: int, first: int = 0
) -> tuple[Transcript, Transcript]:
    """Run a fit on one table, and again on the other with the first one's outputs.

    ``first``: which table comes first.
    """
    one = record(neighbouring, first, SeededNoise(seed))
    forced = [draw.noisy for draw in one.draws]
    return one, record(neighbouring, 1 - first, SeededNoise(seed), forced)


def _digest(*arrays: NDArray[Any]) -> str:
    hasher = hashlib.sha256()
    for array in arrays:
        hasher.update(str((array.dtype, array.shape)).encode())
        hasher.update(np.ascontiguousarray(array).tobytes())
    return hasher.hexdigest()
