"""The published votes of 250 MNIST teachers: what answering costs, by each account.

Confident-GNMax with T = 200, σ_T = 150, σ = 40 at δ = 1e-5 (Papernot et al. 2018), and LNMax with
γ = 0.1 on the 100 queries of Papernot et al. 2017. Noise is seeded: these are experiments.

    python benchmarks/published_votes.py --data-dir DATA [--seeds 100]
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np

from collegium.accounting.gaussian import gdp_epsilon
from collegium.accounting.renyi import DEFAULT_ORDERS, SEED_ORDERS, rdp_to_epsilon
from collegium.accounting.votes.laplace_max import lnmax_log_q, lnmax_rdp
from collegium.budgets import Budget
from collegium.noise.sources import SeededNoise
from collegium.pate.voting.aggregators import ConfidentGNMax
from collegium.pate.voting.labelling import LabellingJob
from collegium.pate.voting.pricing import DataDependentPricing, WorstCasePricing
from collegium.pate.voting.vote_table import VoteTable
from collegium.personalisation import Uniform

DELTA = 1e-5
AGGREGATOR = ConfidentGNMax(threshold=200, sigma_threshold=150, sigma=40)
BUDGETS = {"ln 2": math.log(2), "1": 1.0, "2": 2.0, "3": 3.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=100)
    options = parser.parse_args()
    folder = options.data_dir / "pate_votes"
    counts = np.load(folder / "mnist_250_teachers.npy")
    queries = np.load(folder / "mnist_250_teachers_100_indices_used_by_student.npy")
    rdp = lnmax_rdp(lnmax_log_q(counts[queries], 0.1), [1.0], 0.1, np.arange(2.0, 10.0))
    epsilon = rdp_to_epsilon(rdp.sum(axis=0), np.arange(2.0, 10.0), DELTA, "mironov")[0][0]
    print(f"LNMax, 100 queries, γ = 0.1, moments 1…8: ε = {epsilon:.4f} (published 2.04)")
    votes = VoteTable.from_counts(counts)
    at_286(votes, options.seeds)
    at_budgets(votes, options.seeds)


def job(votes: VoteTable, budget: Budget, kind: str, seed: int, max_labels: int | None):
    plan = Uniform().plan({"all": budget}, {"all": 60000}, 250)
    electorate = plan.electorate(seed)
    if kind == "worst-case":
        pricing = WorstCasePricing(AGGREGATOR, electorate)
    else:
        conversion, bounds = kind.split()
        orders = SEED_ORDERS if conversion == "mironov" else DEFAULT_ORDERS
        pricing = DataDependentPricing(AGGREGATOR, electorate, orders, conversion, bounds=bounds)
    order = np.random.default_rng(seed).permutation(votes.n_queries)
    labels = LabellingJob(
        votes, electorate, AGGREGATOR, pricing, SeededNoise(seed), order, max_labels=max_labels
    ).run()
    return labels, pricing.accountant


def at_286(votes: VoteTable, seeds: int) -> None:
    unlimited = Budget(math.inf, DELTA)
    print(f"\nε at 286 answers, {seeds} random orders and noises (published: 1.97)")
    for kind, words in (
        ("mironov papers", "data-dependent, mironov, orders 2…50"),
        ("mironov sharp", "  the same, sharper bounds"),
        ("canonne papers", "data-dependent, canonne, wide orders"),
        ("canonne sharp", "  the same, sharper bounds"),
        ("worst-case", "worst case, exact"),
    ):
        spent, asked = [], []
        for seed in range(seeds):
            labels, account = job(votes, unlimited, kind, seed, 286)
            spent.append(account.epsilon_spent()[0])
            asked.append(labels.n_asked)
        print(
            f"  {words:<38} {np.mean(spent):.3f} ± {np.std(spent):.3f}  "
            f"[{min(spent):.3f}, {max(spent):.3f}]  {np.mean(asked):.0f} checks"
        )
    mu = math.sqrt(640 / 150**2 + 2 * 283 / 40**2)
    print(f"  worst case at 640 checks and 283 answers: {gdp_epsilon(mu, DELTA):.4f}")


def at_budgets(votes: VoteTable, seeds: int) -> None:
    print(f"\nlabels at a budget, mean ± sd of {seeds}")
    kinds = ("mironov papers", "mironov sharp", "canonne papers", "canonne sharp", "worst-case")
    print(f"  {'ε':>5}" + "".join(f"{kind:>18}" for kind in kinds))
    for name, epsilon in BUDGETS.items():
        line = f"  {name:>5}"
        for kind in kinds:
            released = [
                len(job(votes, Budget(epsilon, DELTA), kind, seed, None)[0].labels)
                for seed in range(seeds)
            ]
            line += f"{np.mean(released):>11.1f} ± {np.std(released):4.1f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
