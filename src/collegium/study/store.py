"""Files of a study: teachers, students and votes, read back with one clear line if they are damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from collegium.errors import InputError
from collegium.study.folder import StudyFolder
from collegium.teachers.ensemble import Teacher


def teacher_path(folder: Path, number: int) -> Path:
    """Where a teacher lies."""
    return folder / f"{number:06d}.joblib"


def store_teacher(folder: StudyFolder, teachers: Path, number: int, teacher: Teacher) -> Path:
    """Write a teacher durably (in the worker that trained it), and return where."""
    path = teacher_path(teachers, number)
    folder.write_model(path, teacher)
    return path


def fetch_teacher(kept: Any) -> Teacher:
    """Read a teacher back."""
    teacher = load_model(kept)
    assert isinstance(teacher, Teacher)
    return teacher


def load_model(path: Path) -> Any:
    """Read a model; a damaged file is named in one line."""
    try:
        return joblib.load(path)
    except Exception as error:  # unpickling may raise anything
        raise InputError(
            f"{path} cannot be read ({type(error).__name__}): delete it and run again"
        ) from None


def load_array(path: Path) -> NDArray[Any]:
    """Read an array; a damaged file is named in one line."""
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}): delete it and run again") from None
