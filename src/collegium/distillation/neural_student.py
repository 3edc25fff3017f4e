"""Neural students: pseudo-labels on all public records, FixMatch, virtual adversarial training."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import clone

from collegium.checks import check_choice, check_positive, check_share, check_whole
from collegium.distillation.gaussian_process import GaussianProcessStudent
from collegium.distillation.graph import GraphStudent
from collegium.distillation.released import Floats, ReleasedAnswers, as_numbers
from collegium.distillation.semi_supervised import SemiSupervisedStudent
from collegium.errors import InputError
from collegium.models.features.scattering import ScatteringTransform
from collegium.models.neural.inputs import as_records, record_shape
from collegium.models.neural.machine import find_machine, require_torch

METHODS = ("self-training", "fixmatch", "vat")
_GUIDES: dict[str, Any] = {"gaussian-process": GaussianProcessStudent, "graph": GraphStudent}
_DEFAULT_MISTRUST = 0.02


class NeuralStudent(SemiSupervisedStudent):
    """A network that learns from all public records, led by a guide that reads the answers first.

    Parameters
    ----------
    features : transformer or {"scattering"}, optional
        Public features in which the default guide seeks neighbours; the network gets the records as they are.
    method : {"self-training", "fixmatch", "vat"}
        ``self-training``: learn the guide's soft pseudo-labels of all public records under augmentation.
        ``fixmatch``: besides, a strong view must agree with a confident weak view. ``vat``: besides, the
        prediction must hold still in the most sensitive direction.
    guide : "gaussian-process", "graph", None or student
        A student with ``fit_released`` and ``predict_proba`` whose beliefs about all public records are
        the pseudo-labels. By name: :class:`~collegium.distillation.gaussian_process.GaussianProcessStudent`,
        :class:`~collegium.distillation.graph.GraphStudent`. None (``fixmatch`` and ``vat`` only): the
        network learns the released evidence itself.
    guide_share : float, default=0.0
        Predictions are this share the guide's (log-probabilities are averaged), the rest the network's.
    rounds : int, default=1
        From the second on, records are joined to those that the network sees as similar, answers flow
        along the new graph, and the network learns what comes of it.
    network : callable, optional
        ``factory(n_classes, input_shape)`` that makes a :class:`torch.nn.Module`. Default:
        :func:`~collegium.distillation.student_network.student_network`.
    input_shape : tuple of int, optional
        (channels, height, width) of flattened images. Default: square images of one channel where
        ``features`` is a scattering transform, otherwise flat records are vectors.
    epochs : int, default=20
        Passes over the public records, in each round.
    batch_size : int, default=128
        Records per step.
    learning_rate : float, default=0.003
        AdamW's at the height of its one cycle.
    confidence : float, default=0.95
        From which probability on FixMatch trusts a weak view.
    rotation, shift : float
        How far images may be moved: see :class:`~collegium.distillation.augmented_views.Views`.
    device : {"auto", "cpu", "cuda"}
        Where to train.
    random_state : int, optional
        Everything random. Default: the seed of the run, or 0 without one.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Class numbers.
    guide_ : student or None
        As fitted.
    beliefs_ : ndarray, shape (n_public, n_classes) or None
        Last pseudo-labels.
    network_ : torch.nn.Module
        As trained, on the CPU.
    steps_ : int
        Steps of the optimiser.

    Notes
    -----
    Images in [0, 255] are best scaled to [0, 1] first; here each is divided by the public maximum.

    References
    ----------
    Lee, *Pseudo-label*, ICML workshop 2013; Sohn et al., *FixMatch*, NeurIPS 2020, arXiv:2001.07685; Miyato
    et al., *Virtual adversarial training*, IEEE TPAMI 2019, arXiv:1704.03976.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> X = np.concatenate([generator.normal(-2, 1, (60, 3)), generator.normal(2, 1, (60, 3))])
    >>> student = NeuralStudent(epochs=5, batch_size=30)
    >>> student = student.fit_released(X, [0, 119], [[0.9, 0.1], [0.1, 0.9]])
    >>> student.predict(X[[1, 118]]).tolist()
    [0, 1]
    """

    def __init__(
        self,
        features: Any = None,
        *,
        method: str = "self-training",
        guide: Any = "gaussian-process",
        guide_share: float = 0.0,
        rounds: int = 1,
        network: Any = None,
        input_shape: tuple[int, ...] | None = None,
        epochs: int = 20,
        batch_size: int = 128,
        learning_rate: float = 3e-3,
        confidence: float = 0.95,
        rotation: float = 10.0,
        shift: float = 0.08,
        device: str = "auto",
        random_state: int | None = None,
    ) -> None:
        self.features = features
        self.method = method
        self.guide = guide
        self.guide_share = guide_share
        self.rounds = rounds
        self.network = network
        self.input_shape = input_shape
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.confidence = confidence
        self.rotation = rotation
        self.shift = shift
        self.device = device
        self.random_state = random_state

    def _learn(self, released: ReleasedAnswers) -> None:
        self._check_parameters()
        require_torch()
        from collegium.distillation.neural_training import Lesson, hidden_values, train

        device = find_machine(self.device).device
        self._shape = self._record_shape(released.X)
        records = self._scaled(released.X, fit=True)
        self.guide_ = self._fitted_guide(released)
        self.beliefs_ = None if self.guide_ is None else _beliefs(self.guide_, released.X)
        mistrust = getattr(self.guide_, "mistrust_", _DEFAULT_MISTRUST)
        evidence = released.evidence(mistrust)
        self.network_ = self._new_network(released.n_classes)
        self.steps_ = 0
        for number in range(self.rounds):
            if number:
                seen = hidden_values(self.network_, records, device)
                again = GraphStudent(n_components=0, random_state=self.random_state)
                self.beliefs_ = again.fit_released(
                    seen, released.queries, released.targets
                ).beliefs_
            lesson = Lesson(records, evidence, released.queries, self.beliefs_)
            seed = (self.random_state or 0) + 1000 * number
            self.steps_ += train(self.network_, lesson, self._course(), device, seed)
        self.network_.cpu()

    def _believe(self, X: Any) -> Floats:
        import torch

        from collegium.distillation.neural_training import probabilities

        records = self._scaled(as_numbers(X, "records"), fit=False)
        believed = probabilities(self.network_, records, torch.device("cpu"))
        if self.guide_ is None or not self.guide_share:
            return believed
        guide = np.log(np.maximum(self.guide_.predict_proba(X), 1e-6))
        own = np.log(np.maximum(believed, 1e-6))
        return np.asarray(softmax(self.guide_share * guide + (1 - self.guide_share) * own, axis=1))

    def __getstate__(self) -> dict[str, Any]:
        """Give the network as numbers: what is stored of a student is arrays, and no module of PyTorch."""
        state = dict(super().__getstate__())
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
            # Numbers lie as in training: in another order they would be added up otherwise.
            self.network_.to(memory_format=torch.channels_last).eval()

    def _new_network(self, n_classes: int) -> Any:
        import torch

        from collegium.distillation.student_network import student_network

        factory = student_network if self.network is None else self.network
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.random_state or 0)
            return factory(n_classes, self._shape)

    def _fitted_guide(self, released: ReleasedAnswers) -> Any:
        if self.guide is None:
            return None
        if isinstance(self.guide, str):
            guide = _GUIDES[self.guide](self.features, random_state=self.random_state)
        else:
            guide = clone(self.guide)
        return guide.fit_released(released.X, released.queries, released.targets)

    def _record_shape(self, X: NDArray[Any]) -> tuple[int, ...]:
        scattering = self.features == "scattering" or isinstance(self.features, ScatteringTransform)
        return record_shape(X, self.input_shape, images=X.ndim > 2 or scattering)

    def _scaled(self, X: NDArray[Any], *, fit: bool) -> NDArray[np.float32]:
        """Divide images by their public maximum; standardise other records by public mean and spread."""
        if int(np.prod(X.shape[1:])) != self.n_features_in_:
            raise InputError(
                f"records of shape {X.shape[1:]} were given; the public records have shape {self._shape}: "
                "prepare them in the same way"
            )
        if len(self._shape) == 3:
            records = as_records(X, self._shape)
            if fit:
                self._spread: Any = np.float32(np.abs(records).max() or 1)
            return np.asarray(records / self._spread)
        table = X.reshape(len(X), -1)
        if fit:
            spread = table.std(axis=0, dtype=np.float64)
            self._centre = table.mean(axis=0, dtype=np.float64)
            self._spread = np.where(spread > 0, spread, 1.0)
        # In 64 bits, until what is small beside its distance from 0 is no longer so.
        return as_records(((table - self._centre) / self._spread).astype(np.float32), self._shape)

    def _course(self) -> Any:
        from collegium.distillation.augmented_views import Views
        from collegium.distillation.neural_training import Course

        return Course(
            method=self.method,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            confidence=self.confidence,
            views=Views(self.rotation, self.shift),
        )

    def _check_parameters(self) -> None:
        check_choice("method", self.method, METHODS)
        if isinstance(self.guide, str) and self.guide not in _GUIDES:
            raise InputError(
                f"guide must be {', '.join(_GUIDES)}, a student or None, got {self.guide!r}"
            )
        if self.guide is None and (self.method == "self-training" or self.rounds > 1):
            raise InputError(
                "self-training, and rounds beyond the first, need a guide: keep guide='gaussian-process'"
            )
        for name, least in (("rounds", 1), ("epochs", 1), ("batch_size", 2)):
            check_whole(name, getattr(self, name), least)
        for name in ("guide_share", "confidence"):
            check_share(name, getattr(self, name))
        check_positive("learning_rate", self.learning_rate)


def _beliefs(guide: Any, X: Any) -> Floats:
    """What a guide believes about the public records: its own beliefs, where it keeps them."""
    own = getattr(guide, "beliefs_", None)
    return np.asarray(guide.predict_proba(X) if own is None else own, dtype=np.float64)
