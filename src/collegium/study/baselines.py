"""What the same records would give without individual budgets, and without privacy.

For comparisons on public data only: a baseline is a second use of the records, which nobody's budget
pays for, and the accuracy of a non-private model is a statement about private records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import clone

from collegium.errors import NothingReleasedError
from collegium.pate.pipeline import PateRun
from collegium.personalisation import Uniform
from collegium.study.config import StudyConfig
from collegium.study.from_settings import recipe_of, settled
from collegium.study.study_data import load_study_data


@dataclass(frozen=True)
class Baselines:
    """Student accuracies on the public test records.

    ``uniform_labels``: labels that uniform PATE releases at the strictest budget.
    ``uniform_accuracy``: accuracy of its student; None if no label was released.
    ``non_private_accuracy``: accuracy of one model (the student's kind, with what the student sees)
        trained on all private records and true labels.
    """

    uniform_labels: int
    uniform_accuracy: float | None
    non_private_accuracy: float


def measure_baselines(config: StudyConfig) -> Baselines:
    """Run uniform PATE at everybody's strictest budget, and train a model without privacy.

    ``config``: a study with public test records.
    """
    data = load_study_data(config)
    assert data.X_test is not None and data.y_test is not None
    strictest = replace(data, budgets=data.budgets.strictest())
    recipe = replace(recipe_of(settled(config, data.X_public)), personalisation=Uniform())
    run = PateRun(recipe, strictest, lend_workers=config.engine().running)
    run.rehearse()
    released = run.release(run.votes())
    try:
        student = run.student_view.published(run.teach(released))
        predicted = student.predict(data.X_test)
        accuracy: float | None = float(np.mean(predicted == data.y_test))
    except NothingReleasedError:
        accuracy = None
    view = run.student_view
    clear = clone(recipe.student).fit(view.of(data.X), data.classes[data.codes])
    predicted = clear.predict(view.of(data.X_test))
    return Baselines(
        len(released.labels.labels), accuracy, float(np.mean(predicted == data.y_test))
    )
