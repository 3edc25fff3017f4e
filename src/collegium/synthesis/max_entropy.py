"""The table of largest entropy that noisy marginals describe.

Given ȳ_c, the noisy share of each cell of the factor c, with standard deviation s_c, the distribution p
that is fitted minimises

    KL(p ‖ q) + Σ_c ‖M_c p - ȳ_c‖² / (2 κ s_c²),

where in q all columns are independent, with their own noisy shares. Its dual is smooth and strongly convex:
minimise log Z(θ) - Σ_c θ_c·ȳ_c + ½κ Σ_c ‖s_c θ_c‖², with p ∝ q·exp Σ_c θ_c(x_c) and gradient
M_c p - ȳ_c + κ s_c² θ_c. So p deviates from ȳ by κ s_c² θ_c: with κ = ρ/s by ρ standard deviations for each
unit of the log-potential that columns need to go together. Noise that marginals contradict one another in is
averaged with weights 1/s_c². A known zero is θ = -∞. (McKenna, Sheldon & Miklau 2019, arXiv 1901.09136v1, fit
the limit κ → 0, in which q does not matter where ȳ is consistent.)

Why ρ is of the order of 1: near q, M p is M q + Hθ, where H holds the covariances of the cells, so that in a
direction of variance h the fit is (h θ + noise of s)/(h + ρs). Of all linear estimates with prior variance
ω² of θ, the best one divides by h + s²/(ω² h): in directions with h = s/ω, where about half is known, that
is ρ = 1/ω. Potentials by which columns go together are about 1; those of rare cells, which are large, are
in q.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from collegium.synthesis.belief import Beliefs
from collegium.synthesis.junction_tree import Clique, JunctionTree

Floats = NDArray[np.float64]
SOFTNESS = 0.7
"""ρ: by how many standard deviations a cell may be missed for each unit of its log-potential."""
_LEAST_SHARE = 0.3
"""Of the standard deviation of its noise: no cell has a smaller share in q, so that it can be found."""
MOST_STEPS = 300
_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Marginal:
    """A noisy marginal in shares of 1.

    ``columns``: sorted. ``shares``: of each cell, one axis for each column. ``sd``: their standard
    deviation, for all cells or for each.
    """

    columns: Clique
    shares: Floats
    sd: Floats


def fit(
    tree: JunctionTree,
    marginals: Sequence[Marginal],
    zeros: Mapping[Clique, NDArray[np.bool_]] | None = None,
    softness: float = SOFTNESS,
) -> tuple[Beliefs, list[Floats]]:
    """Fit the table of largest entropy.

    ``tree``: in which each marginal, and each of ``zeros``, is within one clique.
    ``zeros``: cells that cannot occur, by columns.
    Returns: the propagation and the log-potentials of its factors: of the marginals, of ``zeros``, and of the
    single columns of q.
    """
    known, alone = dict(zeros or {}), independent(marginals)
    factors = [one.columns for one in marginals] + list(known) + [(one,) for one in alone]
    beliefs = Beliefs(tree, factors)
    fixed = [np.where(impossible, -np.inf, 0.0) for impossible in known.values()]
    fixed += [np.log(shares) for shares in alone.values()]
    if not marginals:
        return beliefs, fixed
    shapes = [one.shares.shape for one in marginals]
    ends = np.cumsum([one.shares.size for one in marginals])
    y = np.concatenate([one.shares.ravel() for one in marginals])
    s = np.concatenate(
        [
            np.broadcast_to(one.sd, shape).ravel()
            for one, shape in zip(marginals, shapes, strict=True)
        ]
    )
    s = np.maximum(s, 1e-9)  # where there is no noise at all
    # A typical cell's: the many cells of what is known far better must not decide for all others.
    penalty = softness / float(np.sqrt(np.mean(s**2))) * s**2
    # In units in which the curvature is about 1: p(1 - p) + penalty.
    scale = 1 / np.sqrt(np.clip(y, s, 1.0) + penalty)

    def unpacked(theta: Floats) -> list[Floats]:
        parts = np.split(theta, ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def dual(scaled: Floats) -> tuple[float, Floats]:
        theta = scaled * scale
        tables, log_z = beliefs.tables([*unpacked(theta), *fixed])
        found = beliefs.marginals(tables)[: len(marginals)]
        p = np.concatenate([one.ravel() for one in found])
        value = log_z - float(theta @ y) + 0.5 * float(penalty @ (theta * theta))
        return value, (p - y + penalty * theta) * scale

    with threadpool_limits(
        1
    ):  # what is multiplied is small, and threads would wait for one another
        found = minimize(
            dual,
            np.zeros(len(y)),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": MOST_STEPS, "maxcor": 10, "ftol": _TOLERANCE, "gtol": 1e-7},
        )
    return beliefs, [*unpacked(found.x * scale), *fixed]


def independent(marginals: Sequence[Marginal]) -> dict[int, Floats]:
    """Estimate the shares of each measured column by itself, from all marginals that have it; none is 0."""
    sums: dict[int, Floats] = {}
    precision: dict[int, Floats] = {}
    for one in marginals:
        for axis, column in enumerate(one.columns):
            others = tuple(a for a in range(len(one.columns)) if a != axis)
            shares = one.shares.sum(axis=others)
            variance = (np.broadcast_to(one.sd, one.shares.shape) ** 2).sum(axis=others)
            weight = 1 / np.maximum(variance, 1e-18)
            sums[column] = sums.get(column, 0.0) + shares * weight
            precision[column] = precision.get(column, 0.0) + weight
    found = {}
    for column, total in sums.items():
        weight = precision[column]
        shares = np.maximum(total / weight, _LEAST_SHARE / np.sqrt(weight))
        found[column] = shares / shares.sum()
    return found
