"""How a student sees public records: features, principal components, unit length."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from collegium.errors import InputError
from collegium.features.principal import PublicComponents
from collegium.features.scattering import ScatteringTransform
from collegium.students.released import as_numbers


class PublicEmbedding(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Map records to points whose distances mean something, as fitted on public records.

    Parameters
    ----------
    features : transformer or {"scattering"}, optional
        A public feature extractor. "scattering": a
        :class:`~collegium.features.ScatteringTransform` with square roots, for images. Default: the records
        as they are, flattened.
    n_components : int, default=200
        Principal components at most. 0: features as they are, centred.
    whiten : float, default=0.5
        Components are divided by this power of their public deviation.
    unit : bool, default=True
        Divide each point by its own length, so that distances compare directions.

    Attributes
    ----------
    shape_ : tuple of int
        Shape of one record.

    Examples
    --------
    >>> points = PublicEmbedding(n_components=3).fit_transform(np.random.default_rng(0).random((20, 8)))
    >>> points.shape, bool(np.allclose(np.linalg.norm(points, axis=1), 1, atol=1e-5))
    ((20, 3), True)
    """

    def __init__(
        self,
        features: Any = None,
        n_components: int = 200,
        whiten: float = 0.5,
        unit: bool = True,
    ) -> None:
        self.features = features
        self.n_components = n_components
        self.whiten = whiten
        self.unit = unit

    def fit(self, X: Any, y: object = None) -> Self:
        """Learn components from public records, shape (n_public, ...)."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: object = None) -> NDArray[np.float32]:
        """Fit, and embed the same records, computing features once."""
        records = as_numbers(X, "public records")
        self.shape_ = records.shape[1:]
        if self.n_components < 0:
            raise InputError(f"n_components={self.n_components} was given; give 0 or more")
        if self.features is not None:
            self.features_ = _extractor(self.features)
            made = np.asarray(self.features_.fit(records).transform(records))
        else:
            made = records
        made = made.reshape(len(made), -1)
        most = min(self.n_components, len(made) - 1, made.shape[1])
        self.components_ = PublicComponents(most or None, self.whiten if most else 0.0)
        return self._pointed(self.components_.fit(made).transform(made))

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Embed any records, each by itself.

        Raises
        ------
        InputError
            If they have another shape than the public records.
        """
        check_is_fitted(self, "shape_")
        records = as_numbers(X, "records")
        if records.shape[1:] != self.shape_:
            raise InputError(
                f"records of shape {records.shape[1:]} were given; the public records have shape "
                f"{self.shape_}: prepare them in the same way"
            )
        made = records if self.features is None else np.asarray(self.features_.transform(records))
        return self._pointed(self.components_.transform(made.reshape(len(made), -1)))

    def _pointed(self, points: NDArray[np.float32]) -> NDArray[np.float32]:
        if not self.unit:
            return points
        lengths = np.linalg.norm(points, axis=1, keepdims=True)
        return np.asarray(points / np.where(lengths > 0, lengths, 1))


def _extractor(features: Any) -> Any:
    if not isinstance(features, str):
        return clone(features)
    if features != "scattering":
        raise InputError(f"features must be 'scattering', a transformer or None, got {features!r}")
    return ScatteringTransform(root=True)
