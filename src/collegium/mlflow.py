"""MLflow's flavour of a published student: ``import collegium.mlflow`` beside ``import mlflow``."""

from typing import TYPE_CHECKING

from collegium.lazy import lazily

_HOME = "collegium.study.mlflow_flavour"
_NAMES = ["load_model", "log_model", "log_release", "save_model"]

if TYPE_CHECKING:
    from collegium.study.mlflow_flavour import load_model, log_model, log_release, save_model
else:  # so that type checkers know every name, and that there are no others
    __getattr__, _ = lazily(
        __name__, {_HOME: [*_NAMES, "_load_pyfunc"]}
    )  # MLflow asks for the last
    _, __dir__ = lazily(__name__, {_HOME: _NAMES})

__all__ = [
    "load_model",
    "log_model",
    "log_release",
    "save_model",
]
