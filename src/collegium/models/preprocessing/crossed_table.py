"""Tables for linear models that see how columns act together: fine bins beside kernel components."""

from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from collegium.checks import check_share, check_whole
from collegium.errors import InputError
from collegium.models.features.kernel_components import KernelComponents
from collegium.models.preprocessing.binned_table import BinnedTable, edges_of, indicators_of
from collegium.models.preprocessing.columns import check_columns, in_blocks
from collegium.models.preprocessing.wide_table import is_wide

Floats = NDArray[np.float32]
_MOST_INDICATORS = 1500  # of all numbers together, as far as at least the bins of records allow
_FEWEST_VALUES, _MOST_VALUES = 10, 60  # bins of a number's distinct values
_RARE = 2e-4  # public variance of a column of 0 and 1: what is rarer is left out
_COMPARED = 400  # components in which records are compared
_LENGTH_SCALE, _KERNEL_WHITEN = 1.0, 0.6
ANCHORS = 2000
"""Public records with which others are compared, at most."""
PART = np.float32(np.sqrt(0.5))
"""Length of each of both halves of a record's description, which has length 1."""


class CrossedTable(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Describe records of a mixed table so that a linear model can bend, and cross columns.

    Two halves of equal length stand beside each other. One holds columns of 0 and 1: in which bin each
    number is and above which edges, and which category; rare ones are stretched, and none is merged with
    others, so that a value that tells much (a capital gain of 7,688) is found however rare it is. The other
    holds principal components of a Gaussian kernel between records and public ones, in which columns act
    together (:class:`~collegium.models.features.kernel_components.KernelComponents`, on the components of a
    :class:`~collegium.models.preprocessing.binned_table.BinnedTable`).

    A table of more than 100 columns is described as by a ``BinnedTable``, since it has too many pairs of
    columns; and so is one most of whose public records are alike, since distances say nothing there.

    Parameters
    ----------
    components : int, default=300
        At most so many kernel components, those of largest public variance.
    bins : int, default=20
        Bins of equal public size for each number, where its values allow.
    whiten : float, default=0.75
        How far rare bins and categories are stretched: 0 leaves columns of 0 and 1 as they are, 1 divides
        them by their public standard deviation.
    max_categories : int, default=60
        As in :class:`~collegium.models.preprocessing.tabular_encoder.TabularEncoder`.

    Attributes
    ----------
    edges_ : list of ndarray
        Where each number is cut, in the order of the encoder's numeric columns.
    feature_names_in_ : ndarray of str, shape (n_columns,)
        The columns, in the order of the public table.
    n_cells_ : int
        How many columns of 0 and 1 there are: the first ones; 0 where the table is described otherwise.
    n_features_in_ : int
        Their number.

    Notes
    -----
    Fitted on public records only: nothing about one private record enters the description of another. Edges
    are values of public records, and the kernel's anchors are public records: whoever gets the transformer
    gets these.

    Examples
    --------
    >>> public = pd.DataFrame({"age": [20, 60, 40, 30], "work": ["office", "field", "office", "sea"]})
    >>> described = CrossedTable(components=3).fit_transform(public)
    >>> np.linalg.norm(described, axis=1).round(4).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    exact_by_record = True  # no bit of a record's features depends on another's presence
    _table: BinnedTable  # that compares records, or describes them where there are no halves
    _kernel: KernelComponents | None  # None: no halves

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
        """Learn bins, categories and kernel components from public records.

        Parameters
        ----------
        X : pandas.DataFrame of shape (n_public, n_columns)
            Public records, at least two. Private records must not be given here.
        y : object, optional
            Ignored.

        Returns
        -------
        CrossedTable
            Itself.

        Raises
        ------
        InputError
            If a setting is not allowed, or for what
            :class:`~collegium.models.preprocessing.binned_table.BinnedTable` refuses.
        """
        check_whole("components", self.components)
        check_whole("bins", self.bins, least=2)
        check_share("whiten", self.whiten)
        check_columns(X)
        self._kernel = None
        if not is_wide(X.shape[1]):
            self._fit_halves(X)
        if self._kernel is None:
            self._table = self._binned(self.components).fit(X)
            self.edges_ = self._table.edges_
        self.n_cells_ = 0 if self._kernel is None else len(self._kept)
        self.feature_names_in_ = self._table.feature_names_in_
        self.n_features_in_ = self._table.n_features_in_
        return self

    def _binned(self, components: int, **settings: float) -> BinnedTable:
        return BinnedTable(
            components, bins=self.bins, max_categories=self.max_categories, **settings
        )

    def _fit_halves(self, X: pd.DataFrame) -> None:
        """Learn both halves, unless public records are too much alike to be compared."""
        self._table = self._binned(_COMPARED, whiten=0.0).fit(X)
        kernel = KernelComponents(
            self.components, n_anchors=ANCHORS, length_scale=_LENGTH_SCALE, whiten=_KERNEL_WHITEN
        )
        try:
            self._kernel = kernel.fit(self._table.transform(X))
        except InputError:  # most records are alike
            return
        self._encoder = self._table._encoder
        encoded = self._encoder.transform(X)
        numbers = encoded[:, : len(self._encoder.numeric_columns_)].T
        values = values_of_each(len(numbers), self.bins)
        self.edges_ = [edges_of(column, self.bins, values) for column in numbers]
        indicators = indicators_of(encoded, self.edges_)
        means = indicators.mean(axis=0, dtype=np.float64)
        variances = means * (1 - means)
        self._kept = np.flatnonzero(variances > _RARE)
        self._means = means[self._kept].astype(np.float32)
        self._divisors = (variances[self._kept] ** (self.whiten / 2)).astype(np.float32)

    def transform(self, X: pd.DataFrame) -> Floats:
        """Describe records, each by itself.

        Parameters
        ----------
        X : pandas.DataFrame of shape (n_records, n_columns)
            Public or private records with the columns of the public table, in any order.

        Returns
        -------
        ndarray of float32, of shape (n_records, n_described)
            Columns of 0 and 1, centred and stretched, and then kernel components.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If ``fit`` was not called.
        InputError
            If the columns are not those of the public table, or hold infinite values.
        """
        check_is_fitted(self, "edges_")
        check_columns(X)
        if self._kernel is None:
            return self._table.transform(X)
        kernel = self._kernel
        width = len(self._kept) + len(kernel.offset_)
        if len(X) == 0:
            return np.empty((0, width), dtype=np.float32)
        return in_blocks(lambda some: self._described(some, kernel), X, width)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the output's columns: ``cell0``, …, and then ``kernel0``, …"""
        check_is_fitted(self, "edges_")
        if self._kernel is None:
            return self._table.get_feature_names_out()
        cells = [f"cell{i}" for i in range(len(self._kept))]
        return np.asarray([*cells, *self._kernel.get_feature_names_out()], dtype=object)

    def _described(self, X: pd.DataFrame, kernel: KernelComponents) -> Floats:
        indicators = indicators_of(self._encoder.transform(X), self.edges_)
        # Row by row in memory, so that a row's length is always added up alike.
        cells = np.take(indicators, self._kept, axis=1)
        cells = (cells - self._means) / self._divisors
        together = kernel.transform(self._table.transform(X))
        return np.hstack([PART * normalize(cells), PART * normalize(together)])


def cells_of_each(n_numbers: int, bins: int) -> int:
    """Count by how many columns of 0 and 1 each number is described at most.

    Examples
    --------
    >>> cells_of_each(6, 20), cells_of_each(90, 20)
    (157, 57)
    """
    return 2 * (bins - 1 + values_of_each(n_numbers, bins) - 1) + 1


def values_of_each(n_numbers: int, bins: int) -> int:
    """Choose into how many bins the distinct values of each number are dealt: the fewer, the more numbers.

    Examples
    --------
    >>> values_of_each(6, 20), values_of_each(20, 20), values_of_each(90, 20)
    (60, 17, 10)
    """
    room = _MOST_INDICATORS // (2 * max(n_numbers, 1)) - bins
    return int(np.clip(room, _FEWEST_VALUES, _MOST_VALUES))
