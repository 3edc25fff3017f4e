"""What all semi-supervised students share: plain ``fit``, classes, predictions from probabilities."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from collegium.distillation.released import Floats, ReleasedAnswers, as_supervised, check_released


class SemiSupervisedStudent(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that learns from all public records and what was released about some of them.

    Subclasses implement ``_learn(released)`` and ``_believe(X)``.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Class numbers after :meth:`fit_released`; the labels that were given, after :meth:`fit`.

    Examples
    --------
    A student that believes of every record what was released on the average:

    >>> class Average(SemiSupervisedStudent):
    ...     def _learn(self, released):
    ...         self.shares_ = released.targets.mean(axis=0)
    ...
    ...     def _believe(self, X):
    ...         return np.tile(self.shares_, (len(X), 1))
    >>> student = Average().fit_released(np.zeros((9, 2)), [0, 1, 2], [[1, 0], [0, 1], [0, 1]])
    >>> student.predict(np.zeros((2, 2)))
    array([1, 1])
    """

    classes_: NDArray[Any]

    def fit_released(self, X_public: Any, queries: ArrayLike, targets: ArrayLike) -> Self:
        """Learn from everything that is public or was released.

        Parameters
        ----------
        X_public : array-like, shape (n_public, n_features) or (n_public, ...)
            All public records.
        queries : array-like of int, shape (n_labels,)
            Rows that got an answer.
        targets : array-like, shape (n_labels, n_classes)
            How well each class explains the answer: P(answer | class), scaled to rows that add up to 1.
            One-hot, where only labels were released.

        Returns
        -------
        self

        Raises
        ------
        NothingReleasedError
            If there is no answer.
        InputError
            If shapes or values do not fit.

        Notes
        -----
        Post-processing of what was released: it costs nobody anything.
        """
        released = check_released(X_public, queries, targets)
        self._begin(released, np.arange(released.n_classes))
        self._learn(released)
        return self

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from labelled records alone.

        Parameters
        ----------
        X : array-like, shape (n, n_features) or (n, ...)
            Public records.
        y : array-like, shape (n,)
            Labels.

        Returns
        -------
        self
        """
        X, queries, targets, classes = as_supervised(X, y)
        released = check_released(X, queries, targets)
        self._begin(released, classes)
        self._learn(released)
        return self

    def _begin(self, released: ReleasedAnswers, classes: NDArray[Any]) -> None:
        self.classes_ = classes
        self.n_features_in_ = int(np.prod(released.X.shape[1:]))

    @abstractmethod
    def _learn(self, released: ReleasedAnswers) -> None: ...

    @abstractmethod
    def _believe(self, X: Any) -> Floats: ...

    def predict_proba(self, X: Any) -> Floats:
        """Believe in each class, shape (n_records, n_classes).

        Parameters
        ----------
        X : array-like
            Records of the public ones' shape; they may be new.

        Raises
        ------
        InputError
            If they have another shape.
        """
        check_is_fitted(self, "classes_")
        return self._believe(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most likely class, shape (n_records,)."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])
