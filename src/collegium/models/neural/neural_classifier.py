"""Neural networks with scikit-learn's manners, trained for one data set or for many shards at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from collegium.checks import check_choice
from collegium.errors import InputError
from collegium.models.neural.inputs import as_class_numbers, as_records, record_shape
from collegium.models.neural.machine import find_machine, require_torch
from collegium.models.neural.recipes import TrainingRecipe
from collegium.models.neural.trained_network import TrainedNetwork

if TYPE_CHECKING:
    import torch

_NAMED: dict[str, tuple[str, bool, TrainingRecipe]] = {
    "seed-cnn": ("seed_cnn", True, TrainingRecipe(epochs=40)),
    "small-cnn": (
        "small_cnn",
        True,
        TrainingRecipe(learning_rate=2e-2, schedule="one-cycle", label_smoothing=0.1, epsilon=1e-8),
    ),
    "mlp": (
        "mlp",
        False,
        TrainingRecipe(learning_rate=1e-2, schedule="one-cycle", augment=False, epsilon=1e-8),
    ),
}
NETWORKS = tuple(_NAMED)
PRECISIONS = ("float32", "bfloat16")
_TUNABLE = ("epochs", "learning_rate", "augment", "rotation", "shift", "patience")


class NeuralClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A neural network; as a teacher, hundreds of them at once.

    As the teacher of an ensemble it is a
    :class:`~collegium.models.batched.BatchedEstimator`: the teachers of many shards are trained side
    by side, each with random numbers, batches, batch normalisation and stopping time of its own, so
    that each is the network that ``fit`` makes of its shard alone, up to rounding. Settings of training
    that are None are the network's own recipe, as is all that has no parameter here
    (:class:`~collegium.models.neural.recipes.TrainingRecipe`). On a processor as many train at once as
    PyTorch may use cores (``torch.set_num_threads``).

    Parameters
    ----------
    network : {"small-cnn", "seed-cnn", "mlp"} or callable, default="small-cnn"
        See :mod:`collegium.models.neural.networks`. A callable ``network(n_classes, input_shape)`` returns
        any :class:`torch.nn.Module` that maps records to one number per class; it must be importable, not a
        lambda, if models are to be pickled.
    network_params : dict, optional
        Further arguments of the network.
    epochs : int, optional
        Passes over a shard.
    learning_rate : float, optional
        Adam's, at its highest.
    augment : bool, optional
        Rotate and shift images at random in training.
    rotation : float, optional
        By at most so many degrees.
    shift : float, optional
        By at most this share of height and width.
    patience : int, optional
        Stop a teacher when the loss on held-out records (a fifth) of its own shard has not improved for so
        many epochs, and take the best of its states.
    input_shape : sequence of int, optional
        Shape of one record. By default that of the records; flat records are taken for square images of
        one channel by the convolutional networks.
    device : {"auto", "cpu", "cuda"}, default="auto"
        ``auto``: a GPU if there is one.
    precision : {"float32", "bfloat16"}, default="float32"
        What is multiplied; sums, weights and the optimiser stay in float32.
    group_size : int, optional
        Teachers side by side; by default one on a CPU, and as many as fit into a GPU's memory. In a
        group, the number and sizes of the other shards can change the rounding of a teacher.
    teachers_at_once : int, default=64
        Teachers of one call, after which an ensemble stores them. On a GPU, more is faster.
    checkpoint_folder : str or path, optional
        Where teachers in training are written, and looked for when training starts again; what is
        written is as **sensitive** as the records.
    random_state : int, optional
        Seed of ``fit``. None: a new one each time.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    model_ : TrainedNetwork
        What was learnt.
    n_features_in_ : int
        Values of one record.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> X = generator.normal(size=(200, 4))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    >>> network = NeuralClassifier("mlp", {"hidden": (32,)}, epochs=30, random_state=0)
    >>> float(network.fit(X, y).score(X, y)) > 0.85
    True

    Ten teachers, each on 20 records:

    >>> numbers = (y == "same").astype(int)
    >>> shards = [(X[i::10], numbers[i::10]) for i in range(10)]
    >>> teachers = network.fit_shards(shards, seeds=range(10), n_classes=2)
    >>> np.array(list(network.predict_shards(teachers, X))).shape
    (10, 200)
    """

    def __init__(
        self,
        network: str | Callable[..., torch.nn.Module] = "small-cnn",
        network_params: Mapping[str, Any] | None = None,
        *,
        epochs: int | None = None,
        learning_rate: float | None = None,
        augment: bool | None = None,
        rotation: float | None = None,
        shift: float | None = None,
        patience: int | None = None,
        input_shape: Sequence[int] | None = None,
        device: str = "auto",
        precision: str = "float32",
        group_size: int | None = None,
        teachers_at_once: int = 64,
        checkpoint_folder: str | PathLike[str] | None = None,
        random_state: int | None = None,
    ) -> None:
        require_torch()
        self.network = network
        self.network_params = network_params
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.augment = augment
        self.rotation = rotation
        self.shift = shift
        self.patience = patience
        self.input_shape = input_shape
        self.device = device
        self.precision = precision
        self.group_size = group_size
        self.teachers_at_once = teachers_at_once
        self.checkpoint_folder = checkpoint_folder
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train one network.

        Parameters
        ----------
        X : array-like, shape (n, features), (n, height, width) or (n, channels, height, width)
            Finite numbers, of order one.
        y : array-like, shape (n,)
            Labels of any kind.

        Returns
        -------
        NeuralClassifier
            Itself.

        Raises
        ------
        InputError
            If records or settings cannot be used.
        ModelError
            If the network does not fit records or classes.
        """
        labels = np.asarray(y)
        classes, numbers = np.unique(labels, return_inverse=True)
        if labels.ndim != 1 or len(classes) == 0:
            raise InputError(
                f"labels of shape {labels.shape} were given; allowed is (n,) with n at least 1"
            )
        seed = self.random_state
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        (self.model_,) = self.fit_shards([(X, numbers)], [seed], len(classes))
        self.classes_ = classes
        self.n_features_in_ = int(np.prod(self.model_.input_shape))
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """Return the probability of each of ``classes_``, shape (n, n_classes)."""
        check_is_fitted(self, "model_")
        return self.model_.predict_proba(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return labels, shape (n,)."""
        check_is_fitted(self, "model_")
        result: NDArray[Any] = self.classes_[self.model_.predict(X)]
        return result

    @property
    def exact_together(self) -> bool:
        """Whether a teacher is sure to have the same bits whatever others are trained and asked with it."""
        return self.device == "cpu" and self.group_size in (None, 1)

    def fit_shards(
        self, shards: Sequence[tuple[Any, Any]], seeds: Sequence[int], n_classes: int
    ) -> list[TrainedNetwork]:
        """Train one network per shard.

        Parameters
        ----------
        shards : sequence of (X, y)
            Records as in :meth:`fit`, and class numbers below ``n_classes``; of any sizes.
        seeds : sequence of int
            Public randomness of each.
        n_classes : int
            Length of the public list of classes.

        Returns
        -------
        list of TrainedNetwork
            One per shard, in order.

        Raises
        ------
        InputError
            If records or settings cannot be used.
        ModelError
            If the network does not fit records or classes, or a GPU's memory holds not even one.
        """
        if not shards:
            return []
        import torch

        from collegium.models.neural.blueprint import draw_up
        from collegium.models.neural.checkpoints import Checkpoints
        from collegium.models.neural.groups import Shard, train_in_groups

        machine = find_machine(self.device, self.group_size)
        factory, images, recipe = self._kind()
        shape = record_shape(shards[0][0], self.input_shape, images)
        recipe = self._recipe(recipe, shape)
        check_choice("precision", self.precision, PRECISIONS)
        blueprint = draw_up(factory, n_classes, shape, getattr(torch, self.precision))
        checkpoints = None
        if self.checkpoint_folder is not None:
            checkpoints = Checkpoints(self.checkpoint_folder)
        given = []
        for (X, y), seed in zip(shards, seeds, strict=True):
            records = as_records(X, shape)
            if not len(records):
                raise InputError(
                    "a shard without records was given; every shard needs at least one"
                )
            numbers = as_class_numbers(y, n_classes, len(records))
            given.append(Shard(torch.from_numpy(records), torch.from_numpy(numbers), int(seed)))
        return [
            TrainedNetwork(factory, n_classes, shape, weights.numpy(), averages.numpy())
            for weights, averages in train_in_groups(blueprint, recipe, given, machine, checkpoints)
        ]

    def predict_shards(
        self, models: Sequence[TrainedNetwork], X_public: Any
    ) -> list[NDArray[np.int64]]:
        """Ask networks of :meth:`fit_shards` about the same records.

        Parameters
        ----------
        models : sequence of TrainedNetwork
            What :meth:`fit_shards` returned.
        X_public : array-like, shape (n_public, ...)
            Records.

        Returns
        -------
        list of ndarray of int64, shape (n_public,)
            Class numbers, one array per model.
        """
        from collegium.models.neural.predicting import ask_networks

        machine = find_machine(self.device)
        return [logits.argmax(axis=1) for logits in ask_networks(models, X_public, machine)]

    def believe_shards(
        self, models: Sequence[TrainedNetwork], X_public: Any
    ) -> list[NDArray[np.float64]]:
        """Tell the probabilities of all classes, shape (n_public, n_classes) for each network."""
        from collegium.models.neural.predicting import ask_networks

        machine = find_machine(self.device)
        logits = ask_networks(models, X_public, machine)
        return [np.asarray(softmax(own.astype(np.float64), axis=1)) for own in logits]

    def _kind(self) -> tuple[Callable[..., Any], bool, TrainingRecipe]:
        """Return the factory, whether it takes images, and its recipe."""
        from collegium.models.neural import networks

        factory: Callable[..., Any]
        if isinstance(self.network, str):
            if self.network not in _NAMED:
                raise InputError(
                    f"network={self.network!r} was given; allowed are {', '.join(NETWORKS)}, or a "
                    "callable network(n_classes, input_shape)"
                )
            name, images, recipe = _NAMED[self.network]
            factory = getattr(networks, name)
        elif callable(self.network):
            factory, images, recipe = self.network, False, TrainingRecipe(augment=False)
        else:
            raise InputError(
                f"network={self.network!r} was given; allowed are {', '.join(NETWORKS)}, or a callable "
                "network(n_classes, input_shape)"
            )
        if self.network_params:
            factory = partial(factory, **self.network_params)
        return factory, images, recipe

    def _recipe(self, recipe: TrainingRecipe, shape: tuple[int, ...]) -> TrainingRecipe:
        recipe = recipe.but({name: getattr(self, name) for name in _TUNABLE})
        if recipe.augment and len(shape) != 3:
            raise InputError(
                f"augment=True was given for records of shape {shape}; only images (channels, height, "
                "width) can be rotated and shifted: give input_shape, or augment=False"
            )
        return recipe
