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
_FEW_POINTS = 8  # where each takes its time


def descent_report(
    result: DescentResult, config: StudyConfig, data: StudyData, run: DescentRun
) -> DescentReport:
    """Put together what the report shows: nothing that may not be published."""
    descent = run.recipe.descent
    n_features = run.n_parameters
    learning = {
        "Learning rate": run.learning_rate,
        "Momentum": descent.momentum,
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
        student=in_words(config, "student") if result.is_student else "",
        n_public=len(data.X_public),
        effects=result.effects,
        history=spending_by_step(result.plan, result.steps),
        quality=result.quality,
        without_quality=result.unjudged,
        n_test=result.n_test,
        student_notes=result.student_notes,
        foretold=result.foretold,
        settings=shown_settings(config),
        versions=versions(),
    )


def spending_by_step(plan: DescentPlan, steps: int) -> list[SpendingPoint]:
    """What everybody had spent after each step, at some of them."""
    points = _POINTS if plan.accountant == "gaussian" else _FEW_POINTS
    some = np.unique(np.linspace(0, steps, min(steps, points) + 1).round().astype(int))
    # With a filter more steps are taken, and nobody pays for more than were planned.
    return [
        SpendingPoint(step, 0, dict(plan.epsilon(min(step, plan.steps)))) for step in some.tolist()
    ]
