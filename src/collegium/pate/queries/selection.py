"""Which public records to ask about, and in which order.

An order is public. ``random`` and ``coverage`` are functions of public records and a public seed, fixed
before the first question: they cost nothing. :func:`next_queries` looks at beliefs of a student that learnt
from answers released so far (``active``, :class:`~collegium.pate.queries.active_choice.ActiveChooser`).
So does ``doubtful`` (:class:`~collegium.pate.queries.doubtful_choice.DoubtfulChooser`), once.
Under the worst-case guarantee such orders are sound too, for the reasons given in
:mod:`collegium.pate.voting.choosing`.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from collegium.checks import check_choice, check_whole
from collegium.distillation.nearest import similarity_graph
from collegium.distillation.released import as_numbers
from collegium.errors import InputError

RANDOM, COVERAGE, ACTIVE, DOUBTFUL = "random", "coverage", "active", "doubtful"
ORDERS = (RANDOM, COVERAGE)
CHOSEN = (ACTIVE, DOUBTFUL)
"""As outcomes come in."""
QUERY_ORDERS = (*ORDERS, *CHOSEN)
_COVERED_BY = 50


def query_order(
    kind: str, X_public: Any, seed: int, n_neighbors: int = _COVERED_BY
) -> NDArray[np.intp]:
    """Order public records for asking.

    ``kind``: ``coverage``: each next record is the one that, of all, best represents what is not
        represented yet.
    ``X_public`` (n_public, n_features): public records; for ``random`` only their number counts.
        Distances should mean something: embed them first, with
        :class:`~collegium.distillation.embedding.PublicEmbedding`, say.
    ``seed``: public.
    ``n_neighbors``: for ``coverage``: a record can represent its so many nearest neighbours, and
        those that it is a neighbour of.
    Returns (n_public,): a permutation.

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
    check_choice("the order", kind, ORDERS)
    shuffled = np.random.default_rng(seed).permutation(len(records))
    if kind == "random" or len(records) < 3:
        return shuffled
    points = records.reshape(len(records), -1)
    return _cover(points, min(n_neighbors, len(points) - 1), shuffled)


def comparable_records(X_public: Any, order: str) -> NDArray[Any]:
    """Take public records as points, or say why an order cannot compare them.

    ``X_public`` (n_public, ...): public records, prepared.
    ``order``: what they are compared for.
    Returns (n_public, n_features).
    """
    try:
        records = as_numbers(X_public, "public records")
    except InputError as error:
        raise InputError(
            f"the query order {order!r} compares public records by their distances, but {error} (by the "
            "preprocessing), or use the order 'random'"
        ) from None
    return records.reshape(len(records), -1)


def next_queries(
    beliefs: ArrayLike, X_public: Any, asked: ArrayLike, n: int, n_neighbors: int = _COVERED_BY
) -> NDArray[np.intp]:
    """Choose the next records to ask about: those that best represent what a student is uncertain of.

    ``beliefs`` (n_public, n_classes): of a student that learnt from released answers only.
    ``X_public`` (n_public, n_features): public records, embedded.
    ``asked``: rows asked already; they are not asked again, and represent others already.
    ``n``: how many (fewer, if there are not so many left).
    Returns (n,): rows, best first; the same for the same input.

    Notes
    -----
    Coverage in which a record counts as much as the student is uncertain of it: greedily maximises
    Σ_i H_i·max_{j asked} s_ij with the entropies H of the beliefs. The most uncertain record itself is a bad
    choice: teachers are divided about it, too, so that noise decides.

    References
    ----------
    Wei, Iyer & Bilmes, *Submodularity in data subset selection and active learning*, ICML 2015.

    Examples
    --------
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> beliefs = [[0.9, 0.1]] * 3 + [[0.6, 0.4], [0.6, 0.4], [0.5, 0.5]]
    >>> next_queries(beliefs, X, [0], 1, n_neighbors=2).tolist()
    [4]
    """
    records = as_numbers(X_public, "public records")
    points = records.reshape(len(records), -1)
    table = np.asarray(beliefs, dtype=np.float64)
    if table.ndim != 2 or len(table) != len(points) or not np.isfinite(table).all():
        raise InputError(
            f"beliefs must be finite, one row for each of the {len(points)} public records, got shape "
            f"{table.shape}"
        )
    check_whole("n", n)
    taken = np.asarray(asked, dtype=np.intp)
    left = np.setdiff1d(np.arange(len(points)), taken)
    if len(points) < 2:
        return left[:n]
    uncertainty = -(table * np.log(np.maximum(table, 1e-12))).sum(axis=1)
    # Where a student is sure of everything, what is left is ordered by coverage.
    weights = np.maximum(uncertainty, 1e-6)
    return _cover(points, min(n_neighbors, len(points) - 1), left, weights, taken)[:n]


def _cover(
    points: NDArray[Any],
    n_neighbors: int,
    candidates: NDArray[np.intp],
    weights: NDArray[np.float64] | None = None,
    asked: NDArray[np.intp] | None = None,
) -> NDArray[np.intp]:
    """Greedy facility location, evaluated lazily: gains only shrink, so an old gain is an upper bound.

    Ties are broken by the order of the candidates.
    """
    graph, _ = similarity_graph(points, n_neighbors)
    graph = (graph + sparse.eye_array(len(points))).tocsr()
    starts, columns, values = graph.indptr, graph.indices, graph.data
    worth = np.ones(len(points)) if weights is None else weights
    covered = np.zeros(len(points))

    def cover(row: int) -> None:
        part = slice(starts[row], starts[row + 1])
        covered[columns[part]] = np.maximum(covered[columns[part]], values[part])

    def gain(row: int) -> float:
        part = slice(starts[row], starts[row + 1])
        to_win = np.maximum(values[part] - covered[columns[part]], 0.0)
        return float(worth[columns[part]] @ to_win)

    for row in () if asked is None else asked.tolist():
        cover(row)
    heap = [(-gain(row), place, row) for place, row in enumerate(candidates.tolist())]
    heapq.heapify(heap)
    order: list[int] = []
    while heap:
        _, place, row = heapq.heappop(heap)
        fresh = gain(row)
        if heap and -fresh > heap[0][0]:
            heapq.heappush(heap, (-fresh, place, row))
            continue
        order.append(row)
        cover(row)
    return np.asarray(order, dtype=np.intp)
