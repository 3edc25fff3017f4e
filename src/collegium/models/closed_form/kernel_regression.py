"""Regression with a kernel in closed form, for many amounts of smoothing at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEVEL = 10.0
"""Variance of the unknown constant, in units of the kernel: the mean is all but free."""


@dataclass(frozen=True)
class KernelFit:
    """The regressions with one kernel, for every amplitude.

    ``errors`` (n_amplitudes,): mean squared error of predicting each record when it is left out.
    ``coefficients`` (n_amplitudes, n_anchors, n_targets): of the kernel functions centred at the
        anchors, each plus the constant :data:`LEVEL`.
    """

    errors: Floats
    coefficients: Floats


def regress(
    kernel: Floats,
    chosen: NDArray[np.intp],
    indicators: Floats,
    amplitudes: Sequence[float],
    boldness: float,
) -> KernelFit:
    """Solve (v K + I) a = y for every amplitude v with one decomposition.

    With residuals r and leverages h of the fitted values, the error of leaving record i out is
    r_i / (1 − h_i).

    ``kernel`` (n_records, n_anchors): between all records and the anchors, which are some or all of
        them.
    ``chosen`` (n_anchors,): which records are anchors, in order. If not all are, the kernel is
        represented by them.
    ``indicators`` (n_records, n_targets): what to predict.
    ``amplitudes``: prior variances v, in units of the noise.
    ``boldness``: coefficients are those of so many times the amplitude; errors are those of the
        amplitude.

    References
    ----------
    Rasmussen & Williams (2006), eq. 2.25 and 5.12. Williams & Seeger (2001), NIPS 13 (anchors).

    Examples
    --------
    >>> fit = regress(np.eye(2), np.arange(2), np.eye(2), [1.0], 1.0)
    >>> fit.errors.shape, fit.coefficients.shape
    ((1,), (1, 2, 2))
    """
    kernel = kernel.astype(np.float64) + LEVEL
    exact = len(chosen) == len(kernel)
    if exact:
        values, vectors = np.linalg.eigh(kernel)
        values = np.maximum(values, 0.0)
        back = vectors
    else:  # K ≈ F Fᵀ with F = K_nm K_mm^(−1/2); coefficients of the anchors are K_mm^(−1/2) Fᵀ a
        inner, axes = np.linalg.eigh(kernel[chosen])
        kept = inner > 1e-10 * inner[-1]
        root = axes[:, kept] / np.sqrt(inner[kept])
        vectors, singular, turn = np.linalg.svd(kernel @ root, full_matrices=False)
        values = singular**2
        back = root @ (turn.T / np.maximum(singular, 1e-12))
    projected = vectors.T @ indicators
    errors, coefficients = [], []
    for amplitude in amplitudes:
        fitted = amplitude * values / (amplitude * values + 1.0)
        left_out = np.maximum(1.0 - (vectors**2) @ fitted, 1e-9)
        residuals = indicators - vectors @ (fitted[:, None] * projected)
        errors.append(float(np.mean((residuals / left_out[:, None]) ** 2)))
        bold = boldness * amplitude
        shrunk = bold * (1.0 if exact else values) / (bold * values + 1.0)
        coefficients.append(back @ (shrunk[:, None] * projected))
    return KernelFit(np.array(errors), np.array(coefficients))


def squared_distances(records: NDArray[Any], anchors: NDArray[Any]) -> NDArray[Any]:
    """Return the squared distances of records and anchors, shape (n_records, n_anchors)."""
    squares = np.einsum("ij,ij->i", anchors, anchors)
    distances: NDArray[Any] = records @ anchors.T
    distances *= -2.0
    distances += np.einsum("ij,ij->i", records, records)[:, None]
    distances += squares
    np.maximum(distances, 0.0, out=distances)
    return distances


def bumps_of(distances: NDArray[Any], widths: Sequence[float]) -> list[NDArray[Any]]:
    """Return exp(−d² / (2 width²)) for every width, given squared distances d²."""
    return [np.exp(distances * (-0.5 / width**2)) for width in widths]
