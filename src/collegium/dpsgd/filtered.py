"""DP-SGD with a filter: every owner pays for the norm that was really used, and stops when nothing is left.

Full batch, every step. An owner's account starts with what the plan's steps would cost at the owner's
bound; a step takes from it the squared norm of the contribution that entered the sum, and a contribution is
clipped to what is left. Whatever the gradients are, no account is ever overdrawn, so the budget that the plan
promises holds however many steps are taken (proof: ``docs/dpsgd-proofs.md``). Accounts, and whose are used
up, are **sensitive**: they never leave the vault. The number of steps, noise and divisor are public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.dpsgd.grid import UNIT_BITS
from collegium.dpsgd.linear_sums import Block, Floats, Terms, bounded, exact_scores, exact_sum
from collegium.dpsgd.losses import Loss
from collegium.dpsgd.sampling import Sample
from collegium.errors import InputError
from collegium.models.threads import in_threads
from collegium.noise.sums import Integers

CENT_BITS = 40
"""Accounts are whole numbers of 2^-40 squared clip norms, so that what was paid adds up exactly."""
_CENTS = 2.0**CENT_BITS
_MOST = 2.0**62  # of an account, in cents: whole numbers end at 2^63


def allowances_of(terms: Terms, steps: int) -> Integers:
    """Say what each owner of a group may use over the whole training, rounded down.

    ``steps``: those of the plan, whose cost at the full bound is what the plan's noise was chosen for.
    Returns (n_groups,): squared norms, in cents.
    """
    allowed = np.floor(steps * terms.clips**2 * (_CENTS * (1 - 2.0**-50)))
    if (allowed >= _MOST).any():
        raise InputError(
            f"{steps:,} steps are too many to keep accounts of: take at most "
            f"{int(_MOST / _CENTS / float(terms.clips.max()) ** 2):,}"
        )
    return np.asarray(allowed, dtype=np.int64)


@dataclass(frozen=True)
class _Step:
    """What a block of owners gives to one step, and what they pay. **Sensitive.**"""

    total: Integers
    left: Integers


class Filtered:
    """Clipped sums in which owners pay for what they really move. **Sensitive.**

    Takes the place of :class:`~collegium.dpsgd.linear_sums.InMemory`, for full batches.

    Parameters
    ----------
    blocks : sequence of Block
        All owners; names differ.
    loss : Loss
        What is fitted.
    terms : Terms
        The plan's; every rate is 1. A clip bounds an owner's contribution to one step.
    steps : int
        The plan's steps: what an owner has in all is ``steps`` times the squared clip.
    n_threads : int, optional
        Default: as many as BLAS would use.

    Attributes
    ----------
    steps_charged : int
        How many sums were made. Public.
    sensitive_left : dict of str to ndarray of int64, shape (n_owners of the block,)
        What each owner has left, by block, in cents.

    Raises
    ------
    InputError
        If somebody takes part by lot: an account of norms is no valid filter then.

    Notes
    -----
    *Who pays what.* Owner o is charged ‖g_o‖², the squared norm of the contribution after clipping and after
    rounding to the grid, rounded up. Given the released history, this is a function of o's own records and of
    o's own past, and of nobody else's; and g_o is exactly what o's presence moves in the sum. By
    ``docs/dpsgd-proofs.md`` the whole training is √(allowance)/σ-Gaussian-DP for o if o's records are
    blanked, and twice that if they are replaced, as full-batch DP-SGD is without a filter.

    *What must be durable.* The number of steps, before the noise of a step is drawn (any run keeps that);
    and :meth:`sensitive_state` whenever the training itself is kept. Steps that were charged, and whose
    accounts a crash took, are paid in full when :meth:`restore` is called.

    References
    ----------
    .. [1] V. Feldman, T. Zrnic, "Individual privacy accounting via a Rényi filter", NeurIPS 2021;
       arXiv 2008.11193, Algorithm 3: the filter.
    .. [2] A. Koskela, M. Tobaben, A. Honkela, "Individual privacy accounting with Gaussian differential
       privacy", ICLR 2023; arXiv 2209.15596: the Gaussian form.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        loss: Loss,
        terms: Terms,
        steps: int,
        n_threads: int | None = None,
    ) -> None:
        if (terms.rates < 1).any():
            raise InputError(
                "DP-SGD with a filter has everybody in every step, but a rate below 1 was given: "
                "use sampling 'full-batch', or no filter"
            )
        self.blocks, self.loss, self.terms = blocks, loss, terms
        self.n_threads = n_threads
        self.steps_charged = 0
        allowed = allowances_of(terms, steps)
        self.sensitive_left = {block.name: allowed[block.groups] for block in blocks}
        if len(self.sensitive_left) != len(blocks):
            raise ValueError("two blocks have one name")

    def clipped_sum(self, parameters: Floats, sample: Sample) -> Integers:
        """Charge everybody, and sum what they give: exact, in any order. **Sensitive.**

        ``parameters`` (d, n_outputs): made of what was released.
        Returns (d, n_outputs): whole numbers, in units of the grid.
        """
        if sample.key is not None:
            raise InputError("DP-SGD with a filter takes no samples: use sampling 'full-batch'")

        def of_block(block: Block) -> _Step:
            left = self.sensitive_left[block.name]
            return _step(block, parameters, self.loss, self.terms, left)

        parts = list(in_threads(of_block, self.blocks, self.n_threads))
        self.sensitive_left = {
            block.name: part.left for block, part in zip(self.blocks, parts, strict=True)
        }
        self.steps_charged += 1
        total = np.zeros(parameters.shape, dtype=np.int64)
        for part in parts:
            total += part.total
        return total

    def sensitive_state(self) -> dict[str, NDArray[Any]]:
        """Return all accounts, as arrays to be stored in the vault beside what was released so far."""
        return {
            "steps_charged": np.array(self.steps_charged),
            **{f"left {name}": left for name, left in self.sensitive_left.items()},
        }

    def restore(self, state: Mapping[str, NDArray[Any]] | None, charged: int) -> None:
        """Go on with stored accounts.

        Parameters
        ----------
        state : mapping of str to ndarray, or None
            What :meth:`sensitive_state` returned last; None: nothing was stored.
        charged : int
            Steps that the journal says were charged. For those after the stored ones noise may have been
            drawn, and nobody knows any more what owners gave: everybody pays the full bound for each.

        Raises
        ------
        InputError
            If accounts are of other people, or newer than the journal: nothing is changed.
        """
        left, steps = self.sensitive_left, self.steps_charged
        if state is not None:
            steps = int(state["steps_charged"])
            stored = {name.removeprefix("left "): state[name] for name in state if "left " in name}
            sizes = {name: len(amounts) for name, amounts in stored.items()}
            if sizes != {name: len(amounts) for name, amounts in left.items()}:
                raise InputError(
                    "stored accounts of DP-SGD are of other people than its records: restore the files"
                )
            left = {name: np.array(stored[name], dtype=np.int64) for name in left}
        if steps > charged:
            raise InputError(
                f"accounts of {steps:,} steps beside a journal of {charged:,}: one of both was replaced by "
                "an older copy, restore the newer"
            )
        # Squares in double precision are within 2^-29 of what they are.
        full = np.ceil((charged - steps) * self.terms.clips**2 * (_CENTS * (1 + 2.0**-29)))
        most = np.minimum(full, _MOST).astype(np.int64)
        self.sensitive_left = {
            block.name: np.maximum(left[block.name] - most[block.groups], 0)
            for block in self.blocks
        }
        self.steps_charged = charged


def _step(block: Block, parameters: Floats, loss: Loss, terms: Terms, left: Integers) -> _Step:
    """Let owners give what they have left, at most their clip; see what that costs."""
    units = block.features.astype(np.float64)
    with np.errstate(invalid="ignore"):
        errors = loss.errors(exact_scores(units, parameters), block.targets)
    # Squares of a gradient are added in double precision: an error of its entries' number of units at most.
    entries = 1 if block.per_owner == 1 else parameters.size
    slack = (entries + 8) * 2.0**-52
    clips = np.minimum(terms.clips[block.groups], np.sqrt(left / _CENTS) * (1 - slack))
    weights = terms.weights[block.groups]
    rounded = bounded(
        errors, units, block.lengths, clips, weights, terms.clip_norm, block.per_owner
    )
    paid = np.ceil(_squares(rounded, units, block.per_owner) * (_CENTS * (1 + slack)))
    return _Step(exact_sum(units, rounded), left - paid.astype(np.int64))


def _squares(rounded: Floats, units: Floats, per_owner: int) -> Floats:
    """Squared norm of each owner's contribution as it enters the sum, in squared clip norms."""
    if per_owner == 1:
        lengths = np.einsum("ij,ij->i", units, units)  # whole numbers below 2^53: exact
        squares = np.einsum("ij,ij->i", rounded, rounded) * lengths
    else:
        each = rounded.reshape(-1, per_owner, rounded.shape[1])
        theirs = units.reshape(-1, per_owner, units.shape[1])
        gradients = np.matmul(each.transpose(0, 2, 1), theirs)  # exact, too
        squares = np.einsum("okd,okd->o", gradients, gradients)
    return np.asarray(squares * 2.0 ** (-2 * UNIT_BITS))
