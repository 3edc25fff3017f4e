"""Teachers to plug in: estimators that train many at once, and where they are trained.

Any scikit-learn classifier can be a teacher; these are faster, or better on few records.
"""

from typing import TYPE_CHECKING

from collegium.lazy import lazily

_HOMES = {
    "collegium.models.batched": ["BatchedEstimator"],
    "collegium.models.closed_form.logistic": ["LogisticTeachers"],
    "collegium.models.closed_form.ridge": ["RidgeTeachers"],
    "collegium.models.closed_form.tabular": ["TabularTeachers"],
    "collegium.models.neural.neural_classifier": ["NeuralClassifier"],
    "collegium.workers.engines": ["Engine"],
}

if TYPE_CHECKING:
    from collegium.models.batched import BatchedEstimator
    from collegium.models.closed_form.logistic import LogisticTeachers
    from collegium.models.closed_form.ridge import RidgeTeachers
    from collegium.models.closed_form.tabular import TabularTeachers
    from collegium.models.neural.neural_classifier import NeuralClassifier
    from collegium.workers.engines import Engine
else:  # so that type checkers know every name, and that there are no others
    __getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = [
    "BatchedEstimator",
    "Engine",
    "LogisticTeachers",
    "NeuralClassifier",
    "RidgeTeachers",
    "TabularTeachers",
]
