"""Individual DP-SGD of a network on MNIST: Table 2 of Boenisch et al. (NeurIPS 2023), run again.

Their Tanh network, learning rate 0.6, clipping norm 0.2, a mean batch of 512 and 9,375 steps; ε = 1, 2,
3 for 34/43/23 % or 54/37/9 % of 60,000 people, δ = 1e-5, records there or blank (arXiv 2303.17046).
*Published*: noise and rates by the moments accountant, clip norms one by one; for *scale*, the noise that
they state, which fits 3,495 steps and costs more in 9,375. *Sound*: the same with loss distributions, and
noise for the steps that are taken. Noise is seeded, so nothing here is private; the test images are
looked at once, after the last step.

    python -m reproduction.benchmarks.individual_dpsgd --arithmetic
    python -m reproduction.benchmarks.individual_dpsgd --data-dir DATA [--seeds 3] [--reading sound] [--quick]
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

import collegium as cg
from collegium import Budgets, plan_dpsgd
from collegium.personalisation.dpsgd_plan import DPSGDPlan

EPSILONS = {"high": 1.0, "average": 2.0, "low": 3.0}
SHARES = {"34/43/23": (34, 43, 23), "54/37/9": (54, 37, 9)}
STEPS, STATED_FOR, BATCH, PEOPLE = 9375, 3495, 512, 60_000
RATE, NORM, LEARNING_RATE = BATCH / PEOPLE, 0.2, 0.6
MEAN, SPREAD = 0.1307, 0.3081  # of all pixels, as usual for MNIST
PUBLISHED = {
    ("uniform", "34/43/23"): 96.75, ("sample", "34/43/23"): 97.81, ("scale", "34/43/23"): 97.78,
    ("uniform", "54/37/9"): 96.75, ("sample", "54/37/9"): 97.60, ("scale", "54/37/9"): 97.54,
}  # fmt: skip


def plan_of(kind: str, budgets: Budgets, reading: str, steps: int) -> DPSGDPlan:
    """Plan as published, or sound; with fewer steps the budgets are the same, and the noise smaller."""
    published = reading == "published"
    stated = round(steps * STATED_FOR / STEPS) if published and kind == "scale" else steps
    plan = plan_dpsgd(
        budgets.groups,
        budgets.public_sizes(),
        steps=stated,
        kind=kind,
        rate=RATE,
        accountant="rdp" if published else "pld",
        bound="clip",
    )
    return replace(plan, steps=steps)


def people(shares: tuple[int, ...], n: int, seed: int) -> Budgets:
    """Deal out budgets at random, in exact shares."""
    levels = np.repeat(list(EPSILONS), np.array(shares) * n // 100)
    levels = np.append(levels, ["low"] * (n - len(levels)))
    return cg.Policy(EPSILONS).assign(np.random.default_rng(seed).permutation(levels))


def tanh_network() -> nn.Sequential:
    """Make their network: 26,010 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=2), nn.Tanh(), nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2), nn.Tanh(), nn.MaxPool2d(2, 1),
        nn.Flatten(), nn.Linear(32 * 4 * 4, 32), nn.Tanh(), nn.Linear(32, 10),
    )  # fmt: skip


def images(data_dir: Path | None, quick: bool) -> tuple[Tensor, Tensor]:
    """Read MNIST; quickly: blurred noise of ten kinds."""
    if quick:
        rng = np.random.default_rng(0)
        y = np.arange(2400) % 10
        X = rng.normal(size=(10, 28, 28))[y] + rng.normal(size=(2400, 28, 28))
    else:
        mnist = cg.load_dataset("mnist", data_dir)
        y = np.asarray(mnist.y).astype(int)
        X = (np.asarray(mnist.X, dtype=np.float64).reshape(-1, 28, 28) / 255 - MEAN) / SPREAD
    return torch.from_numpy(X).float().unsqueeze(1), torch.from_numpy(y)


def accuracy(data: tuple[Tensor, Tensor], plan: DPSGDPlan, budgets: Budgets, seed: int) -> float:
    """Train on the first people's images, and count right answers on the rest, in percent."""
    X, y = data
    n = len(budgets)
    torch.manual_seed(seed)
    network = tanh_network()
    optimiser = torch.optim.SGD(network.parameters(), lr=LEARNING_RATE)
    steps = cg.individual_dpsgd(
        network, optimiser, (X[:n], y[:n]), plan, budgets=budgets, max_grad_norm=NORM, noise_seed=seed
    )  # fmt: skip
    for _ in steps:
        pass
    with torch.no_grad():
        found = torch.cat([network(part).argmax(1) for part in X[n:].split(1000)])
    return 100 * float((found == y[n:]).double().mean())


def arithmetic() -> None:
    """Print noise and rates of every cell, and what the stated noise of *scale* costs."""
    for shares, parts in SHARES.items():
        budgets = people(parts, PEOPLE, 0)
        for reading in ("published", "sound"):
            for kind in ("uniform", "sample", "scale"):
                plan = plan_of(kind, budgets, reading, STEPS)
                each = [
                    f"q {group.rate:.6f}, noise {plan.noise / group.clip:.4f}"
                    for group in plan.groups.values()
                ]
                spent = "/".join(f"{epsilon:.4f}" for epsilon in plan.epsilon().values())
                print(f"{shares:9} {reading:9} {kind:7} ε {spent}: {'; '.join(each)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--arithmetic", action="store_true", help="train nothing, a few seconds")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--reading", choices=["published", "sound"], default="sound")
    parser.add_argument("--kinds", nargs="+", default=["uniform", "sample", "scale"])
    parser.add_argument("--shares", nargs="+", choices=list(SHARES), default=list(SHARES))
    parser.add_argument(
        "--quick", action="store_true", help="stand-ins and 30 steps: tries the machinery"
    )
    arguments = parser.parse_args()
    if arguments.arithmetic:
        return arithmetic()
    steps = 30 if arguments.quick else arguments.steps
    data = images(arguments.data_dir, arguments.quick)
    n = 2000 if arguments.quick else PEOPLE
    for shares in arguments.shares:
        for kind in arguments.kinds:
            right, start = [], time.perf_counter()
            for seed in range(1 if arguments.quick else arguments.seeds):
                budgets = people(SHARES[shares], n, seed)
                plan = plan_of(kind, budgets, arguments.reading, steps)
                right.append(accuracy(data, plan, budgets, seed))
            spread = statistics.stdev(right) if len(right) > 1 else float("nan")
            spent = "/".join(f"{epsilon:.3g}" for epsilon in plan.epsilon().values())
            print(
                f"{shares:9} {kind:8} {arguments.reading}: {statistics.mean(right):.2f} ± {spread:.2f} % "
                f"(published {PUBLISHED[kind, shares]:.2f}), ε {spent}, {steps:,} steps, "
                f"{(time.perf_counter() - start) / len(right):.0f} s a run",
                flush=True,
            )


if __name__ == "__main__":
    main()
