"""Three ways to let evidence flow along a graph of similar records.

``posterior`` treats classes as what they are, one per record; the other two smooth numbers, as the
classical methods do, and need a quadratic loss and its curvature in place of the evidence.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import linalg
from scipy.special import softmax

Floats = NDArray[np.float64]
_STEPS, _TOLERANCE, _DAMPING = 60, 1e-3, 0.5
_CG_TOLERANCE, _CG_STEPS = 1e-4, 500


def averaging(graph: sparse.csr_array) -> sparse.csr_array:
    """Rows of the graph scaled to add up to 1: D⁻¹A."""
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    return (sparse.diags_array(1 / np.maximum(degrees, 1e-300)) @ graph).tocsr()


def normalised(graph: sparse.csr_array) -> sparse.csr_array:
    """Symmetric normalisation D^−½ A D^−½."""
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    root = sparse.diags_array(np.maximum(degrees, 1e-300) ** -0.5)
    return (root @ graph @ root).tocsr()


def posterior(
    smooth: Callable[[Floats], Floats],
    evidence: Floats,
    coupling: float,
    start: Floats | None = None,
) -> Floats:
    """Beliefs in which each record's class agrees with its neighbours' classes.

    Solves the mean-field equations q_i = softmax(log P(r_i | ·) + coupling·Σ_j S_ij q_j), by damped iteration
    until no probability moves by more than 10⁻³, 60 times at most. With a symmetric S these are the
    equations of a Potts model, P(c | r) ∝ Π_i P(r_i | c_i) · exp(½·coupling·Σ_ij S_ij·[c_i = c_j]); S = D⁻¹A
    lets every record listen to its neighbours equally much, in dense places and in sparse ones. Unlike a
    linear filter, this knows that a record has one class: faint evidence adds up within a cluster until
    the cluster decides, then stops.

    ``smooth``: maps q, shape (n, n_classes), to Sq: what the others say about each record.
    ``evidence`` (n, n_classes): log P(r_i | c), 0 where nothing was released.
    ``coupling``: how much neighbours are believed; at least 0.
    ``start`` (n, n_classes): first beliefs; default: the evidence alone.
    Returns (n, n_classes): probabilities.

    References
    ----------
    Krähenbühl & Koltun, *Efficient inference in fully connected CRFs*, NIPS 2011, Section 3 (mean field of a
    Potts model); Zhu, Lafferty & Ghahramani, *Semi-supervised learning: from Gaussian fields to Gaussian
    processes*, CMU-CS-03-175, 2003.

    Examples
    --------
    >>> chain = averaging(sparse.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])))
    >>> evidence = np.array([[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    >>> posterior(lambda q: chain @ q, evidence, coupling=4.0).argmax(axis=1).tolist()
    [0, 0, 0]
    """
    believed = np.asarray(softmax(evidence, axis=1)) if start is None else start
    for _ in range(_STEPS):
        fresh = softmax(evidence + coupling * smooth(believed), axis=1)
        moved = float(np.abs(fresh - believed).max())
        believed = (1 - _DAMPING) * believed + _DAMPING * fresh
        if moved < _TOLERANCE:
            break
    return np.asarray(believed)


def harmonic(
    laplacian_of: sparse.csr_array, targets: Floats, precision: Floats, smoothness: float
) -> Floats:
    """Least squares that varies little along the graph.

    Minimises Σ_i w_i‖f_i − t_i‖² + smoothness·tr(fᵀLf), L = I − D^−½AD^−½, by conjugate gradients on
    (W + smoothness·L) f = W t. It is the mean of a Gaussian process with precision matrix smoothness·L and
    observations of precision w_i.

    ``laplacian_of`` (n, n): D^−½AD^−½, from :func:`normalised`.
    ``targets`` (n, n_classes): t.
    ``precision`` (n,): w, in inverse squared units of t; 0 where nothing was released.
    ``smoothness``: greater than 0.
    Returns (n, n_classes).

    References
    ----------
    Zhu, Ghahramani & Lafferty, *Semi-supervised learning using Gaussian fields and harmonic functions*, ICML
    2003, Section 2 (w → ∞ is their solution).

    Examples
    --------
    >>> path = normalised(sparse.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])))
    >>> f = harmonic(path, np.array([[1.0], [0.0], [0.0]]), np.array([1.0, 0.0, 0.0]), 0.01)
    >>> bool((f > 0.5).all())
    True
    """
    n = len(targets)
    # A component of the graph without any answer has no precision: a trace of it keeps the system regular.
    system = sparse.diags_array(precision + smoothness * (1 + 1e-6)) - smoothness * laplacian_of
    diagonal = system.diagonal()
    jacobi = linalg.LinearOperator((n, n), matvec=lambda x: np.ravel(x) / diagonal)
    columns = [
        linalg.cg(system, precision * column, rtol=_CG_TOLERANCE, maxiter=_CG_STEPS, M=jacobi)[0]
        for column in targets.T
    ]
    return np.stack(columns, axis=1)


def spreading(normal: sparse.csr_array, targets: Floats, precision: Floats, alpha: float) -> Floats:
    """Local and global consistency: f = (1 − α)(I − αS)⁻¹ W t, by conjugate gradients.

    ``normal`` (n, n): S = D^−½AD^−½, from :func:`normalised`.
    ``targets`` (n, n_classes): t.
    ``precision`` (n,): how much each is believed; 0 where nothing was released.
    ``alpha``: share of what comes from neighbours, in (0, 1).
    Returns (n, n_classes).

    References
    ----------
    Zhou, Bousquet, Lal, Weston & Schölkopf, *Learning with local and global consistency*, NIPS 2003,
    Section 2.

    Examples
    --------
    >>> path = normalised(sparse.csr_array(np.array([[0, 1], [1, 0]])))
    >>> spreading(path, np.eye(2), np.array([1.0, 0.0]), 0.5).round(3).tolist()
    [[0.667, 0.0], [0.333, 0.0]]
    """
    system = sparse.eye_array(len(targets)) - alpha * normal
    given = (1 - alpha) * precision[:, None] * targets
    columns = [
        linalg.cg(system, column, rtol=_CG_TOLERANCE, maxiter=_CG_STEPS)[0] for column in given.T
    ]
    return np.stack(columns, axis=1)
