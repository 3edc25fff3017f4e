"""Logistic teachers: multinomial logistic regression in as many unknowns as a shard has records."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from collegium.checks import check_positive
from collegium.errors import ModelError
from collegium.models.closed_form.kernels import (
    Floats,
    KernelTeachers,
    ShardKernel,
)

_MOST_ITERATIONS = 500


class LogisticTeachers(KernelTeachers):
    """Multinomial logistic regression with a squared penalty, for all shards at once.

    Parameters
    ----------
    alpha : float, default=0.01
        Penalty on the squared weights, as a multiple of the mean squared length of a (centred) record;
        scikit-learn's C is 1 / (alpha · that length). The intercept is not penalised.
    kernel : {"linear", "rbf"}, default="linear"
        As in :class:`~collegium.models.closed_form.ridge.RidgeTeachers`.
    gamma : float, default=0.5
        For ``rbf``: γ times the mean squared distance between two records of the shard.
    standardise : bool, default=False
        Divide each feature by its standard deviation within the teacher's own shard.
    tolerance : float, default=1e-3
        Largest slope at which the solver stops, where a slope of 1 is one misjudged record.
    teachers_at_once : int, default=64
        Most teachers in one call; bounds memory.

    Attributes
    ----------
    classes_ : ndarray
        After :meth:`fit`: labels.
    sensitive_model_ : KernelModel
        After :meth:`fit`.

    Notes
    -----
    The best weights are combinations of the shard's records, so the unknowns are one per record and class.
    They are counted in the eigenbasis of the kernel matrix, each divided by the square root of Böhning's
    bound on its curvature: L-BFGS then needs a few dozen iterations. A teacher depends on its own shard
    alone, and not on a seed.

    References
    ----------
    D. Böhning, *Multinomial logistic regression algorithm*, Annals of the Institute of Statistical
    Mathematics 44, 1992 (the bound ½ I on the curvature of the logarithm of a softmax).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticTeachers().fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    >>> model.predict_proba(X[:1]).shape
    (1, 3)
    """

    def __init__(
        self,
        alpha: float = 0.01,
        kernel: Literal["linear", "rbf"] = "linear",
        gamma: float = 0.5,
        standardise: bool = False,
        tolerance: float = 1e-3,
        teachers_at_once: int = 64,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.standardise = standardise
        self.tolerance = tolerance
        self.teachers_at_once = teachers_at_once

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict probabilities.

        Parameters
        ----------
        X : array-like, shape (n_records, n_features)
            Records.

        Returns
        -------
        ndarray, shape (n_records, n_classes)
            In the order of ``classes_``.
        """
        return self._beliefs(self._scores(X))

    def _beliefs(self, scores: NDArray[np.float32]) -> NDArray[np.float64]:
        return np.asarray(softmax(scores.astype(np.float64), axis=1))

    def _solve(
        self, shard: ShardKernel, y: NDArray[np.intp], classes: NDArray[np.intp]
    ) -> tuple[Floats, Floats]:
        targets = (y[:, None] == classes).astype(np.float64)
        n, n_classes = targets.shape
        penalty = self.alpha * shard.scale
        known = shard.values > 1e-10 * shard.values[-1]
        directions, values = shard.vectors[:, known], shard.values[known]
        curvature = values / 2 + penalty
        design = np.hstack(
            [directions * np.sqrt(values / curvature), np.full((n, 1), (2 / n) ** 0.5)]
        )
        weight = np.append(penalty / curvature, 0.0)[:, None]

        def loss(unknowns: Floats) -> tuple[float, Floats]:
            coefficients = unknowns.reshape(-1, n_classes)
            scores = design @ coefficients
            totals = logsumexp(scores, axis=1, keepdims=True)
            value = totals.sum() - (targets * scores).sum() + (weight * coefficients**2).sum() / 2
            slope = design.T @ (np.exp(scores - totals) - targets) + weight * coefficients
            return float(value), slope.ravel()

        solved = minimize(
            loss,
            np.zeros(design.shape[1] * n_classes),
            jac=True,
            method="L-BFGS-B",
            options={
                "maxiter": _MOST_ITERATIONS,
                "gtol": self.tolerance,
                "ftol": 0.0,
                "maxcor": 20,
            },
        ).x.reshape(-1, n_classes)
        dual = directions @ (solved[:-1] / np.sqrt(values * curvature)[:, None])
        return dual - dual.mean(axis=0), solved[-1] * (2 / n) ** 0.5

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("alpha", self.alpha, ModelError)
        check_positive("tolerance", self.tolerance, ModelError)
