"""Models and preprocessing by name, as configurations give them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal

from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from collegium.errors import ConfigError
from collegium.preprocessing import PixelScaler, TabularEncoder

SHORT_NAMES = {
    "random-forest": "sklearn.ensemble.RandomForestClassifier",
    "logistic-regression": "sklearn.linear_model.LogisticRegression",
    "svm": "sklearn.svm.SVC",
    "nearest-neighbours": "sklearn.neighbors.KNeighborsClassifier",
    "gradient-boosting": "sklearn.ensemble.HistGradientBoostingClassifier",
}
_DEFAULTS: dict[str, dict[str, Any]] = {"logistic-regression": {"max_iter": 1000}}


def build_model(key: str, name: str, params: Mapping[str, Any]) -> Any:
    """Make a model from its name and parameters.

    Parameters
    ----------
    key : str
        The configuration's key, for messages.
    name : str
        A short name, or the full name of a class.
    params : mapping
        Its parameters.

    Returns
    -------
    object
        With ``fit`` and ``predict``.

    Raises
    ------
    ConfigError
        If there is no such class, or it does not take these parameters.

    Examples
    --------
    >>> build_model("teachers.model", "random-forest", {"n_estimators": 10})
    RandomForestClassifier(n_estimators=10)
    """
    module, _, attribute = SHORT_NAMES.get(name, name).rpartition(".")
    if not module:
        raise ConfigError(
            f"{key}: unknown model {name!r}: allowed are {', '.join(SHORT_NAMES)}, or the full name of a "
            "class such as sklearn.naive_bayes.GaussianNB"
        )
    try:
        cls = getattr(import_module(module), attribute)
    except (ImportError, AttributeError):
        raise ConfigError(f"{key}: there is no class {name!r} that can be imported") from None
    if not inspect.isclass(cls):
        raise ConfigError(f"{key}: {name!r} is no class")
    given = {**_DEFAULTS.get(name, {}), **params}
    try:
        model = cls(**given)
    except TypeError as error:
        raise ConfigError(f"{key}: {attribute} does not take these parameters: {error}") from None
    if not (hasattr(model, "fit") and hasattr(model, "predict")):
        raise ConfigError(f"{key}: {name!r} has no fit and predict: name a classifier")
    return model


def build_preprocessing(
    kind: str, *, categorical: Literal["ordinal", "onehot"], components: int, random_state: int
) -> Any | None:
    """Make the transformer that is fitted on public records; None for kind ``none``.

    Parameters
    ----------
    kind : {"none", "tabular", "pixels", "pca"}
        See the configuration's ``preprocessing.kind``.
    categorical : {"ordinal", "onehot"}
        For ``tabular``.
    components : int
        For ``pca``.
    random_state : int
        For ``pca``.
    """
    if kind == "tabular":
        return TabularEncoder(categorical=categorical)
    if kind == "pixels":
        return PixelScaler()
    if kind == "pca":
        return make_pipeline(PixelScaler(), PCA(components, random_state=random_state))
    return None
