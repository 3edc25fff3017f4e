"""From a finished study of direct training to the data of its report."""

from __future__ import annotations

import numpy as np

from collegium.dpsgd.run import DPSGDRun
from collegium.pate.voting.history import SpendingPoint
from collegium.personalisation.dpsgd_plan import DPSGDPlan
from collegium.report.dpsgd_page import DPSGDReport, as_words
from collegium.study.config import StudyConfig
from collegium.study.dpsgd_result import DPSGDResult
from collegium.study.folder import versions
from collegium.study.result import in_words, shown_settings
from collegium.study.study_data import StudyData

_POINTS = 60
_FEW_POINTS = 8  # where each takes its time


def dpsgd_report(
    result: DPSGDResult, config: StudyConfig, data: StudyData, run: DPSGDRun
) -> DPSGDReport:
    """Put together what the report shows: nothing that may not be published."""
    dpsgd = run.recipe.dpsgd
    n_features = run.n_parameters
    learning = {
        "Learning rate": run.learning_rate,
        "Momentum": dpsgd.momentum,
    }
    return DPSGDReport(
        title=config.title(),
        privacy=result.privacy,
        plan=result.plan,
        clip_norm=dpsgd.clip_norm,
        learning={name: as_words(value) for name, value in learning.items()},
        n_steps_taken=dpsgd.n_steps_taken,
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


def spending_by_step(plan: DPSGDPlan, steps: int) -> list[SpendingPoint]:
    """What everybody had spent after each step, at some of them."""
    points = _POINTS if plan.accountant == "gaussian" else _FEW_POINTS
    some = np.unique(np.linspace(0, steps, min(steps, points) + 1).round().astype(int))
    # With a filter more steps are taken, and nobody pays for more than were planned.
    return [
        SpendingPoint(step, 0, dict(plan.epsilon(min(step, plan.steps)))) for step in some.tolist()
    ]
