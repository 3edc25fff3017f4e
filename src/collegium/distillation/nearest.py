"""Nearest neighbours by blocks of matrix products, and the graph of similar public records.

Everything is computed from public records alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from collegium.errors import InputError

Floats = NDArray[np.float64]
_BLOCK_CELLS = 2**24  # distances in memory at once
LOCAL = 7  # the neighbour whose distance is the local scale (Zelnik-Manor & Perona 2005)


@dataclass(frozen=True, eq=False)
class NearestRecords:
    """The nearest records of each record, nearest first.

    ``rows`` (n, n_neighbors): which.
    ``squared`` (n, n_neighbors): squared Euclidean distances.
    """

    rows: NDArray[np.intp]
    squared: Floats


def nearest(
    X: NDArray[Any], among: NDArray[Any], n_neighbors: int, *, skip_self: bool = False
) -> NearestRecords:
    """Find the exact nearest neighbours: blocks of ‖x‖² + ‖y‖² − 2xy, one matrix product each.

    ``X`` (n, n_features): whose neighbours.
    ``among`` (m, n_features): where to look.
    ``n_neighbors``: how many; at most m (m − 1 with ``skip_self``).
    ``skip_self``: ``X`` and ``among`` are the same records; nobody is a neighbour of their own.

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [3.0]])
    >>> nearest(points, points, 1, skip_self=True).rows.ravel().tolist()
    [1, 0, 1]
    """
    available = len(among) - skip_self
    if not 1 <= n_neighbors <= available:
        raise InputError(
            f"{n_neighbors} neighbours were asked for among {available} other records: give from 1 to "
            f"{available}, or more public records"
        )
    # Distances from the centre: far from the origin, 32 bits would lose them.
    centre = among.mean(axis=0, dtype=np.float64)
    where = _centred(among, centre)
    norms = np.einsum("ij,ij->i", where, where)
    rows = np.empty((len(X), n_neighbors), dtype=np.intp)
    squared = np.empty((len(X), n_neighbors))
    step = max(1, _BLOCK_CELLS // len(where))
    for first in range(0, len(X), step):
        block = _centred(X[first : first + step], centre)
        # ‖x‖² is the same for all candidates: it is added to the winners only.
        distances = norms - 2 * (block @ where.T)
        own = np.arange(len(block))
        if skip_self:
            distances[own, first + own] = np.inf
        best = np.argpartition(distances, n_neighbors - 1, axis=1)[:, :n_neighbors]
        found = np.take_along_axis(distances, best, axis=1)
        order = np.lexsort((best, found), axis=1)
        best = np.take_along_axis(best, order, axis=1)
        lengths = np.einsum("ij,ij->i", block, block)[:, None]
        rows[first : first + len(block)] = best
        squared[first : first + len(block)] = np.take_along_axis(found, order, axis=1) + lengths
    return NearestRecords(rows, np.maximum(squared, 0.0))


def _centred(points: NDArray[Any], centre: Floats) -> NDArray[np.float32]:
    where = np.empty(points.shape, dtype=np.float32)
    np.subtract(points, centre, out=where, casting="same_kind")
    return where


def local_scales(neighbours: NearestRecords) -> Floats:
    """Distance of each record to its seventh neighbour (its last, if there are fewer), shape (n,)."""
    place = min(LOCAL, neighbours.rows.shape[1]) - 1
    scales = np.sqrt(neighbours.squared[:, place])
    positive = scales[scales > 0]
    # Among duplicates the local scale vanishes; the smallest that does not stands in.
    return np.asarray(np.maximum(scales, positive.min() if positive.size else 1.0))


def similarities(neighbours: NearestRecords, own: Floats, theirs: Floats) -> Floats:
    """Self-tuning similarities exp(−d²/(s_i·s_j)), shape (n, n_neighbors).

    ``own`` (n,): local scales of these records.
    ``theirs`` (m,): local scales of the records looked among.

    References
    ----------
    Zelnik-Manor & Perona, *Self-tuning spectral clustering*, NIPS 2004, Section 2.
    """
    return np.asarray(np.exp(-neighbours.squared / (own[:, None] * theirs[neighbours.rows])))


def similarity_graph(X: NDArray[Any], n_neighbors: int) -> tuple[sparse.csr_array, Floats]:
    """Join each record to its nearest neighbours, and these to it.

    ``X`` (n, n_features): public records.
    ``n_neighbors``: how many each chooses.
    Returns ``graph`` (n, n): symmetric similarities; 0 on the diagonal.
    Returns ``scales`` (n,): local scales, for records that come later.

    Examples
    --------
    >>> graph, scales = similarity_graph(np.array([[0.0], [1.0], [5.0]]), 1)
    >>> graph.toarray().astype(bool).astype(int).tolist()
    [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    """
    found = nearest(X, X, n_neighbors, skip_self=True)
    scales = local_scales(found)
    # exp(−d²) of a far neighbour may underflow; a graph without that edge would fall apart.
    values = np.maximum(similarities(found, scales, scales), 1e-12)
    n = len(X)
    owners = np.repeat(np.arange(n), n_neighbors)
    directed = sparse.csr_array((values.ravel(), (owners, found.rows.ravel())), shape=(n, n))
    return directed.maximum(directed.T).tocsr(), scales
