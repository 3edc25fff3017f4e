"""Ridge teachers: least squares on ±1 targets, solved exactly, the penalty chosen by leave-one-out."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from collegium.checks import check_positive
from collegium.errors import ModelError
from collegium.models.closed_form.kernels import (
    Floats,
    KernelTeachers,
    ShardKernel,
)

#: Penalties that leave-one-out chooses from, as multiples of the kernel's mean diagonal.
PENALTIES = tuple(float(10.0**exponent) for exponent in np.arange(-4.0, 1.01, 0.5))


class RidgeTeachers(KernelTeachers):
    """Kernel ridge classifiers in closed form, for all shards at once.

    One target per class, +1 for its records and −1 for the others; the largest score decides. The
    intercept is not penalised.

    Parameters
    ----------
    alpha : float, optional
        Penalty on the squared weights, as a multiple of the mean squared length of a (centred) record, so
        that it means the same whatever the features' scale. Left out: each teacher chooses its own from
        :data:`PENALTIES`, by the leave-one-out error on its own shard, which the closed form gives for
        free.
    kernel : {"linear", "rbf"}, default="linear"
        ``rbf``: exp(−γ‖x − z‖²). More accurate on principal components of scattering features; slower to
        ask, since every public record meets every private one.
    gamma : float, default=0.5
        For ``rbf``: γ times the mean squared distance between two records of the shard.
    standardise : bool, default=False
        Divide each feature by its standard deviation within the teacher's own shard.
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
    With K the centred kernel matrix and H = 11ᵀ/n + K (K + λ)⁻¹ the hat matrix, the residual of a record
    under the model trained without it is (y − Hy)ᵢ / (1 − Hᵢᵢ); eigenvalues of K give it for all λ. γ and
    the standardisation are held fixed in this. A teacher depends on its own shard alone, and not on a
    seed.

    References
    ----------
    R. Rifkin, R. Lippert, *Notes on regularized least squares*, MIT-CSAIL-TR-2007-025, section 3
    (leave-one-out). C. Saunders, A. Gammerman, V. Vovk, *Ridge regression learning algorithm in dual
    variables*, ICML 1998.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(RidgeTeachers(kernel="rbf").fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9)
    True

    As the teachers of a private classifier:

    >>> from collegium import PATEClassifier
    >>> model = PATEClassifier(RidgeTeachers(), n_teachers=250)
    """

    def __init__(
        self,
        alpha: float | None = None,
        kernel: Literal["linear", "rbf"] = "linear",
        gamma: float = 0.5,
        standardise: bool = False,
        teachers_at_once: int = 64,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.standardise = standardise
        self.teachers_at_once = teachers_at_once

    def _solve(
        self, shard: ShardKernel, y: NDArray[np.intp], classes: NDArray[np.intp]
    ) -> tuple[Floats, Floats]:
        targets = np.where(y[:, None] == classes, 1.0, -1.0)
        intercept = targets.mean(axis=0)
        rotated = shard.vectors.T @ (targets - intercept)
        penalty = self.alpha
        if penalty is None:
            errors = [_left_out_error(shard, targets - intercept, rotated, p) for p in PENALTIES]
            penalty = PENALTIES[int(np.argmin(errors))]
        inverse = 1 / (shard.values + penalty * shard.scale)
        dual = shard.vectors @ (inverse[:, None] * rotated)
        # Centring makes the constant an eigenvector with eigenvalue 0, up to rounding.
        return dual - dual.mean(axis=0), intercept

    def _beliefs(self, scores: NDArray[np.float32]) -> NDArray[np.float64]:
        return np.asarray((scores.astype(np.float64) + 1) / 2)  # of targets of 1 and −1

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.alpha is not None:
            check_positive("alpha", self.alpha, ModelError)


def _left_out_error(shard: ShardKernel, targets: Floats, rotated: Floats, penalty: float) -> float:
    """Mean squared error over records, each predicted by the model without it."""
    shrinkage = shard.values / (shard.values + penalty * shard.scale)
    fitted = shard.vectors @ (shrinkage[:, None] * rotated)
    influence = 1 / len(targets) + shard.vectors**2 @ shrinkage
    # A record that decides its own prediction says nothing about the penalty: keep the division defined.
    left_out = (targets - fitted) / np.maximum(1 - influence, 1e-9)[:, None]
    return float(np.mean(left_out**2))
