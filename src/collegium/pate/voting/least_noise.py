"""The least noise with which all budgets pay for a given number of answers.

The other way round than usual: students that learn from noisy histograms of all public records do best
with one faint answer for each of them, so the number of answers is known and the noise is to be found.
"""

from __future__ import annotations

import math

import numpy as np

from collegium.accounting.gaussian import gdp_mu
from collegium.checks import check_whole
from collegium.errors import InputError
from collegium.personalisation.electorate import Electorate

_ABOVE = 1 + 1e-9  # so that rounding in the account cannot take the last answer away


def least_sigma(electorate: Electorate, n_answers: int) -> float:
    """Find the least σ of :class:`~collegium.pate.voting.aggregators.GNMax` that buys so many answers.

    Under the worst-case guarantee an owner of sensitivity Δ_p at query p pays μ_p² = 2·Δ_p²/(s_p·σ)², where
    s_p is the ballot's scale: the squared ℓ2 distance of two count vectors that differ in one vote of
    weight Δ_p, over the squared noise. By exact Gaussian composition (Dong, Roth & Su, arXiv:1905.02383,
    Corollary 3.3) n answers cost Σ_p μ_p², which may be as large as μ(ε, δ)². So

        σ² = max over cohorts of Σ_p 2·(Δ_p/s_p)² / μ(ε, δ)².

    ``electorate``: public: :meth:`Plan.electorate
        <collegium.personalisation.plan.Plan.electorate>`, with the seed of the study.
    ``n_answers``: answers wanted, at least 1.
    Returns: standard deviation in votes, for the nominal number of teachers.

    Examples
    --------
    >>> from collegium.budgets import Budget
    >>> from collegium.personalisation import Uniform
    >>> plan = Uniform().plan({"all": Budget(1.0)}, {"all": 60000}, 250)
    >>> round(least_sigma(plan.electorate(0), 9000))
    501
    """
    check_whole("n_answers", n_answers)
    if all(budget.is_unlimited for budget in electorate.groups.values()):
        raise InputError("all budgets are unlimited, so no answer needs noise: give sigma instead")
    positions = 1 if electorate.is_static else n_answers
    moved = np.zeros(len(electorate.cohort_groups))
    for position in range(positions):
        ballot = electorate.ballot(position)
        if ballot.scale > 0:
            moved += 2 * (ballot.sensitivity / ballot.scale) ** 2
    moved *= n_answers / positions
    paid = [
        math.inf if budget.is_unlimited else gdp_mu(budget.epsilon, budget.delta) ** 2
        for budget in electorate.cohort_budgets
    ]
    return math.sqrt(float((moved / np.array(paid)).max())) * _ABOVE
