"""Models of a study on disk, also those that an earlier version wrote.

Whoever reads one has made sure before that this study wrote it: unpickling runs what a file says.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from joblib.numpy_pickle import NumpyUnpickler

from collegium.errors import InputError

#: Where classes lay that earlier versions stored; the longest beginning of a module's name decides.
_MOVED = {
    "collegium.teachers.batched": "collegium.models.batched",
    "collegium.teachers.kernels": "collegium.models.closed_form.kernels",
    "collegium.teachers.kernel_regression": "collegium.models.closed_form.kernel_regression",
    "collegium.teachers.logistic": "collegium.models.closed_form.logistic",
    "collegium.teachers.ridge": "collegium.models.closed_form.ridge",
    "collegium.teachers.tabular": "collegium.models.closed_form.tabular",
    "collegium.teachers": "collegium.pate.teachers",
    "collegium.students.neighbours": "collegium.distillation.nearest",
    "collegium.neural.memory": "collegium.models.neural.device_memory",
    "collegium.students.fitted": "collegium.distillation.fitted_student",
    "collegium.students.neural": "collegium.distillation.neural_student",
    "collegium.students": "collegium.distillation",
    "collegium.features": "collegium.models.features",
    "collegium.preprocessing.tabular": "collegium.models.preprocessing.tabular_encoder",
    "collegium.preprocessing": "collegium.models.preprocessing",
    "collegium.neural.classifier": "collegium.models.neural.neural_classifier",
    "collegium.students.base": "collegium.distillation.semi_supervised",
    "collegium.neural.fitted": "collegium.models.neural.trained_network",
    "collegium.neural": "collegium.models.neural",
}
#: Classes that have another name since, by where they are now.
_RENAMED = {
    ("collegium.distillation.regression", "_View"): "_Columns",
    ("collegium.models.closed_form.tabular", "_View"): "_Weighting",
    ("collegium.distillation.nearest", "Neighbours"): "NearestRecords",
    ("collegium.models.neural.recipes", "Recipe"): "TrainingRecipe",
    ("collegium.distillation.released", "Released"): "ReleasedAnswers",
}


def where_now(module: str, name: str) -> tuple[str, str]:
    """Say where a class is today that an earlier version stored; others stay where they are.

    Examples
    --------
    >>> where_now("collegium.students.graph", "GraphStudent")
    ('collegium.distillation.graph', 'GraphStudent')
    """
    for before in sorted(_MOVED, key=len, reverse=True):
        if module == before or module.startswith(f"{before}."):
            module = _MOVED[before] + module[len(before) :]
            break
    return module, _RENAMED.get((module, name), name)


class _Unpickler(NumpyUnpickler):  # type: ignore[misc]
    """Reads what ``joblib.dump`` wrote, and finds classes that have moved since."""

    def find_class(self, module: str, name: str) -> Any:
        return super().find_class(*where_now(module, name))


def load_model(path: Path, content: bytes) -> Any:
    """Read a model; a damaged file is named in one line.

    ``path``: written by this version or an earlier one.
    ``content``: of the model: that file, without its seal.
    """
    try:
        return _Unpickler(str(path), io.BytesIO(content), ensure_native_byte_order=True).load()
    except Exception as error:  # unpickling may raise anything
        raise InputError(
            f"{path} cannot be read ({type(error).__name__}): delete it and run again"
        ) from None
