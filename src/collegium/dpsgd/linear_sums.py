"""Clipped sums of a linear model's gradients, exactly: the one place where private records meet a model.

A record's gradient is error ⊗ features, so its norm is ‖error‖·‖features‖ and no gradient is ever formed; an
owner with several records has the sum of theirs, which is formed, clipped once, and forgotten. Features are
multiples of 2^-15 in [-1, 1] from the start; clipped errors are rounded towards zero to multiples of 2^-15,
after which the bound is looked at again. Products are then whole numbers on the grid of
:mod:`collegium.dpsgd.grid`, and their sum in double precision is exact: it does not depend on the order, the
number of threads or of machines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.dpsgd.grid import FACTOR_BITS, UNIT_BITS
from collegium.dpsgd.losses import MOST_ERROR, Loss
from collegium.dpsgd.sampling import Sample
from collegium.errors import InputError
from collegium.models.threads import in_threads
from collegium.noise.sums import MOST_TOTAL, Integers
from collegium.personalisation.dpsgd_plan import DPSGDPlan

Floats = NDArray[np.float64]
_SCALE = 2.0**FACTOR_BITS
_LARGEST = 2**FACTOR_BITS - 1  # of a feature, in multiples of 2^-15: they are kept as int16
CONSTANT = 0.25
"""The constant feature, beside rows of unit length: it takes its part of the clip, and of the noise."""
_ROWS, _FEW_ROWS = 4096, 256  # records that are handled together, at most and at least
_CACHE = 2**19  # their floats, which stay in the cache
_EXACT = 2.0**53
_FINEST = 1000  # of the bits of a parameter: beyond, powers of two are no floats
_LARGEST_PARAMETER = 2.0**1000  # beyond, whether sums overflow may depend on their order
_SLACK = 1 - 2.0**-40  # rounding of norms in double precision is some 2^-45
_OF_A_SUM = 2.0**-26  # of 2^-15, for each record: rounding of sums in which gradients cancel
_TRIES, _SHRINK = 4, 0.98  # where rounding might take an owner beyond the bound


def to_features(records: NDArray[Any]) -> NDArray[np.int16]:
    """Round records to multiples of 2^-15, with a constant behind them; each by itself.

    ``records`` (n, d): values in [-1, 1]; what is beyond is clipped, and what is no number is 0.
    Returns (n, d + 1): in units of 2^-15.
    """
    made = np.empty((len(records), records.shape[1] + 1), dtype=np.int16)
    for first in range(0, len(records), _ROWS):
        part = np.nan_to_num(np.asarray(records[first : first + _ROWS], dtype=np.float64) * _SCALE)
        np.rint(np.clip(part, -_LARGEST, _LARGEST), out=part)
        made[first : first + _ROWS, :-1] = part
    made[:, -1] = round(CONSTANT * _SCALE)
    return made


@dataclass(frozen=True)
class Terms:
    """What a step does about the owners of each group: public, from the plan.

    ``rates``, ``clips``, ``weights`` (n_groups,): probability of taking part; bound of a contribution, in
        units of the clip norm; and by what gradients are multiplied before they are clipped to that bound.
    ``clip_norm``: what one unit is, as a norm of gradients.
    """

    rates: Floats
    clips: Floats
    weights: Floats
    clip_norm: float

    @classmethod
    def of(cls, plan: DPSGDPlan, clip_norm: float) -> Terms:
        """Take them from a plan: in the order of its groups."""
        groups = plan.groups.values()
        clips = np.array([group.clip for group in groups])
        return cls(np.array([group.rate for group in groups]), clips, clips, clip_norm)


@dataclass(frozen=True, eq=False)
class Block:
    """Some owners, who all have the same number of records. **Sensitive.**

    ``features`` (n_owners · per_owner, d): an owner's records stand together.
    ``lengths`` (n_owners · per_owner,): norms of the features.
    ``targets`` (n_owners · per_owner, ...): as the loss takes them.
    ``groups`` (n_owners,): position of each owner's group in the plan.
    ``name``: for the coins of these owners.
    """

    features: NDArray[np.int16]
    lengths: Floats
    targets: NDArray[Any]
    groups: NDArray[np.intp]
    per_owner: int
    name: str

    def clipped_sum(self, parameters: Floats, loss: Loss, terms: Terms, sample: Sample) -> Integers:
        """Sum the clipped contributions of the owners who take part. **Sensitive.**

        ``parameters`` (d, n_outputs).
        Returns (d, n_outputs): whole numbers, in units of the grid.
        """
        groups, features, lengths, targets = self.groups, self.features, self.lengths, self.targets
        if sample.key is not None:
            present = sample.takes_part(terms.rates[groups], self.name)
            if not present.any():
                return np.zeros(parameters.shape, dtype=np.int64)
            if not present.all():
                rows = np.repeat(present, self.per_owner)
                groups, features = groups[present], features[rows]
                lengths, targets = lengths[rows], targets[rows]
        units = features.astype(np.float64)
        errors = loss.errors(exact_scores(units, parameters), targets)
        clips, weights = terms.clips[groups], terms.weights[groups]
        rounded = bounded(errors, units, lengths, clips, weights, terms.clip_norm, self.per_owner)
        return exact_sum(units, rounded)


def exact_scores(units: Floats, parameters: Floats) -> Floats:
    """Score records: exactly, so that nobody's scores depend on who else is there. **Sensitive.**

    How a matrix product is rounded may depend on how many rows it has. So parameters, which were released,
    are rounded to as many bits as leave every sum of products a whole number that floats hold.

    ``units`` (n, d): in units of 2^-15.
    ``parameters`` (d, n_outputs): if one is no number, or beyond 2^1000, no score is a number.
    """
    most = float(np.abs(parameters).max(initial=0.0))
    if not most <= _LARGEST_PARAMETER:
        return np.full((len(units), parameters.shape[1]), np.nan)
    bits = 53 - FACTOR_BITS - math.ceil(math.log2(len(parameters) + 1))
    scale = 2.0 ** min(bits - math.frexp(most)[1] - 1, _FINEST)
    return np.asarray(units @ (np.rint(parameters * scale) * (1 / (_SCALE * scale))))


def exact_sum(units: Floats, rounded: Floats) -> Integers:
    """Sum features ⊗ errors, both whole numbers: exactly, in units of the grid. **Sensitive.**"""
    total = np.zeros((units.shape[1], rounded.shape[1]), dtype=np.int64)
    for first in range(0, len(units), _ROWS):  # so many products add up exactly
        some = slice(first, first + _ROWS)
        total += (units[some].T @ rounded[some]).astype(np.int64)
    return total


def bounded(
    errors: Floats,
    units: Floats,
    lengths: Floats,
    clips: Floats,
    weights: Floats,
    clip_norm: float,
    per_owner: int,
) -> Floats:
    """Scale errors so that no owner's contribution is beyond its bound, also after rounding.

    ``clips``, ``weights`` (n_owners,): each owner's, as in :class:`Terms`.
    Returns: whole numbers, in units of 2^-15 clip norms.
    """
    if not np.isfinite(errors).all():  # a gradient that is no number counts as none
        errors = np.where(np.isfinite(errors).all(axis=1, keepdims=True), errors, 0.0)
    norms = _norms(errors, units, lengths, per_owner) / clip_norm
    room = clips * _SLACK
    # Owner by owner, never for a block: how an owner is rounded must not depend on who stands beside.
    is_known = np.full(len(clips), per_owner == 1)  # alone, rounded towards zero: no norm grows
    if per_owner > 1:  # rounding moves an owner's sum by Σ √n_outputs · ‖features‖ units at most
        moved = math.sqrt(errors.shape[1]) * lengths.reshape(-1, per_owner).sum(axis=1)
        kept = room - moved * ((1 + per_owner * _OF_A_SUM) / _SCALE)
        is_known = kept >= clips * _SHRINK
        room = np.where(is_known, kept, room)
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.minimum(weights, room / norms)
    factors = np.where(np.isfinite(norms) & (norms > 0), factors, 0.0)
    scale = _SCALE / clip_norm
    for _ in range(_TRIES):
        rounded = np.trunc(errors * (np.repeat(factors, per_owner) * scale)[:, None])
        if is_known.all():
            return rounded
        beyond = _norms(rounded, units, lengths, per_owner) > clips * (_SCALE * _SLACK)
        beyond &= ~is_known
        if not beyond.any():
            return rounded
        factors = np.where(beyond, factors * _SHRINK, factors)
    rounded[np.repeat(beyond, per_owner)] = 0.0
    return rounded


def _norms(errors: Floats, units: Floats, lengths: Floats, per_owner: int) -> Floats:
    """Norm of each owner's gradient, Σ error ⊗ features over the owner's records, or a little more.

    Of few records the gradient is not formed: ‖Σ e_k ⊗ x_k‖² = Σ_kl (e_k·e_l)(x_k·x_l), where x_k·x_l is
    exact. What rounding may take away, where records all but cancel each other, is added.
    """
    alone = np.sqrt(np.einsum("ij,ij->i", errors, errors)) * lengths
    if per_owner == 1:
        return np.asarray(alone)
    n_outputs, n_features = errors.shape[1], units.shape[1]
    each = errors.reshape(-1, per_owner, n_outputs)
    theirs = units.reshape(-1, per_owner, n_features)
    together = alone.reshape(-1, per_owner).sum(axis=1)  # at least the norm
    if per_owner * (n_outputs + n_features) >= n_outputs * n_features:
        gradients = np.matmul(each.transpose(0, 2, 1), theirs)
        formed = np.sqrt(np.einsum("okd,okd->o", gradients, gradients)) / _SCALE
        lost = (per_owner + n_outputs * n_features + 8) * 2.0**-52
        return np.asarray(formed + lost * together)
    between = np.matmul(theirs, theirs.transpose(0, 2, 1))
    squares = np.einsum("okl,okl->o", np.matmul(each, each.transpose(0, 2, 1)), between)
    lost = (per_owner**2 + n_outputs + 8) * 2.0**-52
    return np.asarray(np.sqrt(np.maximum(squares / _SCALE**2, 0.0) + lost * together**2))


def blocks_of(
    features: NDArray[np.int16],
    targets: NDArray[Any],
    owner: NDArray[np.intp],
    groups: NDArray[np.intp],
    n_outputs: int,
    name: str = "",
) -> Iterator[Block]:
    """Put records of owners with equally many records together, in blocks that fit the cache. **Sensitive.**

    ``owner`` (n_records,): position in ``groups`` of each record's owner.
    ``groups`` (n_owners,): position of each owner's group.
    ``name``: tells these records from those of another shard.
    """
    counts = np.bincount(owner, minlength=len(groups))
    order = np.argsort(owner, kind="stable")
    starts = np.cumsum(counts) - counts
    for per_owner in np.unique(counts[counts > 0]).tolist():
        owners = np.flatnonzero(counts == per_owner)
        together = owners_together(per_owner, features.shape[1], n_outputs)
        for first in range(0, len(owners), together):
            some = owners[first : first + together]
            if per_owner == 1 and len(counts) == len(owner) and len(owners) == len(counts):
                rows: Any = order[starts[some]]
            else:
                rows = order[(starts[some][:, None] + np.arange(per_owner)).ravel()]
            its = features[rows]
            coins = f"{name}|{per_owner}|{first}"
            yield Block(its, lengths_of(its), targets[rows], groups[some], per_owner, coins)


def owners_together(per_owner: int, n_features: int, n_outputs: int) -> int:
    """Choose how many owners with so many records each make a block that fits the cache."""
    rows = min(_ROWS, max(_FEW_ROWS, _CACHE // n_features // 64 * 64))
    size = n_features * n_outputs if per_owner > 1 else 1
    return max(1, min(rows // per_owner, 2**22 // size))


def lengths_of(features: NDArray[np.int16]) -> Floats:
    """Norm of each record's features."""
    units = features.astype(np.float64)
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", units, units)) / _SCALE)


@dataclass(frozen=True, eq=False)
class InMemory:
    """Clipped sums over records that are in memory. **Sensitive.**

    ``blocks``: all of them.
    ``n_threads``: default: as many as BLAS would use.
    """

    blocks: Sequence[Block]
    loss: Loss
    terms: Terms
    n_threads: int | None = None

    def clipped_sum(self, parameters: Floats, sample: Sample) -> Integers:
        """Sum over all blocks: exact, in any order."""
        total = np.zeros(parameters.shape, dtype=np.int64)

        def of_block(block: Block) -> Integers:
            return block.clipped_sum(parameters, self.loss, self.terms, sample)

        for part in in_threads(of_block, self.blocks, self.n_threads):
            total += part
        return total


def require_exact(terms: Terms, sizes: Sequence[int]) -> None:
    """Refuse clips with which sums could leave the whole numbers that floats hold; public numbers only.

    ``sizes``: owners of each group.
    """
    # An entry of one owner's contribution is at most its clip; of one record's, error · feature.
    largest = float(terms.weights.max() / terms.clip_norm) * MOST_ERROR * _ROWS
    total = float(np.dot(terms.clips, sizes)) * 2.0**UNIT_BITS
    if largest * 2.0**UNIT_BITS >= _EXACT or total >= MOST_TOTAL:
        raise InputError(
            f"a clip norm of {terms.clip_norm:g} is too small for exact sums over {sum(sizes):,} owners: "
            "give a larger one, such as 0.5"
        )
