"""A door for users of PyTorch: private steps of a network, with a budget for every person."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from collegium.budgets import Budgets
from collegium.models.neural.machine import require_torch
from collegium.personalisation.dpsgd_plan import DPSGDPlan

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from collegium.dpsgd.networks.errors import Loss
    from collegium.dpsgd.networks.owner_modules import Augment, Dataset
    from collegium.dpsgd.networks.private_steps import PrivateSteps


def individual_dpsgd(
    module: nn.Module,
    optimiser: Optimizer,
    dataset: Dataset,
    plan: DPSGDPlan,
    *,
    budgets: Budgets,
    max_grad_norm: float,
    loss: Loss | None = None,
    augment: Augment | None = None,
    augmentations: int = 1,
    micro_batch: int | None = None,
    charge: Callable[[int], None] | None = None,
    noise_seed: int | None = None,
) -> PrivateSteps:
    """Train a PyTorch network so that nobody loses more than was granted.

    Each step draws owners (not records) by independent coins, sums their clipped gradients on a grid, adds
    exactly rounded noise, divides by the plan's public constant, and lets the optimiser step. What the
    guarantee is about: every owner of a group g is (ε_g, δ_g)-differentially private towards
    ``plan.neighbours``, for all parameters after every step together.

    Parameters
    ----------
    module : nn.Module
        To be trained, on the device where it is. Takes records as the first axis; records must not meet
        in it. Sequences of common layers are fastest.
    optimiser : torch.optim.Optimizer
        Of the module's parameters; any, since it sees noisy gradients only.
    dataset : pair of tensors, TensorDataset, or anything with positions and a length
        **Private.** Pairs of record and target. All are read once before the first step, to see whether
        the loss takes every target.
    plan : DPSGDPlan
        From :func:`collegium.plan_dpsgd`.
    budgets : Budgets
        Whose record is whose, and who is in which group of the plan. Who granted nothing takes no part.
    max_grad_norm : float
        What one unit of the plan's clips is: a norm of the gradient of all of an owner's records.
    loss : callable, optional
        Default: cross entropy. From outputs and targets to a loss; is asked about one record at a time.
    augment : callable, optional
        Makes a random variant of one record, from the global generators of torch, numpy or random, which are
        seeded for each record. The gradients of ``augmentations`` variants are averaged before anything is
        clipped.
    augmentations : int, default=1
        How many.
    micro_batch : int, optional
        How many records are computed together; bounds memory. Default: 64, fewer for large networks.
    charge : callable, optional
        Called with the number of each step before anything of it is drawn, to make the charge durable: a step
        that was charged and got lost is paid for.
    noise_seed : int, optional
        For experiments: repeats samples and noise, and is not private.

    Returns
    -------
    PrivateSteps

    Raises
    ------
    ModelError
        If PyTorch is not installed.
    InputError
        If records meet in the network, it or ``augment`` draws from a generator of its own, the loss does not
        take a target, the plan is for other groups or would cost somebody more than was granted, or a setting
        is not allowed.

    Notes
    -----
    Dropout has a mask for each record in each step, which depends on nobody else; how, and what is random
    otherwise: :mod:`collegium.dpsgd.networks.own_randomness`. What is exact, and what is assumed of kernels
    in single precision: :mod:`collegium.dpsgd.networks.owner_sums`. The number of owners in a step,
    losses and gradients are never shown.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> import collegium as cg
    >>> budgets = cg.Policy({"high": 1.0, "low": 3.0}).assign(["high", "low"] * 50)
    >>> plan = cg.plan_dpsgd(budgets.groups, budgets.public_sizes(), steps=20)
    >>> network = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    >>> data = torch.randn(100, 4), torch.zeros(100, dtype=torch.long)
    >>> sgd = torch.optim.SGD(network.parameters(), lr=0.5)
    >>> private = cg.individual_dpsgd(network, sgd, data, plan, budgets=budgets, max_grad_norm=1.0)
    >>> for step in private:
    ...     if step == 10:
    ...         break
    >>> {name: round(epsilon, 2) for name, epsilon in private.epsilon_spent().items()}
    {'high': 0.68, 'low': 2.03}
    """
    require_torch()
    from collegium.dpsgd.networks.private_steps import private_steps

    return private_steps(
        module,
        optimiser,
        dataset,
        plan,
        budgets=budgets,
        max_grad_norm=max_grad_norm,
        loss=loss,
        augment=augment,
        augmentations=augmentations,
        micro_batch=micro_batch,
        charge=charge,
        noise_seed=noise_seed,
    )
