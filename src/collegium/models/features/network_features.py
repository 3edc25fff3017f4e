"""Features by a network that was trained elsewhere and is brought along. Needs no PyTorch to import."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from collegium.checks import check_whole, listed
from collegium.data.column_types import NUMBER, kind_of
from collegium.errors import InputError
from collegium.models.features.dense_tables import finite_numbers
from collegium.models.neural.inputs import record_shape
from collegium.models.neural.machine import find_machine, require_torch

if TYPE_CHECKING:
    from collegium.models.neural.pretrained import PretrainedNetwork

_OF_IMAGES = ("small-cnn", "seed-cnn")
_CHANNELS = (1, 3, 4)
_CLOSE = 1e-3  # how far rounding may move features, relative to the largest
_COMPARED = 16  # public records that are shown together, to see whether they mix


@dataclass(frozen=True)
class WeightsFile:
    """A file with a network's state, as it was when this was made.

    ``sha256``: of its content.
    """

    path: Path
    sha256: str

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> WeightsFile:
        """Look at a file; raises InputError if it cannot be read."""
        return cls(Path(path), hashlib.sha256(_content(Path(path))).hexdigest())

    def read(self) -> bytes:
        """Read it; raises InputError if it was changed since."""
        content = _content(self.path)
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise InputError(
                f"weights names {self.path.name}, which was changed since it was looked at: bring that file "
                "back, or begin anew"
            )
        return content

    def __repr__(
        self,
    ) -> str:  # parties compare what they do by such words, and have folders of their own
        return f"{self.path.name} (sha256 {self.sha256})"


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"weights names {path}, which cannot be read ({error.strerror}): give a file that "
            "torch.save(network.state_dict(), FILE) wrote"
        ) from None


class NetworkFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Records as one layer of a network sees them that was trained elsewhere (extra ``torch``).

    The network is never trained here, and nothing is downloaded. What it was trained on is covered by no
    guarantee: statements name the file, and say so.

    Parameters
    ----------
    network : str
        ``"small-cnn"``, ``"seed-cnn"``, ``"mlp"``, or the full name of an installed class of
        :class:`torch.nn.Module`, or of a function that is annotated to return one, such as
        ``"torchvision.models.resnet18"``. It is made without weights of its own, and looked at before it is
        called.
    weights : path-like
        File with a state of that network: what ``torch.save(network.state_dict(), FILE)`` writes (.pt, .pth),
        or .safetensors if that library is installed. Nothing in it is run.
    layer : str, optional
        Name of the module whose output is taken, flattened; default: what enters the last linear layer.
    params : mapping, optional
        Arguments for making the network. Those of the first three names know classes and records from the
        state.
    input_shape : sequence of int, optional
        Shape of a record, where flat rows are images: (channels, height, width). Images themselves have their
        channels first or last.
    mean, deviation : float or sequence of float, default=0 and 1
        What was subtracted from records, and what they were divided by then, where the network was trained:
        one number, or one for each channel (of rows: for each feature), on the scale of these records.
    batch_size : int, default=1
        Records that are computed together. With 1 each is alone, and no bit of its features can depend on
        another's presence. More is faster where networks are small; blocks are filled up to this size, but
        rounding may differ by place, and statements of direct training then make a proviso.
    device : {"auto", "cpu", "cuda"}, default="auto"
        As for :class:`~collegium.teachers.NeuralClassifier`: a GPU, if there is one. No GPU was at hand to
        measure it on.

    Attributes
    ----------
    n_features_out_ : int
        Numbers that describe a record.
    sha256_ : str
        Of the file of weights.

    Notes
    -----
    On a processor every block has one core: in which order numbers are added does not depend on how many
    records there are. A fitted one holds the network's numbers, so that a published model needs no further
    file; it forgets the folder that the file is in.

    Examples
    --------
    >>> import tempfile, torch
    >>> from collegium.models.neural.networks import mlp
    >>> folder = tempfile.mkdtemp()
    >>> torch.save(mlp(2, (3,), hidden=(4,)).state_dict(), f"{folder}/mlp.pt")
    >>> features = NetworkFeatures("mlp", f"{folder}/mlp.pt", params={"hidden": [4]})
    >>> features.fit(np.eye(3)).transform(np.ones((5, 3))).shape
    (5, 4)
    """

    def __init__(
        self,
        network: str,
        weights: str | os.PathLike[str] | WeightsFile,
        layer: str | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        input_shape: Sequence[int] | None = None,
        mean: float | Sequence[float] = 0.0,
        deviation: float | Sequence[float] = 1.0,
        batch_size: int = 1,
        device: str = "auto",
    ) -> None:
        self.network = network
        self.weights = weights
        self.layer = layer
        self.params = params
        self.input_shape = input_shape
        self.mean = mean
        self.deviation = deviation
        self.batch_size = batch_size
        self.device = device

    @property
    def exact_by_record(self) -> bool:
        """Whether no bit of a record's features depends on another's presence."""
        return self.batch_size == 1 and find_machine(self.device).device.type == "cpu"

    @property
    def brought(self) -> str:
        """Say which network it is, for statements."""
        return f"{self._file.path.name} (network {self.network}, sha256 {self._file.sha256})"

    @property
    def _file(self) -> WeightsFile:
        if isinstance(self.weights, WeightsFile):
            return self.weights
        if hasattr(self, "sha256_"):
            return WeightsFile(Path(self.weights), self.sha256_)
        return WeightsFile.of(self.weights)

    def fit(self, X: Any, y: object = None) -> Self:
        """Read the network, and look at what it makes of a blank record and of a few public ones.

        Parameters
        ----------
        X : array-like, shape (n_public, ...)
            Public records; nothing is learnt from them but their shape.
        y : object, optional
            Ignored.

        Returns
        -------
        NetworkFeatures
            Itself.

        Raises
        ------
        InputError
            If the file is not there or no state of the network, the layer is not in it, it takes no such
            records, or its answers change from one time to the next or with who is beside a record.
        """
        require_torch()
        from collegium.models.neural.pretrained import arguments, find_factory, read_state

        check_whole("batch_size", self.batch_size)
        given = self.weights
        file = given if isinstance(given, WeightsFile) else WeightsFile.of(given)
        self.factory_ = find_factory(self.network)
        self.state_ = read_state(file.read(), file.path.name)
        self.sha256_ = file.sha256
        records = _numbers(X)
        self.input_shape_ = record_shape(records, self.input_shape, self.network in _OF_IMAGES)
        self._scales()
        self.params_ = arguments(self.factory_, self.params or {}, self.state_, self.input_shape_)
        self._built: PretrainedNetwork | None = None
        self.n_features_out_ = self._made().width
        self._refuse_mixing(records[:_COMPARED])
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Compute the features of records.

        Parameters
        ----------
        X : array-like, shape (n_records, ...)
            Records of the shape of the public ones.

        Returns
        -------
        ndarray of float32, shape (n_records, n_features_out_)
            What the layer makes of them.

        Raises
        ------
        InputError
            If they have another shape, or they or their features are no finite numbers.
        """
        check_is_fitted(self, "n_features_out_")
        return self._features(_numbers(X), self.batch_size)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the output's columns: ``network0``, ``network1``, ..."""
        check_is_fitted(self, "n_features_out_")
        return np.asarray([f"network{i}" for i in range(self.n_features_out_)], dtype=object)

    def cache_key(self) -> str:
        """Name everything that features depend on."""
        named = {**vars(self), "exact": self.exact_by_record}
        within = ("_built", "factory_", "state_", "weights")  # all of which follows from the rest
        parts = sorted((name, repr(value)) for name, value in named.items() if name not in within)
        return f"network features {parts}"

    def __getstate__(self) -> dict[str, Any]:
        state = {k: v for k, v in super().__getstate__().items() if k != "_built"}
        return {**state, "weights": self._file.path.name} if hasattr(self, "sha256_") else state

    def _features(self, records: Any, batch_size: int) -> NDArray[np.float32]:
        made = self._made().features(
            records, len(records), partial(_scaled, *self._scales()), batch_size
        )
        finite_numbers(made, "features of the network")
        return made

    def _made(self) -> PretrainedNetwork:
        if getattr(self, "_built", None) is None:
            require_torch()
            from collegium.models.neural.pretrained import PretrainedNetwork

            self._built = PretrainedNetwork(
                self.factory_,
                self.network,
                self.params_,
                self.state_,
                tuple(self.input_shape_),
                self.layer,
                self.device,
            )
        assert self._built is not None
        return self._built

    def _scales(self) -> list[NDArray[np.float32]]:
        """Shape what records are brought to the network's scale with."""
        first, *rest = self.input_shape_
        found = []
        for name in ("mean", "deviation"):
            given = getattr(self, name)
            try:
                numbers = np.atleast_1d(np.asarray(given, dtype=np.float32))
                fits = numbers.shape in ((1,), (first,)) and bool(np.isfinite(numbers).all())
            except (TypeError, ValueError):
                fits = False
            if not fits or (name == "deviation" and not (numbers > 0).all()):
                raise InputError(
                    f"{name}={given!r} was given; allowed are one number, or {first} of them, for records of "
                    f"shape {tuple(self.input_shape_)}{'; all above 0' if name == 'deviation' else ''}"
                )
            found.append(numbers.reshape(-1, *(1 for _ in rest)))
        return found

    def _refuse_mixing(self, records: Any) -> None:
        """Refuse networks whose features of a record are not always the same. ``records``: public ones."""
        alone, again = (self._features(records[:1], 1) for _ in range(2))
        advice = "put nothing into it that draws random numbers, or looks at other records"
        if not np.array_equal(alone, again):
            raise InputError(
                f"the network {self.network!r} makes other features of the same record each time: {advice}"
            )
        if self.batch_size == 1:
            return
        beside = self._features(records, max(self.batch_size, 2))[:1]
        if np.abs(alone - beside).max() > _CLOSE * max(1e-6, float(np.abs(alone).max())):
            raise InputError(
                f"the network {self.network!r} makes other features of a record where others are beside it: "
                f"{advice}, or set batch_size=1"
            )


def brought_by(*preprocessings: Any) -> tuple[str, ...]:
    """Say which networks from elsewhere some preprocessings hold, for statements."""
    found = []
    for one in preprocessings:
        inner = one.get_params().values() if hasattr(one, "get_params") else ()
        found += [step.brought for step in (one, *inner) if isinstance(step, NetworkFeatures)]
    return tuple(dict.fromkeys(found))


def _scaled(
    mean: NDArray[np.float32], deviation: NDArray[np.float32], records: NDArray[np.float32]
) -> NDArray[np.float32]:
    return np.asarray((records - mean) / deviation, dtype=np.float32)


def _numbers(X: Any) -> NDArray[Any]:
    """Take records as an array; of tables of numbers, the columns; of images, channels first."""
    if not isinstance(X, pd.DataFrame):
        array = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
        last = array.ndim == 4 and array.shape[3] in _CHANNELS and array.shape[1] not in _CHANNELS
        return np.moveaxis(array, 3, 1) if last else array
    text = [name for name in X.columns if kind_of(X[name].dtype) != NUMBER]
    if text:
        raise InputError(
            f"the records have columns that are no numbers ({listed(text)}), which a network does not take: "
            "leave them out (data.exclude)"
        )
    return np.asarray(X.to_numpy(dtype=np.float32, na_value=np.nan))
