"""Teachers that are functions of a shard's kernel matrix, solved exactly and scored many at once.

A shard has fewer records than features: everything is computed from the matrix of inner products of its
records, a few hundred numbers squared, whatever the number of features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from collegium.checks import check_choice, check_positive
from collegium.errors import InputError, ModelError
from collegium.models.batched import Shard
from collegium.models.features.dense_tables import dense_table
from collegium.models.threads import in_threads

Floats = NDArray[np.floating[Any]]
KERNELS = ("linear", "rbf")
_ROWS = 1024  # public records that are scored together


@dataclass(frozen=True, eq=False)
class KernelModel:
    """One trained teacher: a score for each class, linear in its features or in a radial kernel.

    ``classes`` (n_present,): class numbers that occur in the shard.
    ``sensitive_weights``: linear: (n_features, n_present). Radial: (n_shard, n_present).
    ``sensitive_intercept`` (n_present,): score of each class where the weights say nothing.
    ``sensitive_records`` (n_shard, n_features): radial: what new records are compared with.
    ``sensitive_gamma``: radial: γ.
    ``sensitive_scale`` (n_features,): radial: divides features before they are compared.
    """

    classes: NDArray[np.intp]
    sensitive_weights: NDArray[np.float32]
    sensitive_intercept: NDArray[np.float32]
    sensitive_records: NDArray[Any] | None = None
    sensitive_gamma: float = 1.0
    sensitive_scale: NDArray[np.float32] | None = None

    def scores(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Score each present class, shape (n_records, n_present)."""
        if self.sensitive_records is None:
            made = np.asarray(X @ self.sensitive_weights, dtype=np.float32)
            return np.add(made, self.sensitive_intercept, out=made)
        origin = self.sensitive_records.mean(axis=0)
        return self.radial_scores(_squares(X, origin, self.sensitive_scale), origin)

    def radial_scores(self, squares: NDArray[np.float32], origin: Floats) -> NDArray[np.float32]:
        """Score records that :func:`_squares` prepared, around the same origin."""
        assert self.sensitive_records is not None
        factors = _squares(self.sensitive_records, origin, self.sensitive_scale).T
        # −γ‖x − z‖² = γ (2 x·z − ‖x‖² · 1 − 1 · ‖z‖²): one product gives all exponents.
        signs = np.full((len(factors), 1), 2 * self.sensitive_gamma, dtype=np.float32)
        signs[-2:] = -self.sensitive_gamma
        factors = np.ascontiguousarray(factors * signs)
        factors[-2:] = factors[[-1, -2]]
        made = np.empty((len(squares), len(self.classes)), dtype=np.float32)
        for first in range(0, len(squares), _ROWS):
            similar = squares[first : first + _ROWS] @ factors
            made[first : first + _ROWS] = np.exp(similar, out=similar) @ self.sensitive_weights
        return np.add(made, self.sensitive_intercept, out=made)

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Predict class numbers, shape (n_records,)."""
        return self.vote(self.scores(dense_table(X, "records")))

    def vote(self, scores: NDArray[np.float32]) -> NDArray[np.intp]:
        """Take the class with the largest score."""
        return np.asarray(self.classes[scores.argmax(axis=1)])


def _squares(X: NDArray[Any], origin: Floats, scale: Floats | None) -> NDArray[np.float32]:
    """Shift and scale records, and append their squared length and 1."""
    moved = np.ones((len(X), X.shape[1] + 2), dtype=np.float32)
    moved[:, :-2] = X - origin.astype(X.dtype)
    if scale is not None:
        moved[:, :-2] /= scale
    moved[:, -2] = np.einsum("ij,ij->i", moved[:, :-2], moved[:, :-2])
    return moved


class ShardKernel:
    """The centred kernel matrix of one shard, and its eigenvalues.

    ``X`` (n_shard, n_features): records of one teacher.
    ``kernel``: inner products of the records (centred on their mean), or exp(−γ‖x − z‖²).
    ``gamma``: γ times the shard's mean squared distance between two records.
    ``standardise``: divide each feature by its standard deviation within the shard.
    ``values`` (n_shard,): eigenvalues of the centred kernel matrix, ascending, none below 0.
    ``vectors`` (n_shard, n_shard): its eigenvectors, as columns.
    ``scale``: mean of its diagonal, by which penalties are counted; 1 if all records are equal.
    """

    def __init__(self, X: NDArray[Any], kernel: str, gamma: float, standardise: bool) -> None:
        n = len(X)
        self._raw = X
        self._centre = X.mean(axis=0, dtype=np.float64)
        self._scale: NDArray[np.float32] | None = None
        self._records = X - self._centre.astype(X.dtype)
        if standardise:
            deviation = X.std(axis=0, dtype=np.float64)
            usable = deviation > 1e-6 * deviation.max(initial=0.0)
            self._scale = np.where(usable, deviation, 1.0).astype(np.float32)
            self._records = self._records / self._scale
        inner = (self._records @ self._records.T).astype(np.float64)
        self._gamma: float | None = None
        if kernel == "rbf":
            lengths = np.diag(inner)
            mean_distance = 2 * lengths.mean()
            self._gamma = gamma / mean_distance if mean_distance > 0 else 1.0
            distances = np.maximum(lengths[:, None] + lengths - 2 * inner, 0.0)
            np.fill_diagonal(distances, 0.0)
            inner = np.exp(-self._gamma * distances)
        self._means = inner.mean(axis=0)
        centred = inner - self._means - self._means[:, None] + self._means.mean()
        values, self.vectors = np.linalg.eigh(centred)
        self.values = np.maximum(values, 0.0)
        self.scale = float(self.values.sum() / n) or 1.0

    def model(self, classes: NDArray[np.intp], dual: Floats, intercept: Floats) -> KernelModel:
        """Make a teacher from its dual coefficients.

        ``classes`` (n_present,): class numbers.
        ``dual`` (n_shard, n_present): scores of the shard's own records are ``centred kernel @ dual
            + intercept``; columns add up to 0.
        ``intercept`` (n_present,): scores of the mean.
        """
        if self._gamma is None:
            weights = self._records.T.astype(np.float64) @ dual
            if self._scale is not None:
                weights /= self._scale[:, None]
            shift = self._centre @ weights
        else:
            weights, shift = dual, self._means @ dual
        return KernelModel(
            classes,
            weights.astype(np.float32),
            (intercept - shift).astype(np.float32),
            None if self._gamma is None else self._raw,
            self._gamma or 1.0,
            None if self._gamma is None else self._scale,
        )


class KernelTeachers(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """What ridge and logistic teachers share: shards in, scores and votes out."""

    kernel: Literal["linear", "rbf"]
    gamma: float
    standardise: bool
    teachers_at_once: int
    exact_together: ClassVar[bool] = True  # each shard by itself, on one thread

    @abstractmethod
    def _solve(
        self, shard: ShardKernel, y: NDArray[np.intp], classes: NDArray[np.intp]
    ) -> tuple[Floats, Floats]:
        """Return dual coefficients and intercepts for one shard, whose labels number ``classes``."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train one model on its own.

        Parameters
        ----------
        X : array-like, shape (n_records, n_features)
            Records.
        y : array-like, shape (n_records,)
            Labels of any kind, of at least two classes.

        Returns
        -------
        self
            The teacher of a shard that :meth:`fit_shards` would train, with labels of its own.

        Raises
        ------
        InputError
            If a parameter is not allowed, the records are no finite numbers, or there is one class only.
        """
        labels = np.asarray(y)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        table = dense_table(X, "records")
        if len(self.classes_) < 2 or labels.ndim != 1 or len(labels) != len(table):
            raise InputError(
                f"{len(table)} records with {labels.shape} labels of {len(self.classes_)} class were "
                "given; allowed is one label per record, and at least 2 classes"
            )
        self._check_parameters()
        self.sensitive_model_ = self._fit_one((table, codes.astype(np.intp)))
        self.n_features_in_ = table.shape[1]
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float32]:
        """Score records.

        Parameters
        ----------
        X : array-like, shape (n_records, n_features)
            Records.

        Returns
        -------
        ndarray of float32, shape (n_records, n_classes), or (n_records,) for two classes
            The largest (for two classes: the sign) decides.
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict labels, shape (n_records,)."""
        return np.asarray(self.classes_[self._scores(X).argmax(axis=1)])

    def fit_shards(
        self, shards: Sequence[Shard], seeds: Sequence[int], n_classes: int
    ) -> list[KernelModel]:
        """Train one model per shard; see :class:`~collegium.models.batched.BatchedEstimator`.

        Seeds change nothing: the solution is unique.
        """
        self._check_parameters()
        tables = [(dense_table(X, "records"), np.asarray(y, dtype=np.intp)) for X, y in shards]
        return in_threads(self._fit_one, tables)

    def predict_shards(
        self, models: Sequence[KernelModel], X_public: Any
    ) -> list[NDArray[np.intp]]:
        """Let many models vote; see :class:`~collegium.models.batched.BatchedEstimator`."""
        table = dense_table(X_public, "public records")
        if self.kernel == "linear" or self.standardise:
            return in_threads(lambda model: model.vote(model.scores(table)), models)
        origin = table.mean(axis=0, dtype=np.float64)
        squares = _squares(table, origin, None)
        return in_threads(lambda model: model.vote(model.radial_scores(squares, origin)), models)

    def believe_shards(
        self, models: Sequence[KernelModel], X_public: Any
    ) -> list[NDArray[np.float64]]:
        """Estimate the probabilities of the classes of each shard, shape (n_public, n_present) each."""
        table = dense_table(X_public, "public records")
        return in_threads(lambda model: self._beliefs(model.scores(table)), models)

    @abstractmethod
    def _beliefs(self, scores: NDArray[np.float32]) -> NDArray[np.float64]:
        """Turn scores into probabilities, or estimates of them; rows add up to 1."""

    def _fit_one(self, shard: Shard) -> KernelModel:
        X, y = shard
        classes = np.unique(y)
        prepared = ShardKernel(X, self.kernel, self.gamma, self.standardise)
        return prepared.model(classes, *self._solve(prepared, y, classes))

    def _scores(self, X: ArrayLike) -> NDArray[np.float32]:
        check_is_fitted(self, "sensitive_model_")
        table = dense_table(X, "records")
        if table.shape[1] != self.n_features_in_:
            raise InputError(
                f"X has {table.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        return self.sensitive_model_.scores(table)

    def _check_parameters(self) -> None:
        check_choice("kernel", self.kernel, KERNELS, ModelError)
        check_positive("gamma", self.gamma, ModelError)
