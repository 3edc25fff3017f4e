"""Models of a study on disk, and the ensemble that puts teachers there."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from collegium.durable import private_folder
from collegium.models.catalogue import keep_checkpoints
from collegium.pate.memory import Ensemble, TrainedTeachers
from collegium.pate.teachers.ensemble import Teacher
from collegium.study.folder import StudyFolder
from collegium.study.sealing import load_model, store_model
from collegium.workers.engines import Workers

TEACHERS = "teachers"


class StoredTeachers(TrainedTeachers):
    """Teachers of a study, each in a file of its vault: one that is there is not trained again.

    ``n_teachers``: how many there will be.
    ``kept``: where each teacher lies.
    """

    def __init__(self, folder: StudyFolder, n_teachers: int) -> None:
        super().__init__(n_teachers)
        self._folder = folder
        private_folder(folder.vault / TEACHERS)
        self.kept = [teacher_path(folder.vault, number) for number in range(n_teachers)]

    def missing(self) -> list[int]:
        """Numbers of the teachers that are not there."""
        return [number for number, path in enumerate(self.kept) if not path.exists()]

    def ensemble(
        self, kind: type[Ensemble], teacher: Any, seed: int, workers: Workers, **settings: Any
    ) -> Ensemble:
        """Make the ensemble that trains teachers into their files, and asks them from there.

        ``teacher``: the model of every teacher. Where workers see the study's folder, one that can
            be cut off in training leaves checkpoints in the vault; elsewhere these would lie on the
            workers' own disks.
        ``seed``: public randomness of training.
        ``settings``: of the ensemble: ``n_classes``, ``progress``.
        """
        if workers.share_files:
            teacher = keep_checkpoints(teacher, self._folder.vault / "checkpoints")
        vault = self._folder.vault
        keep, fetch = partial(store_teacher, vault), partial(fetch_teacher, vault)
        return kind(teacher, seed, keep=keep, fetch=fetch, workers=workers, **settings)

    def take(self, trained: list[Any]) -> None:
        """Do nothing: each was written when it was trained."""


def teacher_path(vault: Path, number: int) -> Path:
    """Where a teacher lies in a vault."""
    return vault / TEACHERS / f"{number:06d}.joblib"


def store_teacher(vault: Path, number: int, teacher: Teacher) -> Path:
    """Write a teacher durably and sealed (in the worker that trained it), and return where."""
    path = teacher_path(vault, number)
    store_model(vault, path, teacher)
    return path


def fetch_teacher(vault: Path, kept: Path) -> Teacher:
    """Read a teacher back, if this study wrote it."""
    teacher = load_model(vault, kept)
    assert isinstance(teacher, Teacher)
    return teacher
