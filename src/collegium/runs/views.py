"""What teachers and student see of records: each a preprocessing, fitted on public records only."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from collegium.errors import CollegiumError, InputError
from collegium.models.features import FeatureCache, ScatteringTransform, transform_cached
from collegium.models.features.image_points import ImagePoints
from collegium.models.features.in_parts import shows_as_it_learns, transformed
from collegium.models.features.network_features import NetworkFeatures
from collegium.models.features.patches import PatchFeatures
from collegium.models.trial import one_line_about

SAME = "same"
"""A student sees records as teachers, or the private model, do."""


@dataclass(frozen=True, eq=False)
class View:
    """Records as a model sees them.

    ``transformer``: fitted on public records; None: records as they are.
    ``name``: what messages call it.
    ``shown``: the public records that it was fitted to, and as it shows them, where that came with fitting.
    """

    transformer: Any | None
    name: str = "preprocessing"
    shown: tuple[Any, Any] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return View, (self.transformer, self.name)  # public records are not sent along

    def of(self, X: Any, folder: Path | None = None) -> Any:
        """Show public records; what is slow to compute is kept in the folder, if there is one."""
        if self.transformer is None:
            return X
        if self.shown is not None and X is self.shown[0]:
            return self.shown[1]
        try:
            if folder is not None and folder.is_dir() and _is_slow(self.transformer):
                return transform_cached(self.transformer, X, FeatureCache(folder / "features"))
            return transformed(self.transformer, X)
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from None

    def of_private(self, X: Any, folder: Path | None = None) -> Any:
        """Show private records; what the transformer says of them is not shown.

        Raises InputError if it cannot transform them.
        """
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # one about private records would tell something of them
                return self.of(X, folder)
        except CollegiumError:
            raise
        except Exception as error:
            failure = type(error).__name__
        raise InputError(
            f"preprocessing ({type(self.transformer).__name__}) could not transform the private records: "
            f"{failure}, whose message is not shown because it may quote them; it is fitted on public "
            "records: choose one that takes values and categories which those lack"
        )

    def published(self, student: Any) -> Any:
        """Put a fitted student behind what it sees, so that it takes records as they are."""
        if self.transformer is None:
            return student
        return Pipeline([("preprocessing", self.transformer), ("student", student)])


def fitted_view(preprocessing: Any | None, X_public: Any, name: str) -> View:
    """Fit a preprocessing to the public records.

    ``preprocessing``: not changed.
    ``X_public``: all public records.
    ``name``: what messages call it.
    Raises InputError if the public records cannot be seen this way.
    """
    if preprocessing is None:
        return View(None)
    transformer = clone(preprocessing, safe=False)
    with one_line_about(name, "fitted to the public records"):
        if not shows_as_it_learns(transformer):
            return View(transformer.fit(X_public), name)
        seen = transformer.fit_transform(X_public)
    return View(transformer, name, (X_public, seen))


def _is_slow(transformer: Any) -> bool:
    steps = [step for _, step in getattr(transformer, "steps", [("", transformer)])]
    return any(
        isinstance(step, ImagePoints | NetworkFeatures | PatchFeatures | ScatteringTransform)
        for step in steps
    )
