"""How a student sees public records: features, principal components, unit length."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from collegium.checks import check_share
from collegium.distillation.released import as_numbers
from collegium.errors import InputError
from collegium.models.features.principal import PublicComponents
from collegium.models.features.scattering import ScatteringTransform


class EvenScattering(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Scattering features in which faint channels count almost as much as strong ones.

    Each channel (a sequence of scales and orientations) is divided by its public root mean square to the
    power ``evenness``. NearestRecords in these features are more often of one class.

    Parameters
    ----------
    evenness : float, default=0.75
        0: as :class:`~collegium.models.features.ScatteringTransform` makes them; 1: all channels equally
        strong.
    shape : tuple of int, optional
        As there.

    Attributes
    ----------
    strengths_ : ndarray of float32, shape (n_features,)
        What features are divided by.

    Examples
    --------
    >>> images = np.random.default_rng(0).random((5, 28, 28))
    >>> features = EvenScattering(evenness=1.0).fit_transform(images).reshape(5, 81, 49)
    >>> bool(np.allclose((features**2).mean(axis=(0, 2)), 1, atol=1e-4))
    True
    """

    def __init__(self, evenness: float = 0.75, shape: tuple[int, ...] | None = None) -> None:
        self.evenness = evenness
        self.shape = shape

    def fit(self, X: Any, y: object = None) -> Self:
        """Learn how strong each channel is in public images."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: object = None) -> NDArray[np.float32]:
        """Fit, and transform the same images, computing their features once."""
        check_share("evenness", self.evenness)
        self.scattering_ = ScatteringTransform(shape=self.shape).fit(X)
        made = self.scattering_.transform(X)
        height, width, _ = self.scattering_.image_shape_
        places = (height >> self.scattering_.J) * (width >> self.scattering_.J)
        squares = (made**2).reshape(-1, places).mean(axis=1).reshape(len(made), -1).mean(axis=0)
        strengths = np.where(squares > 0, squares, 1.0) ** (self.evenness / 2)
        self.strengths_ = np.repeat(strengths, places).astype(np.float32)
        return np.asarray(made / self.strengths_)

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Transform any images, each by itself; shape (n_images, n_features)."""
        check_is_fitted(self, "strengths_")
        return np.asarray(self.scattering_.transform(X) / self.strengths_)


class PublicEmbedding(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Map records to points whose distances mean something, as fitted on public records.

    Parameters
    ----------
    features : transformer or {"scattering"}, optional
        A public feature extractor. "scattering": :class:`EvenScattering`, for images. Default: the records as
        they are, flattened.
    n_components : int or None, default=200
        Principal components at most. 0: features as they are, centred. None: the features are points of an
        embedding already, and stay as they are.
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
        n_components: int | None = 200,
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
        if self.n_components is not None and self.n_components < 0:
            raise InputError(f"n_components={self.n_components} was given; give 0 or more, or None")
        if self.features is not None:
            self.features_ = _extractor(self.features)
            made = np.asarray(self.features_.fit_transform(records))
        else:
            made = records
        made = made.reshape(len(made), -1)
        if self.n_components is None:
            return np.asarray(made, dtype=np.float32)
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
        made = made.reshape(len(made), -1)
        if self.n_components is None:
            return np.asarray(made, dtype=np.float32)
        return self._pointed(self.components_.transform(made))

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
    return EvenScattering()
