"""Noisy marginals, joined with others of the same cells: of public records, or of people heard otherwise.

All of it is post-processing of what was drawn, and of what is public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collegium.synthesis.coarsening import Coarsening
from collegium.synthesis.junction_tree import Clique
from collegium.synthesis.max_entropy import Marginal

Floats = NDArray[np.float64]


def coarse_marginal(one: Marginal, coarse: Sequence[Coarsening]) -> Marginal:
    """Sum a marginal of cells to one of coarse cells; variances add up."""
    shares, variance = one.shares, np.broadcast_to(one.sd, one.shares.shape) ** 2
    for axis, column in enumerate(one.columns):
        if not coarse[column].is_none:
            shares = _summed(shares, coarse[column], axis)
            variance = _summed(variance, coarse[column], axis)
    return Marginal(one.columns, shares, np.sqrt(variance))


def _summed(values: Floats, one: Coarsening, axis: int) -> Floats:
    moved = np.moveaxis(values, axis, 0)
    total = np.zeros((one.size, *moved.shape[1:]))
    np.add.at(total, one.place, moved)
    return np.moveaxis(total, 0, axis)


def public_marginal(
    codes: NDArray[np.int64], columns: Clique, sizes: Sequence[int], people: float
) -> Marginal:
    """Count public records: a cell's share has variance p(1 - p)(1/n + 1/people) towards a table of people.

    p is estimated with half a record more in each cell, spread as the columns' own shares are, so that a
    cell which no public record is in has a variance, too.
    """
    n, shape = len(codes), tuple(sizes[one] for one in columns)
    place = codes[:, columns[0]]
    for one in columns[1:]:
        place = place * sizes[one] + codes[:, one]
    counts = np.bincount(place, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)
    prior = np.ones(())
    for axis in range(len(shape)):
        own = counts.sum(axis=tuple(a for a in range(len(shape)) if a != axis)) + 0.5
        prior = np.multiply.outer(prior, own / own.sum())
    p = (counts + prior) / (n + 1)
    return Marginal(columns, counts / n, np.sqrt(p * (1 - p) * (1 / n + 1 / people)))


@dataclass(frozen=True)
class Joined:
    """A marginal of two; ``bias``: how far apart the two were, per cell, beyond what errors explain."""

    marginal: Marginal
    bias: float


def joined(trusted: Marginal, other: Marginal) -> Joined:
    """Join two marginals of the same cells by the inverse of their variances.

    The other one may be about other people. How much it differs beyond both errors (the mean square of the
    difference, less the variances) counts as a variance of its own, in proportion to the cells' own shares.
    """
    own = np.broadcast_to(trusted.sd, trusted.shares.shape) ** 2
    its = np.broadcast_to(other.sd, other.shares.shape) ** 2
    apart = float(((trusted.shares - other.shares) ** 2).sum() - (own + its).sum())
    # Chance alone moves the sum of squares by this much.
    chance = float(np.sqrt(2 * ((own + its) ** 2).sum()))
    unlike = max(0.0, apart + chance) if apart > chance else 0.0
    # Where either says that anybody is: a cell that the other one lacks is what they differ in most.
    there = np.maximum(np.maximum(trusted.shares, other.shares), its)
    spread = there / max(float(there.sum()), 1e-300)
    variance = its + unlike * spread
    weight = own / (own + variance)
    shares = trusted.shares + weight * (other.shares - trusted.shares)
    sd = np.sqrt(own * variance / (own + variance))
    return Joined(Marginal(trusted.columns, shares, sd), float(np.sqrt(unlike / shares.size)))
