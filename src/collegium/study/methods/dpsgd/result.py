"""What a finished study of direct training says, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from collegium.data.class_shares import as_class_shares
from collegium.dpsgd.public_labels import judged_unseen
from collegium.dpsgd.run import DPSGDRun, Learnt
from collegium.evaluation.effects import Effects, StudentAnswers, effects_of
from collegium.evaluation.quality import (
    LEARNT,
    PUBLIC,
    TEST,
    Quality,
    beliefs_about,
    judge_by_itself,
    measure_quality,
    of_a_model,
)
from collegium.personalisation.dpsgd_plan import DPSGDPlan
from collegium.report.sections import Banner, Block, Paragraph
from collegium.study.config import StudyConfig
from collegium.study.result import ModelResult
from collegium.study.study_data import StudyData


@dataclass(frozen=True, eq=False, kw_only=True)
class DPSGDResult(ModelResult):
    """What a finished study of direct training says. Nothing in it is sensitive.

    ``plan``: steps, noise, and what each group gives.
    ``steps``: how many were charged; ``lost``: how many of these a crash took.
    ``accuracy``: of the published model on test records; None where there are none.
    ``unjudged``: what can be said where there is no ``quality``.
    ``is_student``: whether a student is published, and not what DP-SGD trained alone.
    ``in_doubt``: whether it is published beside what DP-SGD trained, for where noise leaves doubt about that.
    """

    plan: DPSGDPlan
    steps: int
    lost: int
    accuracy: float | None
    unjudged: tuple[str, str] = ("", "")
    is_student: bool = False
    in_doubt: bool = False

    def numbers(self) -> dict[str, Any]:
        """Count steps."""
        return {
            "steps": self.steps,
            "steps_lost": self.lost,
            "accuracy": self.accuracy,
            **super().numbers(),
        }

    def blocks(self) -> list[Block | Banner]:
        """Say how many steps were taken."""
        lost = f", {self.lost:,} of them lost in a crash" if self.lost else ""
        return [*super().blocks(), Paragraph(f"{self.steps:,} steps taken{lost}.")]


def unjudged(data: StudyData, model: Any, is_student: bool) -> tuple[str, str]:
    """Say, in a heading and a sentence, what can be said of a model where no public class is known."""
    found = judge_by_itself(data.classes, model.predict(data.X_public))
    found = found if is_student else of_a_model(found)
    return found.verdict, found.reason


def measured(
    config: StudyConfig,
    run: DPSGDRun,
    data: StudyData,
    learnt: Learnt,
    model: Any,
    is_student: bool,
) -> tuple[Effects, Quality | None]:
    """Compare a model with public truth, where it is known."""
    plan, targets, labels = run.plan, run.recipe.public_targets, run.with_public_labels(learnt)
    has_learnt = labels is not None and (labels.trees or any(labels.weights[1:]))
    public = LEARNT if has_learnt else PUBLIC
    answers = quality = None
    for X, y, where in ((data.X_test, data.y_test, TEST), (data.X_public, data.y_public, public)):
        if quality is not None or X is None or y is None:
            continue
        # A student learnt these labels, too, from the model.
        if where != TEST and labels is not None and targets is not None:
            quality = judged_unseen(labels, targets, data.classes, config.student.goal)
            continue
        predicted = np.asarray(model.predict(X))
        beliefs = beliefs_about(model, X, data.classes)
        goal = config.student.goal
        quality = measure_quality(data.classes, y, predicted, beliefs, where, goal)
        if where == TEST:
            answers = StudentAnswers(y, predicted, data.test_groups)
    if quality is not None and not is_student:
        quality = of_a_model(quality)
    shares = None
    if is_student and config.student.class_shares is not None:
        shares = as_class_shares(config.student.class_shares, data.classes, "student.class_shares")
    owners = {name: group.owners for name, group in plan.groups.items()}
    nothing: list[Any] = []
    effects = effects_of(
        owners, influence_of(plan), data.classes, nothing, tested=answers, class_shares=shares
    )
    return effects, quality


def influence_of(plan: DPSGDPlan) -> dict[str, float]:
    """Share of each group in what a step sums up, at most: owners, times rate, times clip."""
    return {
        name: group.owners * group.rate * group.clip / plan.divisor
        for name, group in plan.groups.items()
    }
