"""Which public records to ask about, and in which order.

An order is public. ``random`` and ``coverage`` are functions of public records and a public seed, fixed
before the first question: they cost nothing. :func:`next_queries` looks at beliefs of a student that learnt
from answers released so far. Under the worst-case guarantee such an order is sound too: the account is that
of fully adaptive composition (each query may be any function of earlier outcomes), and the price of a
question does not depend on the record that is asked about. Under a data-dependent guarantee it is not
offered.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from collegium.errors import InputError
from collegium.students.neighbours import nearest, similarity_graph
from collegium.students.released import as_numbers

ORDERS = ("random", "coverage")
_COVERED_BY = 50


def query_order(
    kind: str, X_public: Any, seed: int, n_neighbors: int = _COVERED_BY
) -> NDArray[np.intp]:
    """Order public records for asking.

    Parameters
    ----------
    kind : {"random", "coverage"}
        ``coverage``: each next record is the one that, of all, best represents what is not represented yet.
    X_public : array-like, shape (n_public, n_features)
        Public records; for ``random`` only their number counts. Distances should mean something:
        embed them first, with :class:`~collegium.students.embedding.PublicEmbedding`, say.
    seed : int
        Public.
    n_neighbors : int, default=50
        For ``coverage``: a record can represent its so many nearest neighbours, and those that it is a
        neighbour of.

    Returns
    -------
    ndarray of int, shape (n_public,)
        A permutation.

    Raises
    ------
    InputError
        If there is no such order, or no public records.

    Notes
    -----
    ``coverage`` maximises Σ_i max_{j asked} s_ij greedily (facility location), with self-tuning similarities
    s. The greedy choice of the first k reaches at least 1 − 1/e of the best k.

    References
    ----------
    Nemhauser, Wolsey & Fisher, *An analysis of approximations for maximizing submodular set functions*, 1978,
    Theorem 4.2; Wei, Iyer & Bilmes, *Submodularity in data subset selection and active learning*, ICML 2015.

    Examples
    --------
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> sorted(query_order("coverage", X, seed=0, n_neighbors=2)[:2].tolist())
    [1, 4]
    """
    records = as_numbers(X_public, "public records")
    if kind not in ORDERS:
        raise InputError(f"the order must be one of {', '.join(ORDERS)}, got {kind!r}")
    shuffled = np.random.default_rng(seed).permutation(len(records))
    if kind == "random" or len(records) < 3:
        return shuffled
    points = records.reshape(len(records), -1)
    return _cover(points, min(n_neighbors, len(points) - 1), shuffled)


def next_queries(
    beliefs: ArrayLike, X_public: Any, asked: ArrayLike, n: int, n_neighbors: int = 20
) -> NDArray[np.intp]:
    """Choose the next records to ask about: uncertain ones, in dense places, apart from each other.

    Parameters
    ----------
    beliefs : array-like, shape (n_public, n_classes)
        Of a student that learnt from released answers only.
    X_public : array-like, shape (n_public, n_features)
        Public records, embedded.
    asked : array-like of int
        Rows asked already; they are not asked again.
    n : int
        How many (fewer, if there are not so many left).
    n_neighbors : int, default=20
        Density is the inverse distance to this neighbour; the neighbours of a chosen record are passed over
        while others are left.

    Returns
    -------
    ndarray of int, shape (n,)
        Rows, best first; the same for the same input.

    Raises
    ------
    InputError
        If shapes do not fit, or ``n`` is below 1.

    References
    ----------
    Settles & Craven, *An analysis of active learning strategies for sequence labeling tasks*, EMNLP 2008,
    Eq. 13 (information density).

    Examples
    --------
    >>> X = [[0.0], [0.1], [5.0], [5.1]]
    >>> next_queries([[0.9, 0.1], [0.8, 0.2], [0.5, 0.5], [0.6, 0.4]], X, [3], 1, n_neighbors=1).tolist()
    [2]
    """
    records = as_numbers(X_public, "public records")
    points = records.reshape(len(records), -1)
    table = np.asarray(beliefs, dtype=np.float64)
    if table.ndim != 2 or len(table) != len(points) or not np.isfinite(table).all():
        raise InputError(
            f"beliefs must be finite, one row for each of the {len(points)} public records, got shape "
            f"{table.shape}"
        )
    if n < 1:
        raise InputError(f"n must be at least 1, got {n!r}")
    left = np.ones(len(points), dtype=bool)
    left[np.asarray(asked, dtype=np.intp)] = False
    if len(points) < 2:
        return np.flatnonzero(left)[:n]
    found = nearest(points, points, min(n_neighbors, len(points) - 1), skip_self=True)
    uncertainty = -(table * np.log(np.maximum(table, 1e-12))).sum(axis=1)
    distance = np.sqrt(found.squared[:, -1])
    typical = float(np.median(distance)) or 1.0
    worth = uncertainty * np.minimum(typical / np.maximum(distance, 1e-12), 10.0)
    candidates = np.flatnonzero(left)
    ranked = candidates[np.lexsort((candidates, -worth[candidates]))]
    chosen: list[int] = []
    passed_over: list[int] = []
    near = np.zeros(len(points), dtype=bool)
    for row in ranked.tolist():
        if len(chosen) == n:
            break
        if near[row]:
            passed_over.append(row)
            continue
        chosen.append(row)
        near[found.rows[row]] = True
    chosen += passed_over[: n - len(chosen)]
    return np.asarray(chosen, dtype=np.intp)


def _cover(points: NDArray[Any], n_neighbors: int, shuffled: NDArray[np.intp]) -> NDArray[np.intp]:
    """Greedy facility location, evaluated lazily: gains only shrink, so an old gain is an upper bound."""
    graph, _ = similarity_graph(points, n_neighbors)
    graph = (graph + sparse.eye_array(len(points))).tocsr()
    starts, columns, values = graph.indptr, graph.indices, graph.data
    covered = np.zeros(len(points))

    def gain(row: int) -> float:
        part = slice(starts[row], starts[row + 1])
        return float(np.maximum(values[part] - covered[columns[part]], 0.0).sum())

    # Ties are broken by the public shuffle.
    heap = [(-gain(row), place, row) for place, row in enumerate(shuffled.tolist())]
    heapq.heapify(heap)
    order: list[int] = []
    while heap:
        _, place, row = heapq.heappop(heap)
        fresh = gain(row)
        if heap and -fresh > heap[0][0]:
            heapq.heappush(heap, (-fresh, place, row))
            continue
        order.append(row)
        part = slice(starts[row], starts[row + 1])
        covered[columns[part]] = np.maximum(covered[columns[part]], values[part])
    return np.asarray(order, dtype=np.intp)
