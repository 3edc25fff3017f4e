"""The student's stage of a study: trained on what was released, tried, and only then published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from collegium.data.tables import take_rows
from collegium.errors import InputError, NothingReleasedError
from collegium.json_files import read_json
from collegium.models.trial import one_line_about
from collegium.pate.pipeline import PateRun, Released
from collegium.pate.rehearsal import telling_rows
from collegium.study.config import StudyConfig
from collegium.study.folder import StudyFolder
from collegium.study.frozen import without_defaults
from collegium.study.notes import KeptNotes
from collegium.study.student_file import (
    FORMER_STUDENT_FILE,
    STUDENT_FILE,
    read_student,
    student_bytes,
    types_beyond,
)
from collegium.study.study_data import StudyData

_KNOWN = ({"recipe": (str, type(None)), "notes": [str]}, str)  # or as it once was
_STATEMENT = {"config": {"student": dict}}


class StudentStage:
    """Trains and publishes the student of a study.

    ``notes``: are told what the user should know.
    """

    def __init__(
        self, config: StudyConfig, folder: StudyFolder, run: PateRun, notes: KeptNotes
    ) -> None:
        self._config = config
        self._folder = folder
        self._run = run
        self._notes = notes

    def publish(self, released: Released) -> tuple[Any, tuple[str, ...]]:
        """Train, try and publish the student, unless that was done before.

        ``released``: what it learns from.
        Returns ``student``: as published: it takes records as they are.
        Returns ``notes``: what the user should know, also if it was trained in an earlier run.
        Raises InputError if it cannot be trained, or cannot predict; what is published stays as it
            is.
        """
        path, told = self._folder.release / STUDENT_FILE, self._folder.vault / "student.json"
        recipe = json.dumps(without_defaults(self._config.public())["student"], sort_keys=True)
        known = read_json(told, _KNOWN, "delete it and run again") if told.exists() else {}
        if not isinstance(known, dict):  # as it once was, without notes
            known = {"recipe": known, "notes": []}
        if path.exists() and known.get("recipe") == recipe:
            self._run.observer.skipped("student")
            student = read_student(path, known.get("types", ())).student
            return student, tuple(known["notes"])
        self._run.observer.stage("student")
        with self._notes.apart() as notes:
            student = self._trained(released)
            content, types = self._written(student)
        # Cut off between these writes, the next run must not take the new model for the former one.
        self._folder.write_json(told, {"recipe": None, "notes": []})
        gone = [self._folder.release / FORMER_STUDENT_FILE, *([path] if content is None else [])]
        for former in filter(Path.exists, gone):
            self._folder.remove(former)
        if content is not None:
            self._folder.write_bytes(path, content)
            student = read_student(path, types).student  # what is judged is what is published
        self._record_settings()
        self._folder.write_json(told, {"recipe": recipe, "notes": notes, "types": types})
        return student, tuple(notes)

    def _written(self, student: Any) -> tuple[bytes | None, list[str]]:
        """Write a student into memory; what its users must know about the file is noted.

        Returns: its content, or None if there can be no file of it; types that its readers have to name.
        """
        data = self._run.records
        assert isinstance(data, StudyData)
        public = data.X_public
        with one_line_about("student.model", "asked about public records"):
            student.predict(take_rows(public, telling_rows(public)))
        try:
            content = student_bytes(student, data.inputs)
        except InputError as error:
            self._notes.note(f"{error}: labels are published, and no student")
            return None, []
        types = types_beyond(content)
        if types:
            self._notes.note(
                f"the published student holds {', '.join(types)}: whoever loads it must have that installed, "
                "and name it (--trust)"
            )
        return content, types

    def _trained(self, released: Released) -> Any:
        try:
            with one_line_about("student.model", "trained on the released labels"):
                return self._run.student_view.published(self._run.teach(released))
        except NothingReleasedError as error:
            where = self._folder.release / "privacy.json"
            if not released.privacy.may_publish_spending:
                where = self._folder.vault / "sensitive-spending.json"
            raise NothingReleasedError(f"{error} (what was spent: {where})") from None

    def published_settings(self) -> dict[str, Any] | None:
        """Settings of the student in the release, as written there; None where there is none."""
        statement = self._folder.release / "privacy.json"
        names = (STUDENT_FILE, FORMER_STUDENT_FILE)
        if not any((self._folder.release / name).exists() for name in names):
            return None
        if not statement.exists():
            return None
        settings: dict[str, Any] = read_json(statement, _STATEMENT)["config"]["student"]
        return settings

    def _record_settings(self) -> None:
        """Write into the release which student this is."""
        statement = self._folder.release / "privacy.json"
        content = read_json(statement, _STATEMENT)
        content["config"]["student"] = self._config.published()["student"]
        self._folder.write_json(statement, content)
