"""What nobody should have to tune: step size and number of features, from public numbers alone.

What counts is the *signal* S = Σ_o μ_o: how many people there are, times what they grant in Gaussian DP.
After T steps with momentum m the noise in a weight is that of T_eff = T/(1−m) − m(1−m^T)/(1−m)² plain steps
whose noise adds up: lr·T_eff·clip/S in standard deviation. The step size keeps that, on a row of unit length,
at a fixed part of a logit, so that small budgets take small steps, and stays below half of what is stable on
public records; and as many features are looked at as there is signal for: √(S·classes), of images more where
there is much (:func:`n_components`). Found on parts of the training images of MNIST and Fashion-MNIST
(``docs/results/dpsgd.md``).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.sparse.linalg import svds
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from collegium.data.record_kinds import IMAGES, ROWS, TABLE, kind_of_records
from collegium.dpsgd.linear_sums import CONSTANT
from collegium.dpsgd.losses import Loss
from collegium.dpsgd.settings import DPSGDSettings
from collegium.models.features.kernel_components import KernelComponents
from collegium.models.features.principal import PublicComponents
from collegium.models.preprocessing.binned_table import BinnedTable
from collegium.models.preprocessing.crossed_table import CrossedTable
from collegium.models.preprocessing.principal_table import PrincipalTable
from collegium.personalisation.dpsgd_plan import DPSGDPlan

NOISE = 0.75
"""Standard deviation that all steps leave in a score of a row of unit length, in the loss's units."""
LARGEST_STEP = 40.0
"""Where public records vary so little along any one direction that their curvature would allow more."""
USUAL_VIEW = {IMAGES: "kernel", TABLE: "crossed", ROWS: "components"}
"""What shows records to a linear model best, as `build_preprocessing` calls it."""
USUAL_STUDENT = {IMAGES: "gaussian-process"}
"""What learns best from a direct model's beliefs; of tables and rows nothing does better than the model."""
MOST_CURVATURE = 1 + CONSTANT**2
"""Largest eigenvalue of the mean of x ⊗ x, of any rows of unit length with the constant behind them."""
_MOST_SQUARED = 2048
_FEW_IMAGES, _FEW_ROWS = 100, 20
"""Features up to which a matrix of all pairs is made."""
_MUCH_SIGNAL = 200
"""For each class: where more components of images begin to pay."""
_ENOUGH_SIGNAL = 1000
"""For each class: where it pays to stop early because there are many features."""
_COMPONENTS: dict[type, str] = {
    KernelComponents: "n_components",
    PublicComponents: "n_components",
    PrincipalTable: "components",
    BinnedTable: "components",
    CrossedTable: "components",
}


def signal(plan: DPSGDPlan) -> float:
    """Σ over owners of μ, as far as the plan uses it: divisor · √steps / noise."""
    return plan.divisor * math.sqrt(plan.steps) / plan.noise


def curvature(rows: NDArray[Any] | None) -> float:
    """Largest eigenvalue of the mean of x ⊗ x over public rows, with the constant; the most there is without.

    ``rows`` (n, d): of unit length.
    """
    if rows is None:
        return MOST_CURVATURE
    if rows.shape[1] > _MOST_SQUARED:
        return largest_moment(np.hstack([rows, np.full((len(rows), 1), CONSTANT)]))
    mean = rows.mean(axis=0)[:, None] * CONSTANT
    moment = np.block([[rows.T @ rows / len(rows), mean], [mean.T, np.full((1, 1), CONSTANT**2)]])
    return _largest(moment)


def largest_moment(units: NDArray[Any]) -> float:
    """Largest eigenvalue of the mean of u ⊗ u over rows; of long ones without the square of their length.

    ``units`` (n, d).
    """
    n, d = units.shape
    if d <= _MOST_SQUARED:
        largest = _largest(units.T @ units)
    elif n <= _MOST_SQUARED:
        largest = _largest(units @ units.T)  # the same
    else:
        start = np.ones(min(n, d))
        largest = float(svds(units, k=1, v0=start, return_singular_vectors=False)[0]) ** 2
    return float(largest / n)


def _largest(symmetric: NDArray[Any]) -> float:
    """Largest eigenvalue."""
    return float(linalg.eigvalsh(symmetric, subset_by_index=[len(symmetric) - 1] * 2)[0])


def learning_rate(
    settings: DPSGDSettings,
    plan: DPSGDPlan,
    loss: Loss,
    curved: float = MOST_CURVATURE,
    n_features: int | None = None,
) -> float:
    """The step size that was asked for, or that of the rule.

    The mean loss bends by at most the loss's ``bend`` times ``curved`` (:func:`curvature`), and heavy-ball
    descent is stable up to 2·(1 + momentum) over that (Polyak 1964); half of it is allowed.
    """
    if settings.learning_rate is not None:
        return settings.learning_rate
    largest = min(LARGEST_STEP, (1 + settings.momentum) / (loss.bend * curved))
    return min(largest, by_noise(settings, plan, loss, n_features))


def by_noise(
    settings: DPSGDSettings, plan: DPSGDPlan, loss: Loss, n_features: int | None = None
) -> float:
    """Find the step size that leaves as much noise as is allowed, after all steps.

    ``n_features``: of the model; where there are more than there is signal for, less noise is allowed, by the
        root of how many times as many they are: steps then end before they learn what little each of them
        tells. A smaller power where the signal is below 1,000 for each class, since such steps are short
        anyway; not of numbers, whose noise is small.
    """
    few = 1.0
    if n_features is not None and loss.heeds_width:
        enough = n_components(signal(plan), loss.n_sides, of_kernel=True)
        power = 0.5 * math.sqrt(min(1.0, signal(plan) / (_ENOUGH_SIGNAL * loss.n_sides)))
        few = min(1.0, max(enough, 1) / n_features) ** power
    return few * NOISE * loss.unit / noise_of(settings, plan, 1.0)


def noise_of(
    settings: DPSGDSettings, plan: DPSGDPlan, rate: float, taken: int | None = None
) -> float:
    """Find how much noise a step size leaves in a score: the reverse.

    ``taken``: steps of those that were planned, after which somebody stopped. The noise of a step counts as
        often as momentum repeats it, so that of k of n steps is less by the root of
        Σ_{i ≤ k} (1 − m^i)² / Σ_{i ≤ n} (1 − m^i)². Default: all.
    """
    steps, m = settings.n_steps_taken, settings.momentum
    effective = steps / (1 - m) - m * (1 - m**steps) / (1 - m) ** 2
    effective *= math.sqrt(settings.steps / steps)  # with a filter a step has the noise of fewer
    part = 1.0
    if taken is not None and taken < steps:
        repeated = np.cumsum((1 - m ** np.arange(1, steps + 1)) ** 2)
        part = math.sqrt(repeated[taken - 1] / repeated[-1]) if taken else 0.0
    return part * rate * settings.clip_norm * effective / signal(plan)


def mostly_noise(plan: DPSGDPlan, loss: Loss) -> str:
    """Say so if no step size makes more of these budgets than noise, and what would; else empty.

    All clipped gradients that agree move a score of a row of unit length as far as the signal times the
    noise that all steps leave in it, whatever the step size. The people of one class are, on average, one of
    as many parts of that as there are classes: with less than one for each, noise is louder than a class.
    """
    found, needed = signal(plan), loss.n_sides
    if found >= needed:
        return ""
    people = sum(group.owners for group in plan.groups.values())
    what = f"{needed} classes need" if needed > 2 else "two classes (or high and low) need"
    return (
        f"these budgets buy mostly noise: all {people:,} people together, if they agreed, would move a model "
        f"by {found:.2g} standard deviations of its noise, and {what} at least {needed}: that "
        f"takes about {math.ceil(people * needed / found):,} people with such budgets, or larger budgets"
    )


def few_public(X_public: Any) -> str:
    """Say so if public records are too few to learn from them how a model sees records; else empty."""
    n = int(X_public.shape[0])
    least = _FEW_IMAGES if kind_of_records(X_public) == IMAGES else _FEW_ROWS
    if n >= least:
        return ""
    return (
        f"{n} public record{'s are' if n > 1 else ' is'} too few to learn how records are best shown to the "
        "model: a few hundred do better"
    )


def n_components(signal: float, n_classes: int, *, of_kernel: bool = False) -> int:
    """Tell how many principal components there is signal for.

    ``of_kernel``: of a kernel, which go on to tell something: beyond a signal of 200 for each class
        their number grows faster than the root.
    """
    faster = max(1.0, signal / (_MUCH_SIGNAL * n_classes)) ** (1 / 3) if of_kernel else 1.0
    return round(math.sqrt(signal * n_classes) * faster)


def with_components(
    preprocessing: Any, settings: DPSGDSettings, plan: DPSGDPlan, n_public: int, n_classes: int = 2
) -> Any:
    """Let a preprocessing make as many principal components as there is signal for, at most its own number.

    ``preprocessing``: not changed; what makes no components is returned as it is.
    ``n_public``: public records, of which there must be more than components.
    """
    if isinstance(preprocessing, Pipeline):
        *first, (name, last) = preprocessing.steps
        return Pipeline(
            [*first, (name, with_components(last, settings, plan, n_public, n_classes))]
        )
    parameter = _COMPONENTS.get(type(preprocessing))
    most = getattr(preprocessing, parameter) if parameter else None
    if parameter is None or most is None:
        return preprocessing
    of_kernel = isinstance(preprocessing, KernelComponents)
    wanted = settings.components or n_components(signal(plan), n_classes, of_kernel=of_kernel)
    few = max(1, min(int(most), wanted, n_public - 1))
    return clone(preprocessing).set_params(**{parameter: few})
