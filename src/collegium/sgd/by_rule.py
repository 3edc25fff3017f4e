"""What nobody should have to tune: step size and number of features, from public numbers alone.

What counts is the *signal* S = Σ_o μ_o: how many people there are, times what they grant in Gaussian DP.
After T steps with momentum m the noise in a weight is that of T_eff = T/(1−m) − m(1−m^T)/(1−m)² plain steps
whose noise adds up: lr·T_eff·clip/S in standard deviation. The step size keeps that, on a row of unit length,
at a fixed part of a logit, so that small budgets take small steps; and as many features are looked at as
there is signal for. Found on parts of the training images of MNIST and Fashion-MNIST
(``docs/results/direct-training.md``).
"""

from __future__ import annotations

import math
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from collegium.models.features.kernel_components import KernelComponents
from collegium.models.features.principal import PublicComponents
from collegium.models.preprocessing.principal_table import PrincipalTable
from collegium.personalisation.descent_plan import DescentPlan
from collegium.sgd.settings import Descent

NOISE_IN_A_LOGIT = 0.75
"""Standard deviation, on rows of unit length."""
NOISE_IN_A_SCORE = 0.25
"""The same where numbers between −1 and 1 are predicted: an eighth of what lies between."""
LARGEST_STEP = 40.0
"""With momentum 0.9: what is stable grows with 1 + momentum (Polyak 1964)."""
_USUAL = 1.9
FEATURES_PER_ROOT_SIGNAL = 3.0
_COMPONENTS: dict[type, str] = {
    KernelComponents: "n_components",
    PublicComponents: "n_components",
    PrincipalTable: "components",
}


def signal(plan: DescentPlan) -> float:
    """Σ over owners of μ, as far as the plan uses it: divisor · √steps / noise."""
    return plan.divisor * math.sqrt(plan.steps) / plan.noise


def learning_rate(settings: Descent, plan: DescentPlan) -> float:
    """The step size that was asked for, or that of the rule."""
    if settings.learning_rate is not None:
        return settings.learning_rate
    largest = LARGEST_STEP * ((1 + settings.momentum) / _USUAL)
    return min(largest, by_noise(settings, plan, NOISE_IN_A_LOGIT))


def by_noise(settings: Descent, plan: DescentPlan, noise: float) -> float:
    """Find the step size that leaves so much noise in a score of a row of unit length, after all steps."""
    steps, m = settings.taken, settings.momentum
    effective = steps / (1 - m) - m * (1 - m**steps) / (1 - m) ** 2
    # With a filter, each step has the noise of fewer.
    effective *= math.sqrt(settings.steps / steps)
    return noise * signal(plan) / (settings.clip_norm * effective)


def learning_rate_of_squares(settings: Descent, plan: DescentPlan) -> float:
    """As :func:`learning_rate`, for squared errors: half of what is stable on rows of unit length.

    The mean of (features, 1) ⊗ (features, 1) stretches nothing by more than 2; heavy-ball descent on it is
    stable below (1 + momentum) (Polyak 1964).
    """
    if settings.learning_rate is not None:
        return settings.learning_rate
    return min((1 + settings.momentum) / 2, by_noise(settings, plan, NOISE_IN_A_SCORE))


def with_components(preprocessing: Any, settings: Descent, plan: DescentPlan, n_public: int) -> Any:
    """Let a preprocessing make as many principal components as there is signal for, at most its own number.

    ``preprocessing``: not changed; what makes no components is returned as it is.
    ``n_public``: public records, of which there must be more than components.
    """
    if isinstance(preprocessing, Pipeline):
        *first, (name, last) = preprocessing.steps
        return Pipeline([*first, (name, with_components(last, settings, plan, n_public))])
    parameter = _COMPONENTS.get(type(preprocessing))
    most = getattr(preprocessing, parameter) if parameter else None
    if parameter is None or most is None:
        return preprocessing
    wanted = settings.components or round(FEATURES_PER_ROOT_SIGNAL * math.sqrt(signal(plan)))
    few = max(1, min(int(most), wanted, n_public - 1))
    return clone(preprocessing).set_params(**{parameter: few})
