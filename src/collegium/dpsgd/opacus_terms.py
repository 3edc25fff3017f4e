"""A plan in the terms of Opacus, for those who train with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collegium.budgets import Budgets
from collegium.models.neural.machine import require_torch
from collegium.personalisation.dpsgd_plan import DPSGDPlan

if TYPE_CHECKING:
    from collegium.dpsgd.networks.opacus import OpacusTerms


def opacus_terms(plan: DPSGDPlan, budgets: Budgets, max_grad_norm: float) -> OpacusTerms:
    """Say in the terms of Opacus what a plan does.

    Opacus' noise is not exactly rounded to a grid; otherwise the account is that of the plan.

    Parameters
    ----------
    plan : DPSGDPlan
        From :func:`collegium.plan_dpsgd`.
    budgets : Budgets
        Who is in which group of the plan; every owner has one record.
    max_grad_norm : float
        What one unit of the plan's clips is.

    Returns
    -------
    OpacusTerms
        Noise multiplier, clipping norm, batches, individual norms.

    Raises
    ------
    ModelError
        If PyTorch is not installed.
    InputError
        If an owner has several records, or the plan is for other groups.

    Examples
    --------
    >>> import collegium as cg
    >>> budgets = cg.Policy({"high": 1.0, "low": 3.0}).assign(["high", "low"] * 50)
    >>> plan = cg.plan_dpsgd(budgets.groups, budgets.public_sizes(), steps=20)
    >>> terms = cg.opacus_terms(plan, budgets, max_grad_norm=0.5)
    >>> round(terms.noise_multiplier * terms.max_grad_norm / plan.noise, 9), terms.uniform_norms
    (0.5, False)
    """
    require_torch()
    from collegium.dpsgd.networks.opacus import terms_of

    return terms_of(plan, budgets, max_grad_norm)
