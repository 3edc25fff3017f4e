"""From a study's settings to the recipe of its run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from collegium.data.column_types import NUMBER, kind_of
from collegium.pate.catalogue import build_model, build_preprocessing
from collegium.pate.recipe import SAME, Recipe
from collegium.study.config import StudyConfig

_NAMES = {
    "teacher": "teachers.model",
    "student": "student.model",
    "preprocessing": "preprocessing",
    "student_preprocessing": "student.preprocessing",
    "teacher_class_shares": "teachers.class_shares",
    "student_class_shares": "student.class_shares",
    "test": "data.test",
}


def settled(config: StudyConfig, X_public: Any) -> StudyConfig:
    """Choose a preprocessing that was left out: what the public records need."""
    if config.preprocessing.kind is not None:
        return config
    has_text = isinstance(X_public, pd.DataFrame) and not all(map(_is_number, X_public.dtypes))
    kind = "tabular" if has_text else "none"
    return replace(config, preprocessing=replace(config.preprocessing, kind=kind))


def recipe_of(config: StudyConfig) -> Recipe:
    """Build the models and everything else that decides on a study's result.

    ``config``: :func:`settled`, or else nothing can be trained with the recipe.
    """
    teachers, student, aggregation = config.teachers, config.student, config.aggregation
    return Recipe(
        teacher=build_model("teachers.model", teachers.model, teachers.params),
        student=build_model("student.model", student.model, student.params),
        n_teachers=teachers.n_teachers,
        personalisation=config.personalisation.build(),
        aggregator=config.aggregator(),
        account=config.account(),
        queries=config.queries(),
        assignment=teachers.assignment,
        preprocessing=_preprocessing(config, config.preprocessing.kind),
        student_preprocessing=_student_preprocessing(config),
        teacher_class_shares=teachers.class_shares,
        student_class_shares=student.class_shares,
        seed=config.study.seed,
        noise_seed=aggregation.noise_seed if aggregation.noise == "seeded" else None,
        names=_NAMES,
    )


def _is_number(dtype: Any) -> bool:
    return kind_of(dtype) == NUMBER


def _student_preprocessing(config: StudyConfig) -> Any:
    own: str = config.student.preprocessing
    if own in (SAME, config.preprocessing.kind):
        return SAME
    return _preprocessing(config, own)


def _preprocessing(config: StudyConfig, kind: str | None) -> Any | None:
    return build_preprocessing(
        kind or "none",
        categorical=config.preprocessing.categorical,
        components=config.preprocessing.components,
        normalise=config.preprocessing.normalise,
        random_state=config.study.seed,
    )
