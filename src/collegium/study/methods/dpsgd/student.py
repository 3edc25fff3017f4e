"""A student that learns from what a directly trained model believes about public records: post-processing."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from collegium.data.class_shares import as_class_shares
from collegium.data.tables import one_hot, stack_rows
from collegium.distillation.goal import BALANCED, answering
from collegium.distillation.share_matching import match_shares
from collegium.distillation.supervised import beliefs_of
from collegium.dpsgd.by_rule import noise_of
from collegium.dpsgd.ensemble_choice import choose, taught_by_beliefs
from collegium.dpsgd.run import DPSGDRun
from collegium.models.trial import one_line_about
from collegium.pate.rehearsal import rehearse_student
from collegium.runs.views import View, fitted_view
from collegium.study.config import StudyConfig
from collegium.study.from_settings import student_of, student_preprocessing_of


class DistilledStudent:
    """The student of a study that trains directly; it costs nobody anything.

    It learns, of every public record, the directly trained model's belief in each class. Records whose owners
    let them be published are beyond doubt.
    """

    def __init__(self, config: StudyConfig, run: DPSGDRun) -> None:
        self._config, self._run = config, run
        self._estimator = student_of(config)
        shares, classes = config.student.class_shares, run.records.classes
        self._shares = (
            None if shares is None else as_class_shares(shares, classes, "student.class_shares")
        )

    @cached_property
    def view(self) -> View:
        """What it sees of records: as the model does, if nothing else is said."""
        own = student_preprocessing_of(self._config)
        if isinstance(own, str):
            return self._run.view
        return fitted_view(own, self._run.records.X_public, "student.preprocessing")

    @cached_property
    def _seen(self) -> Any:
        if self.view is self._run.view:
            return self._run.X_seen
        with one_line_about(self.view.name, "applied to the public records"):
            return self.view.of(self._run.records.X_public, self._run.memory.folder)

    def rehearsed(self) -> Any | None:
        """Train it on synthetic beliefs, as it would be published; None where there is nothing to try."""
        student = rehearse_student(
            self._estimator,
            self._seen,
            self._run.records.classes,
            soft=True,
            class_shares=self._shares,
            name="student.model",
        )
        return None if student is None else self.view.published(student)

    def taught(self, model: Any) -> Any:
        """Train it on a model's beliefs, and give the better of both; it takes records as they are."""
        records = self._run.records
        classes, given, seen = records.classes, records.given, self._seen
        beliefs = beliefs_of(model, self._run.X_seen, classes)
        if given is not None:
            with one_line_about(self.view.name, "applied to the records of public levels"):
                seen = stack_rows(seen, self.view.of(given.X, self._run.memory.folder))
            beliefs = np.concatenate([beliefs, one_hot(given.codes, len(classes))])
        with one_line_about("student.model", "trained on what the model believes"):
            student = taught_by_beliefs(
                self._estimator, seen, beliefs, classes, self._run.observer.note
            )
            if self._shares is not None:
                student = match_shares(student, self._seen, classes, self._shares)
        run = self._run
        noise = noise_of(run.recipe.dpsgd, run.plan, run.learning_rate)
        choice = choose(noise, model, student, run.X_seen, self._seen, run.recipe.seed)
        self._run.observer.note(choice.in_words)
        if not choice.student:
            return published_model(self._config, run, model)
        goal = self._config.student.goal
        return self.view.published(answering(goal, student, self._seen))


def published_model(config: StudyConfig, run: DPSGDRun, model: Any) -> Any:
    """Let what DP-SGD trained answer for the goal, and take records as they are."""
    goal = config.student.goal
    seen = run.X_seen if goal == BALANCED else None
    return run.view.published(answering(goal, model, seen))
