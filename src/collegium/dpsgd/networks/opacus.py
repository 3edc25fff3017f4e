"""A plan in the terms of Opacus: noise multiplier, clipping norm, batches of individually drawn records.

Opacus clips every record to one norm, and draws records with one rate. *Sample* needs batches drawn with
individual rates, which :meth:`OpacusTerms.batches` gives; *scale* and full batch need individual norms,
to which :meth:`OpacusTerms.clip` clips between ``backward()`` and ``step()`` (with hooks; ghost clipping
forms no gradients that could be). Opacus knows records, not owners, so each owner must have one record.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from collegium.budgets import Budgets
from collegium.checks import check_positive
from collegium.dpsgd.networks.owner_modules import check_agreed, groups_of
from collegium.dpsgd.sampling import Sample
from collegium.errors import InputError
from collegium.personalisation.dpsgd_plan import DPSGDPlan

Floats = NDArray[np.float64]
_ADDED = 2e-6
"""Opacus adds 1e-6 to a norm before it clips to it; with so much room it leaves what is clipped."""


@dataclass(frozen=True, eq=False)
class OpacusTerms:
    """What to give to ``opacus.optimizers.DPOptimizer``, and what to do between its steps.

    Attributes
    ----------
    noise_multiplier : float
        Noise, in units of ``max_grad_norm``.
    max_grad_norm : float
        The largest norm of anybody's contribution, and 2e-6 where :meth:`OpacusTerms.clip` is needed: Opacus'
        noise is in units of it.
    expected_batch_size : float
        What the noisy sum is divided by, with ``loss_reduction="mean"``: the plan's public constant, for
        contributions in units of the gradient norm that :func:`collegium.opacus_terms` was given.
    steps : int
        How many.
    rates, norms, weights : ndarray, shape (n_records,)
        Of each record: probability of being drawn; norm of its contribution; and by what its gradient is
        multiplied before it is clipped to that.
    """

    noise_multiplier: float
    max_grad_norm: float
    expected_batch_size: float
    steps: int
    rates: Floats
    norms: Floats
    weights: Floats

    @property
    def uniform_norms(self) -> bool:
        """Whether Opacus' own clipping is enough, so that :meth:`clip` may be left out."""
        return bool((self.norms == self.max_grad_norm).all() and (self.weights == 1).all())

    def batches(self) -> Iterator[list[int]]:
        """Draw the records of each step, by independent coins of the system's randomness.

        A batch may be empty, and is a step all the same: noise is drawn and paid for.

        PyTorch's generators are seeded from the system's randomness before each batch: dropout, variants and
        Opacus' own noise draw from them, and whoever knows a seed (of ``torch.manual_seed``, say) would
        know all three. Masks are then given by place in the batch, which is as private as by name while
        they are secret: they have one distribution, whoever is there. Do not seed them in between.
        """
        for _ in range(self.steps):
            torch.manual_seed(int.from_bytes(os.urandom(8), "little"))
            yield np.flatnonzero(Sample.fresh().takes_part(self.rates, "")).tolist()

    def clip(self, optimizer: Any, batch: list[int]) -> None:
        """Clip the gradients of a batch to individual norms, after ``backward()``, before ``step()``.

        Opacus then finds nothing left to clip.

        Parameters
        ----------
        optimizer : opacus.optimizers.DPOptimizer
            With ``p.grad_sample`` for this batch, each from one ``backward()``.
        batch : list of int
            As drawn.

        Raises
        ------
        InputError
            If gradients of single records are missing, or are not those of the batch.
        """
        if not batch:
            return
        samples = [parameter.grad_sample for parameter in optimizer.params]
        if any(not isinstance(each, torch.Tensor) or len(each) != len(batch) for each in samples):
            raise InputError(
                f"gradients of {len(batch)} single records are needed, each from one backward(): use Opacus "
                'with grad_sample_mode="hooks" (ghost clipping forms none)'
            )
        squares = [each.flatten(1).double().square().sum(1) for each in samples]
        norms = torch.stack(squares).sum(0).sqrt()
        bounds, weights = (
            torch.from_numpy(each[batch]).to(norms) for each in (self.norms, self.weights)
        )
        factors = torch.minimum(weights, bounds / norms)
        sound = torch.isfinite(norms) & (norms > 0)
        for each in samples:
            each.mul_(torch.where(sound, factors, 0).to(each).view(-1, *[1] * (each.dim() - 1)))
            each[~sound] = 0


def terms_of(plan: DPSGDPlan, budgets: Budgets, max_grad_norm: float) -> OpacusTerms:
    """See :func:`collegium.opacus_terms`."""
    check_agreed(plan, budgets)
    check_positive("max_grad_norm", max_grad_norm)
    if budgets.n_owners != len(budgets):
        raise InputError(
            f"{budgets.n_owners:,} owners have {len(budgets):,} records, and Opacus clips record by record: "
            "use collegium.individual_dpsgd, or keep one record of each owner"
        )
    each = list(plan.groups.values())
    group = groups_of(budgets, plan)[budgets.record_owner]
    rates = np.array([g.rate for g in each] + [0.0])[group]
    clips = np.array([g.clip for g in each] + [0.0])[group]
    norms = clips * max_grad_norm
    weights = clips if plan.bound == "weight" else np.sign(clips)
    largest = max(g.clip for g in each) * max_grad_norm
    if (norms < largest).any() or (weights < 1).any():
        largest += _ADDED
    return OpacusTerms(
        noise_multiplier=plan.noise * max_grad_norm / largest,
        max_grad_norm=largest,
        expected_batch_size=plan.divisor,
        steps=plan.steps,
        rates=rates,
        norms=norms,
        weights=weights,
    )
