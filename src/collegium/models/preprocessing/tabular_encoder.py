"""Tables with numbers and categories, encoded by what public records show."""

from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from collegium.checks import check_choice, check_whole
from collegium.errors import InputError
from collegium.models.preprocessing.columns import (
    check_columns,
    frequent_categories,
    listed,
    numbers_of,
    numeric_columns,
    texts_of,
)

_LARGEST = np.finfo(np.float32).max


class TabularEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn a table with numbers and categories into numbers, by what public records show.

    Columns of a numeric or boolean type are numeric, dates are days since 1970, and all others are
    categorical (give codes such as ``admission_type_id`` the type ``category`` or text to have them
    treated as categories).

    Parameters
    ----------
    categorical : {"ordinal", "onehot"}, default="ordinal"
        ``"ordinal"``: one column of codes, 0, 1, ... in the alphabetical order of the public
        categories, then one code for missing; a category that the public records do not show is -1.
        ``"onehot"``: one column of 0 and 1 per public category and one for missing; a category that
        the public records do not show is all zeros.
    scale : {"minmax", "standard", "none"}, default="minmax"
        How numbers and ordinal codes are scaled. ``"minmax"``: the public range becomes [0, 1] and
        values outside are clipped to it; codes are divided such that an unseen category is 0 and
        the last code is 1. ``"standard"``: public mean 0 and variance 1. ``"none"``: as they are.
    max_categories : int, optional
        How many categories a column keeps, the most frequent ones of the public records; the others
        are treated like unseen ones. Recommended with ``"onehot"`` and columns of many categories.

    Attributes
    ----------
    feature_names_in_ : ndarray of str, of shape (n_columns,)
        The columns, in the order of the public table.
    n_features_in_ : int
        Their number.
    numeric_columns_, categorical_columns_ : list of str
        The columns by how they are treated; the output has the numeric ones first.
    categories_ : dict of str to list of str
        The known categories of each categorical column, in the order of their codes.
    medians_ : dict of str to float
        The public median of each numeric column, which stands in for missing values (0 where the
        public records hold no value at all).

    Notes
    -----
    Numbers are rounded to 32 bits at the end. A missing number becomes the public median, so
    nothing about other private records enters. Encode within each teacher instead if there are no
    public records with these columns.

    Examples
    --------
    >>> public = pd.DataFrame({"age": [20, 60], "work": ["office", "field"]})
    >>> private = pd.DataFrame({"work": ["field", "sea", None], "age": [30, 80, None]})
    >>> encoder = TabularEncoder(categorical="onehot").fit(public)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'work_field', 'work_office', 'work_<missing>']
    >>> encoder.transform(private).tolist()
    [[0.25, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.5, 0.0, 0.0, 1.0]]
    """

    exact_by_record = True  # no bit of a record's features depends on another's presence

    def __init__(
        self,
        categorical: Literal["ordinal", "onehot"] = "ordinal",
        scale: Literal["minmax", "standard", "none"] = "minmax",
        max_categories: int | None = None,
    ) -> None:
        self.categorical = categorical
        self.scale = scale
        self.max_categories = max_categories

    def fit(self, X: pd.DataFrame, y: object = None) -> Self:
        """Learn categories, ranges and medians from public records.

        Parameters
        ----------
        X : pandas.DataFrame of shape (n_public, n_columns)
            Public records. Private records must not be given here.
        y : object, optional
            Ignored.

        Returns
        -------
        TabularEncoder
            Itself.

        Raises
        ------
        InputError
            If a setting is not allowed; if X is no DataFrame or empty, has columns without a name
            of their own, or infinite values.
        """
        self._check_settings()
        check_columns(X)
        if len(X) == 0 or X.shape[1] == 0:
            raise InputError(
                f"the public table has {len(X)} rows and {X.shape[1]} columns; "
                "at least one of each is needed; give public records to fit on"
            )
        numeric = numeric_columns(X)
        are_numbers = set(numeric)
        categorical = [column for column in X.columns if column not in are_numbers]
        numbers, texts = numbers_of(X, numeric), texts_of(X, categorical)

        self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.n_features_in_ = X.shape[1]
        self.numeric_columns_ = numeric
        self.categorical_columns_ = categorical
        self.categories_ = {
            column: frequent_categories(texts[:, i], self.max_categories)
            for i, column in enumerate(categorical)
        }
        self._fit_numbers(numbers)
        self._fit_categories(texts)
        return self

    def transform(self, X: pd.DataFrame) -> NDArray[np.float32]:
        """Encode records, each by itself.

        Parameters
        ----------
        X : pandas.DataFrame of shape (n_records, n_columns)
            Public or private records with the columns of the public table, in any order.

        Returns
        -------
        ndarray of float32, of shape (n_records, n_features)
            The numeric columns, then the categorical ones; see :meth:`get_feature_names_out`.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If ``fit`` was not called.
        InputError
            If columns are missing, unknown or of another kind than in the public table, or hold
            infinite values.
        """
        check_is_fitted(self)
        self._check_same_columns(X)
        encoded = np.empty((len(X), len(self.get_feature_names_out())), dtype=np.float32)
        if len(X) == 0:
            return encoded
        n_numeric = len(self.numeric_columns_)
        if n_numeric:
            numbers = self._imputer.transform(numbers_of(X, self.numeric_columns_))
            if self._number_scaler is not None:
                numbers = self._number_scaler.transform(numbers)
            encoded[:, :n_numeric] = np.clip(numbers, -_LARGEST, _LARGEST)
        if self.categorical_columns_:
            codes = self._category_encoder.transform(texts_of(X, self.categorical_columns_))
            if self._code_scaler is not None:
                codes = self._code_scaler.transform(codes)
            encoded[:, n_numeric:] = codes
        return encoded

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the output's columns: numeric ones, then categorical ones.

        One-hot columns are called ``column_category``.
        """
        check_is_fitted(self)
        names: list[str] = list(self.categorical_columns_)
        if self.categorical == "onehot" and names:
            names = list(self._category_encoder.get_feature_names_out(names))
        return np.asarray([*self.numeric_columns_, *names], dtype=object)

    def _check_settings(self) -> None:
        check_choice("categorical", self.categorical, ("ordinal", "onehot"))
        check_choice("scale", self.scale, ("minmax", "standard", "none"))
        if self.max_categories is not None:
            check_whole("max_categories", self.max_categories)

    def _fit_numbers(self, numbers: NDArray[np.float64]) -> None:
        self.medians_: dict[str, float] = {}
        self._imputer = SimpleImputer(strategy="median", keep_empty_features=True)
        self._number_scaler = _scaler(self.scale)
        if not self.numeric_columns_:
            return
        imputed = self._imputer.set_output(transform="default").fit_transform(numbers)
        medians = [float(median) for median in self._imputer.statistics_]
        self.medians_ = dict(zip(self.numeric_columns_, medians, strict=True))
        if self._number_scaler is not None:
            self._number_scaler.fit(imputed)

    def _fit_categories(self, texts: NDArray[np.object_]) -> None:
        self._code_scaler = None
        known = [np.asarray(self.categories_[c], dtype=object) for c in self.categorical_columns_]
        if self.categorical == "onehot":
            self._category_encoder = OneHotEncoder(
                categories=known, handle_unknown="ignore", sparse_output=False, dtype=np.float32
            )
        else:
            self._category_encoder = OrdinalEncoder(
                categories=known, handle_unknown="use_encoded_value", unknown_value=-1
            )
        if not self.categorical_columns_:
            return
        self._category_encoder.set_output(transform="default").fit(texts)
        scaler = _scaler(self.scale) if self.categorical == "ordinal" else None
        if scaler is not None:
            # The range of codes is known without data: from unseen (-1) to the last category.
            last = [len(categories) - 1 for categories in known]
            codes = np.array([np.full(len(known), -1), last], dtype=np.float64)
            if self.scale == "standard":
                codes = self._category_encoder.transform(texts)
            self._code_scaler = scaler.fit(codes)

    def _check_same_columns(self, X: pd.DataFrame) -> None:
        check_columns(X)
        given, expected = set(X.columns), set(self.feature_names_in_)
        if given != expected:
            raise InputError(
                f"the table lacks columns {listed(expected - given)} and has unknown columns "
                f"{listed(given - expected)}; allowed are exactly the columns of the public table; "
                "add and drop columns accordingly"
            )
        changed = set(numeric_columns(X)) ^ set(self.numeric_columns_)
        # A column without any value fits both kinds: its type says nothing.
        wrong = {column for column in changed if not X[column].isna().all()}
        if wrong:
            raise InputError(
                f"columns {listed(wrong)} changed between numbers and categories; allowed is the "
                "kind that they have in the public table; convert them with astype"
            )


def _scaler(scale: str) -> MinMaxScaler | StandardScaler | None:
    if scale == "none":
        return None
    scaler = MinMaxScaler(clip=True) if scale == "minmax" else StandardScaler()
    return scaler.set_output(transform="default")
