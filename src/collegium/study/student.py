"""The last stage of a study: a model, made of what was released, is tried, and only then published."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from collegium.data.tables import take_rows
from collegium.distillation.rehearsal import telling_rows
from collegium.errors import InputError
from collegium.json_files import read_json
from collegium.models.trial import one_line_about
from collegium.runs.observer import Observer
from collegium.study.config import StudyConfig
from collegium.study.folder import StudyFolder
from collegium.study.notes import KeptNotes
from collegium.study.student_file import (
    STUDENT_FILE,
    read_student,
    student_bytes,
    types_beyond,
)
from collegium.study.study_data import StudyData

_KNOWN = {"recipe": (str, type(None)), "notes": [str]}
_STATEMENT = {"config": dict}


class StudentStage:
    """Trains and publishes the student of a study; or, without one, what DP-SGD trained.

    ``notes``: are told what the user should know, and how it gets on.
    ``make``: trains it on what was released; it takes records as they are.
    ``without``: what is published then, where it cannot be written.
    """

    def __init__(
        self,
        config: StudyConfig,
        folder: StudyFolder,
        data: StudyData,
        notes: KeptNotes,
        make: Callable[[], Any],
        without: str = "labels are published, and no student",
    ) -> None:
        self._config = config
        self._folder = folder
        self._data = data
        self._notes = notes
        self._make = make
        self._without = without

    def publish(self) -> tuple[Any, tuple[str, ...]]:
        """Train, try and publish the student, unless that was done before.

        Returns ``student``: as published: it takes records as they are.
        Returns ``notes``: what the user should know, also if it was trained in an earlier run.
        Raises InputError if it cannot be trained, or cannot predict; what is published stays as it
            is.
        """
        path, told = self._folder.release / STUDENT_FILE, self._folder.vault / "student.json"
        settings = self._config.public().get("student")
        recipe = json.dumps(settings, sort_keys=True)
        known = read_json(told, _KNOWN, "delete it and run again") if told.exists() else {}
        if path.exists() and known.get("recipe") == recipe:
            self._notes.skipped("student")
            student = read_student(path, known.get("types", ())).student
            return student, tuple(known["notes"])
        self._notes.stage("student")
        with self._notes.apart() as notes:
            student = self._make()
            content, types = self._written(student)
        # Cut off between these writes, the next run must not take the new model for the one before.
        self._folder.write_json(told, {"recipe": None, "notes": []})
        if content is not None:
            self._folder.write_bytes(path, content)
            student = read_student(path, types).student  # what is judged is what is published
        elif path.exists():
            self._folder.remove(path)
        self._record_settings()
        self._folder.write_json(told, {"recipe": recipe, "notes": notes, "types": types})
        return student, tuple(notes)

    def _written(self, student: Any) -> tuple[bytes | None, list[str]]:
        """Write a student into memory; what its users must know about the file is noted.

        Returns: its content, or None if there can be no file of it; types that its readers have to name.
        """
        public = self._data.X_public
        what = "student.model" if self._config.has_student else "the model"
        with one_line_about(what, "asked about public records"):
            student.predict(take_rows(public, telling_rows(public)))
        try:
            content = student_bytes(student, self._data.inputs)
        except InputError as error:
            self._notes.note(f"{error}: {self._without}")
            return None, []
        types = types_beyond(content)
        if types:
            self._notes.note(
                f"what is published holds {', '.join(types)}: whoever loads it must have that installed, "
                "and name it (--trust)"
            )
        return content, types

    def settings_of_release(self) -> dict[str, dict[str, Any]]:
        """All settings; of the student those of the one that is published, until another one is."""
        settings = self._config.published()
        statement = self._folder.release / "privacy.json"
        if statement.exists() and (self._folder.release / STUDENT_FILE).exists():
            before = read_json(statement, _STATEMENT)["config"].get("student")
            return _with_student(settings, before)
        return settings

    def _record_settings(self) -> None:
        """Write into the release which student this is."""
        statement = self._folder.release / "privacy.json"
        content = read_json(statement, _STATEMENT)
        content["config"] = _with_student(
            content["config"], self._config.published().get("student")
        )
        self._folder.write_json(statement, content)


def _with_student(settings: dict[str, Any], student: dict[str, Any] | None) -> dict[str, Any]:
    """Put a student's settings in their place; None: there is none."""
    changed = {**settings, "student": student}
    return changed if student is not None else {k: v for k, v in changed.items() if k != "student"}


def tell_if_unwritable(model: Any, data: StudyData, observer: Observer, consequence: str) -> None:
    """Say, before anything is spent, that a model like this cannot be published."""
    try:
        student_bytes(model, data.inputs)
    except InputError as error:
        observer.note(f"{error}: {consequence}")
