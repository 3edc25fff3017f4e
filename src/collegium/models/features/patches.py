"""Which small patches of public images are found where in an image: one shallow layer, never trained."""

from __future__ import annotations

from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from collegium.checks import check_number, check_truth, check_whole
from collegium.errors import InputError
from collegium.models.features.dense_tables import finite_numbers
from collegium.models.features.images import (
    check_image_shape,
    image_array,
    image_shape,
    of_image_shape,
    resized,
    scale_of,
)
from collegium.models.threads import in_threads

#: Changes when the same parameters give other numbers: caches of older ones are then void.
PATCHES_VERSION = 1
Floats = NDArray[np.float32]
_DRAWN = 40_000  # public patches that whitening is learnt from
_TOGETHER = 64  # images for one thread at a time
_FLAT = 0.01  # of the mean variance of public patches: what counts as no contrast at all
_EVEN = 0.1  # is added to the variance of each direction of normalised patches, on average about 1
_FAINT = 0.1  # part of the drawn patches, the faintest, that is not chosen from


class PatchFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """How much of each of some hundred patches of public images there is in each part of an image.

    Every patch of an image is brought to one contrast, whitened as public patches show, and compared with
    patches drawn from public images; what agrees, or disagrees, by more than a threshold is averaged over
    each cell of a coarse grid, of which the square root is taken. Nothing is trained.

    Parameters
    ----------
    n_patches : int, default=400
        Patches to compare with: each makes two features in every cell.
    patch_size : int, default=6
        Pixels, across and down.
    grid : int, default=3
        Cells, across and down; they overlap by half.
    threshold : float, default=1.0
        What must be exceeded, in standard deviations of whitened numbers.
    mirrored : bool, default=False
        Whether every patch has its mirror image among the patches, so that :meth:`mirror` knows the
        features of mirrored images.
    least_side, most_side : int, default=16 and 64
        Images with a shorter side are enlarged: every pixel is repeated. In those with a longer one, squares
        of pixels are averaged.
    shape : tuple of int, optional
        (height, width) or (height, width, channels) of one image, where records are flattened. Left out:
        square images of one channel.
    random_state : int, default=0
        Which patches are drawn.
    n_jobs : int, default=-1
        Threads, as in joblib; -1: all cores.

    Attributes
    ----------
    filters_ : ndarray of float32, shape (patch_size · patch_size · channels, n_patches)
        Whitened patches of public images: whoever gets the transformer gets these.
    offset_ : ndarray of float32, shape (n_patches,)
        Comparison with the mean public patch.
    contrast_ : float
        Variance that is added to every patch's.
    image_shape_ : tuple of int
        (height, width, channels) of one image.
    n_features_in_, n_features_out_ : int
        Values, and features, per image.

    References
    ----------
    A. Coates, A. Ng, H. Lee, *An analysis of single-layer networks in unsupervised feature learning*, AISTATS
    2011; A. Coates, A. Ng, *The importance of encoding versus training with sparse coding and vector
    quantization*, ICML 2011 (random patches and a two-sided threshold).

    Examples
    --------
    >>> images = np.random.default_rng(0).random((40, 32, 32, 3))
    >>> PatchFeatures(n_patches=20).fit(images).transform(images).shape
    (40, 360)
    """

    exact_by_record = True  # every image is multiplied by itself, in products of one size

    def __init__(
        self,
        n_patches: int = 400,
        *,
        patch_size: int = 6,
        grid: int = 3,
        threshold: float = 1.0,
        mirrored: bool = False,
        least_side: int = 16,
        most_side: int = 64,
        shape: tuple[int, ...] | None = None,
        random_state: int = 0,
        n_jobs: int = -1,
    ) -> None:
        self.n_patches = n_patches
        self.patch_size = patch_size
        self.grid = grid
        self.threshold = threshold
        self.mirrored = mirrored
        self.least_side = least_side
        self.most_side = most_side
        self.shape = shape
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Draw patches, and learn how to whiten them, from public images.

        Parameters
        ----------
        X : array-like, shape (n_public, height, width[, channels]) or (n_public, n_pixels)
            Public images. Private ones must not be given here.
        y : object, optional
            Ignored.

        Returns
        -------
        PatchFeatures
            Itself.

        Raises
        ------
        InputError
            If a parameter is out of range, or the images are no finite numbers, too small, or blank.
        """
        self._check_parameters()
        images = image_array(X)
        finite_numbers(images, "public images")
        self.image_shape_ = image_shape(images.shape[1:], self.shape)
        images = of_image_shape(images, self.image_shape_)
        self.n_features_in_ = int(np.prod(self.image_shape_))
        self.version_ = PATCHES_VERSION
        sides = self.seen_sides_
        if min(sides) < self.patch_size + self.grid - 1:
            raise InputError(
                f"images of {sides[0]} × {sides[1]} pixels are too small for patch_size={self.patch_size} "
                f"and grid={self.grid}: allowed are at least {self.patch_size + self.grid - 1} on each side; "
                "lower them, or raise least_side"
            )
        self.n_features_out_ = 2 * self.n_patches * self.grid**2
        random = np.random.default_rng(self.random_state)
        patches = self._drawn(images, random)
        patches -= patches.mean(axis=1, keepdims=True)
        variances = patches.var(axis=1)
        self.contrast_ = _FLAT * float(variances.mean())
        if not self.contrast_ > 0:
            raise InputError(
                "all public images are blank, so that patches say nothing: give others"
            )
        textured = variances > self.contrast_
        patches /= np.sqrt(variances + self.contrast_)[:, None]
        both = self._with_mirror_images(patches) if self.mirrored else patches
        mean = both.mean(axis=0, dtype=np.float64)
        values, vectors = linalg.eigh(np.cov((both - mean).T))
        whitening = (vectors / np.sqrt(np.maximum(values, 0.0) + _EVEN)) @ vectors.T
        candidates = (patches[textured] - mean) @ whitening
        lengths = np.linalg.norm(candidates, axis=1)
        candidates = candidates[lengths >= np.quantile(lengths, _FAINT)]
        n_drawn = self.n_patches // 2 if self.mirrored else self.n_patches
        chosen = candidates[
            random.permutation(len(candidates))[np.arange(n_drawn) % len(candidates)]
        ]
        chosen /= np.linalg.norm(chosen, axis=1, keepdims=True)
        if self.mirrored:
            chosen = self._with_mirror_images(chosen)
        filters = whitening @ chosen.T
        self.offset_ = (mean @ filters).astype(np.float32)
        # A patch less its own mean is compared: as if filters had none.
        self.filters_ = np.ascontiguousarray(filters - filters.mean(axis=0), dtype=np.float32)
        self.pooling_ = _pooling([side - self.patch_size + 1 for side in sides], self.grid)
        return self

    @property
    def seen_sides_(self) -> tuple[int, int]:
        """Height and width in which images are looked at: enlarged, or shrunk."""
        times, merged = self.scale_
        height, width, _ = self.image_shape_
        return -(-height * times // merged), -(-width * times // merged)

    def transform(self, X: ArrayLike) -> Floats:
        """Compute the features of images, each by itself.

        Parameters
        ----------
        X : array-like
            Images of the shape given to ``fit``.

        Returns
        -------
        ndarray of float32, shape (n_images, n_features_out_)
            Cell by cell of the grid: agreement with each patch, then disagreement.

        Raises
        ------
        InputError
            If the images have another shape, or are no finite numbers.
        """
        check_is_fitted(self, "filters_")
        images = of_image_shape(X, self.image_shape_)
        made = np.empty((len(images), self.n_features_out_), dtype=np.float32)

        def compare(first: int) -> None:
            part = images[first : first + _TOGETHER]
            finite_numbers(part, "images")
            for place, image in enumerate(resized(part, self.scale_), start=first):
                made[place] = self._of_one(image)

        firsts = range(0, len(images), _TOGETHER)
        in_threads(compare, firsts, min(joblib.effective_n_jobs(self.n_jobs), max(1, len(firsts))))
        return made

    def mirror(self, features: Floats) -> Floats:
        """Give the features of mirrored images (left for right), from those of the images.

        Parameters
        ----------
        features : ndarray, shape (n_images, n_features_out_)
            As :meth:`transform` made them, with ``mirrored``.

        Returns
        -------
        ndarray, shape (n_images, n_features_out_)
        """
        cells = features.reshape(len(features), self.grid, self.grid, 2, 2, self.n_patches // 2)
        return np.ascontiguousarray(cells[:, :, ::-1, :, ::-1]).reshape(features.shape)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the output's columns: ``patch0``, ``patch1``, ..."""
        check_is_fitted(self, "filters_")
        return np.asarray([f"patch{i}" for i in range(self.n_features_out_)], dtype=object)

    def cache_key(self) -> str:
        """Name everything that the features depend on besides the images.

        Returns
        -------
        str
            For :class:`~collegium.models.features.CachedTransform`.
        """
        check_is_fitted(self, "filters_")
        learnt = joblib.hash([self.filters_, self.offset_, self.contrast_], hash_name="sha1")
        shape = "x".join(map(str, self.image_shape_))
        scale = "/".join(map(str, self.scale_))
        return (
            f"patches-{PATCHES_VERSION} {shape} scale={scale} grid={self.grid} "
            f"threshold={self.threshold:g} {learnt}"
        )

    def _with_mirror_images(self, patches: NDArray[Any]) -> NDArray[Any]:
        pixels = patches.reshape(len(patches), self.patch_size, self.patch_size, -1)
        return np.concatenate([patches, pixels[:, :, ::-1].reshape(len(patches), -1)])

    def _of_one(self, image: Floats) -> Floats:
        size = self.patch_size
        windows = np.lib.stride_tricks.sliding_window_view(image, (size, size), axis=(0, 1))
        patches = np.ascontiguousarray(windows.transpose(0, 1, 3, 4, 2))
        patches = patches.reshape(windows.shape[0] * windows.shape[1], -1)
        contrast = np.sqrt(patches.var(axis=1) + np.float32(self.contrast_))
        agreed = patches @ self.filters_
        agreed /= contrast[:, None]
        agreed -= self.offset_
        beyond = np.maximum(agreed - np.float32(self.threshold), 0)
        pooled = [self.pooling_ @ beyond]
        np.maximum(-agreed - np.float32(self.threshold), 0, out=beyond)
        pooled.append(self.pooling_ @ beyond)
        return np.asarray(np.sqrt(np.concatenate(pooled, axis=1)).reshape(-1), dtype=np.float32)

    def _drawn(self, images: NDArray[Any], random: np.random.Generator) -> Floats:
        """Draw patches from public images, anywhere in them."""
        height, width = (side - self.patch_size + 1 for side in self.seen_sides_)
        which = np.sort(random.integers(0, len(images), _DRAWN))
        rows, columns = random.integers(0, height, _DRAWN), random.integers(0, width, _DRAWN)
        size = self.patch_size
        made = np.empty((_DRAWN, size * size * self.image_shape_[2]), dtype=np.float32)
        for first in range(0, len(images), _TOGETHER):
            begin, end = np.searchsorted(which, [first, first + _TOGETHER])
            seen = resized(images[first : first + _TOGETHER], self.scale_)
            for i in range(begin, end):
                row, column = rows[i], columns[i]
                patch = seen[which[i] - first, row : row + size, column : column + size]
                made[i] = patch.ravel()
        return made

    @property
    def scale_(self) -> tuple[int, int]:
        """How often pixels are repeated, and how many are averaged, across and down."""
        return scale_of(self.image_shape_, self.least_side, self.most_side)

    def _check_parameters(self) -> None:
        check_truth("mirrored", self.mirrored)
        check_whole("n_patches", self.n_patches, 2 if self.mirrored else 1)
        if self.mirrored and self.n_patches % 2:
            raise InputError(
                f"n_patches={self.n_patches} was given; with mirrored, half of them are mirror images of the "
                "others: give an even number"
            )
        check_whole("patch_size", self.patch_size, 2, 64)
        check_whole("grid", self.grid, 1, 64)
        check_number("threshold", self.threshold, least=0, below=np.inf)
        check_whole("least_side", self.least_side, 1, 4096)
        check_whole("most_side", self.most_side, self.least_side, 4096)
        check_whole("random_state", self.random_state, 0)
        check_image_shape(self.shape)


def _pooling(lengths: list[int], grid: int) -> Floats:
    """Weights of all places in each cell, cells that overlap by half: (grid², height · width)."""
    axes = []
    for length in lengths:
        place = (np.arange(length) + 0.5) / length * grid
        near = np.maximum(0.0, 1.0 - np.abs(place - (np.arange(grid)[:, None] + 0.5)))
        near /= near.sum(axis=0)
        axes.append(near / near.sum(axis=1, keepdims=True))
    both = np.einsum("ai,bj->abij", *axes)
    return np.ascontiguousarray(both.reshape(grid * grid, -1), dtype=np.float32)
