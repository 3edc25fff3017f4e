"""Tables as a linear model sees them, and what trees that learnt from public labels say of each record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from collegium.checks import check_share
from collegium.data.tables import take_rows
from collegium.errors import InputError
from collegium.models.preprocessing.columns import in_blocks
from collegium.models.preprocessing.tabular_encoder import TabularEncoder

Floats = NDArray[np.float32]
FEWEST_LABELS = 200
"""Public labels from which on trees learn from them."""
FEWEST_OF_A_CLASS = 10
LEAST, MOST = 1e-4, 1 - 1e-4
"""Probabilities that trees are taken at their word for."""
_MOST_LABELS = 10_000
_FOLDS = 5
_DEVIATIONS = 2.0  # beyond which what trees say is clipped
_LARGEST = np.finfo(np.float32).max


class TaughtTable(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Show records as another preprocessing does, with what trees of public labels say as last columns.

    A linear model cannot know which columns act together, and public records without labels do not tell. A
    few labelled ones do: random and boosted trees learn from them, and what they say of a record is a column
    beside the others. How much it is worth, and what it leaves to tell, is learnt from the private records.

    Parameters
    ----------
    view : transformer
        How records are seen otherwise; not changed.
    n_classes : int, optional
        How many classes there are; default: the trees predict numbers.
    share : float, default=0.1
        Of the squared length of a record's description, for what trees say, at most.
    random_state : int, default=0
        Of the trees.

    Attributes
    ----------
    view_ : transformer
        As fitted to public records.
    trees_ : list of estimator
        As fitted to labelled public records.
    n_taught_ : int
        How many columns trees make, at the end: one of two classes and of numbers, or else one of each class.
    n_cells_ : int
        How many of the first columns were 0 and 1, as ``view_`` says.
    n_features_in_ : int
        Columns of the records.

    Notes
    -----
    Public labels are what trees are made of: whoever gets the transformer gets what can be told of these, and
    of no private record.

    A tree knows the labels that it has learnt from: of these records, :meth:`fit_transform` shows what trees
    say that learnt from the others, as private records are seen (cross-fitting, as scikit-learn's
    ``TargetEncoder`` does it). So ``fit_transform(X, y)`` is another thing than ``fit(X, y).transform(X)``.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> public = np.random.default_rng(0).normal(size=(400, 3))
    >>> labels = (public[:, 0] * public[:, 1] > 0).astype(float)
    >>> labels[300:] = np.nan  # of the last ones none is known
    >>> table = TaughtTable(StandardScaler(), 2)
    >>> seen = table.fit_transform(public, labels)
    >>> seen.shape, bool(np.corrcoef(seen[:300, -1], labels[:300])[0, 1] > 0.7)
    ((400, 4), True)
    """

    def __init__(
        self,
        view: Any,
        n_classes: int | None = None,
        *,
        share: float = 0.1,
        random_state: int = 0,
    ) -> None:
        self.view = view
        self.n_classes = n_classes
        self.share = share
        self.random_state = random_state

    def fit(self, X: Any, y: NDArray[np.float64]) -> Self:
        """Fit the view to public records, and trees to those whose labels are known.

        Parameters
        ----------
        X : DataFrame or ndarray, shape (n_public, n_columns)
            Public records. Private records must not be given here.
        y : ndarray, shape (n_public,)
            Class numbers, or numbers to be predicted; NaN where unknown.

        Returns
        -------
        TaughtTable
            Itself.

        Raises
        ------
        InputError
            If too few labels are known (:func:`can_teach`), and for what the view refuses.
        """
        self._fit(X, y)
        return self

    def fit_transform(self, X: Any, y: NDArray[np.float64]) -> Floats:
        """Fit, and show the public records, labelled ones as by trees that had not seen their label."""
        said = self._fit(X, y)
        shown = self.transform(X)
        shown[:, -self.n_taught_ :] = self._columns(said)
        return shown

    def transform(self, X: Any) -> Floats:
        """Show records, each by itself.

        Parameters
        ----------
        X : DataFrame or ndarray, shape (n_records, n_columns)
            Public or private records.

        Returns
        -------
        ndarray of float32, of shape (n_records, n_described)
            What the view makes of them, each of length √(1 − share) or 0, and what trees say.
        """
        check_is_fitted(self, "trees_")
        if not X.shape[0]:
            return np.empty((0, self._width), dtype=np.float32)
        return in_blocks(self._described, X, self._width)

    def columns_by(self, X: Any, y: NDArray[np.float64]) -> Floats:
        """What the last columns would be, had trees learnt from these labels alone; on the scale as fitted.

        For whoever rehearses what such trees are worth, on labelled records that they have not seen.

        Parameters
        ----------
        X : DataFrame or ndarray, shape (n_public, n_columns)
            Public records.
        y : ndarray, shape (n_public,)
            As of :meth:`fit`. Of records with a label trees tell that have not seen it, of others all trees.

        Returns
        -------
        ndarray of float32, shape (n_public, n_taught)
        """
        check_is_fitted(self, "trees_")
        return self._columns(self._heard(self._shown_to_trees(X), y)[1])

    @property
    def spoken(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """By what to multiply the last columns, and what to add, to get what trees say: (n_taught,) each."""
        check_is_fitted(self, "trees_")
        return self._divisors, self._middle

    @property
    def exact_by_record(self) -> bool:
        """Whether no bit of a record's features depends on another's presence: trees see each by itself."""
        return bool(getattr(self.view, "exact_by_record", False))

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the output's columns: those of the view, and then ``trees0``, …"""
        check_is_fitted(self, "trees_")
        names = list(self.view_.get_feature_names_out())
        return np.asarray([*names, *(f"trees{i}" for i in range(self.n_taught_))], dtype=object)

    def _fit(self, X: Any, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Fit everything; returns what trees say of these records that had not seen their label."""
        check_share("share", self.share)
        if not can_teach(y, self.n_classes):
            raise InputError(
                f"{int((~np.isnan(y)).sum())} labels are known; allowed are at least {FEWEST_LABELS}, and "
                f"{FEWEST_OF_A_CLASS} of each class; leave the trees out"
            )
        self.view_ = clone(self.view, safe=False).fit(X)
        self.n_features_in_ = X.shape[1]
        self._encoder = None
        if isinstance(X, pd.DataFrame):
            self._encoder = TabularEncoder("ordinal").fit(X)
        self.trees_, said = self._heard(self._shown_to_trees(X), y)
        self.n_taught_ = said.shape[1]
        self._middle = said.mean(axis=0)
        spread = np.maximum(said.std(axis=0), 1e-6)
        self._divisors = _DEVIATIONS * spread * np.sqrt(self.n_taught_ / self.share)
        self._limit = float(np.sqrt(self.share / self.n_taught_))
        self.n_cells_ = int(getattr(self.view_, "n_cells_", 0))
        self._width = self._described(take_rows(X, slice(0, 1))).shape[1]
        return said

    def _heard(
        self, shown: Floats, y: NDArray[np.float64]
    ) -> tuple[list[Any], NDArray[np.float64]]:
        """Grow trees, and hear what they say of each record without having seen its label."""
        known = np.flatnonzero(~np.isnan(y))
        known = np.sort(np.random.default_rng(self.random_state).permutation(known)[:_MOST_LABELS])
        targets = y[known] if self.n_classes is None else y[known].astype(np.intp)
        with threadpool_limits(1):  # so that bits do not depend on how many there are
            trees = self._grown(shown[known], targets)
            said = self._said(trees, shown)
            for learn, judged in self._folds(targets):
                grown = self._grown(shown[known[learn]], targets[learn])
                said[known[judged]] = self._said(grown, shown[known[judged]])
        return trees, said

    def _folds(self, targets: NDArray[Any]) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        kind = KFold if self.n_classes is None else StratifiedKFold
        dealt = kind(_FOLDS, shuffle=True, random_state=self.random_state)
        yield from dealt.split(np.zeros((len(targets), 1)), targets)

    def _grown(self, shown: Floats, targets: NDArray[Any]) -> list[Any]:
        numbers = self.n_classes is None
        forest = ExtraTreesRegressor if numbers else ExtraTreesClassifier
        boosted = HistGradientBoostingRegressor if numbers else HistGradientBoostingClassifier
        return [
            forest(100, min_samples_leaf=5, max_features=0.5, random_state=self.random_state).fit(
                shown, targets
            ),
            boosted(
                learning_rate=0.05,
                max_iter=120,
                max_depth=3,
                min_samples_leaf=15,
                l2_regularization=5.0,
                early_stopping=False,
                random_state=self.random_state,
            ).fit(shown, targets),
        ]

    def _said(self, trees: list[Any], shown: Floats) -> NDArray[np.float64]:
        """What trees say on average, (n, n_taught): numbers, log odds, or centred log probabilities."""
        return np.asarray(np.mean([self._said_by(one, shown) for one in trees], axis=0))

    def _said_by(self, model: Any, shown: Floats) -> NDArray[np.float64]:
        if self.n_classes is None:
            return np.asarray(model.predict(shown))[:, None]
        beliefs = np.zeros((len(shown), self.n_classes))
        beliefs[:, model.classes_] = model.predict_proba(shown)
        logs = np.log(np.clip(beliefs, LEAST, MOST))
        if self.n_classes == 2:
            return np.asarray(logs[:, [1]] - logs[:, [0]])
        return np.asarray(logs - logs.mean(axis=1, keepdims=True))

    def _shown_to_trees(self, X: Any) -> Floats:
        if self._encoder is not None:
            return self._encoder.transform(X)
        numbers = np.nan_to_num(np.asarray(X, dtype=np.float64), nan=0.0)
        return np.clip(numbers, -_LARGEST, _LARGEST).astype(np.float32)

    def _described(self, X: Any) -> Floats:
        seen = np.asarray(self.view_.transform(X))
        seen = normalize(np.where(np.isfinite(seen), seen, 0)).astype(np.float32)
        said = self._said(self.trees_, self._shown_to_trees(X))
        return np.hstack([seen * np.float32(np.sqrt(1 - self.share)), self._columns(said)])

    def _columns(self, said: NDArray[np.float64]) -> Floats:
        columns = np.clip((said - self._middle) / self._divisors, -self._limit, self._limit)
        return np.asarray(columns, dtype=np.float32)


def can_teach(y: NDArray[np.float64], n_classes: int | None) -> bool:
    """Tell whether so many labels are known that trees learn from them.

    ``y`` (n_public,): class numbers, or numbers; NaN where unknown.
    ``n_classes``: None: numbers.

    Examples
    --------
    >>> can_teach(np.array([0.0, 1.0, np.nan]), 2), can_teach(np.arange(300.0), None)
    (False, True)
    """
    known = y[~np.isnan(y)]
    if len(known) < FEWEST_LABELS:
        return False
    if n_classes is None:
        return bool(np.ptp(known) > 0)
    return int(np.bincount(known.astype(np.intp), minlength=n_classes).min()) >= FEWEST_OF_A_CLASS
