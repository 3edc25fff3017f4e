"""From a study's settings to the models that it names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd
from sklearn.pipeline import make_pipeline

from collegium.data.column_types import NUMBER, kind_of
from collegium.distillation.goal import require_beliefs_for
from collegium.distillation.share_matching import require_probabilities
from collegium.distillation.supervised import seeded
from collegium.errors import ConfigError, InputError
from collegium.models.catalogue import build_model, build_preprocessing
from collegium.models.classifiers import check_classifier
from collegium.models.features.network_features import NetworkFeatures, WeightsFile
from collegium.runs.views import SAME
from collegium.study.config import StudyConfig

NAMES = {
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
    if config.features.weights is not None:
        return replace(config, preprocessing=replace(config.preprocessing, kind="components"))
    is_table = isinstance(X_public, pd.DataFrame)
    has_text = is_table and not all(map(_is_number, X_public.dtypes))
    are_images = getattr(X_public, "ndim", 2) > 2
    kind = config.kind.usual_view(is_table, has_text, are_images)
    return replace(config, preprocessing=replace(config.preprocessing, kind=kind))


def student_of(config: StudyConfig) -> Any:
    """Build the student of a study that learns directly, with a seed of its own."""
    model = build_model(NAMES["student"], config.student.model, config.student.params)
    check_classifier(model, NAMES["student"], learns_by=("fit", "fit_released"))
    if config.student.class_shares is not None:
        require_probabilities(model)
    require_beliefs_for(config.student.goal, model)
    return seeded(model, config.study.seed)


def _is_number(dtype: Any) -> bool:
    return kind_of(dtype) == NUMBER


def preprocessing_of(config: StudyConfig) -> Any | None:
    """Build what teachers, or a directly trained model, see of records. ``config``: :func:`settled`."""
    return _preprocessing(config, config.preprocessing.kind)


def student_preprocessing_of(config: StudyConfig) -> Any:
    """Build what a student sees of records: ``"same"``, None or a transformer."""
    own: str = config.student.preprocessing
    if own in (SAME, config.preprocessing.kind):
        return SAME
    return _preprocessing(config, own)


def network_of(config: StudyConfig) -> NetworkFeatures | None:
    """Build what lets records be seen through a network that was brought along; None if none was.

    Raises ConfigError if its file cannot be read.
    """
    path, settings = config.path("features.weights"), config.features
    if path is None or settings.network is None:
        return None
    with about_the_network():
        file = WeightsFile.of(path)
    return NetworkFeatures(
        settings.network,
        file,
        settings.layer,
        params=settings.params,
        input_shape=settings.input_shape,
        mean=settings.mean,
        deviation=settings.deviation,
        batch_size=settings.batch_size,
        device=settings.device,
    )


@contextlib.contextmanager
def about_the_network() -> Iterator[None]:
    """Say in which section of the file that stands of which an error speaks."""
    try:
        yield
    except InputError as error:
        raise ConfigError(f"[features] {error}") from None


def _preprocessing(config: StudyConfig, kind: str | None) -> Any | None:
    network, last = network_of(config), _behind_network(config, kind)
    if network is None or last is None:
        return last if network is None else network
    return make_pipeline(network, last)


def _behind_network(config: StudyConfig, kind: str | None) -> Any | None:
    whiten = config.preprocessing.whiten
    if whiten is None and kind == "scattering":
        whiten = config.kind.whitening
    return build_preprocessing(
        kind or "none",
        categorical=config.preprocessing.categorical,
        components=config.preprocessing.components,
        normalise=config.preprocessing.normalise,
        whiten=whiten,
        random_state=config.study.seed,
    )
