"""A release in MLflow: its student as a model, its statement as an artefact, its numbers in a run.

Everything that is logged was released: it comes from the files that ``digests.json`` lists, and nothing is
read from a vault. Nothing is pickled either: a model is a copy of the release.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from collegium.data.column_types import IN_NUMBERS
from collegium.data.frames import as_pandas
from collegium.errors import InputError
from collegium.json_files import parse_json
from collegium.study.others_records import like_inputs
from collegium.study.released_files import DIGESTS_FILE, released_content, released_names
from collegium.study.student_file import StoredStudent, load_student, published_student

FLAVOUR = "collegium"
_MODULE = "collegium.mlflow"
_DATA, _RELEASE = "data", "release"
_READ_BY = ("collegium", "numpy", "scipy", "scikit-learn", "pandas")
_COUNTS = ("steps", "steps_lost", "queries_asked", "labels_released")
_MEASURES = ("accuracy", "balanced_accuracy", "auc", "calibration_error", "majority_share", "n")
_PRIVACY = {
    "guarantee": str,
    "unit": str,
    "private_noise": bool,
    "statement": [str],
    "groups": [{"group": str}],
    "config": dict,
    "versions": dict,
}
_TYPES = {"numbers": "double", "text": "string", "dates": "datetime"}
_ANSWERS = {"O": "string", "U": "string", "b": "boolean", "i": "long", "u": "long", "f": "double"}
_MOST_GROUPS = 20  # more are budgets as numbers, not levels
_LONGEST_NOTE = 5000


def save_model(
    release: str | PathLike[str],
    path: str | PathLike[str],
    *,
    mlflow_model: Any = None,
    extra_pip_requirements: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Write a release as an MLflow model: flavours ``collegium`` and ``python_function``.

    The model is a copy of the release, so statement, card, report and quality are in it. Its signature
    follows from the columns that the student takes.

    Parameters
    ----------
    release : str or path
        A study's folder, or its ``release/``: one with a student.
    path : str or path
        Folder to write, which must not exist yet.
    mlflow_model : mlflow.models.Model, optional
        What is added to; MLflow gives it.
    extra_pip_requirements : sequence of str
        What else the model's environment needs, such as ``torch`` for a student that is a network, or the
        address of a wheel of Collegium.
    metadata : mapping, optional
        Written into ``MLmodel``.

    Raises
    ------
    InputError
        If it is no release with a student, or a file in it is not as it was released.

    Examples
    --------
    >>> import collegium.mlflow
    >>> collegium.mlflow.save_model("study", "model")  # doctest: +SKIP
    """
    pyfunc, models = _mlflow("mlflow.pyfunc"), _mlflow("mlflow.models")
    found = _release_in(Path(release))
    stored = published_student(found)
    model = models.Model() if mlflow_model is None else mlflow_model
    model.add_flavor(
        FLAVOUR, release=f"{_DATA}/{_RELEASE}", guarantee=_privacy_of(found)["guarantee"]
    )
    with _copied(found) as copied:
        pyfunc.save_model(
            str(path),
            loader_module=_MODULE,
            data_path=str(copied),
            mlflow_model=model,
            signature=_signature(stored),
            pip_requirements=[*_requirements(found), *extra_pip_requirements],
            metadata=None if metadata is None else dict(metadata),
        )


def log_model(
    release: str | PathLike[str],
    name: str = "student",
    *,
    registered_model_name: str | None = None,
    **settings: Any,
) -> Any:
    """Log a release as a model of the active run, or of a new one; :func:`log_release` adds its numbers.

    Parameters
    ----------
    release : str or path
        A study's folder, or its ``release/``: one with a student.
    name : str
        Of the model in the run.
    registered_model_name : str, optional
        Under which a version of it is registered.
    **settings
        What :func:`save_model` and ``mlflow.models.Model.log`` take besides.

    Returns
    -------
    mlflow.models.model.ModelInfo

    Raises
    ------
    InputError
        As :func:`save_model` does.

    Examples
    --------
    >>> import mlflow, collegium.mlflow  # doctest: +SKIP
    >>> collegium.mlflow.log_model("study", registered_model_name="readmissions")  # doctest: +SKIP
    """
    return _mlflow("mlflow.models").Model.log(
        artifact_path=None,
        name=name,
        flavor=import_module(_MODULE),
        registered_model_name=registered_model_name,
        release=release,
        **settings,
    )


def load_model(model_uri: str, trust: Sequence[str] = ()) -> Any:
    """Load the student of a logged release; see :func:`collegium.load_student`.

    Unlike ``mlflow.pyfunc.load_model``, which imports whatever module the model's own ``MLmodel`` names, this
    reads the release alone, and runs nothing of it.

    Parameters
    ----------
    model_uri : str
        Where MLflow has it, such as ``models:/readmissions/1`` or a folder.
    trust : sequence of str
        As in :func:`collegium.load_student`.

    Returns
    -------
    estimator
        A classifier in scikit-learn's manner.

    Raises
    ------
    InputError
        As :func:`collegium.load_student` does.

    Examples
    --------
    >>> import collegium.mlflow
    >>> student = collegium.mlflow.load_model("models:/readmissions/1")  # doctest: +SKIP
    """
    place = _mlflow("mlflow.artifacts").download_artifacts(artifact_uri=model_uri)
    return load_student(Path(place, _DATA, _RELEASE), trust)


def log_release(release: str | PathLike[str]) -> None:
    """Log what a release says of itself, whatever it releases, in the active run, or in a new one.

    Parameters are what was promised, metrics what came of it and how good the model is, where there is one;
    the files are artefacts under ``release/``, and the statement is the run's description. What was spent
    under a data-dependent guarantee is in no release, and so not here.

    Parameters
    ----------
    release : str or path
        A study's folder, or its ``release/``.

    Raises
    ------
    InputError
        If it is no release, or a file in it is not as it was released.

    Examples
    --------
    >>> import mlflow, collegium.mlflow  # doctest: +SKIP
    >>> with mlflow.start_run():  # doctest: +SKIP
    ...     collegium.mlflow.log_release("study")
    """
    mlflow, found = _mlflow("mlflow"), _release_in(Path(release))
    told = _privacy_of(found)
    with _copied(found) as copied:
        mlflow.log_params(_params(told))
        mlflow.log_metrics(_metrics(told, found))
        mlflow.set_tag("mlflow.note.content", "\n\n".join(told["statement"])[:_LONGEST_NOTE])
        mlflow.log_artifacts(str(copied), _RELEASE)


def _load_pyfunc(path: str) -> PyfuncStudent:
    """Load the student for MLflow's flavour ``python_function``, which calls it by this name."""
    return PyfuncStudent(published_student(Path(path)))


class PyfuncStudent:
    """A published student as MLflow's ``python_function`` calls it."""

    def __init__(self, stored: StoredStudent) -> None:
        self._stored = stored

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Any:
        """Name the class of each record; with ``params={"proba": True}``, the probability of each class.

        ``model_input``: records as :func:`collegium.read_records` reads them.
        Returns: an array of classes, or a table with a column for each class.
        """
        records = like_inputs(as_pandas(model_input), self._stored.inputs, "the model's input")
        student = self._stored.student
        if not (params or {}).get("proba"):
            return student.predict(records)
        if not hasattr(student, "predict_proba"):
            raise InputError("this model gives no probabilities: leave out proba")
        return pd.DataFrame(student.predict_proba(records), columns=student.classes_)


def _mlflow(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise InputError("MLflow is not here: install collegium with its extra 'mlflow'") from None


def _release_in(path: Path) -> Path:
    for folder in (path, path / _RELEASE):
        if (folder / DIGESTS_FILE).is_file():
            return folder
    raise InputError(
        f"{path} is no whole release ({DIGESTS_FILE} is missing): give the folder of a study that has ended, "
        "or its release/"
    )


@contextmanager
def _copied(release: Path) -> Iterator[Path]:
    """Copy what was released, and nothing that lies beside it, as it was released."""
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder, _RELEASE)
        copied.mkdir()
        for name in released_names(release):
            content = released_content(release / name)
            assert content is not None  # it would have been refused
            (copied / name).write_bytes(content)
        (copied / DIGESTS_FILE).write_bytes((release / DIGESTS_FILE).read_bytes())
        yield copied


def _privacy_of(release: Path) -> dict[str, Any]:
    path = release / "privacy.json"
    content = released_content(path)
    if content is None:
        raise InputError(f"{release} has no privacy.json: get the whole release again")
    told: dict[str, Any] = parse_json(content, path, _PRIVACY)
    return told


def _requirements(release: Path) -> list[str]:
    """Take the versions that a card names, of what reads a student."""
    known = _privacy_of(release)["versions"]
    return [f"{name}=={known[name]}" for name in _READ_BY if name in known]


def _signature(stored: StoredStudent) -> Any:
    """Say what goes in and comes out; numbers are doubles, as :func:`collegium.read_records` reads them."""
    types, models = _mlflow("mlflow.types"), _mlflow("mlflow.models")
    inputs = stored.inputs
    if "columns" in inputs:
        columns = [types.ColSpec(_TYPES[kind], name) for name, kind in inputs["columns"]]
    else:
        dtype = np.dtype(np.float64 if inputs["kind"] == IN_NUMBERS else np.str_)
        columns = [types.TensorSpec(dtype, (-1, *inputs["shape"]))]
    classes = getattr(stored.student, "classes_", None)
    answer = "double" if classes is None else _ANSWERS[np.asarray(classes).dtype.kind]
    return models.ModelSignature(
        inputs=types.Schema(columns),
        outputs=types.Schema([types.ColSpec(answer)]),
        params=types.ParamSchema([types.ParamSpec("proba", "boolean", False)]),
    )


def _params(told: Mapping[str, Any]) -> dict[str, Any]:
    config = told["config"]
    promised = {
        "study": config.get("study", {}).get("name", ""),
        "method": config.get("method", {}).get("kind", ""),
        **{key: told[key] for key in ("guarantee", "unit", "private_noise")},
    }
    groups = told["groups"]
    if len(groups) > _MOST_GROUPS:  # budgets as numbers, one each
        by_group: dict[str, Any] = {"groups": len(groups)}
        for key in ("epsilon", "delta"):
            amounts = [float(group[key]) for group in groups]
            by_group |= {f"{key}.least": min(amounts), f"{key}.most": max(amounts)}
        return promised | by_group
    keys = ("owners", "epsilon", "delta", "right_of_100")
    return promised | {
        f"{key}.{_plain(group['group'])}": group[key]
        for group in groups
        for key in keys
        if key in group
    }


def _metrics(told: Mapping[str, Any], release: Path) -> dict[str, float]:
    """Take numbers that were released: counts, amounts spent, and how good the student is."""
    counted = {key: told[key] for key in _COUNTS if isinstance(told.get(key), int)}
    groups = told["groups"] if len(told["groups"]) <= _MOST_GROUPS else []
    spent = {
        f"epsilon_spent.{_plain(group['group'])}": group["epsilon_spent"]
        for group in groups
        if isinstance(group.get("epsilon_spent"), float)
    }
    path = release / "quality.json"
    content = released_content(path)
    judged = {} if content is None else parse_json(content, path, {})
    good = {key: judged[key] for key in _MEASURES if isinstance(judged.get(key), int | float)}
    return {key: float(number) for key, number in {**counted, **spent, **good}.items()}


def _plain(name: str) -> str:
    """Leave the letters that MLflow takes in the name of a number."""
    return re.sub(r"[^\w.\- :/]", "_", name)
