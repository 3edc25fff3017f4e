"""From a study's settings to the recipe of its run."""

from __future__ import annotations

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


def recipe_of(config: StudyConfig, X_public: Any = None) -> Recipe:
    """Build the models and everything else that decides on a study's result.

    ``X_public``: the public records, which decide on a preprocessing that was left out; None: they are
        not read yet.
    """
    kind = preprocessing_of(config, X_public)
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
        preprocessing=_preprocessing(config, kind),
        student_preprocessing=_student_preprocessing(config, kind),
        teacher_class_shares=teachers.class_shares,
        student_class_shares=student.class_shares,
        seed=config.study.seed,
        noise_seed=aggregation.noise_seed if aggregation.noise == "seeded" else None,
        names=_NAMES,
    )


def preprocessing_of(config: StudyConfig, X_public: Any) -> str:
    """Say what teachers see: what the file says, or what the public records need."""
    if config.preprocessing.kind is not None:
        return config.preprocessing.kind
    is_table = isinstance(X_public, pd.DataFrame)
    return "tabular" if is_table and not all(map(_is_number, X_public.dtypes)) else "none"


def _is_number(dtype: Any) -> bool:
    return kind_of(dtype) == NUMBER


def _student_preprocessing(config: StudyConfig, kind: str) -> Any:
    own: str = config.student.preprocessing
    if own in (SAME, kind):
        return SAME
    return _preprocessing(config, own)


def _preprocessing(config: StudyConfig, kind: str) -> Any | None:
    return build_preprocessing(
        kind,
        categorical=config.preprocessing.categorical,
        components=config.preprocessing.components,
        normalise=config.preprocessing.normalise,
        random_state=config.study.seed,
    )
