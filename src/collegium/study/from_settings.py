"""From a study's settings to the recipe of its run."""

from __future__ import annotations

from typing import Any

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


def recipe_of(config: StudyConfig) -> Recipe:
    """Build the models and everything else that decides on a study's result."""
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


def _student_preprocessing(config: StudyConfig) -> Any:
    own: str = config.student.preprocessing
    if own in (SAME, config.preprocessing.kind):
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
