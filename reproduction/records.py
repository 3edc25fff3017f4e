"""The records of an experiment, split as the sources split them, in the views that models ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from collegium import ConfidentGNMax, load_dataset
from collegium.data.datasets import default_data_dir
from collegium.data.tables import take_rows
from collegium.distillation.embedding import EvenScattering, PublicEmbedding
from collegium.errors import InputError
from collegium.models.features import (
    FeatureCache,
    PublicComponents,
    ScatteringTransform,
    transform_cached,
)
from collegium.models.preprocessing import PixelScaler, PrincipalTable, TabularEncoder

_COMPONENTS, _WHITENING = 200, 0.25  # of scattering coefficients, as in study.models
_FEW = 20  # of those components
_POINTS = 400  # components, as GaussianProcessStudent takes them
_CHUNK = 4096
_SIDES = {"mnist": 28, "svhn": 32, "digits": 8}  # of the data sets that are images
_SVHN_FILES = ("svhn/train_32x32.mat", "svhn/test_32x32.mat")


class DataNotThereError(InputError):
    """The files of a data set are not in the data folder: an experiment is skipped, not failed."""


@dataclass(frozen=True)
class Scene:
    """One data set with its split and the mechanism that the sources use on it.

    Attributes
    ----------
    name : str
        Of the experiment.
    dataset : str
        Name of the records.
    sizes : tuple of int
        Private, public and test records (thesis, Table 6.3; paper, Table 4).
    n_teachers : int
        Nominal number of teachers.
    aggregator : ConfidentGNMax
        With the sources' threshold and noise.
    ordered : bool
        Whether the first records are private, the next public, the last for testing (the standard
        split), instead of a random split.
    model : str
        Kind of teachers and students of a small stand-in; empty: that of the reading.
    """

    name: str
    dataset: str
    sizes: tuple[int, int, int]
    n_teachers: int
    aggregator: ConfidentGNMax
    ordered: bool = False
    model: str = ""

    @property
    def holds(self) -> str:
        """What its records are: ``images`` or ``tables``."""
        return "images" if self.dataset in _SIDES else "tables"

    @property
    def side(self) -> int:
        """Pixels along one side of its images; 0 of tables."""
        return _SIDES.get(self.dataset, 0)


_MNIST_VOTING = ConfidentGNMax(threshold=200, sigma_threshold=150, sigma=40)
_ADULT_VOTING = ConfidentGNMax(threshold=300, sigma_threshold=200, sigma=40)
_QUICK_VOTING = ConfidentGNMax(threshold=12, sigma_threshold=20, sigma=14)

SCENES = {
    scene.name: scene
    for scene in (
        Scene("mnist", "mnist", (60000, 9000, 1000), 250, _MNIST_VOTING),
        Scene("adult", "adult", (37222, 7000, 1000), 250, _ADULT_VOTING),
        Scene("mnist-standard", "mnist", (50000, 10000, 10000), 250, _MNIST_VOTING, ordered=True),
        Scene("mnist-pate", "mnist", (60000, 9000, 1000), 250, _MNIST_VOTING, ordered=True),
        Scene("svhn", "svhn", (63257, 10000, 26032), 250, _ADULT_VOTING, ordered=True),
    )
}
"""Scenes of the sources."""

QUICK_SCENES = {
    "mnist": Scene("digits", "digits", (1300, 300, 197), 25, _QUICK_VOTING, model="pixel-ridge"),
    "mnist-standard": Scene(
        "digits-standard",
        "digits",
        (1300, 300, 197),
        25,
        _QUICK_VOTING,
        ordered=True,
        model="pixel-ridge",
    ),
    "adult": Scene(
        "adult-quick", "adult", (1300, 300, 500), 25, _QUICK_VOTING, model="table-ridge"
    ),
}
"""Small stand-ins, for trying the machinery: scikit-learn's digits for MNIST, few records of Adult."""


@dataclass(eq=False)
class Split:
    """Private, public and test records of one seed.

    Attributes
    ----------
    scene : Scene
        Where they come from.
    seed : int
        Of the split.
    codes_private, codes_public, codes_test : ndarray of int
        Class numbers.
    n_classes : int
        Length of the class list.
    features : Path or None
        Folder in which slow, data-independent features are kept.
    """

    scene: Scene
    seed: int
    X: Any
    rows: tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]
    codes_private: NDArray[np.intp]
    codes_public: NDArray[np.intp]
    codes_test: NDArray[np.intp]
    n_classes: int
    features: Path | None = None
    _views: dict[str, tuple[Any, Any, Any]] = field(default_factory=dict, repr=False)

    def view(self, name: str) -> tuple[Any, Any, Any]:
        """Private, public and test records, transformed by what public records show.

        Parameters
        ----------
        name : str
            One of :data:`VIEWS`.

        Raises
        ------
        InputError
            If there is no such view.
        """
        if name not in VIEWS:
            raise InputError(
                f"there is no view {name!r} of records: allowed are {', '.join(VIEWS)}"
            )
        if name not in self._views:
            private, public, test = (take_rows(self.X, rows) for rows in self.rows)
            self._views[name] = VIEWS[name](self, private, public, test)
        return self._views[name]


def _pixels(split: Split, private: Any, public: Any, test: Any) -> tuple[Any, Any, Any]:
    scaler = PixelScaler(16.0 if split.scene.dataset == "digits" else 255.0).fit(public)
    return scaler.transform(private), scaler.transform(public), scaler.transform(test)


def _components(split: Split, private: Any, public: Any, test: Any) -> tuple[Any, Any, Any]:
    scaled = _pixels(split, private, public, test)
    pca = PCA(min(50, scaled[1].shape[1]), random_state=split.seed).fit(scaled[1])
    return tuple(pca.transform(part).astype(np.float32) for part in scaled)


def _tabular(split: Split, private: Any, public: Any, test: Any) -> tuple[Any, Any, Any]:
    encoder = TabularEncoder().fit(public)
    return encoder.transform(private), encoder.transform(public), encoder.transform(test)


def _onehot(split: Split, private: Any, public: Any, test: Any) -> tuple[Any, Any, Any]:
    encoder = TabularEncoder(categorical="onehot", scale="standard").fit(public)
    return encoder.transform(private), encoder.transform(public), encoder.transform(test)


def _principal(split: Split, private: Any, public: Any, test: Any) -> tuple[Any, Any, Any]:
    table = PrincipalTable().fit(public)
    return table.transform(private), table.transform(public), table.transform(test)


def _raw(split: Split, private: Any, public: Any, test: Any) -> tuple[Any, Any, Any]:
    return private, public, test


def _scattering(split: Split, private: Any, public: Any, test: Any) -> tuple[Any, Any, Any]:
    """Scattering coefficients, rotated to 200 principal components of the public images."""
    coefficients = _coefficients(split)
    parts = [coefficients[rows] for rows in split.rows[1:]]
    components = PublicComponents(_COMPONENTS, whiten=_WHITENING).fit(parts[0])
    inside = [
        components.transform(coefficients[rows])
        for rows in np.array_split(split.rows[0], 1 + len(split.rows[0]) // _CHUNK)
    ]
    return np.concatenate(inside), components.transform(parts[0]), components.transform(parts[1])


def _few_scattering(split: Split, private: Any, public: Any, test: Any) -> tuple[Any, Any, Any]:
    """The first principal components of scattering coefficients: teachers that are not too good."""
    parts = split.view("scattering")
    return parts[0][:, :_FEW], parts[1][:, :_FEW], parts[2][:, :_FEW]


def _coefficients_only(split: Split, private: Any, public: Any, test: Any) -> tuple[Any, Any, Any]:
    """Scattering coefficients of public and test images; nobody needs those of private ones whole."""
    coefficients = _coefficients(split)
    return None, coefficients[split.rows[1]], coefficients[split.rows[2]]


def _points(split: Split, private: Any, public: Any, test: Any) -> tuple[Any, Any, Any]:
    """Public and test images as a Gaussian-process student sees them, embedded once for all students."""
    embedding = PublicEmbedding(EvenScattering(), _POINTS, whiten=_WHITENING)
    return None, embedding.fit_transform(public), embedding.transform(test)


def _coefficients(split: Split) -> NDArray[np.float32]:
    """Scattering coefficients of all images, from the cache if there is one: they depend on no data."""
    transform = ScatteringTransform(root=True).fit(split.X[:1])
    if split.features is None:
        return np.asarray(transform.transform(split.X))
    return np.asarray(transform_cached(transform, split.X, FeatureCache(split.features)))


View = Callable[[Split, Any, Any, Any], tuple[Any, Any, Any]]
VIEWS: dict[str, View] = {
    "raw": _raw,
    "pixels": _pixels,
    "components": _components,
    "scattering": _scattering,
    "scattering-20": _few_scattering,
    "coefficients": _coefficients_only,
    "points": _points,
    "principal": _principal,
    "tabular": _tabular,
    "onehot": _onehot,
}
"""Views by name; each is fitted on public records alone."""

VIEWS_OF_TABLES = ("principal", "tabular", "onehot")
"""Views of tables; all others but the raw one are of images."""


def shows(view: str, scene: Scene) -> bool:
    """Tell whether a view can be made of a scene's records.

    Examples
    --------
    >>> shows("pixels", SCENES["mnist"]), shows("onehot", SCENES["mnist"])
    (True, False)
    """
    return view == "raw" or (view in VIEWS_OF_TABLES) == (scene.holds == "tables")


def load_split(
    scene: Scene, data_dir: Path | None, seed: int, features: Path | None = None
) -> Split:
    """Read a scene's records and split them.

    Parameters
    ----------
    scene : Scene
        Which records.
    data_dir : Path, optional
        Data folder; default as in :func:`collegium.data.datasets.load_dataset`.
    seed : int
        Of the random split; without effect on ordered scenes.
    features : Path, optional
        Folder in which slow, data-independent features are kept.

    Raises
    ------
    DataNotThereError
        If the files are not in the folder: nothing is downloaded here.
    """
    X, codes, n_classes = _records(scene.dataset, data_dir)
    order = np.arange(len(codes))
    if not scene.ordered:
        order = np.random.default_rng([seed, 1]).permutation(len(codes))
    ends = np.cumsum(scene.sizes)
    rows = (order[: ends[0]], order[ends[0] : ends[1]], order[ends[1] : ends[2]])
    parts = codes[rows[0]], codes[rows[1]], codes[rows[2]]
    return Split(scene, seed, X, rows, *parts, n_classes, features)


def _records(dataset: str, data_dir: Path | None) -> tuple[Any, NDArray[np.intp], int]:
    if dataset == "svhn":
        return _svhn(data_dir)
    options: dict[str, Any] = {"drop_missing": True} if dataset == "adult" else {}
    try:
        loaded = load_dataset(dataset, data_dir, download=False, **options)
    except InputError as error:
        raise DataNotThereError(f"not there: {error}") from error
    codes = pd.Index(loaded.classes).get_indexer(pd.Index(loaded.y))
    return loaded.X, np.asarray(codes, dtype=np.intp), len(loaded.classes)


def _svhn(data_dir: Path | None) -> tuple[Any, NDArray[np.intp], int]:
    """Read the cropped digits of Netzer et al. 2011: images (32, 32, 3, n), label 10 for zero."""
    folder = default_data_dir() if data_dir is None else data_dir
    paths = [folder / name for name in _SVHN_FILES]
    for path in paths:
        if not path.is_file():
            raise DataNotThereError(
                f"not there: SVHN needs {' and '.join(_SVHN_FILES)} in the data folder (cropped digits, "
                "http://ufldl.stanford.edu/housenumbers); they are not downloaded"
            )
    from scipy.io import loadmat

    images, codes = [], []
    for path in paths:
        content = loadmat(path)
        images.append(np.moveaxis(content["X"], -1, 0))
        codes.append(content["y"].ravel().astype(np.intp) % 10)
    return np.concatenate(images), np.concatenate(codes), 10
