"""How many steps the published noise of individual DP-SGD by clips ("Scale") fits.

F. Boenisch, C. Mühl, A. Dziedzic, R. Rinberg, N. Papernot. Have It Your Way: Individualized Privacy
Assignment for DP-SGD. NeurIPS 2023; arXiv 2303.17046, Table 7, MNIST: 60,000 records, batch 512, ε = 1, 2, 3
at δ = 1e-5. Over the 9,375 steps that they state, the noise multipliers of their *Scale* cost ε = 1.7045,
3.4149 and 5.0849 by the moments accountant (those costs are what is known here; the multipliers follow from
them). Over about 3,495 steps, the same for all three, they cost 1, 2 and 3. So either the models had fewer
steps than stated, or less privacy. The baseline (σ = 3.42529) fits its 9,375 steps: ε = 1.0036 at integer
orders.

    python -m reproduction.benchmarks.scale_steps [--steps 9375]
"""

import argparse

from collegium.accounting.calibration import noise_for
from collegium.accounting.subsampled import poisson_gaussian_epsilon

RATE, STATED_STEPS, DELTA = 512 / 60_000, 9_375, 1e-5
BASELINE_SIGMA = 3.42529
COSTS = {1.0: 1.7045, 2.0: 3.4149, 3.0: 5.0849}  # claimed ε: what it is at the stated steps


def multipliers() -> dict[float, float]:
    """Noise multiplier of each group that has the cost above, by claimed ε."""
    return {
        claimed: noise_for(cost, DELTA, RATE, STATED_STEPS, "rdp")
        for claimed, cost in COSTS.items()
    }


def steps_that_fit(claimed: float, multiplier: float) -> int:
    """Most steps whose ε is at most what was claimed, by the moments accountant."""
    low, high = 0, STATED_STEPS
    while low < high:
        middle = (low + high + 1) // 2
        spent = poisson_gaussian_epsilon(RATE, multiplier, middle, DELTA, "rdp")
        low, high = (middle, high) if spent <= claimed else (low, middle - 1)
    return low


def main() -> None:
    """Print each group's multiplier, its cost at the stated steps, and the steps that it fits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--steps", type=int, default=STATED_STEPS, help="at which a cost is printed"
    )
    stated = parser.parse_args().steps
    spent = poisson_gaussian_epsilon(RATE, BASELINE_SIGMA, stated, DELTA, "rdp")
    print(f"baseline: σ = {BASELINE_SIGMA}: ε = {spent:.4f} at {stated:,} steps")
    for claimed, multiplier in multipliers().items():
        steps = steps_that_fit(claimed, multiplier)
        needed = noise_for(claimed, DELTA, RATE, STATED_STEPS, "rdp")
        print(
            f"ε = {claimed:g} claimed: σ = {multiplier:.4f} costs {COSTS[claimed]} at {STATED_STEPS:,} "
            f"steps, and fits {steps:,}; {STATED_STEPS:,} need σ = {needed:.4f}"
        )


if __name__ == "__main__":
    main()
