"""The student's stage of a study: rehearsed, trained on what was released, tried, and only then published."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from collegium.data.tables import take_rows
from collegium.errors import InputError, NothingReleasedError
from collegium.models.trial import one_line_about
from collegium.pate.rehearsal import made_up_lesson, telling_rows
from collegium.pate.students.share_matching import match_shares
from collegium.pate.students.supervised import fit_released
from collegium.pate.students.targets import released_targets
from collegium.pate.voting.histograms import NoisyHistograms
from collegium.pate.voting.labelling import Labels
from collegium.study.config import StudyConfig
from collegium.study.folder import StudyFolder
from collegium.study.frozen import said
from collegium.study.preprocessed import View
from collegium.study.records import StudyData
from collegium.study.stored_teachers import load_model

Tell = Callable[[str], None]


class StudentStage:
    """Trains the student of a study.

    Parameters
    ----------
    config : StudyConfig
        The study's.
    folder : StudyFolder
        Where the student goes.
    data : StudyData
        Public records and classes.
    estimator : classifier
        Not fitted.
    view : View
        What the student sees of records.
    X_seen : array-like
        The public records, seen so.
    """

    def __init__(
        self,
        config: StudyConfig,
        folder: StudyFolder,
        data: StudyData,
        estimator: Any,
        view: View,
        X_seen: Any,
    ) -> None:
        self._config = config
        self._folder = folder
        self._data = data
        self._estimator = estimator
        self._view = view
        self._X_seen = X_seen

    def rehearse(self, soft: bool) -> None:
        """Train on some public records with made-up labels, and try what would be published.

        The test records are tried, too: a mistake in them is found before anything is spent. A student may
        need more records than a quick trial has: one that fails on a few is tried on all.

        Parameters
        ----------
        soft : bool
            Whether it will learn probabilities instead of labels.

        Raises
        ------
        InputError
            If it fails: nothing has been spent.
        """
        rows, classes = telling_rows(self._X_seen), self._data.classes
        if min(len(rows), len(classes)) < 2:
            return
        try:
            published = self._rehearsed(rows, soft)
        except InputError:
            everything = np.arange(len(self._data.public_rows))
            if len(everything) == len(rows):
                raise
            published = self._rehearsed(everything, soft)
        if self._data.X_test is not None:
            with one_line_about("data.test", "predicted"):
                published.predict(self._data.X_test)

    def _rehearsed(self, rows: NDArray[np.intp], soft: bool) -> Any:
        """Put together what would be published, of a student that learnt made-up classes of these rows."""
        classes = self._data.classes
        queries, codes, targets = made_up_lesson(len(rows), len(classes), len(classes), soft)
        with one_line_about("student.model", "trained on public records"):
            seen = take_rows(self._X_seen, rows)
            student = fit_released(
                self._estimator, seen, queries, codes, classes, targets, tell=_silently
            )
            published = self._published(student, seen)
            self._try(published)
        return published

    def train(
        self,
        labels: Labels,
        histograms: NoisyHistograms | None,
        begin: Tell,
        skip: Tell,
        tell: Tell,
    ) -> tuple[Any, tuple[str, ...]]:
        """Train, try and publish the student, unless that was done before.

        Parameters
        ----------
        labels : Labels
            What was released.
        histograms : NoisyHistograms or None
            What was released besides.
        begin, skip, tell : callable
            Told the stage's name when it begins, or was done before; and what the user should know.

        Returns
        -------
        student : object
            As published: it takes records as they are.
        notes : tuple of str
            What the user should know, also if it was trained in an earlier run.

        Raises
        ------
        NothingReleasedError
            If there is no label.
        InputError
            If it cannot be trained, or cannot predict; what is published stays as it is.
        """
        path, told = self._folder.release / "student.joblib", self._folder.vault / "student.json"
        recipe = json.dumps(said(self._config.public())["student"], sort_keys=True)
        known = json.loads(told.read_text("utf-8")) if told.exists() else {}
        if not isinstance(known, dict):  # as it once was, without notes
            known = {"recipe": known}
        if path.exists() and known.get("recipe") == recipe:
            skip("student")
            return load_model(path), tuple(known.get("notes", ()))
        begin("student")
        notes: list[str] = []

        def note(line: str) -> None:
            notes.append(line)
            tell(line)

        method = self._config["student.targets"] or "mixture"
        targets = released_targets(labels, len(self._data.classes), histograms, method)
        try:
            with one_line_about("student.model", "trained on the released labels"):
                fitted = fit_released(
                    self._estimator,
                    self._X_seen,
                    labels.queries,
                    labels.labels,
                    self._data.classes,
                    targets,
                    tell=note,
                )
                student = self._published(fitted, self._X_seen)
        except NothingReleasedError as error:
            where = self._folder.release / "privacy.json"
            if self._config["privacy.guarantee"] != "worst-case":
                where = self._folder.vault / "sensitive-spending.json"
            raise NothingReleasedError(f"{error} (what was spent: {where})") from None
        with one_line_about("student.model", "asked about public records"):
            self._try(student)
        # Cut off between these writes, the next run must not take the new model for the former one.
        self._folder.write_json(told, {"recipe": None, "notes": []})
        self._folder.write_model(path, student)
        self._record_settings()
        self._folder.write_json(told, {"recipe": recipe, "notes": notes})
        return student, tuple(notes)

    def published_settings(self) -> dict[str, Any] | None:
        """Settings of the student in the release, as written there; None where there is none."""
        statement = self._folder.release / "privacy.json"
        if not (self._folder.release / "student.joblib").exists() or not statement.exists():
            return None
        known = json.loads(statement.read_text("utf-8")).get("config", {}).get("student")
        return known if isinstance(known, dict) else None

    def _record_settings(self) -> None:
        """Write into the release which student this is."""
        statement = self._folder.release / "privacy.json"
        content = json.loads(statement.read_text("utf-8"))
        content["config"]["student"] = self._config.public()["student"]
        self._folder.write_json(statement, content)

    def _published(self, student: Any, X_seen: Any) -> Any:
        """Put together what leaves: preprocessing, student, and its correction for public class shares."""
        shares = self._config.class_shares("student", self._data.classes)
        if shares is not None:
            student = match_shares(student, X_seen, self._data.classes, shares)
        if self._view.transformer is None:
            return student
        return Pipeline([("preprocessing", self._view.transformer), ("student", student)])

    def _try(self, student: Any) -> None:
        rows = telling_rows(self._data.X_public)
        student.predict(take_rows(self._data.X_public, rows))


def _silently(line: str) -> None:
    """Hear what the user need not know in a rehearsal."""
