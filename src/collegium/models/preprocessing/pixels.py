"""Images, scaled by a constant that is known without looking at any of them."""

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from collegium.checks import check_positive
from collegium.errors import InputError


class PixelScaler(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Flatten images and scale their pixels to [0, 1], independently of all data.

    Parameters
    ----------
    maximum : float, default=255.0
        The largest value that the format of the images allows, which becomes 1.

    Attributes
    ----------
    image_shape_ : tuple of int
        The shape of one image, as given to ``fit``; nothing else is kept.
    n_features_in_ : int
        The number of values per image.

    Notes
    -----
    ``transform`` works without ``fit``; after it, it refuses images of another shape.

    Examples
    --------
    >>> images = np.array([[[0, 255], [51, 102]]], dtype=np.uint8)
    >>> PixelScaler().fit_transform(images).round(2).tolist()
    [[0.0, 1.0, 0.20000000298023224, 0.4000000059604645]]

    With scikit-learn's digits, whose pixels go up to 16, before a principal component analysis (to
    be fitted on public images only):

    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> from collegium.data.datasets import load_dataset
    >>> public = load_dataset("digits").X[:500]
    >>> make_pipeline(PixelScaler(maximum=16), PCA(50)).fit_transform(public).shape
    (500, 50)
    """

    exact_by_record = True  # no bit of a record's features depends on another's presence

    def __init__(self, maximum: float = 255.0) -> None:
        self.maximum = maximum

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Remember the shape of an image, for checks and names; values are not looked at.

        Parameters
        ----------
        X : array-like of shape (n_images, ...)
            Images.
        y : object, optional
            Ignored.

        Returns
        -------
        PixelScaler
            Itself.

        Raises
        ------
        InputError
            If ``maximum`` is not a positive number, or X is not a stack of images.
        """
        check_positive("maximum", self.maximum)
        images = _images(X)
        self.image_shape_ = images.shape[1:]
        self.n_features_in_ = math.prod(self.image_shape_)
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """Flatten and scale images, each by itself.

        Parameters
        ----------
        X : array-like of shape (n_images, height, width[, channels]) or (n_images, n_features)
            Images with values from 0 to ``maximum``.

        Returns
        -------
        ndarray of float32, of shape (n_images, n_features)
            Values in [0, 1], the last axis of an image running fastest.

        Raises
        ------
        InputError
            If the images have another shape than those given to ``fit``, are no numbers, or hold
            values outside 0 to ``maximum``.
        """
        check_positive("maximum", self.maximum)
        images = _images(X)
        expected = getattr(self, "image_shape_", images.shape[1:])
        if images.shape[1:] != expected:
            raise InputError(
                f"images of shape {images.shape[1:]} were given; allowed is the shape given to "
                f"fit, {expected}; resize them or fit again"
            )
        # Not "any outside": a missing value is neither inside nor outside.
        if images.size and not (images.min() >= 0 and images.max() <= self.maximum):
            raise InputError(
                f"the images hold values outside the range; allowed is 0 to {self.maximum:g}; "
                "give the format's largest value as maximum"
            )
        features = images.reshape(len(images), math.prod(expected)).astype(np.float32)
        features /= np.float32(self.maximum)
        return np.minimum(features, np.float32(1), out=features)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the output's columns: ``pixel0``, ``pixel1``, ..."""
        check_is_fitted(self, "n_features_in_")
        return np.asarray([f"pixel{i}" for i in range(self.n_features_in_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.three_d_array = True
        return tags


def _images(X: ArrayLike) -> NDArray[Any]:
    images = np.asarray(X)
    if images.dtype.kind not in "buif":
        raise InputError(
            f"images of type {images.dtype} were given; allowed are numbers; convert them"
        )
    if images.ndim < 2:
        raise InputError(
            f"images of shape {images.shape} were given; allowed are (images, height, width), the "
            "same with channels, or (images, features); stack the images along the first axis"
        )
    return images
