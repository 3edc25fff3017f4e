"""Images as points that lie close together where images are alike: patches, wavelets, components."""

from __future__ import annotations

from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from collegium.checks import check_share, check_whole
from collegium.models.features.dense_tables import finite_numbers
from collegium.models.features.images import (
    image_array,
    image_shape,
    of_image_shape,
    resized,
    scale_of,
)
from collegium.models.features.patches import PatchFeatures
from collegium.models.features.principal import PublicComponents
from collegium.models.features.scattering import ScatteringTransform
from collegium.models.threads import in_threads

Floats = NDArray[np.float32]
_TOGETHER = 64  # images for one thread at a time
_LEARNT_FROM = 6000  # public images that components are learnt from, at most
_MOST_SIDE = 64
_LEAST_SIDE = 16  # digits of 8 × 8 pixels, 1,200 people at ε = 1-2-3: enlarged to 16 they did best


class ImagePoints(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The principal components of what public images show of patches and of wavelets.

    What :class:`~collegium.models.features.kernel_components.KernelComponents` compares images in: patches
    see colour and detail (:class:`~collegium.models.features.patches.PatchFeatures`), wavelets the shapes of
    all channels together (:class:`~collegium.models.features.ScatteringTransform`). Images of more than one
    channel, which as a rule are photographs, come with their mirror images, so that what is learnt of them
    holds for both; others, such as digits, do not. Thumbnails with a side of less than 16 pixels hold no
    patches worth comparing: wavelets alone see them, enlarged. In images with a side of more than 64, pixels
    are averaged.

    Parameters
    ----------
    n_components : int, default=400
        At most so many principal components of the public images' features are kept.
    whiten : float, default=0.5
        As of :class:`~collegium.models.features.PublicComponents`.
    n_patches : int, default=400
        As of :class:`~collegium.models.features.PatchFeatures`.
    shape : tuple of int, optional
        (height, width) or (height, width, channels) of one image, where records are flattened. Left out:
        square images of one channel.
    random_state : int, default=0
        Which patches are drawn, and from which public images components are learnt, if there are many.
    n_jobs : int, default=-1
        Threads, as in joblib; -1: all cores.

    Attributes
    ----------
    image_shape_ : tuple of int
        (height, width, channels) of one image.
    patches_, wavelets_ : PatchFeatures, ScatteringTransform
        As fitted; ``patches_`` is None for thumbnails.
    scales_ : ndarray of float32, shape (2,)
        What each of them is divided by, so that both weigh the same.
    components_ : PublicComponents
        As fitted.

    Examples
    --------
    >>> grey = np.random.default_rng(0).random((40, 16, 16))
    >>> ImagePoints(n_components=5).fit(grey).transform(grey).shape
    (40, 5)
    >>> colour = np.random.default_rng(0).random((40, 16, 16, 3))
    >>> ImagePoints(n_components=5).fit(colour).transform(colour).shape
    (40, 2, 5)
    """

    exact_by_record = True  # images are looked at one by one

    def __init__(
        self,
        n_components: int = 400,
        *,
        whiten: float = 0.5,
        n_patches: int = 400,
        shape: tuple[int, ...] | None = None,
        random_state: int = 0,
        n_jobs: int = -1,
    ) -> None:
        self.n_components = n_components
        self.whiten = whiten
        self.n_patches = n_patches
        self.shape = shape
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn patches and components from public images.

        Parameters
        ----------
        X : array-like, shape (n_public, height, width[, channels]) or (n_public, n_pixels)
            Public images. Private ones must not be given here.
        y : object, optional
            Ignored.

        Returns
        -------
        ImagePoints
            Itself.

        Raises
        ------
        InputError
            If a parameter is out of range, or the images are no finite numbers, too small, or blank.
        """
        self._learn(X)
        return self

    def fit_transform(self, X: ArrayLike, y: object = None) -> Floats:
        """Learn patches and components from public images, and compute the points of these.

        Looks at every image once; bit for bit what :meth:`fit` and then :meth:`transform` make.

        Parameters
        ----------
        X : array-like, shape (n_public, height, width[, channels]) or (n_public, n_pixels)
            Public images. Private ones must not be given here.
        y : object, optional
            Ignored.

        Returns
        -------
        ndarray of float32
            As of :meth:`transform`.

        Raises
        ------
        InputError
            As :meth:`fit`.
        """
        images, learnt_from, parts = self._learn(X)
        others = np.setdiff1d(np.arange(len(images)), learnt_from)
        points = np.empty((len(images), self._n_points), dtype=np.float32)
        points[learnt_from] = self._in_blocks(parts, self._of_scaled, self._n_points)
        points[others] = self._in_blocks(images[others], self._points, self._n_points)
        return self._with_variants(points)

    def _learn(self, X: ArrayLike) -> tuple[NDArray[Any], NDArray[np.intp], Floats]:
        """Fit; give the images, of which components were learnt, and the scaled features of these."""
        check_whole("n_components", self.n_components)
        check_share("whiten", self.whiten)
        images = image_array(X)
        self.image_shape_ = image_shape(images.shape[1:], self.shape)
        images = of_image_shape(images, self.image_shape_)
        self.patches_ = None
        if min(self.image_shape_[:2]) >= _LEAST_SIDE:
            self.patches_ = PatchFeatures(
                self.n_patches,
                mirrored=self.is_mirrored,
                least_side=_LEAST_SIDE,
                most_side=_MOST_SIDE,
                random_state=self.random_state,
                n_jobs=1,
            ).fit(images)
        # One image at a time: then no bit depends on which others are there.
        self.wavelets_ = ScatteringTransform(root=True, batch_size=1, n_jobs=1)
        self.wavelets_.fit(self._grey(images[:1]))
        order = np.random.default_rng(self.random_state).permutation(len(images))
        learnt_from = np.sort(order[:_LEARNT_FROM])
        made = self._in_blocks(images[learnt_from], self._parts, self._width)
        if self.is_mirrored:  # half of them, or their mirror images
            made[::2] = self._mirrored(made[::2])
        spreads = [float(np.sqrt(part.var(axis=0).sum())) for part in self._apart(made)]
        self.scales_ = np.array([spread or 1.0 for spread in spreads], dtype=np.float32)
        self._scale(made)
        self.components_ = PublicComponents(
            self.n_components, whiten=self.whiten, or_fewer=True
        ).fit(made)
        self.n_features_in_ = int(np.prod(self.image_shape_))
        if self.is_mirrored:  # back
            made[::2] = self._mirrored(made[::2])
        return images, learnt_from, made

    @property
    def is_mirrored(self) -> bool:
        """Whether images come with their mirror images."""
        return self.image_shape_[2] > 1

    def transform(self, X: ArrayLike) -> Floats:
        """Compute the points of images, each by itself.

        Parameters
        ----------
        X : array-like
            Images of the shape given to ``fit``.

        Returns
        -------
        ndarray of float32, shape (n_images, n_kept), or (n_images, 2, n_kept) of images in colour
            The image's point; of images in colour, and then its mirror image's.

        Raises
        ------
        InputError
            If the images have another shape, or are no finite numbers.
        """
        check_is_fitted(self, "components_")
        images = of_image_shape(X, self.image_shape_)
        return self._with_variants(self._in_blocks(images, self._points, self._n_points))

    def cache_key(self) -> str:
        """Name everything that the points depend on besides the images.

        Returns
        -------
        str
            For :class:`~collegium.models.features.CachedTransform`.
        """
        check_is_fitted(self, "components_")
        learnt = joblib.hash([self.scales_, self.components_], hash_name="sha1")
        shape = "x".join(map(str, self.image_shape_))
        patches = "no patches" if self.patches_ is None else self.patches_.cache_key()
        return f"{shape} {patches} and {self.wavelets_.cache_key()} to points {learnt}"

    @property
    def _n_points(self) -> int:
        """How many numbers are made of an image, with its mirror image."""
        kept = len(self.components_.scale_)
        return 2 * kept if self.is_mirrored else kept

    def _with_variants(self, points: Floats) -> Floats:
        return points.reshape(-1, 2, self._n_points // 2) if self.is_mirrored else points

    def _points(self, images: NDArray[Any]) -> Floats:
        parts = self._parts(images)
        self._scale(parts)
        return self._of_scaled(parts)

    def _of_scaled(self, parts: Floats) -> Floats:
        points = self.components_.transform(parts)
        if not self.is_mirrored:
            return points
        return np.hstack([points, self.components_.transform(self._mirrored(parts))])

    def _parts(self, images: NDArray[Any]) -> Floats:
        waves = self.wavelets_.transform(self._grey(images))
        return (
            waves if self.patches_ is None else np.hstack([self.patches_.transform(images), waves])
        )

    def _grey(self, images: NDArray[Any]) -> Floats:
        finite_numbers(images, "images")
        return np.asarray(resized(images, self.scale_).mean(axis=3))

    @property
    def scale_(self) -> tuple[int, int]:
        """How often pixels are repeated, and how many are averaged, across and down."""
        return scale_of(self.image_shape_, _LEAST_SIDE, _MOST_SIDE)

    @property
    def _n_of_patches(self) -> int:
        return 0 if self.patches_ is None else self.patches_.n_features_out_

    @property
    def _width(self) -> int:
        return self._n_of_patches + self.wavelets_.n_features_out_

    def _apart(self, parts: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Look at what patches showed, and what wavelets did."""
        n = self._n_of_patches
        return parts[:, :n], parts[:, n:]

    def _scale(self, parts: Floats) -> None:
        for part, scale in zip(self._apart(parts), self.scales_, strict=True):
            part /= scale

    @property
    def mirrored_places_(self) -> NDArray[np.intp]:
        """Where, among the features of which components are made, those of the mirror image stand."""
        places = np.arange(self._width, dtype=np.intp)[None]
        mirrored: NDArray[np.intp] = self._mirrored(places)[0]
        return mirrored

    def _mirrored(self, parts: NDArray[Any]) -> NDArray[Any]:
        patches, waves = self._apart(parts)
        waves = self.wavelets_.mirror(waves)
        return waves if self.patches_ is None else np.hstack([self.patches_.mirror(patches), waves])

    def _in_blocks(self, images: NDArray[Any], make: Any, width: int) -> Floats:
        made = np.empty((len(images), width), dtype=np.float32)

        def of_block(first: int) -> None:
            made[first : first + _TOGETHER] = make(images[first : first + _TOGETHER])

        firsts = range(0, len(images), _TOGETHER)
        in_threads(of_block, firsts, min(joblib.effective_n_jobs(self.n_jobs), max(1, len(firsts))))
        return made
