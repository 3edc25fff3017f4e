"""Private steps of a network, one after the other: charged, drawn, summed, noised, taken."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (PyTorch's own name for it)
from torch import nn
from torch.optim import Optimizer

from collegium.accounting.neighbours import OWNER, ROW, Arrangement, Neighbours
from collegium.accounting.statement import PrivacyStatement
from collegium.budgets import Budgets
from collegium.checks import check_callable, check_is, check_number, check_whole
from collegium.dpsgd.account import DPSGDAccount
from collegium.dpsgd.grid import MAX_NOISE, UNIT, noisy
from collegium.dpsgd.networks.errors import Loss
from collegium.dpsgd.networks.mixing import refuse_mixing
from collegium.dpsgd.networks.owner_modules import Augment, Dataset, Owned, check_agreed
from collegium.dpsgd.networks.owner_sums import MICRO_BATCH, MOST_PARAMETERS, OwnerSums
from collegium.dpsgd.networks.redacted_errors import unquoted
from collegium.dpsgd.networks.targets import refuse_targets
from collegium.dpsgd.sampling import Sample
from collegium.errors import InputError
from collegium.noise.sources import SecureNoise, SeededNoise
from collegium.noise.sums import MOST_TOTAL, Integers, NoisySum
from collegium.personalisation.dpsgd_plan import DPSGDPlan

_MOST_CLIP = 2.0**10
_LEAST_NORM = 1e-20  # below, factors leave the range of single precision
_TOGETHER = 2**25  # gradients of single records that are held together, in numbers


def private_steps(
    module: nn.Module,
    optimiser: Optimizer,
    dataset: Dataset,
    plan: DPSGDPlan,
    *,
    budgets: Budgets,
    max_grad_norm: float,
    loss: Loss | None,
    augment: Augment | None,
    augmentations: int,
    micro_batch: int | None,
    charge: Callable[[int], None] | None,
    noise_seed: int | None,
) -> PrivateSteps:
    """See :func:`collegium.dpsgd.torch_entry.individual_dpsgd`."""
    check_is("module", module, nn.Module, "give a PyTorch network")
    check_is("optimiser", optimiser, Optimizer, "give one of torch.optim")
    check_agreed(plan, budgets)
    loss = F.cross_entropy if loss is None else loss
    check_callable("loss", loss, "it makes a loss of outputs and targets")
    if augment is not None:
        check_callable("augment", augment, "it makes a variant of a record")
    if charge is not None:
        check_callable("charge", charge, "it is told the number of each step")
    if noise_seed is not None:
        check_whole("noise_seed", noise_seed, least=0)
    check_number("max_grad_norm", max_grad_norm, least=_LEAST_NORM, below=math.inf)
    check_whole("augmentations", augmentations)
    trained = [p for p in module.parameters() if p.requires_grad]
    size = sum(p.numel() for p in trained)
    _refuse_parameters(module, trained, size)
    _refuse_plan(plan)
    steered = {id(p) for group in optimiser.param_groups for p in group["params"]}
    if not {id(p) for p in trained} <= steered:
        raise InputError(
            "the optimiser does not hold all parameters of the module that are to be trained: make it of "
            "module.parameters(), after the module was moved or rebuilt"
        )
    if micro_batch is None:
        micro_batch = max(1, min(MICRO_BATCH, _TOGETHER // size))
    check_whole("micro_batch", micro_batch)
    owned = Owned(dataset, budgets, plan, augment, augmentations)
    output = refuse_mixing(module, owned.a_record)
    refuse_targets(loss, output, owned.targets())
    arrangement = Arrangement(
        unit=OWNER if budgets.named else ROW,
        sizes_declared=budgets.declared_sizes is not None,
        blanked_only=plan.neighbours is Neighbours.ADD_OR_REMOVE,
        seen_together=True,
        public_levels=budgets.public_levels,
        direct=True,
    )
    sums = OwnerSums(module, loss, max_grad_norm, micro_batch)
    return PrivateSteps(
        trained, optimiser, owned, sums, plan, max_grad_norm, arrangement, charge, noise_seed
    )


class PrivateSteps:
    """The steps of a plan, for a network: made by :func:`collegium.individual_dpsgd`.

    Iterating takes them one after the other, and gives the number of each.
    """

    def __init__(
        self,
        trained: list[nn.Parameter],
        optimiser: Optimizer,
        owned: Owned,
        sums: OwnerSums,
        plan: DPSGDPlan,
        max_grad_norm: float,
        arrangement: Arrangement,
        charge: Callable[[int], None] | None,
        noise_seed: int | None,
    ) -> None:
        self.plan = plan
        self._trained, self._optimiser = trained, optimiser
        self._owned, self._sums = owned, sums
        self._norm = max_grad_norm
        self._arrangement = arrangement
        self._charge = charge
        self._seed = noise_seed
        self._noise: NoisySum = SecureNoise() if noise_seed is None else SeededNoise(noise_seed)
        self._account = DPSGDAccount(plan)

    @property
    def steps_taken(self) -> int:
        """How many steps were charged."""
        return self._account.steps

    def step(self) -> None:
        """Take one step: charge, draw owners, sum, add noise, let the optimiser step.

        Raises
        ------
        BudgetExceededError
            If all steps of the plan were taken.
        """
        number = self._account.steps
        self._account.charge(number + 1)
        if self._charge is not None:
            self._charge(number + 1)
        total = self._summed(self._sample(number))
        released = noisy(total, self.plan.noise, self._noise, step=number)
        self._hand_over(torch.from_numpy(released * (self._norm / self.plan.divisor)))
        self._optimiser.step()

    def __iter__(self) -> Iterator[int]:
        """Take the steps that are left."""
        while self._account.steps < self.plan.steps:
            self.step()
            yield self._account.steps

    def epsilon_spent(self) -> Mapping[str, float]:
        """ε that an owner of each group has spent in the steps so far, at the group's δ."""
        return self._account.epsilon_spent()

    @property
    def privacy(self) -> PrivacyStatement:
        """What was promised, about which neighbours, and spent so far."""
        return self._account.statement(
            self._arrangement,
            self._noise.is_private,
        )

    def state_dict(self) -> dict[str, Any]:
        """Say how many steps were charged; network and optimiser have states of their own."""
        return {"steps": self._account.steps, "plan": self._digest()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a run of the same plan was; what was charged since stays charged.

        Raises
        ------
        InputError
            If the state belongs to another plan.
        """
        if (
            not isinstance(state, Mapping)
            or set(state) != {"steps", "plan"}
            or state["plan"] != self._digest()
        ):
            raise InputError(
                "the state belongs to another plan, or is not that of private steps: make the plan with the "
                "settings and group sizes of before"
            )
        check_whole("steps", state["steps"], least=0, most=self.plan.steps)
        self._account.charge(state["steps"])

    def _summed(self, sample: Sample) -> Integers:
        return unquoted(
            lambda: self._sums.clipped_sum(self._owned.draw(sample), self._owned.read),
            "the clipped sum of a step",
            "see whether network and loss take all that records and targets may be",
        )

    def _sample(self, step: int) -> Sample:
        if self._seed is not None:
            return Sample.seeded(self._seed, step)
        return Sample.fresh()

    def _hand_over(self, gradient: torch.Tensor) -> None:
        pieces = torch.split(gradient, [p.numel() for p in self._trained])
        for parameter, piece in zip(self._trained, pieces, strict=True):
            parameter.grad = piece.to(parameter).view_as(parameter)

    def _digest(self) -> str:
        return hashlib.sha256(f"{self.plan!r} {self._norm!r}".encode()).hexdigest()


def _refuse_parameters(module: nn.Module, trained: list[nn.Parameter], size: int) -> None:
    if not trained:
        raise InputError(f"{type(module).__name__} has no parameters that are trained")
    if size > MOST_PARAMETERS:
        raise InputError(
            f"{type(module).__name__} trains {size:,} parameters, and sums are exact for at most "
            f"{MOST_PARAMETERS:,}: freeze some, with requires_grad_(False)"
        )
    if len({p.device for p in trained}) > 1:
        raise InputError(f"{type(module).__name__} lies on several devices: move it to one")
    if any(p.dtype not in (torch.float32, torch.float64) for p in trained):
        raise InputError(
            f"{type(module).__name__} has parameters that are not float32 or float64: convert it, with "
            ".float()"
        )


def _refuse_plan(plan: DPSGDPlan) -> None:
    clips = np.array([group.clip for group in plan.groups.values()])
    total = sum(group.owners * group.clip for group in plan.groups.values())
    if clips.max() >= _MOST_CLIP or total / UNIT >= MOST_TOTAL:
        raise InputError(
            f"clips of up to {clips.max():g} for {total:,.0f} in all are too large for exact sums: bring "
            "budgets closer together"
        )
    if plan.noise > MAX_NOISE:
        raise InputError(
            f"{plan.steps:,} steps need noise of {plan.noise:.3g} clip norms, and at most {MAX_NOISE:,.0f} "
            "can be drawn: take fewer steps"
        )
