"""Models and preprocessing by name, as configurations give them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from collegium.errors import ConfigError, InputError, ModelError
from collegium.models.balanced import BalancedTeachers
from collegium.models.batched import check_teachers_at_once
from collegium.models.classifiers import check_classifier
from collegium.models.features import Embeddings, PublicComponents, ScatteringTransform
from collegium.models.features.image_points import ImagePoints
from collegium.models.features.kernel_components import KernelComponents
from collegium.models.installed import find_installed
from collegium.models.preprocessing import (
    BinnedTable,
    CrossedTable,
    PixelScaler,
    PrincipalTable,
    TabularEncoder,
)

SHORT_NAMES = {
    "random-forest": "sklearn.ensemble.RandomForestClassifier",
    "logistic-regression": "sklearn.linear_model.LogisticRegression",
    "svm": "sklearn.svm.SVC",
    "nearest-neighbours": "sklearn.neighbors.KNeighborsClassifier",
    "gradient-boosting": "sklearn.ensemble.HistGradientBoostingClassifier",
    "tabular": "collegium.models.closed_form.tabular.TabularTeachers",
    "ridge": "collegium.models.closed_form.ridge.RidgeTeachers",
    "logistic": "collegium.models.closed_form.logistic.LogisticTeachers",
    "mostly-balanced": "collegium.models.balanced.MostlyBalancedTeachers",
    "seed-cnn": "collegium.models.neural.neural_classifier.NeuralClassifier",
    "small-cnn": "collegium.models.neural.neural_classifier.NeuralClassifier",
    "mlp": "collegium.models.neural.neural_classifier.NeuralClassifier",
    "graph": "collegium.distillation.graph.GraphStudent",
    "gaussian-process": "collegium.distillation.gaussian_process.GaussianProcessStudent",
    "semi-supervised": "collegium.distillation.neural_student.NeuralStudent",
    "self-training": "collegium.distillation.neural_student.NeuralStudent",
    "fixmatch": "collegium.distillation.neural_student.NeuralStudent",
    "vat": "collegium.distillation.neural_student.NeuralStudent",
    "pate-g": "collegium.distillation.generative_student.GenerativeStudent",
    "either": "collegium.distillation.best_of_two.EitherStudent",
    "evidence-regression": "collegium.distillation.regression.RegressionStudent",
}
#: Best of 0, 0.25, 0.35 and 0.5 for ridge teachers on 200 scattering components of MNIST.
_WHITENING = 0.25
#: How far numbers of any kind are whitened: units are evened out, and noise is not blown up.
_OF_NUMBERS = 0.5
_DEFAULTS: dict[str, dict[str, Any]] = {
    "logistic-regression": {"max_iter": 1000},
    "seed-cnn": {"network": "seed-cnn"},
    "small-cnn": {"network": "small-cnn"},
    "mlp": {"network": "mlp"},
    "fixmatch": {"method": "fixmatch"},
    "vat": {"method": "vat"},
}


def build_model(key: str, name: str, params: Mapping[str, Any]) -> Any:
    """Make a model from its name and parameters.

    ``key``: the configuration's key, for messages.
    ``name``: a short name, or the full name of a class.
    Returns: with ``fit`` and ``predict``.
    Raises ConfigError if the class is not known, by looking at it, to learn and to predict: nothing
        else is ever called, whatever a configuration names; or if a student is asked for, and it makes
        teachers alone.

    Examples
    --------
    >>> build_model("teachers.model", "random-forest", {"n_estimators": 10})
    RandomForestClassifier(n_estimators=10)
    """
    learns = ("fit", "fit_released") if key == "student.model" else ("fit",)
    cls = _estimator_class(key, name, learns)
    if key == "student.model" and issubclass(cls, BalancedTeachers):
        raise ConfigError(
            f"{key}: {name!r} is of teachers, which name classes by numbers: name what each of them is, such "
            "as tabular"
        )
    given = {**_DEFAULTS.get(name, {}), **params}
    try:
        model: Any = cls(**given)
        if hasattr(model, "_parameter_constraints"):  # of scikit-learn, which checks them in fit
            model._validate_params()
    except (TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"{key}: {cls.__name__} does not take these parameters: {reason}"
        ) from None
    try:
        check_teachers_at_once(model)
    except ModelError as error:
        raise ConfigError(f"{key}: {error}") from None
    try:
        check_classifier(model, key, learns_by=learns)
    except InputError as error:
        raise ConfigError(str(error)) from None
    return model


def _estimator_class(key: str, name: str, learns: tuple[str, ...]) -> type:
    """Find a class that learns and predicts; it is looked at, and not called."""
    full = SHORT_NAMES.get(name, name)
    if not full.rpartition(".")[0]:
        raise ConfigError(
            f"{key}: unknown model {name!r}: allowed are {', '.join(SHORT_NAMES)}, or the full name of a "
            "class such as sklearn.naive_bayes.GaussianNB"
        )
    example = "sklearn.naive_bayes.GaussianNB"
    cls = find_installed(key, full, kind="classifier", thing="class", example=example)
    if not inspect.isclass(cls):
        raise ConfigError(f"{key}: {name!r} is no class")
    if not (any(_has_method(cls, way) for way in learns) and _has_method(cls, "predict")):
        raise ConfigError(f"{key}: {name!r} has no fit and predict: name a classifier")
    return cls


def _has_method(cls: type, name: str) -> bool:
    """Tell whether a class defines a method, without running anything of it."""
    return inspect.isroutine(inspect.getattr_static(cls, name, None))


def keep_checkpoints(model: Any, folder: Path) -> Any:
    """Let a model that can be cut off in training, and go on later, write into a folder of the vault.

    ``model``: not changed.
    ``folder``: where; what is written there is **sensitive**.
    Returns: a copy that writes there, or the model itself if it does not write, or writes
        elsewhere.
    """
    if isinstance(model, BalancedTeachers):
        return type(model)(keep_checkpoints(model.estimator, folder))
    if getattr(model, "checkpoint_folder", "none of its own") is not None:
        return model
    return clone(model).set_params(checkpoint_folder=folder)


def build_preprocessing(
    kind: str,
    *,
    categorical: str,
    components: int,
    random_state: int,
    normalise: str = "length",
    whiten: float | None = None,
) -> Any | None:
    """Make the transformer that is fitted on public records; None for kind ``none``.

    ``kind``: see the configuration's ``preprocessing.kind``.
    ``categorical``: for ``tabular``.
    ``components``: for ``pca``, ``principal``, ``scattering``, ``binned``, ``crossed`` and ``kernel``.
    ``random_state``: for ``pca``.
    ``normalise``: for ``embeddings``.
    ``whiten``: for ``scattering``; default: what is best for ridge teachers.
    """
    if kind == "tabular":
        return TabularEncoder(categorical=cast(Any, categorical))
    if kind == "principal":
        return PrincipalTable(components)
    if kind == "binned":
        return BinnedTable(components)
    if kind == "crossed":
        return CrossedTable(components)
    if kind == "pixels":
        return PixelScaler()
    if kind == "pca":
        return make_pipeline(PixelScaler(), PCA(components, random_state=random_state))
    if kind == "scattering":
        return make_pipeline(
            ScatteringTransform(root=True),
            PublicComponents(components, whiten=_WHITENING if whiten is None else whiten),
        )
    if kind == "kernel":
        return make_pipeline(ImagePoints(), KernelComponents(components))
    if kind == "components":
        return PublicComponents(
            components, whiten=_OF_NUMBERS if whiten is None else whiten, or_fewer=True
        )
    if kind == "embeddings":
        return Embeddings(normalise=cast(Any, normalise))
    return None
