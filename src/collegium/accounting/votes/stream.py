"""The data-dependent account of a whole table of votes, block by block, in bounded memory. **Sensitive.**

It computes what a per-query loop would: each query's costs for each group at each order, added up. Votes
come in blocks (from a file, say); a block is worked on in pieces that fit into the processor's cache.
One more query costs O(groups × orders): charge an account, or pass a block of one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.accounting._inputs import as_counts, as_positive_scalar
from collegium.accounting.renyi import validate_orders
from collegium.accounting.votes._outcomes import per_group
from collegium.accounting.votes.laplace_max import lnmax_log_q, lnmax_rdp
from collegium.accounting.votes.noisy_max import (
    gnmax_log_q,
    gnmax_rdp,
    threshold_log_q,
    threshold_rdp,
)
from collegium.errors import InputError

__all__ = ["VotesAccount", "account_votes"]

Floats = NDArray[np.float64]
Block = ArrayLike | tuple[ArrayLike, ArrayLike]
# Numbers in one piece: with some twenty temporary arrays of this size, it stays in the cache.
_PIECE = 2**14
# Sums are compensated, so what is left of rounding is a few units in the last place.
_ROUND_UP = 1 + 2.0**-46


@dataclass(frozen=True, eq=False)
class VotesAccount:
    """What answering a table of votes cost. **Sensitive**, except the number of queries.

    Attributes
    ----------
    sensitive_rdp : ndarray of float64, shape (n_groups, n_orders)
        Rényi-DP ε of all checks and answers together, rounded up.
    n_queries : int
        Rows of votes.
    n_answered : int
        Rows of votes that were answered.
    """

    sensitive_rdp: Floats
    n_queries: int
    n_answered: int


def account_votes(
    blocks: Iterable[Block],
    sensitivity: ArrayLike,
    orders: ArrayLike,
    *,
    sigma: float | None = None,
    gamma: float | None = None,
    threshold: float | None = None,
    sigma_threshold: float | None = None,
    total_weight: float | None = None,
) -> VotesAccount:
    """Add up the data-dependent costs of GNMax, Confident-GNMax or LNMax. **Sensitive.**

    The costs are those of :func:`~collegium.accounting.votes.noisy_max.gnmax_rdp`,
    :func:`~collegium.accounting.votes.noisy_max.threshold_rdp` and
    :func:`~collegium.accounting.votes.laplace_max.lnmax_rdp`, where theorems and neighbours are stated; they
    add up order by order (Mironov 2017, arXiv 1702.07476v3, Proposition 1).

    Parameters
    ----------
    blocks : iterable of array-like, or of pairs
        Vote counts of shape (n, n_classes), with weights; or a pair of them and of booleans of shape
        (n,): which queries were answered (default: all). A generator is read once, block by block.
    sensitivity : array-like of shape (n_groups,)
        Δ of each group, in votes.
    orders : array-like of shape (n_orders,)
        Orders α > 1.
    sigma : float, optional
        GNMax: standard deviation of the noise, in votes. Give this or ``gamma``.
    gamma : float, optional
        LNMax: inverse scale of the noise, per vote.
    threshold, sigma_threshold : float, optional
        Confident-GNMax: the check, charged for each query. Give both or none.
    total_weight : float, optional
        Weight of all teachers: each row must add up to it.

    Returns
    -------
    VotesAccount

    Raises
    ------
    InputError
        If a parameter or a block cannot be used; values of votes are not repeated.

    Examples
    --------
    >>> votes = [[200.0, 50.0], [125.0, 125.0]]
    >>> spent = account_votes([votes], [1.0], [16.0], sigma=40.0, total_weight=250.0)
    >>> spent.sensitive_rdp.round(4), spent.n_queries
    (array([[0.0118]]), 2)
    """
    moves, grid = per_group(sensitivity), validate_orders(orders)
    answer = _answer_price(moves, grid, sigma, gamma)
    check = _check_price(moves, grid, sigma, threshold, sigma_threshold)
    rows = max(1, _PIECE // (moves.size * grid.size))
    total, lost = np.zeros((moves.size, grid.size)), np.zeros((moves.size, grid.size))
    n_queries = n_answered = 0
    for counts, answered in _pieces(blocks, rows, total_weight):
        cost = answer(counts[answered]).sum(axis=0)
        if check is not None:
            cost = cost + check(counts).sum(axis=0)
        total, lost = _compensated(total, lost, cost)
        n_queries += len(counts)
        n_answered += int(answered.sum())
    return VotesAccount((total + lost) * _ROUND_UP, n_queries, n_answered)


def _answer_price(
    moves: Floats, orders: Floats, sigma: float | None, gamma: float | None
) -> Callable[[Floats], Floats]:
    if (sigma is None) == (gamma is None):
        raise InputError(
            "give the answer's noise as sigma (GNMax) or as gamma (LNMax): one of both"
        )
    if sigma is not None:
        noise = as_positive_scalar("sigma", sigma)
        return lambda counts: gnmax_rdp(gnmax_log_q(counts, noise), moves, noise, orders)
    assert gamma is not None
    inverse = as_positive_scalar("gamma", gamma)
    return lambda counts: lnmax_rdp(lnmax_log_q(counts, inverse), moves, inverse, orders)


def _check_price(
    moves: Floats,
    orders: Floats,
    sigma: float | None,
    threshold: float | None,
    sigma_threshold: float | None,
) -> Callable[[Floats], Floats] | None:
    if threshold is None and sigma_threshold is None:
        return None
    if threshold is None or sigma_threshold is None or sigma is None:
        raise InputError(
            "a check needs threshold, sigma_threshold and sigma: give all three, or none"
        )
    limit, noise = threshold, as_positive_scalar("sigma_threshold", sigma_threshold)
    threshold_log_q([0.0], limit, noise)  # refuses a threshold that is no finite number

    def check(counts: Floats) -> Floats:
        log_q = threshold_log_q(counts.max(axis=1), limit, noise)
        return threshold_rdp(log_q, moves, noise, orders)

    return check


def _pieces(
    blocks: Iterable[Block], rows: int, total_weight: float | None
) -> Iterator[tuple[Floats, NDArray[np.bool_]]]:
    for block in blocks:
        given, chosen = block if isinstance(block, tuple) else (block, None)
        counts = as_counts(given)
        answered = np.ones(len(counts), dtype=bool) if chosen is None else np.asarray(chosen)
        if answered.shape != (len(counts),) or answered.dtype != np.bool_:
            raise InputError(
                f"which queries were answered must be {len(counts)} booleans, one per row of counts, got "
                f"shape {answered.shape} of type {answered.dtype}"
            )
        if total_weight is not None:
            require_total(counts, total_weight)
        for first in range(0, len(counts), rows):
            yield counts[first : first + rows], answered[first : first + rows]


def require_total(counts: Floats, total_weight: float) -> None:
    """Refuse vote counts that do not add up to the teachers' weight; values are not repeated."""
    weight = as_positive_scalar("total_weight", total_weight)
    wrong = np.abs(counts.sum(axis=1) - weight) > 1e-9 * weight
    if wrong.any():
        raise InputError(
            f"vote counts must add up to the teachers' weight {weight:g} in every row, but "
            f"{int(wrong.sum())} row(s) of a block do not: pass the un-noised counts of all classes"
        )


def refuse_excess(counts: Floats, weights: Floats) -> None:
    """Refuse vote counts that add up to more than the teachers' weight; less if some abstain.

    Parameters
    ----------
    counts : ndarray of float64, shape (n, n_classes)
    weights : ndarray of float64, shape (n,)
        Weight of the teachers who take part in each query.
    """
    excess = ~(counts.sum(axis=1) <= weights * (1 + 1e-5))  # weights are rounded to a grid
    if excess.any():
        raise InputError(
            f"vote counts add up to more than the weight of the teachers who take part in "
            f"{int(excess.sum())} of {len(counts)} queries: nothing was charged; pass the counts that "
            "belong to these ballots"
        )


def _compensated(total: Floats, lost: Floats, cost: Floats) -> tuple[Floats, Floats]:
    """Add without losing digits: Neumaier's summation, for what is never negative."""
    summed = total + cost
    error = np.where(total >= cost, (total - summed) + cost, (cost - summed) + total)
    return summed, lost + error
