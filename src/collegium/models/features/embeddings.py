"""Embeddings that users bring: the output of a public pretrained model, as any array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from collegium.checks import check_choice
from collegium.errors import InputError
from collegium.models.features.dense_tables import dense_table, finite_numbers

NORMALISATIONS = ("none", "length", "public")
_ROWS = 1024  # records that a model is given together


class Embeddings(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Check embeddings, or compute them with a public model, and bring them to one scale.

    Parameters
    ----------
    model : callable or transformer, optional
        A **public** model, trained on none of the private records: a function from a batch of records to
        an array (n_records, n_dimensions), or an object with ``transform``. It is used as it is, never
        fitted. Left out: the records are embeddings already.
    normalise : {"length", "public", "none"}, default="length"
        ``length``: each embedding is divided by its own Euclidean length (zero stays zero), as is usual
        for models trained with a cosine loss. ``public``: each dimension is centred and divided by the
        standard deviation of the public records.
    batch_size : int, default=1024
        Records that the model is given together.

    Attributes
    ----------
    n_dimensions_ : int
        Length of an embedding.
    mean_, scale_ : ndarray, shape (n_dimensions_,)
        With ``normalise="public"``: what the public embeddings show.

    Notes
    -----
    The model must treat each record by itself. A model that normalises over its batch (batch
    normalisation in training mode) would carry one private record into another's embedding: put networks
    into evaluation mode.

    Examples
    --------
    >>> public, private = np.array([[3.0, 4.0], [0.0, 2.0]]), np.array([[5.0, 0.0]])
    >>> Embeddings().fit(public).transform(private).tolist()
    [[1.0, 0.0]]

    A model of one's own, here a function:

    >>> words = lambda texts: np.array([[len(t), t.count("e")] for t in texts], dtype=np.float32)
    >>> embedded = Embeddings(words, normalise="none").fit_transform(np.array(["tree", "sea"]))
    >>> embedded.tolist()
    [[4.0, 2.0], [3.0, 1.0]]
    """

    def __init__(
        self,
        model: Callable[[Any], Any] | Any | None = None,
        normalise: Literal["length", "public", "none"] = "length",
        batch_size: int = _ROWS,
    ) -> None:
        self.model = model
        self.normalise = normalise
        self.batch_size = batch_size

    def fit(self, X: Any, y: object = None) -> Self:
        """Learn the number of dimensions, and with ``normalise="public"`` their scales.

        Parameters
        ----------
        X : array-like, shape (n_public, ...)
            Public records.
        y : object, optional
            Ignored.

        Returns
        -------
        Embeddings
            Itself.

        Raises
        ------
        InputError
            If a parameter is not allowed, or the embeddings are no table of finite numbers.
        """
        check_choice("normalise", self.normalise, NORMALISATIONS)
        embedded = self._embedded(X, "public embeddings")
        if self.normalise == "public":
            deviation = embedded.std(axis=0, dtype=np.float64)
            usable = deviation > 1e-6 * deviation.max(initial=0.0)
            self.scale_ = np.where(usable, deviation, 1.0).astype(np.float32)
            self.mean_ = embedded.mean(axis=0, dtype=np.float64).astype(np.float32)
        self.n_dimensions_ = embedded.shape[1]
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Embed records, each by itself.

        Parameters
        ----------
        X : array-like, shape (n_records, ...)
            Records, or embeddings of the dimension of the public ones.

        Returns
        -------
        ndarray of float32, shape (n_records, n_dimensions_)
            Embeddings, normalised.

        Raises
        ------
        InputError
            If they have another dimension, or are no finite numbers.
        """
        check_is_fitted(self, "n_dimensions_")
        embedded = self._embedded(X, "embeddings")
        if embedded.shape[1] != self.n_dimensions_:
            raise InputError(
                f"embeddings of {embedded.shape[1]} dimensions were given; allowed are "
                f"{self.n_dimensions_}, as for the public records: use one model for all"
            )
        if self.normalise == "public":
            return np.asarray((embedded - self.mean_) / self.scale_, dtype=np.float32)
        if self.normalise == "length":
            length = np.sqrt(np.einsum("ij,ij->i", embedded, embedded, dtype=np.float64))
            divisor = np.where(length > 0, length, 1.0)
            return np.asarray(embedded / divisor[:, None], dtype=np.float32)
        return np.asarray(embedded, dtype=np.float32)

    def _embedded(self, X: Any, what: str) -> NDArray[Any]:
        if self.model is None:
            return dense_table(X, what)
        apply = self.model.transform if hasattr(self.model, "transform") else self.model
        if not callable(apply):
            raise InputError(
                f"model is a {type(self.model).__name__}, which is neither callable nor has transform"
            )
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        take = X.iloc if hasattr(X, "iloc") else X
        parts = []
        for first in range(0, n, self.batch_size):
            part = np.asarray(apply(take[first : first + self.batch_size]))
            expected = min(self.batch_size, n - first)
            if part.ndim != 2 or len(part) != expected:
                raise InputError(
                    f"the model made an array of shape {part.shape} of {expected} records; allowed is "
                    f"({expected}, dimensions): flatten or pool its output"
                )
            finite_numbers(part, what)
            parts.append(part)
        return dense_table(np.concatenate(parts) if parts else np.empty((0, 0)), what)
