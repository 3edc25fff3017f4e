"""Students to plug in: they learn from all public records and what was released about some of them.

Any scikit-learn classifier can be a student, too.
"""

from typing import TYPE_CHECKING

from collegium.lazy import lazily

_HOMES = {
    "collegium.pate.students.semi_supervised": ["SemiSupervisedStudent"],
    "collegium.pate.students.embedding": ["EvenScattering", "PublicEmbedding"],
    "collegium.pate.students.either": ["EitherStudent"],
    "collegium.pate.students.gaussian_process": ["GaussianProcessStudent"],
    "collegium.pate.students.graph": ["GraphStudent"],
    "collegium.pate.students.neural_student": ["NeuralStudent"],
    "collegium.pate.students.regression": ["RegressionStudent"],
}

if TYPE_CHECKING:
    from collegium.pate.students.either import EitherStudent
    from collegium.pate.students.embedding import EvenScattering, PublicEmbedding
    from collegium.pate.students.gaussian_process import GaussianProcessStudent
    from collegium.pate.students.graph import GraphStudent
    from collegium.pate.students.neural_student import NeuralStudent
    from collegium.pate.students.regression import RegressionStudent
    from collegium.pate.students.semi_supervised import SemiSupervisedStudent
else:  # so that type checkers know every name, and that there are no others
    __getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = [
    "EitherStudent",
    "EvenScattering",
    "GaussianProcessStudent",
    "GraphStudent",
    "NeuralStudent",
    "PublicEmbedding",
    "RegressionStudent",
    "SemiSupervisedStudent",
]
