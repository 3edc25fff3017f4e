"""Tables for linear models: principal coordinates beside bins, rotated and scaled by public records."""

from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from collegium.checks import check_share, check_whole
from collegium.models.features.principal import PublicComponents
from collegium.models.preprocessing.columns import check_columns, in_blocks
from collegium.models.preprocessing.principal_table import PrincipalTable
from collegium.models.preprocessing.tabular_encoder import TabularEncoder
from collegium.models.preprocessing.wide_table import WideTable, is_wide

Floats = NDArray[np.float32]
_OF_VALUES = 10  # bins of the distinct values
_FEW = 1e-6  # of the largest variance


class BinnedTable(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Describe records of a mixed table so that a linear model can bend: each number also by its bin.

    Numbers are cut at public quantiles, of the records and of their distinct values (a capital gain is 0 for
    nearly everybody, and tells most where it is not). Columns of 0 and 1 say in which bin a number is, and
    above which edges; others which category. Beside the coordinates of a
    :class:`~collegium.models.preprocessing.principal_table.PrincipalTable`, of the same public variance,
    their principal components are scaled as
    :class:`~collegium.models.features.principal.PublicComponents` does it.

    A table of more than 100 columns is described in short, since nothing that is as large as the square of
    its width would fit: each number by itself and in one of four bins, of more than 2,000 columns by itself
    alone; the more columns there are, the fewer categories they keep.

    Parameters
    ----------
    components : int, default=300
        At most so many components, those of largest public variance.
    bins : int, default=20
        Bins of equal public size for each number, where its values allow; of at most 100 columns.
    whiten : float, default=0.75
        0 keeps the scale of each component, 1 divides by its public standard deviation.
    max_categories : int, default=60
        As in :class:`~collegium.models.preprocessing.tabular_encoder.TabularEncoder`.

    Attributes
    ----------
    edges_ : list of ndarray
        Where each number is cut, in the order of the encoder's numeric columns.
    feature_names_in_ : ndarray of str, shape (n_columns,)
        The columns, in the order of the public table.
    n_features_in_ : int
        Their number.

    Notes
    -----
    Fitted on public records only: nothing about one private record enters the description of another.
    Edges are values of public records: whoever gets the transformer gets these.

    Examples
    --------
    >>> public = pd.DataFrame({"age": [20, 60, 40, 30], "work": ["office", "field", "office", "sea"]})
    >>> BinnedTable(components=3).fit(public).transform(public).shape
    (4, 3)
    """

    exact_by_record = True  # no bit of a record's features depends on another's presence
    _wide: WideTable | None

    def __init__(
        self,
        components: int = 300,
        *,
        bins: int = 20,
        whiten: float = 0.75,
        max_categories: int = 60,
    ) -> None:
        self.components = components
        self.bins = bins
        self.whiten = whiten
        self.max_categories = max_categories

    def fit(self, X: pd.DataFrame, y: object = None) -> Self:
        """Learn bins, categories and components from public records.

        Parameters
        ----------
        X : pandas.DataFrame of shape (n_public, n_columns)
            Public records, at least two. Private records must not be given here.
        y : object, optional
            Ignored.

        Returns
        -------
        BinnedTable
            Itself.

        Raises
        ------
        InputError
            If a setting is not allowed, or for what
            :class:`~collegium.models.preprocessing.principal_table.PrincipalTable` refuses.
        """
        check_whole("components", self.components)
        check_whole("bins", self.bins, least=2)
        check_share("whiten", self.whiten)
        check_columns(X)
        if is_wide(X.shape[1]):
            self._fit_wide(X)
            return self
        self._wide = None
        self._table = PrincipalTable(10**6, max_categories=self.max_categories).fit(X)
        self._encoder = TabularEncoder("onehot", "none", self.max_categories).fit(X)
        self.feature_names_in_ = self._encoder.feature_names_in_
        self.n_features_in_ = self._encoder.n_features_in_
        encoded = self._encoder.transform(X)
        n_numbers = len(self._encoder.numeric_columns_)
        self.edges_ = [edges_of(column, self.bins) for column in encoded[:, :n_numbers].T]
        indicators = indicators_of(encoded, self.edges_)
        spread = float(np.sqrt(indicators.var(axis=0, dtype=np.float64).sum()))
        self._divisor = spread if spread > 0 else 1.0
        described = self._describe(X)
        variances = np.linalg.eigvalsh(np.cov(described, rowvar=False, dtype=np.float64))
        rank = int((variances > _FEW * variances[-1]).sum())
        kept = max(1, min(self.components, rank, len(described) - 1))
        self._components = PublicComponents(kept, self.whiten).fit(described)
        return self

    def _fit_wide(self, X: pd.DataFrame) -> None:
        """The same of many columns, in short; no square of their number is made."""
        wide, described = WideTable.learnt(X, self.max_categories)
        self._wide = wide
        self.feature_names_in_ = wide.encoder.feature_names_in_
        self.n_features_in_ = wide.encoder.n_features_in_
        self.edges_ = list(wide.edges.T)
        made = PublicComponents(self.components, self.whiten, or_fewer=True).fit(described)
        shares = made.explained_variance_ratio_
        rank = max(1, int((shares > _FEW * shares[0]).sum()))
        if rank < len(shares):
            made = PublicComponents(rank, self.whiten).fit(described)
        self._components = made

    def transform(self, X: pd.DataFrame) -> Floats:
        """Describe records, each by itself.

        Parameters
        ----------
        X : pandas.DataFrame of shape (n_records, n_columns)
            Public or private records with the columns of the public table, in any order.

        Returns
        -------
        ndarray of float32, of shape (n_records, n_components)
            With public mean 0, in decreasing order of their public variance before scaling.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If ``fit`` was not called.
        InputError
            If the columns are not those of the public table, or hold infinite values.
        """
        check_is_fitted(self, "edges_")
        check_columns(X)
        if len(X) == 0:
            return np.empty((0, len(self._components.scale_)), dtype=np.float32)
        width = self._components.n_features_in_
        return in_blocks(lambda some: self._components.transform(self._describe(some)), X, width)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the output's columns: ``component0``, ``component1``, ..."""
        check_is_fitted(self, "edges_")
        return self._components.get_feature_names_out()

    def _describe(self, X: pd.DataFrame) -> Floats:
        if self._wide is not None:
            return self._wide.described(X)
        indicators = indicators_of(self._encoder.transform(X), self.edges_) / np.float32(
            self._divisor
        )
        return np.hstack([self._table.transform(X), indicators])


def indicators_of(encoded: Floats, edges_of_each: list[Floats]) -> Floats:
    """Say of each record, by 0 and 1, which category, in which bin and above which edges it is.

    ``encoded`` (n, width): numbers, and behind them columns of categories, as a TabularEncoder gives them.
    ``edges_of_each``: where each number is cut.
    """
    n_numbers = len(edges_of_each)
    parts = [encoded[:, n_numbers:]]
    for column, edges in zip(encoded[:, :n_numbers].T, edges_of_each, strict=True):
        bins = np.searchsorted(edges, column, side="right")
        parts.append((bins[:, None] == np.arange(len(edges) + 1)).astype(np.float32))
        parts.append((bins[:, None] > np.arange(len(edges))).astype(np.float32))
    return np.hstack(parts)


def edges_of(column: Floats, bins: int, of_values: int = _OF_VALUES) -> Floats:
    """Cut at quantiles of public records and of their distinct values; always at values that occur."""
    values = np.unique(column)
    of_records = np.quantile(column, np.arange(1, bins) / bins, method="higher")
    of_distinct = np.quantile(values, np.arange(1, of_values) / of_values, method="higher")
    edges = np.unique(np.concatenate([of_records, of_distinct]))
    return np.asarray(edges[edges > values[0]], dtype=np.float32)
