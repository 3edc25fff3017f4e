"""Tables encoded by what a public schema declares: no record decides on anything."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from collegium.checks import check_is
from collegium.data.schema import Schema
from collegium.data.schema_column import CATEGORY, FLAG, TEXT
from collegium.errors import InputError


class DeclaredTable(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn a table into numbers by a :class:`~collegium.Schema`, where there are no public records to fit to.

    Numbers and dates go from their declared bounds to -1 and 1, and are cut there; a flag is -1 or 1; of a
    category each declared one is a column of 0 and 1. What is missing, or was not declared, is 0. Columns of
    kind "text", and those that the schema does not name, are left out.

    Parameters
    ----------
    schema : Schema
        Public: bounds and categories must not be read off private records.

    Notes
    -----
    ``fit`` looks at nothing, so that it may stand before an estimator in a scikit-learn pipeline as well.
    Each record is transformed by itself.

    Examples
    --------
    >>> import pandas as pd
    >>> from collegium import Schema
    >>> schema = Schema({
    ...     "age": {"kind": "whole", "bounds": [0, 100]},
    ...     "town": {"kind": "category", "categories": ["Bonn", "Ulm"]},
    ... })
    >>> table = pd.DataFrame({"town": ["Ulm", "Rome"], "age": [25.0, None]})
    >>> DeclaredTable(schema).transform(table).tolist()
    [[-0.5, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """

    exact_by_record = True  # no bit of a record's features depends on another's presence

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def fit(self, X: Any = None, y: object = None) -> Self:
        """Do nothing: the schema says all."""
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Encode records, each by itself.

        Parameters
        ----------
        X : pandas.DataFrame, or any table with Arrow's C interface, of n_records rows
            With the columns of the schema.

        Returns
        -------
        ndarray of float32, of shape (n_records, n_features)
            As :meth:`get_feature_names_out` names them.

        Raises
        ------
        InputError
            If the table lacks a column, or a reader has typed one otherwise than the schema says.
        """
        found = self._checked().arrays(X)
        return np.hstack([_encoded(found[name], self.schema[name]) for name in found])

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the output's columns: ``age``, ``town_Ulm``, ..."""
        named = []
        for name, column in self._checked().columns.items():
            if column.kind == CATEGORY:
                named += [f"{name}_{key}" for key in column.keys]
            elif column.kind != TEXT:
                named.append(name)
        return np.asarray(named, dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def _checked(self) -> Schema:
        check_is("schema", self.schema, Schema, "make one with Schema({…})")
        if all(column.kind == TEXT for column in self.schema.columns.values()):
            raise InputError(
                "every column of the schema is text: declare numbers, categories or flags"
            )
        return self.schema


def _encoded(values: NDArray[Any], column: Any) -> NDArray[np.float32]:
    if column.kind == CATEGORY:
        return np.asarray(values[:, None] == np.arange(len(column.keys)), dtype=np.float32)
    if column.kind == FLAG:
        return np.where(values < 0, 0.0, 2.0 * values - 1.0)[:, None].astype(np.float32)
    half = (column.upper - column.lower) / 2
    scaled = (values - column.lower) / half - 1.0
    return np.where(np.isnan(values), 0.0, scaled)[:, None].astype(np.float32)
