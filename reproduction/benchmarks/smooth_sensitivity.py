"""What it costs to publish a data-dependent ε: the published votes of 250 MNIST teachers.

Confident-GNMax with T = 200, σ_T = 150, σ = 40, δ = 1e-5, 286 answers (Papernot et al. 2018), and an
imagined ensemble of four times as many teachers who vote in the same shares, with four times the
noise and threshold, on all 9,000 queries. Orders, β and σ of the release were picked by looking at
these public votes: with private votes they must be fixed before. Noise is seeded: experiments.

    python -m reproduction.benchmarks.smooth_sensitivity --data-dir DATA [--seeds 20]
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from collegium.accounting import DEFAULT_ORDERS, gdp_epsilon, rdp_to_epsilon
from collegium.accounting.votes.noisy_max import (
    gnmax_log_q,
    gnmax_rdp,
    threshold_log_q,
    threshold_rdp,
)
from reproduction.smooth.cost_profiles import answer_profile, check_profile
from reproduction.smooth.smooth_release import (
    RESOLUTION,
    ReleasePlan,
    noise_scale,
    release_epsilon,
)
from reproduction.smooth.smooth_sensitivity import (
    CostProfile,
    Owners,
    local_sensitivity,
    smooth_sensitivity,
)

DELTA = 1e-5
THRESHOLD, SIGMA_THRESHOLD, SIGMA, TEACHERS = 200.0, 150.0, 40.0, 250.0


@dataclass(frozen=True)
class Job:
    """Votes of the queries asked and of those answered, in units of `scale` teachers."""

    asked: np.ndarray
    answered: np.ndarray
    scale: float

    def profile(self, owners: Owners) -> CostProfile:
        scale = self.scale
        total = TEACHERS * scale
        return answer_profile(self.answered, owners, SIGMA * scale, total=total) + check_profile(
            self.asked.max(axis=1),
            owners,
            THRESHOLD * scale,
            SIGMA_THRESHOLD * scale,
            total=total,
        )

    def raw_epsilon(self, delta: float = 1.0) -> float:
        """Data-dependent, at the best of all orders: sensitive, never published."""
        scale, orders = self.scale, DEFAULT_ORDERS
        noise = SIGMA_THRESHOLD * scale
        log_q = threshold_log_q(self.asked.max(axis=1), THRESHOLD * scale, noise)
        rdp = threshold_rdp(log_q, [delta], noise, orders)[:, 0].sum(axis=0)
        log_q = gnmax_log_q(self.answered, SIGMA * scale)
        rdp = rdp + gnmax_rdp(log_q, [delta], SIGMA * scale, orders)[:, 0].sum(axis=0)
        return float(rdp_to_epsilon(rdp, orders, DELTA)[0])

    def worst_epsilon(self, delta: float = 1.0) -> float:
        scale = self.scale
        squares = len(self.asked) / (SIGMA_THRESHOLD * scale) ** 2
        squares += 2 * len(self.answered) / (SIGMA * scale) ** 2
        return gdp_epsilon(delta * math.sqrt(squares), DELTA)


def job(votes: np.ndarray, seed: int, scale: float, most: int) -> Job:
    rng = np.random.default_rng(seed)
    shuffled = votes[rng.permutation(len(votes))] * scale
    noised = shuffled.max(axis=1) + rng.normal(0, SIGMA_THRESHOLD * scale, len(votes))
    passed = np.flatnonzero(noised >= THRESHOLD * scale)[:most]
    asked = shuffled if passed.size < most else shuffled[: passed[-1] + 1]
    return Job(asked, shuffled[passed], scale)


def published(profile: CostProfile, plan: ReleasePlan, rng: np.random.Generator) -> np.ndarray:
    noise = rng.normal(0, noise_scale(profile, plan))
    return release_epsilon(profile, plan, np.rint(noise / RESOLUTION) * RESOLUTION).epsilon


def one_group(jobs: list[Job], order: float, beta: float, sigma: float) -> None:
    owners = Owners([1.0], order, n_distances=1024)
    start = time.perf_counter()
    profiles = [each.profile(owners) for each in jobs]
    seconds = (time.perf_counter() - start) / len(jobs)
    raw, worst = (
        [each.raw_epsilon() for each in jobs],
        [each.worst_epsilon() for each in jobs],
    )
    print(f"  {np.mean([len(j.answered) for j in jobs]):.0f} answers, {len(jobs)} seeds")
    print(f"  raw data-dependent, best order (not publishable)   {np.mean(raw):.3f}")
    fixed = [float(rdp_to_epsilon(p.sensitive_cost, [order], DELTA)[0]) for p in profiles]
    print(f"  raw at the fixed order {order:g}                          {np.mean(fixed):.3f}")
    print(f"  worst case, exact (publishable as it is)           {np.mean(worst):.3f}")
    local = np.mean([local_sensitivity(p)[0, 0] for p in profiles])
    smooth = np.mean([smooth_sensitivity(p, beta)[0] for p in profiles])
    cost = np.mean([p.sensitive_cost[0] for p in profiles])
    print(f"  cost {cost:.4f}, local sensitivity {local:.4f}, smooth {smooth:.4f} (β = {beta:g})")
    for failure in (0.5, 0.05, 1e-3, 1e-6):
        plan = ReleasePlan(beta, sigma, failure, DELTA)
        rng = np.random.default_rng(1)
        values = np.array([published(p, plan, rng)[0] for p in profiles for _ in range(50)])
        own = release_epsilon(profiles[0], plan, [0.0]).release_rdp[0]
        print(
            f"  published, too low with probability {failure:<6g}         "
            f"{values.mean():.3f} ± {values.std():.3f}   (own Rényi cost {own:.3f})"
        )
    print(f"  {seconds:.2f} s for one profile", flush=True)


def groups(jobs: list[Job], delta: list[float], order: float, beta: float, sigma: float) -> None:
    owners = Owners(delta, order, n_distances=1024)
    plan = ReleasePlan(beta, sigma, 0.05, DELTA)
    rng = np.random.default_rng(2)
    values = np.array([published(each.profile(owners), plan, rng) for each in jobs])
    print(f"  Δ = {delta}, steps {np.asarray(owners.steps).tolist()}, failure 0.05")
    for group, moved in enumerate(delta):
        raw = np.mean([each.raw_epsilon(moved) for each in jobs])
        worst = np.mean([each.worst_epsilon(moved) for each in jobs])
        print(
            f"    Δ = {moved:<4g} raw {raw:.3f}  published {values[:, group].mean():.3f}  "
            f"worst case {worst:.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    path = options.data_dir / "pate_votes" / "mnist_250_teachers.npy"
    votes = np.load(path).astype(np.float64)
    small = [job(votes, seed, 1.0, 286) for seed in range(options.seeds)]
    print("250 teachers")
    one_group(small, order=8.0, beta=0.02, sigma=4.5)
    print("\n1,000 imagined teachers, the same shares")
    large = [job(votes, seed, 4.0, 10**9) for seed in range(options.seeds)]
    one_group(large, order=10.0, beta=0.015, sigma=8.0)
    print("\n1,000 imagined teachers, two groups")
    groups(large, [0.5, 1.0], order=8.0, beta=0.01, sigma=12.0)


if __name__ == "__main__":
    main()
