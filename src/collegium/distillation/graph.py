"""A student on the graph of similar public records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import softmax

from collegium.checks import check_choice, check_number, check_positive, check_whole
from collegium.distillation.embedding import PublicEmbedding
from collegium.distillation.nearest import local_scales, nearest, similarities, similarity_graph
from collegium.distillation.pairing import COUPLINGS, choose_coupling
from collegium.distillation.released import Floats, ReleasedAnswers
from collegium.distillation.semi_supervised import SemiSupervisedStudent
from collegium.distillation.smoothing import averaging, harmonic, normalised, posterior, spreading
from collegium.errors import InputError

METHODS = ("posterior", "harmonic", "spreading")


class GraphStudent(SemiSupervisedStudent):
    """Let released answers flow between public records that resemble each other.

    Parameters
    ----------
    features : transformer or {"scattering"}, optional
        Public feature extractor applied first; see
        :class:`~collegium.distillation.embedding.PublicEmbedding`.
    n_components : int, default=200
        Principal components in which neighbours are sought; 0: all features as they are.
    n_neighbors : int, default=10
        NearestRecords that each record chooses (as many as there are, where there are fewer).
    method : {"posterior", "harmonic", "spreading"}
        ``posterior``: mean-field posterior of a Potts model, which knows that a record has one class; best.
        ``harmonic``: Gaussian process on the graph (Zhu et al. 2003, with noise). ``spreading``: local and
        global consistency (Zhou et al. 2004).
    coupling : float, optional
        How much neighbours are believed: the Potts coupling of ``posterior``, the smoothness of ``harmonic``;
        α = coupling/(1 + coupling) of ``spreading``. Default: the one that best foretells released
        answers that it has not seen.
    mistrust : float, optional
        Chance that an answer says nothing; bounds what a single answer can do. Default: chosen like
        ``coupling``.
    random_state : int, optional
        Folds of the choice. Default: the seed of the run, or 0 without one.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Class numbers.
    beliefs_ : ndarray, shape (n_public, n_classes)
        Probability of each class for every public record: pseudo-labels for other students.
    coupling_, mistrust_ : float
        What was used.
    average_ : sparse array, shape (n_public, n_public)
        Weights of the neighbours of each public record; rows add up to 1.

    Notes
    -----
    Released answers may be as noisy as you like, if there are many: n answers with noise σ cost the worst
    case account μ² = 2n/σ², so that n·(votes/σ)², the total of what they say, does not depend on n. An
    answer to every public record, each far too noisy to tell its class, lets the graph weigh them
    against each other.

    References
    ----------
    Zhu, Ghahramani & Lafferty, *Semi-supervised learning using Gaussian fields and harmonic functions*, ICML
    2003; Zhou et al., *Learning with local and global consistency*, NIPS 2003; Zelnik-Manor & Perona,
    *Self-tuning spectral clustering*, NIPS 2004.

    Examples
    --------
    Two clusters, and one answer about each:

    >>> generator = np.random.default_rng(0)
    >>> X = np.concatenate([generator.normal(-3, 1, (40, 2)), generator.normal(3, 1, (40, 2))])
    >>> student = GraphStudent(coupling=8.0, mistrust=0.01)
    >>> student = student.fit_released(X, [0, 79], [[0.9, 0.1], [0.1, 0.9]])
    >>> student.predict([[-2.0, -2.0], [2.5, 3.0]]).tolist()
    [0, 1]
    """

    def __init__(
        self,
        features: Any = None,
        *,
        n_components: int = 200,
        n_neighbors: int = 10,
        method: str = "posterior",
        coupling: float | None = None,
        mistrust: float | None = None,
        random_state: int | None = None,
    ) -> None:
        self.features = features
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.method = method
        self.coupling = coupling
        self.mistrust = mistrust
        self.random_state = random_state

    def _learn(self, released: ReleasedAnswers) -> None:
        self._check_parameters()
        self.embedding_ = PublicEmbedding(self.features, self.n_components)
        self._points = self.embedding_.fit_transform(released.X)
        if len(self._points) < 2:
            raise InputError("a graph needs at least 2 public records: give more")
        n_neighbors = min(self.n_neighbors, len(self._points) - 1)
        graph, self._scales = similarity_graph(self._points, n_neighbors)
        self.average_ = averaging(graph)
        smoother = self._smoother(graph)
        self.coupling_, self.mistrust_ = choose_coupling(
            smoother,
            released,
            COUPLINGS[self.method] if self.coupling is None else (self.coupling,),
            self.mistrust,
            self.random_state or 0,
        )
        self.beliefs_ = smoother(released.evidence(self.mistrust_), self.coupling_)

    def _smoother(self, graph: Any) -> Callable[[Floats, float], Floats]:
        if self.method == "posterior":
            average = self.average_
            return lambda evidence, coupling: posterior(lambda q: average @ q, evidence, coupling)
        normal = normalised(graph)

        def linear(evidence: Floats, coupling: float) -> Floats:
            # The log-likelihood ratio of Gaussian noise is linear in the histogram: smoothing it smooths
            # the histograms, each in units of its own noise.
            centred = evidence - evidence.mean(axis=1, keepdims=True)
            answered = np.abs(centred).max(axis=1) > 0
            if self.method == "harmonic":
                made = harmonic(normal, centred, answered.astype(np.float64), coupling)
            else:
                made = spreading(
                    normal, centred, answered.astype(np.float64), coupling / (1 + coupling)
                )
            return _sharpened(made)

        return linear

    def _believe(self, X: Any) -> Floats:
        believed = self.neighbour_weights(X) @ self.beliefs_
        return np.asarray(believed / believed.sum(axis=1, keepdims=True))

    def neighbour_weights(self, X: Any) -> sparse.csr_array:
        """Weigh the public records that are nearest to any records.

        Parameters
        ----------
        X : array-like
            Records of the public ones' shape.

        Returns
        -------
        sparse array, shape (n_records, n_public)
            Rows add up to 1.
        """
        points = self.embedding_.transform(X)
        n_public = len(self._points)
        found = nearest(points, self._points, min(self.n_neighbors, n_public))
        weights = similarities(found, local_scales(found), self._scales)
        # A record far from all others has similarities that underflow: its neighbours count equally.
        weights = np.where(weights.sum(axis=1, keepdims=True) > 1e-12, weights, 1.0)
        weights /= weights.sum(axis=1, keepdims=True)
        starts = np.arange(len(points) + 1) * found.rows.shape[1]
        shape = (len(points), n_public)
        return sparse.csr_array((weights.ravel(), found.rows.ravel(), starts), shape=shape)

    def _check_parameters(self) -> None:
        check_choice("method", self.method, METHODS)
        check_whole("n_neighbors", self.n_neighbors)
        if self.coupling is not None:
            check_positive("coupling", self.coupling)
        if self.mistrust is not None:
            check_number("mistrust", self.mistrust, least=0, below=1)


def _sharpened(smoothed: Floats) -> Floats:
    """Make probabilities of smoothed evidence: its own spread is the unit, as no other is known."""
    spread = float(np.sqrt(np.mean((smoothed - smoothed.mean(axis=1, keepdims=True)) ** 2)))
    return np.asarray(softmax(smoothed * (2 / spread if spread > 0 else 1.0), axis=1))
