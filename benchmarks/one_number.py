"""What it costs that a ledger promises one number: signal of training on samples, and labels of votes.

    python benchmarks/one_number.py

Without a ledger a release is accounted for by itself: samples by loss distributions, labels in Rényi DP at
their own price. On a ledger both must fit into (μ, δ₀), the first release, too. Levels 1, 2 and 3 of 54, 37
and 9 %, δ = 1e-5. Nothing is trained.
"""

from __future__ import annotations

from collegium.budgets import Budget
from collegium.ledger.limits import Lifetime
from collegium.pate.voting.affordable import answers_affordable
from collegium.pate.voting.aggregators import GNMax
from collegium.pate.voting.pricing import PRICES, worst_case_pricing
from collegium.personalisation import Weighting
from collegium.personalisation.addable_rates import plan_that_adds_up
from collegium.personalisation.rates import plan_dpsgd

LEVELS = {"high": Budget(1.0), "average": Budget(2.0), "low": Budget(3.0)}
SIZES = {"high": 540, "average": 370, "low": 90}
SAMPLES = ((0.1, 100), (0.2, 5), (0.01, 1000), (0.01, 100))
VOTES = ((250, 10.0), (250, 40.0), (250, 100.0))


def main() -> None:
    """Print both."""
    lifetime = Lifetime()
    parts = {name: lifetime.part(budget, 1.0) for name, budget in LEVELS.items()}
    usable = {name: budget for name, (budget, _) in parts.items()}
    delta_0 = {name: leak for name, (_, leak) in parts.items()}
    print("answers by all noisy counts (as on a ledger), and by labels alone")
    for teachers, sigma in VOTES:
        aggregator = GNMax(sigma=sigma)
        answers = []
        for price, budgets in zip(PRICES, (usable, LEVELS), strict=True):
            electorate = Weighting().plan(budgets, SIZES, teachers).electorate(0)
            pricing = worst_case_pricing(price, aggregator, electorate)
            answers.append(answers_affordable(pricing, electorate, 100_000))
        print(f"  {teachers} teachers, sigma {sigma:g}: {answers[0]:,} and {answers[1]:,}")
    print(
        "signal to noise of a step: on a ledger, by itself, ratio; epsilon of each level on the ledger"
    )
    for rate, steps in SAMPLES:
        how = {"steps": steps, "kind": "sample", "rate": rate}
        alone = plan_dpsgd(LEVELS, SIZES, **how)
        kept = plan_that_adds_up(usable, SIZES, delta_0, **how)
        spent = ", ".join(f"{epsilon:.3f}" for epsilon in kept.epsilon().values())
        signals = kept.signal_to_noise, alone.signal_to_noise
        print(
            f"  rate {rate:g}, {steps:,} steps: {signals[0]:.3f}, {signals[1]:.3f}, "
            f"{signals[0] / signals[1]:.3f}; {spent}",
            flush=True,
        )


if __name__ == "__main__":
    main()
