"""Rates, clips and noise beside the reference settings, and random policies: ``python benchmarks/rates.py``.

    python benchmarks/rates.py REFERENCE.jsonl [--account pld]     # largest relative difference, and seconds
    python benchmarks/rates.py --policies 200 [--account rdp]      # nobody over budget, counted independently

Policies: 1 to 5 groups, ε from 0.3 to 8, δ = 1e-5 or 1e-6, 1 to 1,000 owners, 1 to 1,000 steps, rates from
0.01 to 0.6, each kind of plan, full batch among them. The count is dp_accounting's, from exported events, on
a grid of 1e-4, up to 2e-7 of ε above exact Gaussian DP: less than 1e-6 over is not reported.
"""

import argparse
import json
import logging
import math
import time
from pathlib import Path
from typing import Any

import dp_accounting
import mpmath
import numpy as np

from collegium.accounting.export import to_dp_event
from collegium.budgets import Budget
from collegium.errors import InputError
from collegium.personalisation.dpsgd_plan import DPSGDPlan
from collegium.personalisation.rates import KINDS, plan_dpsgd

EPSILONS = {"high": 1.0, "average": 2.0, "low": 3.0}


def beside_reference(reference: dict[str, Any], account: str) -> str:
    """One line: largest relative difference of noise, rates and clips, and seconds of each kind."""
    groups = {name: Budget(epsilon) for name, epsilon in EPSILONS.items()}
    sizes = dict(zip(groups, reference["groups"], strict=True))
    found, seconds = {}, {}
    for kind in ("sample", "scale", "uniform"):
        start = time.perf_counter()
        found[kind] = plan_dpsgd(
            groups,
            sizes,
            steps=reference["T"],
            kind=kind,
            rate=reference["B"] / reference["N"],
            accountant=account,
        )
        seconds[kind] = time.perf_counter() - start
    pairs = [
        (found["sample"].noise, reference["sample_sigma"]),
        (found["scale"].noise, reference["scale_sigma"]),
        (found["uniform"].noise, reference["uniform_sigma"][0]),
        *zip((g.rate for g in found["sample"].groups.values()), reference["sample_q"], strict=True),
        *zip((g.clip for g in found["scale"].groups.values()), reference["scale_c"], strict=True),
    ]
    worst = max(abs(ours / theirs - 1) for ours, theirs in pairs)
    took = "  ".join(f"{kind} {value:5.2f} s" for kind, value in seconds.items())
    total = sum(seconds.values())
    return f"{reference['name']:3} {worst:8.1e}  {took}  all {total:5.2f} s (theirs {reference['cpu']:.1f} s)"


def random_plan(rng: np.random.Generator, account: str) -> DPSGDPlan:
    """Make a plan for a random policy."""
    n = int(rng.integers(1, 6))
    epsilons = np.exp(rng.uniform(math.log(0.3), math.log(8), n)).tolist()
    deltas = rng.choice([1e-5, 1e-6], n).tolist()
    groups = {f"{i}": Budget(*pair) for i, pair in enumerate(zip(epsilons, deltas, strict=True))}
    kind = str(rng.choice(KINDS))
    rate = (
        None if kind == "full-batch" else float(np.exp(rng.uniform(math.log(0.01), math.log(0.6))))
    )
    return plan_dpsgd(
        groups,
        dict(zip(groups, rng.integers(1, 1001, n).tolist(), strict=True)),
        steps=int(np.exp(rng.uniform(0, math.log(1000)))),
        kind=kind,
        rate=rate,
        accountant=account,
    )


def gaussian_epsilon(mu: mpmath.mpf, delta: float) -> mpmath.mpf:
    """ε at δ of μ-Gaussian DP, from its definition (Dong, Roth & Su 2022, Corollary 2.13)."""

    def excess(epsilon: mpmath.mpf) -> mpmath.mpf:
        above = mpmath.ncdf(mu / 2 - epsilon / mu)
        return above - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu) - delta

    low, high = mpmath.mpf(0), 50 + mu**2 * 50
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


def most_spent(plan: DPSGDPlan) -> float:
    """Largest share of ε that a group has spent: by dp_accounting, and in closed form where all take part."""
    shares = []
    for cohort, group in enumerate(plan.groups.values()):
        if group.rate == 1:
            mu = mpmath.sqrt(plan.steps) * mpmath.mpf(group.clip) / mpmath.mpf(plan.noise)
            shares.append(float(gaussian_epsilon(mu, group.budget.delta) / group.budget.epsilon))
            continue
        counted = dp_accounting.pld.PLDAccountant()
        counted.compose(to_dp_event(plan.event(), cohort))
        shares.append(counted.get_epsilon(group.budget.delta) / group.budget.epsilon)
    return max(shares)


def main() -> None:
    """Print a line for each setting, or what random policies came to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reference", type=Path, nargs="?")
    parser.add_argument("--account", choices=["pld", "rdp"], default="pld")
    parser.add_argument("--policies", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    logging.getLogger("absl").setLevel(logging.ERROR)
    if args.reference:
        for line in args.reference.read_text("utf-8").splitlines():
            print(beside_reference(json.loads(line), args.account), flush=True)
    rng = np.random.default_rng(args.seed)
    largest, start = 0.0, time.perf_counter()
    planning, refused = 0.0, 0
    for number in range(args.policies):
        begun = time.perf_counter()
        try:
            plan = random_plan(rng, args.account)
        except InputError:
            refused += 1
            continue
        planning += time.perf_counter() - begun
        share = most_spent(plan)
        if share > 1 + 1e-6:
            print(
                f"policy {number}, {plan.kind}: a group has spent {share:.9f} of its ε", flush=True
            )
        largest = max(largest, share)
    if args.policies:
        print(
            f"{args.policies} policies ({refused} refused), account {args.account}: largest share of ε "
            f"spent {largest:.9f}; {planning:.0f} s of planning, {time.perf_counter() - start:.0f} s in all"
        )


if __name__ == "__main__":
    main()
