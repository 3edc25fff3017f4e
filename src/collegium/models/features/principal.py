"""Principal components and scales that are learnt from public records only."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from collegium.checks import check_share, check_whole
from collegium.errors import InputError
from collegium.models.exact_products import exact_product
from collegium.models.features.dense_tables import dense_table

_ROWS = 1024  # records that are handled together
_MANY_FEATURES = 1000
_LEAST_SPREAD = float(np.finfo(np.float32).tiny)
_POWER = 5  # iterations of the randomised solver


class PublicComponents(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Centre, rotate and scale records by what public records show.

    Parameters
    ----------
    n_components : int, optional
        How many principal components are kept. Left out: no rotation, all features stay.
    whiten : float, default=0.0
        0 keeps the scale of each component (or feature), 1 divides by its public standard deviation, values
        between divide by that power of it. Where it is above 0, one common factor then makes the mean
        public variance 1.
    public : array-like, optional
        Fit on these records, whatever ``fit`` is given.
    or_fewer : bool, default=False
        Keep as many as there are, where public records have fewer than ``n_components``.

    Attributes
    ----------
    mean_ : ndarray, shape (n_features_in_,)
        Public mean.
    components_ : ndarray, shape (n_components, n_features_in_)
        Directions of largest public variance; absent without ``n_components``.
    scale_ : ndarray, shape (n_components,) or (n_features_in_,)
        Divides the components (or features).
    explained_variance_ratio_ : ndarray, shape (n_components,)
        Share of the public variance in each; absent without ``n_components``.
    n_features_in_ : int
        Features per record.

    Notes
    -----
    Components of pooled private records are a release that no account covers.
    :class:`~collegium.PATEClassifier` and studies fit their ``preprocessing`` on public records; where
    something else calls ``fit`` (a pipeline, say), give ``public``, and no private record can get in.

    Directions come from scikit-learn's ``PCA`` (the randomised solver with a fixed seed, where there are
    many features); what is added here is the guard, partial whitening, and arithmetic in 32 bits and in
    blocks, each record by itself.

    Examples
    --------
    >>> public = np.random.default_rng(0).normal(size=(50, 3)) * [10.0, 1.0, 0.1]
    >>> components = PublicComponents(n_components=2, whiten=1.0).fit(public)
    >>> components.transform(public).std(axis=0).round(6).tolist()
    [1.0, 1.0]
    """

    exact_by_record = True  # no bit of a record's features depends on another's presence

    def __init__(
        self,
        n_components: int | None = None,
        whiten: float = 0.0,
        public: ArrayLike | None = None,
        or_fewer: bool = False,
    ) -> None:
        self.n_components = n_components
        self.whiten = whiten
        self.public = public
        self.or_fewer = or_fewer

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn mean, directions and scales.

        Parameters
        ----------
        X : array-like, shape (n_public, n_features)
            Public records; not looked at where the parameter ``public`` is given.
        y : object, optional
            Ignored.

        Returns
        -------
        PublicComponents
            Itself.

        Raises
        ------
        InputError
            If a parameter is out of range, or the records are no finite numbers.
        """
        table = dense_table(X if self.public is None else self.public, "public records")
        n, n_features = table.shape
        if 0 < float((table.max(axis=0) - table.min(axis=0)).max()) < _LEAST_SPREAD:
            raise InputError(
                f"the public records differ by less than {_LEAST_SPREAD:.2g} in every column, which is lost "
                "in 32 bits: give all records in another unit"
            )
        check_share("whiten", self.whiten)
        kept = self.n_components
        if kept is not None:
            most = min(n - 1, n_features)
            check_whole("n_components", kept)
            if self.or_fewer and most:
                kept = min(kept, most)
            if kept > most:
                raise InputError(
                    f"n_components={self.n_components} was given; {n} public records of {n_features} "
                    f"features have at most {most}: lower it, or give more public records"
                )
        if kept is None:
            mean = table.mean(axis=0, dtype=np.float64)
            deviation = table.std(axis=0, dtype=np.float64)
        else:
            solver = "randomized" if n_features > _MANY_FEATURES else "auto"
            pca = PCA(kept, svd_solver=solver, iterated_power=_POWER, random_state=0)
            pca.fit(table)
            mean, deviation = pca.mean_, np.sqrt(pca.explained_variance_ * ((n - 1) / n))
            self.components_ = pca.components_.astype(np.float32)
            self.explained_variance_ratio_ = pca.explained_variance_ratio_
        # A direction in which public records do not differ says nothing: it is not blown up.
        usable = np.where(deviation > 1e-6 * deviation.max(initial=0.0), deviation, 1.0)
        scale = usable**self.whiten
        if self.whiten and deviation.any():
            scale *= np.sqrt(np.mean((deviation / scale) ** 2))
        self.scale_ = scale.astype(np.float32)
        self.n_features_in_ = n_features
        self.mean_ = np.asarray(mean, dtype=np.float32)
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """Apply to any records, each by itself.

        Parameters
        ----------
        X : array-like, shape (n_records, n_features)
            Records with the features of the public ones.

        Returns
        -------
        ndarray of float32, shape (n_records, n_components or n_features)
            Components (or scaled features).

        Raises
        ------
        InputError
            If the records have another number of features, or are no finite numbers.
        """
        check_is_fitted(self, "mean_")
        table = dense_table(X, "records", self.n_features_in_)
        made = np.empty((len(table), len(self.scale_)), dtype=np.float32)
        width = self.n_features_in_
        for first in range(0, len(table), _ROWS):
            part = table[first : first + _ROWS]
            centred = np.empty((len(part), width), dtype=np.float32)
            np.subtract(part, self.mean_, out=centred, casting="same_kind")
            if self.n_components is not None:  # the arithmetic of a record is always the same
                centred = exact_product(centred, self.components_.T).astype(np.float32)
            np.divide(centred, self.scale_, out=made[first : first + _ROWS])
        return made

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the output's columns: ``component0``, ``component1``, ..."""
        check_is_fitted(self, "mean_")
        return np.asarray([f"component{i}" for i in range(len(self.scale_))], dtype=object)
