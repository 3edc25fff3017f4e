"""What a finished study says: in numbers, and as the data of its report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from collegium.personalisation.electorate import Electorate
from collegium.personalisation.plan import Plan
from collegium.privacy import PrivacyStatement
from collegium.report.data import ReportData
from collegium.study.config import StudyConfig
from collegium.study.data import StudyData
from collegium.study.folder import StudyFolder, versions
from collegium.voting.aggregators import Aggregator
from collegium.voting.history import spending_history
from collegium.voting.labelling import LOST, REINFORCED, Labels


@dataclass(frozen=True, eq=False)
class StudyResult:
    """What a finished study says. Nothing in it is sensitive under the worst-case guarantee.

    Attributes
    ----------
    folder : StudyFolder
        Where everything lies.
    privacy : PrivacyStatement
        Budgets and spending by group.
    plan : Plan
        Teachers, weights, duplicates, frequencies.
    labels : Labels
        Outcomes of all queries.
    label_accuracy, student_accuracy : float or None
        Against public truth, where it is known.
    n_test : int
        Public test records behind ``student_accuracy``.
    """

    folder: StudyFolder
    privacy: PrivacyStatement
    plan: Plan
    labels: Labels
    label_accuracy: float | None
    student_accuracy: float | None
    n_test: int

    @property
    def report(self) -> Path:
        """Where the page is."""
        return self.folder.release / "report.html"


def measured_accuracies(
    data: StudyData, labels: Labels, student: Any
) -> tuple[float | None, float | None]:
    """Compare labels and student with public truth, where it is known.

    Returns
    -------
    label_accuracy, student_accuracy : float or None
        Share of the released labels, and of the student's predictions on test records, that are right.
    """
    label_accuracy = student_accuracy = None
    if data.y_public is not None and len(labels.queries):
        truth = data.y_public[labels.queries]
        label_accuracy = float(np.mean(data.classes[labels.labels] == truth))
    if data.X_test is not None and data.y_test is not None:
        student_accuracy = float(np.mean(student.predict(data.X_test) == data.y_test))
    return label_accuracy, student_accuracy


def report_data(
    result: StudyResult,
    config: StudyConfig,
    data: StudyData,
    aggregator: Aggregator,
    electorate: Electorate,
) -> ReportData:
    """Put together what the report shows: nothing that may not be published."""
    labels = result.labels
    verdicts = [outcome.verdict for outcome in labels.outcomes]
    scales = [electorate.ballot(p).scale for p in range(min(len(verdicts), 1000))] or [1.0]
    may_show = result.privacy.may_publish_spending
    return ReportData(
        title=config["study.name"],
        privacy=result.privacy,
        plan=result.plan,
        aggregator={"name": aggregator.name, **vars(aggregator)},
        scale=float(np.mean(scales)),
        stop_reason=labels.stop_reason,
        n_public=len(data.X_public),
        n_asked=labels.n_asked,
        n_answered=labels.n_answered,
        n_reinforced=verdicts.count(REINFORCED),
        n_lost=verdicts.count(LOST),
        class_names=[str(name) for name in data.classes],
        labels_per_class=np.bincount(labels.labels, minlength=len(data.classes)).tolist(),
        history=spending_history(aggregator, electorate, labels.outcomes) if may_show else [],
        teacher=_in_words(config, "teachers"),
        student=_in_words(config, "student"),
        label_accuracy=result.label_accuracy,
        student_accuracy=result.student_accuracy,
        n_test=result.n_test,
        settings=_settings(config),
        versions=versions(),
    )


def _in_words(config: StudyConfig, section: str) -> str:
    params = ", ".join(f"{k}={v!r}" for k, v in config[f"{section}.params"].items())
    return f"{config[f'{section}.model']}({params})"


def _settings(config: StudyConfig) -> dict[str, str]:
    shown = {}
    for section, keys in config.public().items():
        for name, value in keys.items():
            if value not in ([], {}):
                shown[f"{section}.{name}"] = str(value)
    return shown
