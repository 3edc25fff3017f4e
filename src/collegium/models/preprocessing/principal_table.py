"""Tables as principal coordinates: the few directions in which public records really differ."""

from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import check_is_fitted

from collegium.checks import check_share, check_whole
from collegium.errors import InputError
from collegium.models.exact_products import exact_product
from collegium.models.features.orientation import oriented
from collegium.models.preprocessing.columns import ALIKE, check_columns, in_blocks
from collegium.models.preprocessing.tabular_encoder import TabularEncoder
from collegium.models.preprocessing.wide_table import WideTable, is_wide

Floats = NDArray[np.float64]
_SMALLEST_SHARE = 1e-3
FARTHEST = 10.0
"""Public standard deviations at which numbers are cut."""
_POWER = 5  # iterations of the randomised solver


class PrincipalTable(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Describe each record of a mixed table by its principal coordinates among public records.

    A teacher that sees 150 records cannot learn that education and years of education say the same, or
    which of 42 countries resemble each other. Unlabelled public records show it: numbers enter as they
    are (standardised) and by their rank, categories as columns of 0 and 1, and the principal components
    of these columns order a record's description by how much of it is shared between columns. Of more than
    100 columns, numbers enter by themselves, and up to 2,000 in one of four bins, in place of their rank.

    Parameters
    ----------
    components : int, default=50
        At most so many coordinates, those of largest public variance.
    rarity : float, default=0.5
        How much rare categories are stretched: a category of public share f is divided by
        (f (1 − f))^(rarity / 2). 0: not at all; 1: every category has variance 1, as in multiple
        correspondence analysis.
    max_categories : int, optional
        As in :class:`~collegium.models.preprocessing.tabular_encoder.TabularEncoder`.

    Attributes
    ----------
    feature_names_in_ : ndarray of str, of shape (n_columns,)
        The columns, in the order of the public table.
    n_features_in_ : int
        Their number.
    deviations_ : ndarray of shape (n_coordinates,)
        Public standard deviation of each coordinate, in decreasing order; their squares add up to 1
        over all coordinates that there are, kept or not.

    Notes
    -----
    Fitted on public records only: nothing about one private record enters the coordinates of another.
    Missing numbers become the public median; values beyond ten public standard deviations are clipped.

    References
    ----------
    Greenacre (1984), *Theory and Applications of Correspondence Analysis*, Academic Press: principal
    components of indicator columns weighted by rarity. Van der Waerden (1952), *Order tests for the
    two-sample problem*, Indag. Math. 14: normal scores of ranks.

    Examples
    --------
    >>> public = pd.DataFrame({"age": [20, 60, 40], "work": ["office", "field", "office"]})
    >>> table = PrincipalTable().fit(public)
    >>> table.transform(public).shape
    (3, 2)
    >>> table.get_feature_names_out().tolist()
    ['principal_0', 'principal_1']
    """

    exact_by_record = True  # no bit of a record's features depends on another's presence
    _wide: WideTable | None

    def __init__(
        self, components: int = 50, rarity: float = 0.5, max_categories: int | None = None
    ) -> None:
        self.components = components
        self.rarity = rarity
        self.max_categories = max_categories

    def fit(self, X: pd.DataFrame, y: object = None) -> Self:
        """Learn columns, ranks and principal components from public records.

        Parameters
        ----------
        X : pandas.DataFrame of shape (n_public, n_columns)
            Public records. Private records must not be given here.
        y : object, optional
            Ignored.

        Returns
        -------
        PrincipalTable
            Itself.

        Raises
        ------
        InputError
            If a setting is not allowed, if all public records are alike, or for what
            :class:`~collegium.models.preprocessing.tabular_encoder.TabularEncoder` refuses.
        """
        self._check_settings()
        check_columns(X)
        if is_wide(X.shape[1]):
            self._fit_wide(X)
            return self
        self._wide = None
        self._encoder = TabularEncoder("onehot", "none", self.max_categories).fit(X)
        self.feature_names_in_ = self._encoder.feature_names_in_
        self.n_features_in_ = self._encoder.n_features_in_
        columns = self._encoder.transform(X).astype(np.float64)
        numbers, indicators = self._apart(columns)
        self._sorted = np.sort(numbers, axis=0)
        scores = self._normal_scores(numbers)
        self._means = [numbers.mean(axis=0), scores.mean(axis=0), indicators.mean(axis=0)]
        share = self._means[2]
        spread = np.power(share * (1.0 - share), self.rarity / 2.0)
        self._divisors = [_or_infinite(numbers.std(axis=0)), _or_infinite(scores.std(axis=0))]
        self._divisors.append(_or_infinite(np.where(share * (1.0 - share) > 0.0, spread, 0.0)))
        described = self._describe(numbers, scores, indicators)
        # Not by singular values of the records: the second moments are small, whatever their number.
        variances, directions = np.linalg.eigh(described.T @ described / len(described))
        variances, directions = np.maximum(variances[::-1], 0.0), directions[:, ::-1]
        self._keep(variances, directions, float(variances.sum()))
        return self

    def _fit_wide(self, X: pd.DataFrame) -> None:
        """The same of many columns, in short: the second moments would not be small."""
        wide, described = WideTable.learnt(X, self.max_categories)
        self._wide = wide
        self._encoder = wide.encoder
        self.feature_names_in_ = self._encoder.feature_names_in_
        self.n_features_in_ = self._encoder.n_features_in_
        most = min(self.components, *described.shape)
        _, values, directions = randomized_svd(described, most, n_iter=_POWER, random_state=0)
        everything = float(np.square(described, dtype=np.float64).sum()) / len(described)
        variances = values.astype(np.float64) ** 2 / len(described)
        self._keep(variances, directions.T.astype(np.float64), everything)

    def _keep(self, variances: Floats, directions: Floats, everything: float) -> None:
        """Keep the largest directions in which public records differ by more than next to nothing."""
        if not variances[:1].sum() > 0.0:
            raise InputError(ALIKE)
        kept = int((variances > _SMALLEST_SHARE**2 * variances[0]).sum())
        kept = min(kept, self.components)
        total = float(np.sqrt(everything))
        self._directions = oriented(directions[:, :kept]) / total
        self.deviations_ = np.sqrt(variances[:kept]) / total

    def transform(self, X: pd.DataFrame) -> NDArray[np.float32]:
        """Give records their coordinates, each by itself.

        Parameters
        ----------
        X : pandas.DataFrame of shape (n_records, n_columns)
            Public or private records with the columns of the public table, in any order.

        Returns
        -------
        ndarray of float32, of shape (n_records, n_coordinates)
            Coordinates with public mean 0, in decreasing order of their public variance.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If ``fit`` was not called.
        InputError
            If the columns are not those of the public table, or hold infinite values.
        """
        check_is_fitted(self)
        check_columns(X)
        return in_blocks(self._coordinates, X, len(self._directions))

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the coordinates: ``principal_0``, ``principal_1``, ..."""
        check_is_fitted(self)
        return np.asarray([f"principal_{i}" for i in range(len(self.deviations_))], dtype=object)

    def _coordinates(self, X: pd.DataFrame) -> NDArray[np.float32]:
        if self._wide is not None:
            return exact_product(self._wide.described(X), self._directions).astype(np.float32)
        numbers, indicators = self._apart(self._encoder.transform(X).astype(np.float64))
        described = self._describe(numbers, self._normal_scores(numbers), indicators)
        return exact_product(described, self._directions).astype(np.float32)

    def _check_settings(self) -> None:
        check_whole("components", self.components)
        check_share("rarity", self.rarity)

    def _apart(self, columns: Floats) -> tuple[Floats, Floats]:
        n_numeric = len(self._encoder.numeric_columns_)
        return columns[:, :n_numeric], columns[:, n_numeric:]

    def _normal_scores(self, numbers: Floats) -> Floats:
        """Replace each number by the normal quantile of its (middle) rank among public ones."""
        scores = np.empty_like(numbers)
        for i in range(numbers.shape[1]):
            known = self._sorted[:, i]
            ranks = np.searchsorted(known, numbers[:, i], "left") + np.searchsorted(
                known, numbers[:, i], "right"
            )
            scores[:, i] = ndtri((ranks / 2.0 + 0.5) / (len(known) + 1.0))
        return scores

    def _describe(self, numbers: Floats, scores: Floats, indicators: Floats) -> Floats:
        parts = zip((numbers, scores, indicators), self._means, self._divisors, strict=True)
        standard = [(part - mean) / divisor for part, mean, divisor in parts]
        standard[0] = np.clip(standard[0], -FARTHEST, FARTHEST)
        return np.hstack(standard)


def _or_infinite(deviations: Floats) -> Floats:
    """Make a constant column vanish when it is divided by its deviation."""
    return np.where(deviations > 1e-12, deviations, np.inf)
