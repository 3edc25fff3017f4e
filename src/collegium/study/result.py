"""What a finished study says, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.accounting.statement import PrivacyStatement
from collegium.budgets import Budget
from collegium.evaluation.effects import Effects, StudentAnswers, measure_effects
from collegium.evaluation.quality import (
    PUBLIC,
    TEST,
    Quality,
    beliefs_about,
    beside_the_list,
    judge_by_answers,
    measure_quality,
)
from collegium.pate.pipeline import Released
from collegium.pate.recipe import Recipe
from collegium.pate.voting.labelling import Labels
from collegium.personalisation.dpsgd_plan import DPSGDPlan
from collegium.personalisation.plan import Plan
from collegium.study.config import StudyConfig
from collegium.study.folder import PAGE, StudyFolder
from collegium.study.study_data import StudyData

_SHOWN_LEVELS = 3


def as_chosen(people: Any) -> dict[str, Budget]:
    """Read off what people of each level chose, where budgets are known by level."""
    groups = getattr(people, "groups", None)
    return dict(groups) if isinstance(groups, Mapping) else {}


class PublishedResult:
    """What every finished study has."""

    folder: StudyFolder

    @property
    def report(self) -> Path:
        """Where the page is."""
        return self.folder.release / PAGE


@dataclass(frozen=True, eq=False)
class StudyResult(PublishedResult):
    """What a finished study says. Nothing in it is sensitive under the worst-case guarantee.

    ``folder``: where everything lies.
    ``privacy``: budgets and spending by group.
    ``plan``: teachers, weights, duplicates, frequencies.
    ``label_accuracy``, ``student_accuracy``: against public truth, where it is known.
    ``n_test``: public test records behind ``student_accuracy``.
    ``effects``: what the budgets did to classes and groups.
    ``quality``: the student beside one that always gives one answer, with the verdict.
    ``student_notes``: what the user should know about how the student was trained.
    ``ledger``: which one remembers it, if any.
    ``foretold``: what was predicted, and what came out, in a sentence; empty where nothing was.
    ``chosen``: budgets as people chose them, by level.
    """

    folder: StudyFolder
    privacy: PrivacyStatement
    plan: Plan
    labels: Labels
    label_accuracy: float | None
    student_accuracy: float | None
    n_test: int
    effects: Effects
    quality: Quality
    student_notes: tuple[str, ...] = ()
    ledger: str | None = None
    foretold: str = ""
    chosen: Mapping[str, Budget] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Measured:
    """Labels and student beside public truth, as far as it is known; fields as in :class:`StudyResult`."""

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


def notes_on_test_records(plan: Plan | DPSGDPlan, data: StudyData) -> list[str]:
    """Say which public records are left out of what is measured, or can only count as wrong."""
    lines = levels_without_group(plan, data.test_groups)
    for role, truth in ((TEST, data.y_test), (PUBLIC, data.y_public)):
        strange = "" if truth is None else beside_the_list(data.classes, truth, role)
        lines += [strange] if strange else []
    if data.n_tests_left_out:
        lines.append(
            f"{data.n_tests_left_out} test record(s) without a class are left out: nothing can be judged by "
            "them"
        )
    return lines


def levels_without_group(plan: Plan | DPSGDPlan, levels: NDArray[Any] | None) -> list[str]:
    """Say which levels of the public test records are no group's, so that its table leaves them out.

    Examples
    --------
    >>> from collegium import Budget
    >>> from collegium.personalisation import Weighting
    >>> plan = Weighting().plan({"high": Budget(3.0), "low": Budget(1.0)}, {"high": 60, "low": 40}, 10)
    >>> levels_without_group(plan, np.array(["low", "Low", "high"]))[0].split(" (")[0]
    '1 of 3 test records have a level that no private record has'
    """
    if levels is None:
        return []
    named = pd.Series([str(level) for level in levels.tolist()])
    others = named[~named.isin(list(plan.groups))]
    if others.empty:
        return []
    shown = ", ".join(repr(level) for level in sorted(others.unique())[:_SHOWN_LEVELS])
    more = ", …" if others.nunique() > _SHOWN_LEVELS else ""
    return [
        f"{len(others)} of {len(named)} test records have a level that no private record has ({shown}{more}; "
        f"groups: {', '.join(plan.groups)}): effects by group leave them out"
    ]


def in_words(config: StudyConfig, section: str) -> str:
    """Write a section's model and its parameters."""
    said = config.published()[section]
    params = ", ".join(f"{name}={value!r}" for name, value in said["params"].items())
    return f"{said['model']}({params})" if params else str(said["model"])


def shown_settings(config: StudyConfig) -> dict[str, str]:
    """Write all public settings that say something."""
    shown = {}
    for section, keys in config.published().items():
        for name, value in keys.items():
            if value not in ([], {}):
                shown[f"{section}.{name}"] = str(value)
    return shown
