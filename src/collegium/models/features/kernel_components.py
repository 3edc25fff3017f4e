"""Principal components of a Gaussian kernel between records and public anchors."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from collegium.checks import check_positive, check_share, check_whole
from collegium.errors import InputError
from collegium.models.exact_products import exact_product
from collegium.models.features.dense_tables import dense_table
from collegium.models.features.orientation import oriented

Floats = NDArray[np.float32]
_ROWS = 1024  # records that are handled together
_DISTANCES_SEEN = 1000
_ALIKE = "most public records are alike, so that distances say nothing: give ones that differ"
_USABLE = 1e-6  # of the largest eigenvalue of the anchors' kernel


class KernelComponents(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What a linear model needs to draw curved borders: similarities to public records, rotated and scaled.

    Rows are brought to unit length and compared with anchors, some of the public records, by the Gaussian
    kernel k(x, a) = exp(−‖x − a‖²/(2·w²)); the principal components of these similarities among public
    records (kernel PCA by the Nyström method) are scaled as by
    :class:`~collegium.models.features.principal.PublicComponents`. Use it behind one: it compares records in
    all of their features. Records may come in variants that mean the same, such as an image and its mirror
    image: their similarities are then averaged, so that all variants of a record have the same components.

    Parameters
    ----------
    n_components : int, default=800
        At most so many components are kept, those of largest public variance.
    n_anchors : int, default=3000
        At most so many public records that others are compared with, drawn at random.
    length_scale : float, default=0.5
        w, in units of the median distance between public records.
    whiten : float, default=0.75
        0 keeps the scale of each component, 1 divides by its public standard deviation.
    random_state : int, default=0
        Which records become anchors.

    Attributes
    ----------
    anchors_ : ndarray of float32, shape (n_anchors, n_features_in_)
        Public records of unit length: whoever gets the transformer gets these.
    width_ : float
        w.
    projection_ : ndarray of float32, shape (n_anchors, n_kept)
        From similarities to components.
    offset_ : ndarray of float32, shape (n_kept,)
        Components of the public mean.
    n_variants_ : int
        Variants in which each record comes.
    n_features_in_ : int
        Features per record.

    References
    ----------
    Schölkopf, Smola & Müller, *Nonlinear component analysis as a kernel eigenvalue problem*, Neural
    Computation 10(5), 1998; Williams & Seeger, *Using the Nyström method to speed up kernel machines*, NIPS
    2000.

    Examples
    --------
    >>> ring = np.exp(2j * np.pi * np.arange(40) / 40)
    >>> public = np.stack([ring.real, ring.imag], axis=1)
    >>> KernelComponents(n_components=4).fit(public).transform(public).shape
    (40, 4)
    """

    exact_by_record = True  # no bit of a record's features depends on another's presence

    def __init__(
        self,
        n_components: int = 800,
        *,
        n_anchors: int = 3000,
        length_scale: float = 0.5,
        whiten: float = 0.75,
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_anchors = n_anchors
        self.length_scale = length_scale
        self.whiten = whiten
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Choose anchors, and learn components and scales from public records.

        Parameters
        ----------
        X : array-like, shape (n_public, n_features) or (n_public, n_variants, n_features)
            Public records. Private records must not be given here.
        y : object, optional
            Ignored.

        Returns
        -------
        KernelComponents
            Itself.

        Raises
        ------
        InputError
            If a parameter is out of range, the records are no finite numbers, or all alike.
        """
        check_whole("n_components", self.n_components)
        check_whole("n_anchors", self.n_anchors)
        check_positive("length_scale", self.length_scale)
        check_share("whiten", self.whiten)
        with threadpool_limits(1):  # so that bits do not depend on how many there are
            self._learn(np.asarray(X))
        return self

    def _learn(self, table: NDArray[Any]) -> None:
        self.n_variants_ = table.shape[1] if table.ndim == 3 else 1
        rows = _rows(dense_table(_variant(table, 0), "public records"))
        order = np.random.default_rng(self.random_state).permutation(len(rows))
        anchors = rows[order[: self.n_anchors]]
        few = normalize(anchors[:_DISTANCES_SEEN].astype(np.float64))
        distances = np.sqrt(np.maximum(2 - 2 * (few @ few.T), 0.0))[np.triu_indices(len(few), 1)]
        median = float(np.median(distances)) if distances.size else 0.0
        if not median > 1e-6:
            raise InputError(_ALIKE)
        self.anchors_, self.width_ = anchors, self.length_scale * median
        parts = [table[first : first + _ROWS] for first in range(0, len(table), _ROWS)]
        alike = self._alike(table[order[: self.n_anchors]]).astype(np.float64)
        values, vectors = linalg.eigh((alike + alike.T) / 2)
        usable = values > _USABLE * values[-1]
        whitened = vectors[:, usable] / np.sqrt(values[usable])
        seen = np.concatenate([self._alike(part) @ whitened for part in parts])
        mean = seen.mean(axis=0)
        seen -= mean
        if not seen.size:
            raise InputError(_ALIKE)
        variances, directions = linalg.eigh(seen.T @ seen / len(seen))
        kept = min(self.n_components, int((variances > _USABLE * variances[-1]).sum()))
        deviations = np.sqrt(variances[::-1][:kept])
        directions = directions[:, ::-1][:, :kept] / deviations**self.whiten
        projection = oriented(np.vstack([whitened, mean]) @ directions)
        self.projection_ = projection[:-1].astype(np.float32)
        self.offset_ = projection[-1].astype(np.float32)
        self.n_features_in_ = int(rows.shape[1])

    def transform(self, X: ArrayLike) -> Floats:
        """Apply to any records, each by itself.

        Parameters
        ----------
        X : array-like, shape (n_records, n_features) or (n_records, n_variants, n_features)
            Records with the features, and variants, of the public ones.

        Returns
        -------
        ndarray of float32, shape (n_records, n_kept)

        Raises
        ------
        InputError
            If the records have another number of features, or are no finite numbers.
        """
        check_is_fitted(self, "projection_")
        table = np.asarray(X)
        if table.ndim != 3 or table.shape[1] != self.n_variants_:
            table = dense_table(X, "records", self.n_features_in_)
        made = np.empty((len(table), len(self.offset_)), dtype=np.float32)
        for first in range(0, len(table), _ROWS):
            alike = self._alike(table[first : first + _ROWS])
            # Exactly, so that the arithmetic of a record is always the same.
            made[first : first + _ROWS] = exact_product(alike, self.projection_) - self.offset_
        return made

    def narrowed(self, n_components: int) -> Self:
        """Keep fewer components of what was fitted.

        Parameters
        ----------
        n_components : int
            The first so many, or all where there are fewer.

        Returns
        -------
        KernelComponents
            As if fitted with so many, but for rounding.
        """
        check_is_fitted(self, "projection_")
        check_whole("n_components", n_components)
        fewer = copy.copy(self)
        fewer.n_components = n_components
        fewer.projection_ = np.ascontiguousarray(self.projection_[:, :n_components])
        fewer.offset_ = self.offset_[:n_components]
        return fewer

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the output's columns: ``kernel0``, ``kernel1``, ..."""
        check_is_fitted(self, "projection_")
        return np.asarray([f"kernel{i}" for i in range(len(self.offset_))], dtype=object)

    def _alike(self, table: NDArray[Any]) -> Floats:
        """Similarity of records, however many variants each has, to the anchors."""
        variants = range(self.n_variants_)
        of_each = [
            self._kernel(
                _rows(dense_table(_variant(table, place), "records", self.anchors_.shape[1]))
            )
            for place in variants
        ]
        return np.asarray(sum(of_each[1:], of_each[0]) / np.float32(len(variants)))

    def _kernel(self, rows: Floats) -> Floats:
        """Similarity of rows of unit length (or 0) to the anchors."""
        squares = np.einsum("ij,ij->i", rows, rows)[:, None]
        ours = np.einsum("ij,ij->i", self.anchors_, self.anchors_)
        distances = np.maximum(squares + ours - 2 * exact_product(rows, self.anchors_.T), 0)
        return np.asarray(np.exp(distances * np.float32(-0.5 / self.width_**2)), dtype=np.float32)


def _rows(table: NDArray[Any]) -> Floats:
    return np.asarray(normalize(table.astype(np.float32)), dtype=np.float32)


def _variant(table: NDArray[Any], place: int) -> NDArray[Any]:
    return table[:, place] if table.ndim == 3 else table
