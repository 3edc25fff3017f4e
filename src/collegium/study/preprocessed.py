"""What teachers and student see of records: each a preprocessing, fitted on public records only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collegium.models.features import FeatureCache, transform_cached
from collegium.models.trial import one_line_about
from collegium.pate.catalogue import CACHED_KINDS, build_preprocessing
from collegium.study.config import StudyConfig

SAME = "same"


@dataclass(frozen=True, eq=False)
class View:
    """Records as a model sees them.

    Attributes
    ----------
    kind : str
        As the configuration calls the preprocessing.
    transformer : transformer or None
        Fitted on public records; None: records as they are.
    """

    kind: str
    transformer: Any | None

    def of(self, X: Any, vault: Path | None) -> Any:
        """Show records; what is slow to compute is kept in the vault, if there is one."""
        if self.transformer is None:
            return X
        if self.kind in CACHED_KINDS and vault is not None and vault.is_dir():
            return transform_cached(self.transformer, X, FeatureCache(vault / "features"))
        return self.transformer.transform(X)


def student_kind(config: StudyConfig) -> str:
    """Which preprocessing the student has: its own, or that of the teachers."""
    own: str = config["student.preprocessing"]
    return config["preprocessing.kind"] if own == SAME else own


def preprocessing_of(config: StudyConfig, kind: str) -> Any | None:
    """Make a preprocessing of some kind, not fitted, with the numbers of the section."""
    return build_preprocessing(
        kind,
        categorical=config["preprocessing.categorical"],
        components=config["preprocessing.components"],
        normalise=config["preprocessing.normalise"],
        random_state=config["study.seed"],
    )


def fit_views(config: StudyConfig, X_public: Any) -> tuple[View, View]:
    """Fit what teachers and student see to the public records.

    Parameters
    ----------
    config : StudyConfig
        The study's.
    X_public : array-like or DataFrame
        All public records.

    Returns
    -------
    teachers, student : View
        The same object, where both see the same.

    Raises
    ------
    InputError
        If the public records cannot be seen this way.
    """
    kind = config["preprocessing.kind"]
    teachers = _fitted(config, kind, "preprocessing", X_public)
    if student_kind(config) == kind:
        return teachers, teachers
    return teachers, _fitted(config, student_kind(config), "student.preprocessing", X_public)


def _fitted(config: StudyConfig, kind: str, key: str, X_public: Any) -> View:
    transformer = preprocessing_of(config, kind)
    if transformer is not None:
        with one_line_about(key, "fitted to the public records"):
            transformer = transformer.fit(X_public)
    return View(kind, transformer)
