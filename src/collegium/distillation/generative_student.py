"""PATE-G: a student that learns beside a generator, from public records and released answers alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.checks import check_positive, check_whole
from collegium.distillation.embedding import PublicEmbedding
from collegium.distillation.released import Floats, ReleasedAnswers, as_numbers
from collegium.distillation.semi_supervised import SemiSupervisedStudent
from collegium.errors import InputError
from collegium.models.neural.inputs import as_records, record_shape
from collegium.models.neural.machine import find_machine, require_torch

_MISTRUST = 0.02


class GenerativeStudent(SemiSupervisedStudent):
    """A classifier that is also a discriminator: it tells classes, and public records from generated ones.

    Of m classes, the network has m outputs l_c; a record counts as real with probability
    Z/(Z + 1), Z = Σ_c exp l_c. It learns what was released about some public records, to find all public
    records real and all generated ones not; the generator learns that its records, at the network's last
    hidden layer, have the public records' mean. Meant for few clear answers about many public records.

    Parameters
    ----------
    features : transformer or {"scattering"}, optional
        Public feature extractor; see :class:`~collegium.distillation.embedding.PublicEmbedding`. The student
        then learns from principal components of features, and the generator makes these. Default: the records
        as they are.
    n_components : int, default=200
        Principal components of features at most.
    input_shape : tuple of int, optional
        (channels, height, width) of flattened images. Default: flat records are vectors.
    hidden : sequence of int, default=(500, 250)
        Units of the hidden layers.
    noise_size : int, default=100
        Numbers that a record is made of.
    epochs : int, default=60
        Passes over the public records.
    batch_size : int, default=50
        Public and generated records in a step, each, and half as many answered ones.
    learning_rate : float, default=0.003
        Adam's for both networks; falls to 0 over the second half of the steps.
    generated_weight : float, default=1
        Of the loss of public and generated records, beside that of the answers.
    device : {"auto", "cpu", "cuda"}
        Where to train.
    random_state : int, optional
        Everything random. Default: the seed of the run, or 0 without one.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Class numbers.
    network_ : torch.nn.Module
        As trained, averaged over the last steps, on the CPU.
    generator_ : torch.nn.Module
        As trained; not kept in files.
    steps_ : int
        Steps of the optimiser.

    Notes
    -----
    Everything here is post-processing of the release. Images are divided by the public maximum, features by
    their public root mean square; other records are standardised by public mean and spread.

    References
    ----------
    Salimans et al., *Improved techniques for training GANs*, NIPS 2016, arXiv:1606.03498v1, sections 3.1
    (feature matching) and 5 (semi-supervised learning); as a student of PATE (PATE-G): Papernot et al.,
    *Semi-supervised knowledge transfer for deep learning from private training data*, ICLR 2017,
    arXiv:1610.05755v4, section 4.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> X = np.concatenate([generator.normal(-2, 1, (60, 3)), generator.normal(2, 1, (60, 3))])
    >>> student = GenerativeStudent(hidden=(16,), epochs=10, batch_size=20)
    >>> student = student.fit_released(X, [0, 119], [[0.9, 0.1], [0.1, 0.9]])
    >>> student.predict(X[[1, 118]]).tolist()
    [0, 1]
    """

    def __init__(
        self,
        features: Any = None,
        *,
        n_components: int = 200,
        input_shape: tuple[int, ...] | None = None,
        hidden: tuple[int, ...] = (500, 250),
        noise_size: int = 100,
        epochs: int = 60,
        batch_size: int = 50,
        learning_rate: float = 3e-3,
        generated_weight: float = 1.0,
        device: str = "auto",
        random_state: int | None = None,
    ) -> None:
        self.features = features
        self.n_components = n_components
        self.input_shape = input_shape
        self.hidden = hidden
        self.noise_size = noise_size
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.generated_weight = generated_weight
        self.device = device
        self.random_state = random_state

    def _learn(self, released: ReleasedAnswers) -> None:
        self._check_parameters()
        require_torch()
        from collegium.distillation.generative_student_training import Course, Lesson, train

        device = find_machine(self.device).device
        self._shape = record_shape(released.X, self.input_shape, images=released.X.ndim > 2)
        self._embedding = None
        if self.features is not None:
            self._embedding = PublicEmbedding(self.features, self.n_components, unit=False)
        records = self._scaled(released.X, fit=True)
        self._width = records.shape[1]
        answers = released.evidence(_MISTRUST)[released.queries]
        course = Course(self.epochs, self.batch_size, self.learning_rate, self.generated_weight)
        seed = self.random_state or 0
        self.network_ = self._new_network(released.n_classes)
        self.generator_, self.steps_ = train(
            self.network_,
            Lesson(records, answers, released.queries, bounded=self._is_image),
            course,
            self.noise_size,
            device,
            seed,
        )

    def _believe(self, X: Any) -> Floats:
        import torch

        from collegium.distillation.neural_training import probabilities

        records = self._scaled(as_numbers(X, "records"), fit=False)
        return probabilities(self.network_, records, torch.device("cpu"))

    def __getstate__(self) -> dict[str, Any]:
        """Give the network as numbers: what is stored of a student is arrays, and no module of PyTorch."""
        state = dict(super().__getstate__())
        state.pop("generator_", None)
        network = state.pop("network_", None)
        if network is not None:
            state["_numbers"] = {name: part.numpy() for name, part in network.state_dict().items()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        numbers = state.pop("_numbers", None)
        super().__setstate__(state)
        if numbers is not None:
            import torch

            self.network_ = self._new_network(len(self.classes_))
            parts = {name: torch.from_numpy(part) for name, part in numbers.items()}
            self.network_.load_state_dict(parts)
            self.network_.eval()

    def _new_network(self, n_classes: int) -> Any:
        from collegium.distillation.generative_student_networks import classifier

        return classifier(self._width, n_classes, tuple(self.hidden), self.random_state or 0)

    @property
    def _is_image(self) -> bool:
        return len(self._shape) == 3 and self.features is None

    def _scaled(self, X: NDArray[Any], *, fit: bool) -> NDArray[np.float32]:
        """Flatten and scale, or embed: as the networks see records."""
        if int(np.prod(X.shape[1:])) != self.n_features_in_:
            raise InputError(
                f"records of shape {X.shape[1:]} were given; the public records have shape {self._shape}: "
                "prepare them in the same way"
            )
        if self._embedding is not None:
            table = (self._embedding.fit_transform if fit else self._embedding.transform)(X)
        else:
            table = as_records(X, (self.n_features_in_,)).astype(np.float64)
        if fit:
            ones = np.ones(table.shape[1])
            self._centre = 0 * ones
            if self._embedding is not None:
                spread = ones * np.sqrt((table**2).mean())
            elif self._is_image:
                spread = ones * np.abs(table).max()
            else:
                self._centre, spread = table.mean(axis=0), table.std(axis=0)
            self._spread = np.where(spread > 0, spread, 1.0)
        return np.asarray((table - self._centre) / self._spread, dtype=np.float32)

    def _check_parameters(self) -> None:
        hidden = self.hidden if isinstance(self.hidden, tuple | list) else ()
        if not hidden:
            raise InputError(f"hidden must be whole numbers, one a layer, got {self.hidden!r}")
        for units in hidden:
            check_whole("each of hidden", units)
        for name, least in (
            ("n_components", 1),
            ("noise_size", 1),
            ("epochs", 1),
            ("batch_size", 2),
        ):
            check_whole(name, getattr(self, name), least)
        check_positive("learning_rate", self.learning_rate)
        check_positive("generated_weight", self.generated_weight)
