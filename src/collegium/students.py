"""Students to plug in: they learn from all public records and what was released about some of them.

Any scikit-learn classifier can be a student, too.
"""

from typing import TYPE_CHECKING

from collegium.lazy import lazily

_HOMES = {
    "collegium.distillation.semi_supervised": ["SemiSupervisedStudent"],
    "collegium.distillation.embedding": ["EvenScattering", "PublicEmbedding"],
    "collegium.distillation.best_of_two": ["EitherStudent"],
    "collegium.distillation.gaussian_process": ["GaussianProcessStudent"],
    "collegium.distillation.generative_student": ["GenerativeStudent"],
    "collegium.distillation.graph": ["GraphStudent"],
    "collegium.distillation.neural_student": ["NeuralStudent"],
    "collegium.distillation.regression": ["RegressionStudent"],
}

if TYPE_CHECKING:
    from collegium.distillation.best_of_two import EitherStudent
    from collegium.distillation.embedding import EvenScattering, PublicEmbedding
    from collegium.distillation.gaussian_process import GaussianProcessStudent
    from collegium.distillation.generative_student import GenerativeStudent
    from collegium.distillation.graph import GraphStudent
    from collegium.distillation.neural_student import NeuralStudent
    from collegium.distillation.regression import RegressionStudent
    from collegium.distillation.semi_supervised import SemiSupervisedStudent
else:  # so that type checkers know every name, and that there are no others
    __getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = [
    "EitherStudent",
    "EvenScattering",
    "GaussianProcessStudent",
    "GenerativeStudent",
    "GraphStudent",
    "NeuralStudent",
    "PublicEmbedding",
    "RegressionStudent",
    "SemiSupervisedStudent",
]
