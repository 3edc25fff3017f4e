"""What wraps a fitted student: a classifier that is published as it is, and never fitted again."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator, ClassifierMixin


class FittedStudent(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of wrappers around a fitted student; it may stand at the end of a scikit-learn pipeline."""

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn: it was fitted before it was wrapped."""
        return True

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing, as ``sklearn.frozen.FrozenEstimator`` does: what was released is what was learnt."""
        return self
