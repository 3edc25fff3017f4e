"""What a run of PATE remembers: nothing beyond the process, or (in a study) everything on disk."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.statement import PrivacyStatement
from collegium.pate.teachers.ensemble import Teacher, TeacherEnsemble
from collegium.pate.voting.labelling import Journal, Labels
from collegium.pate.voting.vote_table import VoteTable
from collegium.workers.engines import Workers

Ensemble = TypeVar("Ensemble", bound=TeacherEnsemble)


class TrainedTeachers:
    """Teachers that live and die with the process.

    Attributes
    ----------
    kept : list
        What stands for each teacher, once all were trained. **Sensitive.**
    """

    def __init__(self, n_teachers: int) -> None:
        self.n_teachers = n_teachers
        self.kept: list[Any] = []

    def missing(self) -> list[int]:
        """Numbers of the teachers that are to be trained."""
        return list(range(self.n_teachers))

    def ensemble(
        self, kind: type[Ensemble], teacher: Any, seed: int, workers: Workers, **settings: Any
    ) -> Ensemble:
        """Make the ensemble that trains them, and asks them."""
        return kind(teacher, seed, workers=workers, **settings)

    def take(self, trained: list[Teacher]) -> None:
        """Remember those that were trained."""
        self.kept = trained


class Memory:
    """Memory of a run that lives and dies with the process. A study's overrides every method.

    Attributes
    ----------
    folder : Path or None
        Where features that are slow to compute, and votes of streamed records, may be kept.
    """

    folder: Path | None = None

    def votes(self, n_public: int, n_teachers: int, n_classes: int) -> VoteTable | None:
        """Recall the votes of all teachers, if all have voted."""
        return None

    def keep_votes(self, table: NDArray[np.int32], n_classes: int) -> None:
        """Keep the votes. **Sensitive.**"""

    def vouch(self, path: Path, digest: str) -> None:
        """Remember the SHA-256 digest of a file in :attr:`folder` that is about to take its name."""

    def keep_assignment(self, owner_teachers: NDArray[np.int32]) -> None:
        """Keep who is taught by whom. **Sensitive.**"""

    def teachers(self, n_teachers: int) -> TrainedTeachers:
        """Recall teachers that were trained already, and take those that are trained now."""
        return TrainedTeachers(n_teachers)

    def order(self, n_public: int) -> NDArray[np.intp] | None:
        """Recall the order of questions, if it was kept."""
        return None

    def keep_order(self, order: NDArray[np.intp]) -> None:
        """Keep the order of questions."""

    def journal(self, n_values: int) -> Journal | None:
        """Open the journal of the questions; ``n_values`` noisy values come with each outcome.

        Raises
        ------
        StudyMismatchError
            If it does not belong to what is remembered besides.
        """
        return None

    def ended(self) -> tuple[int, str] | None:
        """Recall how many questions were asked, and why voting ended, if it has."""
        return None

    @contextlib.contextmanager
    def asking(self) -> Iterator[Callable[[], bool]]:
        """Lend what tells, between two questions, whether to stop."""
        yield lambda: False

    def end(self, labels: Labels) -> None:
        """Keep that voting has ended, or say that it was interrupted."""

    def keep_spending(self, privacy: PrivacyStatement) -> PrivacyStatement:
        """Keep what was spent where that is sensitive; return what may be shown."""
        return privacy.without_spending()
