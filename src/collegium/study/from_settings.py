"""From a study's settings to the recipe of its run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from collegium.data.column_types import NUMBER, kind_of
from collegium.distillation.goal import require_beliefs_for
from collegium.distillation.share_matching import require_probabilities
from collegium.dpsgd.run import DPSGDRecipe
from collegium.dpsgd.settings import WHITENING
from collegium.models.catalogue import build_model, build_preprocessing
from collegium.models.classifiers import check_classifier
from collegium.pate.recipe import Recipe, seeded
from collegium.runs.views import SAME
from collegium.study.config import StudyConfig
from collegium.study.sections import DPSGD

_NAMES = {
    "teacher": "teachers.model",
    "student": "student.model",
    "preprocessing": "preprocessing",
    "student_preprocessing": "student.preprocessing",
    "teacher_class_shares": "teachers.class_shares",
    "student_class_shares": "student.class_shares",
    "goal": "student.goal",
    "test": "data.test",
}


def settled(config: StudyConfig, X_public: Any) -> StudyConfig:
    """Choose a preprocessing that was left out: what the public records need."""
    if config.preprocessing.kind is not None:
        return config
    kind, is_table = "none", isinstance(X_public, pd.DataFrame)
    if is_table and config.is_direct:
        kind = "binned"
    elif is_table and not all(map(_is_number, X_public.dtypes)):
        kind = "tabular"
    return replace(config, preprocessing=replace(config.preprocessing, kind=kind))


def recipe_of(config: StudyConfig) -> Recipe:
    """Build the models and everything else that decides on the result of a study of votes.

    ``config``: :func:`settled`, or else nothing can be trained with the recipe.
    """
    teachers, student, aggregation = config.teachers, config.student, config.aggregation
    return Recipe(
        teacher=build_model("teachers.model", teachers.model, teachers.params),
        student=build_model("student.model", student.model, student.params),
        n_teachers=teachers.n_teachers,
        personalisation=replace(config.personalisation.build(), assignment=teachers.assignment),
        aggregator=config.aggregator(),
        account=config.account(),
        queries=config.queries(),
        preprocessing=_preprocessing(config, config.preprocessing.kind),
        student_preprocessing=_student_preprocessing(config),
        teacher_class_shares=teachers.class_shares,
        student_class_shares=student.class_shares,
        goal=student.goal,
        seed=config.study.seed,
        noise_seed=aggregation.noise_seed if aggregation.noise == "seeded" else None,
        names=_NAMES,
    )


def dpsgd_recipe_of(config: StudyConfig) -> DPSGDRecipe:
    """Build everything that decides on what a study learns directly.

    ``config``: :func:`settled`.
    """
    return DPSGDRecipe(
        dpsgd=config.dpsgd.build(),
        preprocessing=_preprocessing(config, config.preprocessing.kind),
        seed=config.study.seed,
        noise_seed=config.dpsgd.noise_seed if config.noise_is_seeded else None,
    )


def student_of(config: StudyConfig) -> Any:
    """Build the student of a study that learns directly, with a seed of its own."""
    model = build_model(_NAMES["student"], config.student.model, config.student.params)
    check_classifier(model, _NAMES["student"], learns_by=("fit", "fit_released"))
    if config.student.class_shares is not None:
        require_probabilities(model)
    require_beliefs_for(config.student.goal, model)
    return seeded(model, config.study.seed)


def student_preprocessing_of(config: StudyConfig) -> Any:
    """Build what a student sees of records: ``"same"``, None or a transformer."""
    return _student_preprocessing(config)


def _is_number(dtype: Any) -> bool:
    return kind_of(dtype) == NUMBER


def _student_preprocessing(config: StudyConfig) -> Any:
    own: str = config.student.preprocessing
    if own in (SAME, config.preprocessing.kind):
        return SAME
    return _preprocessing(config, own)


def _preprocessing(config: StudyConfig, kind: str | None) -> Any | None:
    direct = config.method.kind == DPSGD
    whiten = config.preprocessing.whiten
    return build_preprocessing(
        kind or "none",
        categorical=config.preprocessing.categorical,
        components=config.preprocessing.components,
        normalise=config.preprocessing.normalise,
        whiten=WHITENING if direct and whiten is None and kind == "scattering" else whiten,
        random_state=config.study.seed,
    )
