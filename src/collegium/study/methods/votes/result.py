"""What a finished study of votes says, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from collegium.evaluation.effects import Effects, StudentAnswers, measure_effects
from collegium.evaluation.quality import (
    PUBLIC,
    Quality,
    beliefs_about,
    judge_by_answers,
    measure_quality,
)
from collegium.pate.pipeline import Released
from collegium.pate.recipe import Recipe
from collegium.pate.voting.labelling import Labels
from collegium.pate.voting.release import HISTOGRAM
from collegium.personalisation.plan import Plan
from collegium.report.sections import Banner, Block, Paragraph
from collegium.study.methods.votes.stop_reasons import stopped
from collegium.study.published import counts_of
from collegium.study.result import ModelResult
from collegium.study.study_data import StudyData


@dataclass(frozen=True, eq=False, kw_only=True)
class VotesResult(ModelResult):
    """What a finished study of votes says. Nothing in it is sensitive under the worst-case guarantee.

    ``plan``: teachers, weights, duplicates, frequencies.
    ``label_accuracy``, ``student_accuracy``: against public truth, where it is known.
    """

    plan: Plan
    labels: Labels
    label_accuracy: float | None
    student_accuracy: float | None

    def numbers(self) -> dict[str, Any]:
        """Count queries and labels, and say how many are right."""
        return {
            **counts_of(self.labels),
            "label_accuracy": self.label_accuracy,
            "student_accuracy": self.student_accuracy,
            **super().numbers(),
        }

    def blocks(self) -> list[Block | Banner]:
        """Say how many answers were released, and how many are right, where that says anything."""
        labels, right = self.labels, ""
        kind = "labels"
        if self.privacy.released == HISTOGRAM:  # each is faint, and the student pools them
            kind = "noisy histograms"
        elif self.label_accuracy is not None:
            right = f", {100 * self.label_accuracy:.1f} % of them right"
        said = f"{len(labels.labels):,} {kind} released after {labels.n_asked:,} queries{right}"
        return [*super().blocks(), Paragraph(f"{said}; {stopped(labels.stop_reason)}.")]


@dataclass(frozen=True, eq=False)
class Measured:
    """Labels and student beside public truth, as far as it is known; fields as in :class:`VotesResult`."""

    effects: Effects
    label_accuracy: float | None
    student_accuracy: float | None
    quality: Quality


def measure(
    recipe: Recipe, plan: Plan, data: StudyData, released: Released, student: Any
) -> Measured:
    """Compare labels and student with public truth, where it is known."""
    labels = released.labels
    named = data.classes[labels.labels]
    truth = label_accuracy = answers = student_accuracy = quality = None
    if data.y_public is not None:
        truth = data.y_public[labels.queries]
        known = ~pd.isna(truth)
        label_accuracy = float(np.mean((named == truth)[known])) if known.any() else None
    if data.X_test is not None and data.y_test is not None:
        predicted = np.asarray(student.predict(data.X_test))
        answers = StudentAnswers(data.y_test, predicted, data.test_groups)
        student_accuracy = float(np.mean(predicted == data.y_test))
        beliefs = beliefs_about(student, data.X_test, data.classes)
        quality = measure_quality(data.classes, data.y_test, predicted, beliefs, goal=recipe.goal)
    if quality is None:
        quality = _quality_on_public_records(data, released, student, recipe.goal)
    shares = recipe.class_shares("student", data.classes)
    if shares is None:
        shares = recipe.class_shares("teacher", data.classes)
    effects = measure_effects(plan, data.classes, named, truth, answers, shares)
    return Measured(effects, label_accuracy, student_accuracy, quality)


def _quality_on_public_records(
    data: StudyData, released: Released, student: Any, goal: str
) -> Quality:
    """Judge the student where there is no test set: by public classes, or else by what was released."""
    predicted = np.asarray(student.predict(data.X_public))
    beliefs = beliefs_about(student, data.X_public, data.classes)
    found = None
    if data.y_public is not None:
        found = measure_quality(data.classes, data.y_public, predicted, beliefs, PUBLIC, goal)
    if found is not None:
        return found
    labels = released.labels
    return judge_by_answers(
        data.classes, labels.queries, labels.labels, released.histograms, predicted, beliefs, goal
    )
