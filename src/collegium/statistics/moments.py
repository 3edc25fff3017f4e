"""Covariances, correlations and regressions from noisy second moments, with errors: post-processing.

Of z = (1, x'₁, …), where x' is -1 at a column's lower bound and 1 at its upper one, the noisy sums say
E[z zᵀ]. The central moments S_ij = E[x'_i x'_j] - m_i m_j are nearly linear in them, so each has a normal
error with a known gradient by the noise; weights that are dealt out add Var(x'_i x'_j)·(Σ w²/W² - 1/n), as
it is of normal values: S_ii S_jj + S_ij².

Correlations and slopes are ratios, c/s with s = √(S_ii S_jj), or c_k/a_k with a_k what a predictor varies by
where the others stay; so is the intercept, over 1/uᵀA⁻¹u, u where all predictors are 0. Their intervals are
Fieller's (1954): all x for which c - x·s is within its own error, which hold however noisy s is, and are
without end where s may be zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collegium.data.schema import Column
from collegium.statistics.estimates import TOO_FEW, Heard, of_ratio, readable
from collegium.statistics.features import Features

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Found:
    """Values, their standard errors, and intervals: arrays of the same shape; NaN: too few people."""

    value: Floats
    error: Floats
    lower: Floats
    upper: Floats


@dataclass(frozen=True, eq=False)
class Moments:
    """Noisy means m and central moments S, and their gradients by what is noised.

    ``of_means`` (k, n_coordinates), ``of_central`` (k, k, n_coordinates): gradients.
    ``apart``: Σ w²/W² - 1/n among the rows that it is about.
    """

    means: Floats
    central: Floats
    of_means: Floats
    of_central: Floats
    apart: float
    heard: Heard

    @staticmethod
    def rows(sums: Floats, heard: Heard, features: Features, k: int) -> tuple[float, float] | None:
        """How many rows have all k columns, and the error of that; None: it is not counted."""
        if features.everybody:
            return None
        norm = float((k + 1) ** 2 if heard.laplace else k + 1)
        share, noise = norm * float(sums[0]) / heard.total, heard.noise * (norm / heard.total) ** 2
        return readable(share, noise, heard)

    @classmethod
    def of(cls, sums: Floats, heard: Heard, features: Features, k: int) -> Moments | None:
        """Read them off noisy sums of k columns; None: there are too few rows to say."""
        size = k + 1
        rows, places = np.triu_indices(size)
        norm = float(size**2 if heard.laplace else size)
        twice = 2.0 if heard.laplace else math.sqrt(2)
        times = np.where(rows == places, 1.0, twice) / norm
        if not features.everybody and sums[0] < TOO_FEW * math.sqrt(heard.noise):
            return None
        count = heard.total if features.everybody else float(sums[0] / times[0])
        share = min(1.0, max(1 / heard.n, count / heard.total))
        raw, slope = np.zeros((size, size)), np.zeros((size, size, len(sums)))
        for at, (i, j) in enumerate(zip(rows, places, strict=True)):
            raw[i, j] = raw[j, i] = sums[at] / times[at] / count
            slope[i, j, at] = 1 / times[at] / count
            if not features.everybody:
                slope[i, j, 0] -= raw[i, j] / times[0] / count
            slope[j, i] = slope[i, j]
        raw[0, 0] = 1.0
        means, of_means = raw[0, 1:], slope[0, 1:]
        products = means[:, None, None] * of_means[None] + means[None, :, None] * of_means[:, None]
        return cls(
            means,
            raw[1:, 1:] - np.outer(means, means),
            of_means,
            slope[1:, 1:] - products,
            heard.unequal / share,
            heard,
        )

    def noise(self, gradient: Floats) -> float:
        """Variance of the noise in what has this gradient."""
        return self.heard.noise * float(gradient @ gradient)

    def ratio(
        self, value: float, below: float, gradient: Floats, of_below: Floats, people: float
    ) -> tuple[float, float, float]:
        """Standard error and interval of a ratio c/s.

        ``gradient``: of c - value·s. ``below``, ``of_below``: s and its gradient. ``people``: variance of c -
        value·s from person to person.
        """
        noise, above = self.noise(gradient), gradient + value * of_below
        both = self.heard.noise * float(above @ of_below)
        low, high = of_ratio(
            value * below,
            below,
            (self.noise(above), both, self.noise(of_below)),
            people,
            self.heard.margin(noise, people) ** 2 / max(noise + people, 1e-300),
        )
        return math.sqrt(noise + people) / below, low, high

    @property
    def possible(self) -> tuple[Floats, Floats]:
        """The nearest means and central moments that any data have: between bounds, no negative variance."""
        means = np.clip(self.means, -1, 1)
        values, vectors = np.linalg.eigh(self.central)
        central = (vectors * np.clip(values, 0.0, len(means))) @ vectors.T
        shrink = np.minimum(1.0, np.sqrt((1 - means**2) / np.maximum(np.diag(central), 1e-300)))
        return means, central * np.outer(shrink, shrink)


def covariances(moments: Moments, columns: Sequence[Column]) -> Found:
    """Covariances, (k, k), in the columns' units."""
    half = np.array([column.width / 2 for column in columns])
    units, (_, value) = np.outer(half, half), moments.possible
    error, lower, upper = (np.empty_like(value) for _ in range(3))
    for i, j in np.ndindex(value.shape):
        noise = moments.noise(moments.of_central[i, j])
        people = moments.apart * float(value[i, i] * value[j, j] + value[i, j] ** 2)
        margin = moments.heard.margin(noise, people)
        error[i, j] = math.sqrt(noise + people)
        least = 0.0 if i == j else -1.0
        lower[i, j] = np.clip(moments.central[i, j] - margin, least, value[i, j])
        upper[i, j] = np.clip(moments.central[i, j] + margin, value[i, j], 1.0)
    return Found(units * value, units * error, units * lower, units * upper)


def correlations(moments: Moments) -> Found:
    """Correlations, (k, k); NaN with a column that seems not to vary."""
    _, central = moments.possible
    sd = np.sqrt(np.diag(central))
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.clip(central / np.outer(sd, sd), -1, 1)
    error, lower, upper = np.zeros_like(value), value.copy(), value.copy()
    own, slope = moments.central, moments.of_central
    for i, j in np.ndindex(value.shape):
        if i == j:
            continue
        error[i, j], lower[i, j], upper[i, j] = math.inf, -1.0, 1.0
        if math.isnan(value[i, j]) or min(own[i, i], own[j, j]) <= 0:
            continue
        root, ratio = math.sqrt(own[i, i] * own[j, j]), math.sqrt(own[j, j] / own[i, i])
        of_root, found = (ratio * slope[i, i] + slope[j, j] / ratio) / 2, float(own[i, j] / root)
        people = (root * float(1 - value[i, j] ** 2)) ** 2 * moments.apart
        error[i, j], low, high = moments.ratio(
            found, root, slope[i, j] - found * of_root, of_root, people
        )
        lower[i, j] = np.clip(low, -1.0, value[i, j])
        upper[i, j] = np.clip(high, value[i, j], 1.0)
    return Found(value, error, lower, upper)


def ridge(moments: Moments, columns: Sequence[Column], penalty: float) -> Found:
    """Coefficients, (k,), the intercept first, that predict the first column from the others, in their units.

    ``penalty``: rows in which predictors vary as much as they can and nothing goes with anything.
    """
    half = np.array([column.width / 2 for column in columns])
    middle = np.array([(column.lower + column.upper) / 2 for column in columns])
    least = np.eye(len(columns) - 1) * max(penalty / moments.heard.n, 1e-9)
    means, central = moments.possible
    slopes = np.linalg.solve(central[1:, 1:] + least, central[1:, 0])
    units = half[0] / half[1:]
    value = np.concatenate(
        [
            [middle[0] + half[0] * means[0] - units * slopes @ (middle + half * means)[1:]],
            units * slopes,
        ]
    )
    error, lower, upper = (np.full_like(value, sign * math.inf) for sign in (1, -1, 1))
    raw, slope = moments.central, moments.of_central
    inner = raw[1:, 1:] + least
    if np.linalg.eigvalsh(inner)[0] <= 0:
        return Found(value, error, lower, upper)
    own = np.linalg.solve(inner, raw[1:, 0])
    inverse = np.linalg.inv(inner)
    unexplained = max(float(raw[0, 0] - own @ raw[1:, 0]), 0.0) * moments.apart
    # By the gradient of S_xy - S_xx·b.
    residual = slope[1:, 0] - np.tensordot(slope[1:, 1:], own, axes=(1, 0))
    for k in range(len(own)):
        alone, along = 1 / inverse[k, k], inverse[k] / inverse[k, k]
        of_alone = along @ slope[1:, 1:].transpose(2, 0, 1) @ along
        error[k + 1], lower[k + 1], upper[k + 1] = moments.ratio(
            float(own[k]), alone, along @ residual, of_alone, alone * unexplained
        )
    place = moments.means[1:] + middle[1:] / half[1:]
    far = inverse @ place
    alone = 1 / max(float(place @ far), 1e-12)
    turned = far @ slope[1:, 1:].transpose(2, 0, 1) @ far - 2 * far @ moments.of_means[1:]
    error[0], lower[0], upper[0] = moments.ratio(
        float(moments.means[0] - own @ place),
        alone,
        alone * (moments.of_means[0] - own @ moments.of_means[1:] - far @ residual),
        alone**2 * turned,
        alone**2 * unexplained * (1 + 1 / alone),
    )
    scale, shift = np.concatenate([[half[0]], units]), np.zeros_like(value)
    shift[0] = middle[0]
    lower, upper = scale * lower + shift, scale * upper + shift
    return Found(value, scale * error, np.minimum(lower, value), np.maximum(upper, value))
