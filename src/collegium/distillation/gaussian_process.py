"""A student that is a Gaussian process on public features, joined to a graph of neighbours."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.special import softmax

from collegium.checks import check_number, check_positive, check_whole
from collegium.distillation.embedding import PublicEmbedding
from collegium.distillation.gaussian_kernel import gaussian_kernel, squared_distances
from collegium.distillation.graph import GraphStudent
from collegium.distillation.released import Floats, ReleasedAnswers
from collegium.distillation.semi_supervised import SemiSupervisedStudent
from collegium.distillation.smoothing import posterior
from collegium.errors import InputError

_DISTANCES_SEEN = 1000
_GRAPH_COMPONENTS = 200


class _Ground(NamedTuple):
    """How public records lie to each other.

    ``near`` (n, d): points whose neighbours the graph seeks.
    ``design`` (n, n_kept), ``factor``, ``leverage`` (n, 1): kernel features, their factorised second moment
        with noise, and how much each record says of itself.
    """

    near: NDArray[Any]
    design: Floats
    factor: tuple[Floats, bool]
    leverage: Floats


class GaussianProcessStudent(SemiSupervisedStudent):
    """Beliefs that agree with the answers, with neighbours, and with a Gaussian process through all others.

    Beliefs q_i solve q_i = softmax(log P(r_i | ·) + log π + coupling·m_{−i} + graph_coupling·Σ_j S_ij q_j). S
    averages over nearest neighbours, π are the shares of the classes, and m_{−i} is the process's closed-form
    leave-one-out mean at record i, given the beliefs about all others, less their mean, as observations
    with noise. The graph sees what is near, the process what is alike over larger distances: together they
    are better than either. They start from a :class:`~collegium.distillation.graph.GraphStudent`'s beliefs.

    The process is one of Nyström features of a Gaussian kernel, so that a step costs n·n_landmarks.

    Parameters
    ----------
    features : transformer or {"scattering"}, optional
        Public feature extractor; see :class:`~collegium.distillation.embedding.PublicEmbedding`.
    n_components : int or None, default=400
        Principal components that the process sees (the graph: the first 200); 0: all features, centred;
        None: the records are points of a :class:`~collegium.distillation.embedding.PublicEmbedding` already.
    n_neighbors : int, default=10
        NearestRecords that each record chooses.
    n_landmarks : int, default=1500
        Public records, drawn at random, whose kernel functions span the process.
    length_scale : float, default=0.5
        Of the kernel, in units of the median distance between public records.
    noise : float, default=0.03
        Variance of a belief around the process, whose own variance is 1.
    coupling : float, default=12.0
        How much the process is believed.
    graph_coupling : float, default=4.0
        How much neighbours are believed besides; 0: not at all.
    mistrust : float, optional
        Chance that an answer says nothing. Default: as the graph student chooses.
    random_state : int, optional
        Landmarks, and folds of the choice. Default: the seed of the run, or 0 without one.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Class numbers.
    beliefs_ : ndarray, shape (n_public, n_classes)
        Probability of each class for every public record: pseudo-labels for other students.
    graph_ : GraphStudent
        Where beliefs started.
    mistrust_ : float
        What was used.

    References
    ----------
    Rasmussen & Williams, *Gaussian processes for machine learning*, 2006, Eq. 2.25 (mean), 5.12
    (leave-one-out), 8.1 (Nyström).

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> X = np.concatenate([generator.normal(-3, 1, (40, 2)), generator.normal(3, 1, (40, 2))])
    >>> student = GaussianProcessStudent(mistrust=0.01)
    >>> student = student.fit_released(X, [0, 79], [[0.9, 0.1], [0.1, 0.9]])
    >>> student.predict([[-2.0, -2.0], [2.5, 3.0]]).tolist()
    [0, 1]
    """

    def __init__(
        self,
        features: Any = None,
        *,
        n_components: int | None = 400,
        n_neighbors: int = 10,
        n_landmarks: int = 1500,
        length_scale: float = 0.5,
        noise: float = 0.03,
        coupling: float = 12.0,
        graph_coupling: float = 4.0,
        mistrust: float | None = None,
        random_state: int | None = None,
    ) -> None:
        self.features = features
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.n_landmarks = n_landmarks
        self.length_scale = length_scale
        self.noise = noise
        self.coupling = coupling
        self.graph_coupling = graph_coupling
        self.mistrust = mistrust
        self.random_state = random_state

    def _learn(self, released: ReleasedAnswers) -> None:
        self._check_parameters()
        near, design, factor, leverage = self._place(released.X)
        self.graph_ = GraphStudent(
            n_components=0,
            n_neighbors=self.n_neighbors,
            mistrust=self.mistrust,
            random_state=self.random_state,
        ).fit_released(near, released.queries, released.targets)
        self.mistrust_ = self.graph_.mistrust_
        average = self.graph_.average_

        def heard(beliefs: Floats) -> Floats:
            # Without its mean: otherwise "all are of one class" is the smoothest belief of all.
            varying = beliefs - beliefs.mean(axis=0)
            mean = design @ linalg.cho_solve(factor, design.T @ varying)
            left_out = (mean - leverage * varying) / np.maximum(1 - leverage, 1e-6)
            return np.asarray(self.coupling * left_out + self.graph_coupling * (average @ beliefs))

        self._log_shares = np.log(released.shares())
        evidence = released.evidence(self.mistrust_) + self._log_shares
        self.beliefs_ = posterior(heard, evidence, 1.0, start=self.graph_.beliefs_)
        varying = self.beliefs_ - self.beliefs_.mean(axis=0)
        self._weights = linalg.cho_solve(factor, design.T @ varying)

    def _place(self, X: NDArray[Any]) -> _Ground:
        """Find out how public records lie to each other, whatever was answered about them."""
        self.embedding_ = PublicEmbedding(self.features, self.n_components, whiten=0.25)
        points = self.embedding_.fit_transform(X)
        self._deviation = points[:, :_GRAPH_COMPONENTS].std(axis=0)
        self._place_landmarks(points)
        design = self._kernel_features(points)
        gram = design.T @ design
        gram[np.diag_indices_from(gram)] += self.noise
        factor = linalg.cho_factor(gram)
        leverage = np.einsum("ij,ji->i", design, linalg.cho_solve(factor, design.T))[:, None]
        return _Ground(self._graph_points(points), design, factor, leverage)

    def _graph_points(self, points: NDArray[Any]) -> NDArray[Any]:
        """Components in the graph's weighting: deviations s^¾ become s^½, then unit length."""
        usable = np.where(self._deviation > 0, self._deviation, 1.0)
        near = points[:, : len(usable)] / usable ** (1 / 3)
        lengths = np.linalg.norm(near, axis=1, keepdims=True)
        return np.asarray(near / np.where(lengths > 0, lengths, 1.0))

    def _place_landmarks(self, points: NDArray[Any]) -> None:
        generator = np.random.default_rng(self.random_state or 0)
        chosen = generator.permutation(len(points))[: self.n_landmarks]
        self._landmarks = points[chosen].astype(np.float64)
        seen = self._landmarks[:_DISTANCES_SEEN]
        distances = np.sqrt(squared_distances(seen, seen)[np.triu_indices(len(seen), 1)])
        median = float(np.median(distances)) if distances.size else 0.0
        self._scale = self.length_scale * (median if median > 0 else 1.0)
        values, vectors = np.linalg.eigh(self._kernel(self._landmarks))
        kept = values > 1e-7 * values.max()
        self._half = vectors[:, kept] / np.sqrt(values[kept])

    def _kernel(self, points: NDArray[Any]) -> Floats:
        return gaussian_kernel(points, self._landmarks, self._scale)

    def _kernel_features(self, points: NDArray[Any]) -> Floats:
        return np.asarray(self._kernel(points) @ self._half)

    def _believe(self, X: Any) -> Floats:
        design, near = self._seen(X)
        heard = self._log_shares + self.coupling * (design @ self._weights)
        if near is not None:
            heard = heard + self.graph_coupling * (near @ self.beliefs_)
        return np.asarray(softmax(heard, axis=1))

    def _seen(self, X: Any) -> tuple[Floats, Any]:
        """Find out how any records lie to public ones: kernel features, and weights of neighbours."""
        points = self.embedding_.transform(X)
        near = None
        if self.graph_coupling:
            near = self.graph_.neighbour_weights(self._graph_points(points))
        return self._kernel_features(points), near

    def _check_parameters(self) -> None:
        check_whole("n_landmarks", self.n_landmarks)
        for name in ("length_scale", "noise"):
            check_positive(name, getattr(self, name))
        for name in ("coupling", "graph_coupling"):
            check_number(name, getattr(self, name), least=0, below=np.inf)
        if not (self.coupling or self.graph_coupling):
            raise InputError("coupling and graph_coupling are both 0: answers would go nowhere")


class OnSameRecords(GaussianProcessStudent):
    """A student that is taught again and again about the same public records, which are looked at once.

    Each time it forgets what it was taught before; a clone is the student itself.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> student = OnSameRecords(mistrust=0.01)
    >>> for right in ([[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]):
    ...     student = student.fit_released(X, [X[:, 0].argmin(), X[:, 0].argmax()], right)
    ...     student.predict([[-2.0, 0.0], [2.0, 0.0]]).tolist()
    [0, 1]
    [1, 0]
    """

    _of: Any = None
    _ground: _Ground | None = None
    _own: tuple[Floats, Any] | None = None

    def __sklearn_clone__(self) -> OnSameRecords:
        return self

    def fit_released(self, X_public: Any, queries: ArrayLike, targets: ArrayLike) -> Self:
        """Learn, as the class it is of; public records must be the very object that was given first."""
        if self._of is None:
            self._of = X_public
        if self._of is not X_public:
            raise InputError("other public records were given: make another student for them")
        return super().fit_released(X_public, queries, targets)

    def _place(self, X: NDArray[Any]) -> _Ground:
        if self._ground is None:
            self._ground = super()._place(X)
        return self._ground

    def _seen(self, X: Any) -> tuple[Floats, Any]:
        if X is not self._of:
            return super()._seen(X)
        if self._own is None:
            self._own = super()._seen(X)
        return self._own
