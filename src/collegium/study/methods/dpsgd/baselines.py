"""What the same records would give without individual budgets, and without privacy.

For comparisons on public data only: a baseline is a second use of the records, which nobody's budget
pays for, and the accuracy of a non-private model is a statement about private records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from collegium.dpsgd.run import DPSGDRun
from collegium.study.config import StudyConfig
from collegium.study.from_settings import settled
from collegium.study.methods.dpsgd.recipe import dpsgd_recipe_of
from collegium.study.methods.dpsgd.student import distilled_student_of
from collegium.study.study_data import StudyData, load_study_data

_NO_NOISE = 1e-6
"""In units of the noise that budgets need."""
_DRAWS = 5


@dataclass(frozen=True)
class Baselines:
    """Accuracies on the public test records, each the mean of a few draws of the noise.

    ``individual``: the same again.
    ``uniform``: with everybody at the strictest budget, and everything else as it is.
    ``tenfold``: with every ε ten times as large; ``uniform_tenfold``: everybody at the strictest of these.
    ``without_privacy``: the same model, from the same records, without noise.
    """

    individual: float
    uniform: float
    tenfold: float
    uniform_tenfold: float
    without_privacy: float


def measure_baselines(config: StudyConfig) -> Baselines:
    """Learn the same with other budgets, and without noise.

    ``config``: a study of direct training with levels and public test records.
    """
    levels = {name: 10 * epsilon for name, epsilon in (config.privacy.levels or {}).items()}
    generous = replace(config, privacy=replace(config.privacy, levels=levels))
    data, cheap = load_study_data(config), load_study_data(generous)
    return Baselines(
        _accuracy(config, data),
        _accuracy(config, replace(data, budgets=data.budgets.strictest())),
        _accuracy(config, cheap),
        _accuracy(config, replace(cheap, budgets=cheap.budgets.strictest())),
        _accuracy(config, data, _NO_NOISE),
    )


def _accuracy(config: StudyConfig, data: StudyData, noise: float = 1.0) -> float:
    config = settled(config, data.X_public)
    run = DPSGDRun(dpsgd_recipe_of(config), data)
    run.plan = replace(run.plan, noise=run.plan.noise * noise)
    believer = distilled_student_of(config, run)
    summands, right = run.summands(), []
    for _ in range(_DRAWS if noise == 1 else 1):
        model = run.model(run.descend(summands, run.n_parameters))
        model = run.view.published(model) if believer is None else believer.taught(model)[0]
        right.append(np.mean(model.predict(data.X_test) == data.y_test))
    return float(np.mean(right))
