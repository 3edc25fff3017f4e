"""From a finished study of direct training to the data of its report."""

from __future__ import annotations

import numpy as np

from collegium.pate.voting.history import SpendingPoint
from collegium.personalisation.descent_plan import DescentPlan
from collegium.report.descent_page import DescentReport, as_words
from collegium.sgd.run import DescentRun
from collegium.study.config import StudyConfig
from collegium.study.descent_result import DescentResult
from collegium.study.folder import versions
from collegium.study.result import in_words, shown_settings
from collegium.study.study_data import StudyData

_POINTS = 60


def descent_report(
    result: DescentResult, config: StudyConfig, data: StudyData, run: DescentRun
) -> DescentReport:
    """Put together what the report shows: nothing that may not be published."""
    descent = run.recipe.descent
    n_features = run.n_parameters
    learning = {
        "Learning rate": run.learning_rate,
        "Momentum": descent.momentum,
        "Averaged over the last share of the steps": descent.averaging,
    }
    return DescentReport(
        title=config.title(),
        privacy=result.privacy,
        plan=result.plan,
        clip_norm=descent.clip_norm,
        learning={name: as_words(value) for name, value in learning.items()},
        taken=descent.taken,
        steps=result.steps,
        lost=result.lost,
        n_parameters=n_features * run.loss.n_outputs,
        model=f"softmax regression on {n_features - 1:,} features of records"
        if run.loss.n_outputs > 1
        else f"logistic regression on {n_features - 1:,} features of records",
        student=in_words(config, "student") if config.has_student else "",
        n_public=len(data.X_public),
        effects=result.effects,
        history=spending_by_step(result.plan, result.steps),
        quality=result.quality,
        without_quality=result.unjudged,
        n_test=result.n_test,
        student_notes=result.student_notes,
        settings=shown_settings(config),
        versions=versions(),
    )


def spending_by_step(plan: DescentPlan, steps: int) -> list[SpendingPoint]:
    """What everybody had spent after each step, at some of them."""
    some = np.unique(np.linspace(0, steps, min(steps, _POINTS) + 1).round().astype(int))
    return [SpendingPoint(step, 0, dict(plan.epsilon(step))) for step in some.tolist()]
