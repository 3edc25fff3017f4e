"""How much one person's risk depends on what the others grant: rates beside clips and weights, votes too.

Kaiser et al., "Your privacy depends on others: collusion vulnerabilities in individual differential privacy"
(arXiv 2601.12922): where budgets become sampling rates, people of one and the same (ε, δ) can be exposed
to more, depending on the budgets of everybody else. For people with ε = 1 at δ = 1e-5 (100 of 10,000)
among others of some ε, this prints what the account says of them beyond the one point (ε, δ): the μ that
bounds all of the profile but 1e-7 (exact where everybody is in every step, and for votes), the δ at ε = 0
(the largest advantage of any test), and true positives at 0.1 % and 1 % false ones of the best test.
The best test of sampled steps is found from their pessimistic loss distribution. Everything follows from
public numbers: no data, and no noise.

Votes of 250 teachers are asked for 100 answers with as little noise as all budgets allow. A second table has,
for the person with ε = 1: the number of teachers that learn from them, of all teachers, and the weight of
each; how far they move the noisy counts (in L2), and the noise; the μ of all noisy counts (exact, and what is
charged), and what follows from it. Where labels alone are released, and charged, the account is Rényi's at
one order, which promises (ε, δ): there μ is a bound of what the noisy counts would have told, more than the
labels do.

    python -m benchmarks.membership_excess
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from collegium import Budget, GNMax
from collegium.accounting import gdp_delta, gdp_mu
from collegium.accounting.currency import poisson_gaussian_bound, poisson_gaussian_losses
from collegium.pate.voting.affordable import answers_affordable
from collegium.pate.voting.pricing import worst_case_pricing
from collegium.personalisation import as_personalisation
from collegium.personalisation.rates import plan_dpsgd

OTHERS = (0.1, 1.0, 3.0, 10.0)
DELTA, STEPS, RATE, DELTA_0, INTERVAL = 1e-5, 1_000, 0.01, 1e-7, 1e-4
TEACHERS, ANSWERS = 250, 100
SIZES = {"one": 100, "others": 9_900}
GRID = np.linspace(0, 12, 1_201)


def best_rate(alarms: float, losses: Any) -> float:
    """Largest true positive rate at so many false alarms: TPR ≤ e^ε·FPR + δ(ε), and for the complement."""
    deltas = np.asarray(losses.get_delta_for_epsilon(GRID))
    direct = np.exp(GRID) * alarms + deltas
    complement = 1 - np.exp(-GRID) * np.maximum(1 - alarms - deltas, 0)
    return float(min(direct.min(), complement.min()))


def row(name: str, others: float, told: Sequence[float]) -> str:
    """Write a row: μ, largest advantage, and true positives."""
    mu, advantage, low, high = told
    cells = [f"{mu:.3f}", f"{advantage:.4f}", f"{100 * low:.3f} %", f"{100 * high:.2f} %"]
    return f"| {name} | {others:g} | {' | '.join(cells)} |"


def gaussian(mu: float) -> list[float]:
    """Say the same of what is exactly μ-GDP."""
    at = [float(ndtr(ndtri(rate) + mu)) for rate in (0.001, 0.01)]
    return [mu, gdp_delta(mu, 0.0), *at]


def sampled(kind: str, others: float) -> list[float]:
    """Plan steps, and say what they tell of somebody with ε = 1."""
    groups = {"one": Budget(1.0, DELTA), "others": Budget(others, DELTA)}
    plan = plan_dpsgd(groups, SIZES, steps=STEPS, kind=kind, rate=RATE)
    rate, noise = plan.groups["one"].rate, plan.noise / plan.groups["one"].clip
    losses = poisson_gaussian_losses(rate, noise, STEPS, INTERVAL)
    mu = poisson_gaussian_bound(rate, noise, STEPS, delta_0=DELTA_0).mu
    at = [best_rate(alarms, losses) for alarms in (0.001, 0.01)]
    return [mu, float(losses.get_delta_for_epsilon(0.0)), *at]


def votes(kind: str, others: float, price: str) -> str:
    """Plan votes, ask for all answers that are paid for, and say what they tell of somebody with ε = 1."""
    groups = {"one": Budget(1.0, DELTA), "others": Budget(others, DELTA)}
    plan = as_personalisation(kind).plan(groups, SIZES, TEACHERS)
    electorate = plan.electorate(0)
    aggregator = GNMax(answers=ANSWERS).resolved(TEACHERS, electorate)
    ballot, one = electorate.ballot(0), plan.groups["one"]
    pricing = worst_case_pricing(price, aggregator, electorate)
    n = answers_affordable(pricing, electorate, 10 * ANSWERS)
    moved = np.sqrt(2) * float(ballot.sensitivity[electorate.cohort_groups.index("one")])
    sigma = aggregator.sigma * ballot.scale
    mu = float(np.sqrt(n)) * moved / sigma
    told = gaussian(mu)
    cells = [f"{one.duplicates} of {plan.n_teachers}", f"{one.weight:.3f}", f"{moved:.3f}"]
    cells += [f"{sigma:.1f}", f"{n}", f"{mu:.4f}", f"{told[1]:.4f}", f"{100 * told[3]:.2f} %"]
    return f"| {kind}, {price} | {others:g} | {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args(arguments)
    head = ("influence by", "ε of all others", "μ", "largest advantage", "at 0.1 %", "at 1 %")
    print(f"| {' | '.join(head)} |\n" + "|---" * len(head) + "|")
    for others in OTHERS:
        print(row("rates", others, sampled("sample", others)), flush=True)
    for others in OTHERS:
        print(row("clips of sampled people", others, sampled("scale", others)), flush=True)
    exact = gaussian(gdp_mu(1.0, DELTA))
    for others in OTHERS:
        groups = {"one": Budget(1.0, DELTA), "others": Budget(others, DELTA)}
        plan = plan_dpsgd(groups, SIZES, steps=STEPS)
        found = gaussian(float(np.sqrt(plan.event().mu_squared[0])))
        assert abs(found[0] - exact[0]) < 1e-6
    print(row("clips in the full batch", OTHERS[0], exact).replace("| 0.1 |", "| any |", 1))
    head = (
        *("votes by, and price", "ε of all others", "teachers", "weight", "moves", "σ"),
        *("answers", "μ", "largest advantage", "at 1 %"),
    )
    print(f"\n| {' | '.join(head)} |\n" + "|---" * len(head) + "|")
    for price in ("histogram", "labels"):
        for kind in ("upsampling", "weighting"):
            for others in OTHERS:
                print(votes(kind, others, price), flush=True)


if __name__ == "__main__":
    main()
