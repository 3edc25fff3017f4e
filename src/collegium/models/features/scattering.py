"""Scattering features of images: no training, no data, and still far better than pixels."""

from __future__ import annotations

import queue
from typing import Any, Literal, Self

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from collegium.checks import check_whole
from collegium.errors import InputError
from collegium.models.features.cascade import Cascade, n_channels
from collegium.models.features.dense_tables import finite_numbers
from collegium.models.features.images import (
    check_image_shape,
    image_array,
    image_shape,
    of_image_shape,
)
from collegium.models.threads import in_threads

#: Changes when the same parameters give other numbers: caches of older ones are then void.
SCATTERING_VERSION = 2
_LARGEST_J, _LARGEST_L = 6, 32


class ScatteringTransform(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn images into scattering coefficients, independently of all data.

    An image is filtered by wavelets of J scales and L orientations, the modulus is taken, and the result
    filtered and rectified once more; every stage is blurred and subsampled by 2**J. The features change
    little when an image is moved or bent a little, and keep what tells its class.

    Parameters
    ----------
    J : int, default=2
        Scales: features hold still under shifts well below 2**J pixels.
    L : int, default=8
        Orientations over half a turn.
    max_order : {0, 1, 2}, default=2
        Number of moduli: 1 channel, then J · L more, then L² · J (J - 1) / 2 more.
    shape : tuple of int, optional
        (height, width) or (height, width, channels) of one image, where records are flattened. Left out:
        square images of one channel.
    root : bool, default=False
        Take the square root of each feature (of its size, keeping its sign). Strong strokes then outvote
        weak ones less, which linear models gain from; the non-expansiveness below no longer holds.
    least_side : int, default=1
        Images with a shorter side are enlarged: every pixel is repeated, as often as it takes. Scales that
        are too large for a thumbnail tell more of an enlarged one.
    batch_size : int, default=16
        Images that are computed together. A matter of speed alone.
    n_jobs : int, default=-1
        Threads, as in joblib; -1: all cores.

    Attributes
    ----------
    image_shape_ : tuple of int
        (height, width, channels) of one image: all that ``fit`` learns.
    enlargement_ : int
        How often a pixel is repeated, across and down.
    n_features_in_ : int
        Values per image.
    n_features_out_ : int
        Features per image.
    version_ : int
        Of the arithmetic, so that caches know.

    Notes
    -----
    Without ``root`` and with J = 2, the transform is non-expansive: two images, padded, differ by at least
    2**J times as much as their features (one feature stands for 2**J × 2**J pixels). The filters, the
    reflecting padding and the order of the channels are kymatio's; the values agree to 2e-5, after its
    π = 3.1415 is put right.

    The arithmetic is NumPy's, one thread per block of images: no deep learning library is needed. A
    record's features depend on the record alone, whatever the others hold.

    References
    ----------
    J. Bruna, S. Mallat, *Invariant scattering convolution networks*, IEEE TPAMI 35(8), 2013 (section 2,
    Proposition 2.1 for the bound). E. Oyallon, S. Mallat, *Deep roto-translation scattering for object
    classification*, CVPR 2015. F. Tramèr, D. Boneh, *Differentially private learning needs better features
    (or much more data)*, ICLR 2021, arXiv:2011.11660: the same features before DP-SGD.

    Examples
    --------
    >>> images = np.random.default_rng(0).random((5, 28, 28))
    >>> features = ScatteringTransform().fit_transform(images)
    >>> features.shape, features.dtype
    ((5, 3969), dtype('float32'))

    As the public preprocessing of a private classifier:

    >>> from collegium import PATEClassifier
    >>> model = PATEClassifier(preprocessing=ScatteringTransform(root=True))
    """

    def __init__(
        self,
        J: int = 2,
        L: int = 8,
        max_order: Literal[0, 1, 2] = 2,
        shape: tuple[int, ...] | None = None,
        root: bool = False,
        least_side: int = 1,
        batch_size: int = 16,
        n_jobs: int = -1,
    ) -> None:
        self.J = J
        self.L = L
        self.max_order = max_order
        self.shape = shape
        self.root = root
        self.least_side = least_side
        self.batch_size = batch_size
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn the shape of an image; values are not looked at.

        Parameters
        ----------
        X : array-like, shape (n_images, height, width[, channels]) or (n_images, n_pixels)
            Images.
        y : object, optional
            Ignored.

        Returns
        -------
        ScatteringTransform
            Itself.

        Raises
        ------
        InputError
            If a parameter is out of range, or the images are too small or of another shape.
        """
        self._check_parameters()
        self.image_shape_ = image_shape(image_array(X).shape[1:], self.shape)
        self.n_features_in_ = int(np.prod(self.image_shape_))
        self.version_ = SCATTERING_VERSION
        height, width, depth = self.image_shape_
        self.enlargement_ = -(-self.least_side // min(height, width))
        height, width = height * self.enlargement_, width * self.enlargement_
        if min(height, width) < 2**self.J:
            raise InputError(
                f"images of {height} × {width} pixels are too small for J={self.J}: allowed are at least "
                f"{2**self.J} on each side; lower J, or raise least_side"
            )
        places = (height >> self.J) * (width >> self.J)
        self.n_features_out_ = depth * n_channels(self.J, self.L, self.max_order) * places
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """Compute the features of images, each by itself.

        Parameters
        ----------
        X : array-like
            Images of the shape given to ``fit``.

        Returns
        -------
        ndarray of float32, shape (n_images, n_features_out_)
            Image channel by image channel: order 0; order 1 by scale, then angle; order 2 by first and
            second wavelet. The (height / 2**J) × (width / 2**J) places run fastest.

        Raises
        ------
        InputError
            If the images have another shape, or are no finite numbers.
        """
        check_is_fitted(self, "image_shape_")
        images, depth = of_image_shape(X, self.image_shape_), self.image_shape_[2]
        features = np.empty((len(images), depth, self.n_features_out_ // depth), dtype=np.float32)
        self._compute(images, features)
        return features.reshape(len(images), self.n_features_out_)

    def mirror(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Give the features of mirrored images (left for right), from those of the images.

        As if the mirror image were moved by some pixels, below 2**J, since places are counted from the left.

        Parameters
        ----------
        features : ndarray, shape (n_images, n_features_out_)
            As :meth:`transform` made them.

        Returns
        -------
        ndarray, shape (n_images, n_features_out_)
        """
        check_is_fitted(self, "image_shape_")
        height, width, depth = self.image_shape_
        sides = ((side * self.enlargement_) >> self.J for side in (height, width))
        planes = features.reshape(len(features), depth, -1, *sides)
        turned = _mirrored_channels(self.J, self.L, self.max_order)
        return np.ascontiguousarray(planes[:, :, turned, :, ::-1]).reshape(features.shape)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the output's columns: ``scattering0``, ``scattering1``, ..."""
        check_is_fitted(self, "image_shape_")
        return np.asarray([f"scattering{i}" for i in range(self.n_features_out_)], dtype=object)

    def cache_key(self) -> str:
        """Name everything that the features depend on besides the images.

        Returns
        -------
        str
            For :class:`~collegium.models.features.CachedTransform`.
        """
        check_is_fitted(self, "image_shape_")
        shape = "x".join(map(str, self.image_shape_))
        enlarged = f" enlarged={self.enlargement_}" if self.enlargement_ > 1 else ""
        return (
            f"scattering-{SCATTERING_VERSION} J={self.J} L={self.L} order={self.max_order} {shape} "
            f"root={bool(self.root)}{enlarged}"
        )

    def _compute(self, images: NDArray[Any], features: NDArray[np.float32]) -> None:
        *sides, depth = self.image_shape_
        times = self.enlargement_
        height, width = (side * times for side in sides)
        block = max(1, self.batch_size // depth)
        n_threads = max(1, min(joblib.effective_n_jobs(self.n_jobs), -(-len(images) // block)))
        cascades: queue.SimpleQueue[Cascade] = queue.SimpleQueue()
        for _ in range(n_threads):
            cascades.put(Cascade((height, width), self.J, self.L, self.max_order, block * depth))

        def scatter(first: int) -> None:
            part = images[first : first + block]
            finite_numbers(part, "images")
            # The last block is filled up, so that the arithmetic of an image is always the same.
            filled = np.zeros((block, height, width, depth), dtype=np.float32)
            filled[: len(part)] = part.repeat(times, axis=1).repeat(times, axis=2)
            planes = filled.transpose(0, 3, 1, 2).reshape(block * depth, height, width)
            cascade = cascades.get()
            try:
                values = cascade.run(planes)
            finally:
                cascades.put(cascade)
            if self.root:
                values = np.copysign(np.sqrt(np.abs(values)), values)
            features[first : first + block] = values.reshape(block, depth, -1)[: len(part)]

        in_threads(scatter, range(0, len(images), block), n_threads)

    def _check_parameters(self) -> None:
        check_whole("J", self.J, 1, _LARGEST_J)
        check_whole("L", self.L, 1, _LARGEST_L)
        check_whole("max_order", self.max_order, 0, 2)
        check_whole("least_side", self.least_side, 1, 4096)
        check_whole("batch_size", self.batch_size, 1, 4096)
        check_image_shape(self.shape)


def _mirrored_channels(n_scales: int, n_angles: int, max_order: int) -> list[int]:
    """Find, for each channel, the one whose wavelets are its mirror images."""
    first = [(scale, angle) for scale in range(n_scales) for angle in range(n_angles)]
    second = [(one, two) for one in first for two in first if two[0] > one[0]]
    # Angles are counted from the vertical, at the place (n_angles - 2) // 2, down to it again.
    vertical = max(0, (n_angles - 2) // 2)
    turned = {(scale, angle): (scale, (2 * vertical - angle) % n_angles) for scale, angle in first}
    groups: list[tuple[list[Any], list[Any]]] = [
        (first, [turned[one] for one in first]),
        (second, [(turned[one], turned[two]) for one, two in second]),
    ]
    places = [0]
    for channels, mirrored in groups[:max_order]:
        where = {channel: place for place, channel in enumerate(channels, start=len(places))}
        places += [where[channel] for channel in mirrored]
    return places
