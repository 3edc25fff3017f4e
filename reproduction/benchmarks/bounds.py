"""Labels at the same budget on the published votes of 250 MNIST teachers, for each bound and account.

Each seed asks the 9,000 queries in a random order, with fresh noise, until the budget ends. Noise here
comes from an ordinary generator and noise scales are compared on the votes themselves: experiments.

    python -m reproduction.benchmarks.bounds --data-dir DATA [--seeds 20] [--quick]
"""

from __future__ import annotations

import argparse
import gzip
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import binom

from collegium import Budget, ExponentialMax, GNMax, LNMax, PermuteAndFlip, Uniform
from collegium.accounting import (
    DEFAULT_ORDERS,
    Composition,
    GaussianAccountant,
    gdp_mu,
    rdp_to_epsilon,
)
from collegium.accounting.renyi import SEED_ORDERS
from collegium.accounting.votes.noisy_max import (
    gnmax_log_q,
    gnmax_rdp,
    threshold_log_q,
    threshold_rdp,
    threshold_rdp_exact,
)
from collegium.accounting.votes.winner_probability import gnmax_log_q_exact

DELTA = 1e-5
THRESHOLD, SIGMA_THRESHOLD, SIGMA = 200.0, 150.0, 40.0
BUDGETS = {"ln 2": math.log(2), "1": 1.0, "2": 2.0, "3": 3.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="3 seeds")
    options = parser.parse_args()
    seeds = 3 if options.quick else options.seeds
    counts = np.load(options.data_dir / "pate_votes" / "mnist_250_teachers.npy").astype(float)
    with gzip.open(options.data_dir / "mnist" / "t10k-labels-idx1-ubyte.gz") as file:
        truth = np.frombuffer(file.read(), dtype=np.uint8, offset=8)[: len(counts)].astype(int)
    print(f"labels (correct ones), mean ± sd of {seeds} orders and noises, δ = {DELTA:g}")
    print("\nConfident-GNMax, T = 200, σ_T = 150, σ = 40")
    header("account")
    data_dependent(counts, truth, seeds)
    worst_case_confident(counts, truth, seeds)
    for target in (0.93, 0.90, 0.80, 0.60):
        print(
            f"\nWithout a check, worst case, at the noise (@scale) at which {target:.0%} are correct"
        )
        header("mechanism, account")
        without_check(counts, truth, seeds, target)


def header(first: str) -> None:
    print(f"  {first:<44}" + "".join(f"{f'ε = {name}':>26}" for name in BUDGETS))


def show(words: str, cells: list[list[tuple[int, int]]], notes: list[str] | None = None) -> None:
    line = f"  {words:<44}"
    for position, runs in enumerate(cells):
        labels, correct = np.array(runs, dtype=float).T
        note = f" {notes[position]}" if notes else ""
        line += f"{labels.mean():>9.1f} ± {labels.std():4.1f} ({correct.mean():.1f}){note}".rjust(
            26
        )
    print(line, flush=True)


def draws(counts: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Order of the queries, which of them pass the check, and the noisy winners."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(counts))
    noisy = counts.max(axis=1) + rng.normal(0, SIGMA_THRESHOLD, len(counts))
    winners = (counts + rng.normal(0, SIGMA, counts.shape)).argmax(axis=1)
    return order, (noisy >= THRESHOLD)[order], winners[order]


def data_dependent(counts: np.ndarray, truth: np.ndarray, seeds: int) -> None:
    for conversion, orders in (("mironov", SEED_ORDERS), ("canonne", DEFAULT_ORDERS)):
        check_log_q = threshold_log_q(counts.max(axis=1), THRESHOLD, SIGMA_THRESHOLD)
        exact = (counts.max(axis=1), THRESHOLD, [1.0], SIGMA_THRESHOLD, orders)
        checks = {
            "papers": threshold_rdp(check_log_q, [1.0], SIGMA_THRESHOLD, orders)[:, 0],
            "exact": threshold_rdp_exact(*exact)[:, 0],
            "two-sided": threshold_rdp_exact(*exact, two_sided=True)[:, 0],
        }
        answers = {
            "union": gnmax_rdp(gnmax_log_q(counts, SIGMA), [1.0], SIGMA, orders)[:, 0],
            "sharp": gnmax_rdp(gnmax_log_q_exact(counts, SIGMA), [1.0], SIGMA, orders)[:, 0],
        }
        for words, check, answer in (
            (f"{conversion}, papers' bounds", "papers", "union"),
            (f"{conversion}, exact check", "exact", "union"),
            (f"{conversion}, exact check in both directions", "two-sided", "union"),
            (f"{conversion}, sharp q", "papers", "sharp"),
            (f"{conversion}, both", "exact", "sharp"),
        ):
            runs = [
                spend(counts, truth, checks[check], answers[answer], orders, conversion, seed)
                for seed in range(seeds)
            ]
            show(words, [list(cell) for cell in zip(*runs, strict=True)])


def spend(
    counts: np.ndarray,
    truth: np.ndarray,
    check: np.ndarray,
    answer: np.ndarray,
    orders: np.ndarray,
    conversion: str,
    seed: int,
) -> list[tuple[int, int]]:
    """Labels and correct labels at each budget, stopping as a data-dependent job does."""
    order, passes, winners = draws(counts, seed)
    total = np.cumsum(check[order] + passes[:, None] * answer[order], axis=0)
    epsilon = rdp_to_epsilon(total, orders, DELTA, conversion)[0]
    right = passes & (winners == truth[order])
    cells = []
    for budget in BUDGETS.values():
        asked = int(np.searchsorted(epsilon, budget, side="right"))
        cells.append((int(passes[:asked].sum()), int(right[:asked].sum())))
    return cells


def worst_case_confident(counts: np.ndarray, truth: np.ndarray, seeds: int) -> None:
    check, answer = 1 / SIGMA_THRESHOLD**2, 2 / SIGMA**2
    cells: list[list[tuple[int, int]]] = [[] for _ in BUDGETS]
    for seed in range(seeds):
        order, passes, winners = draws(counts, seed)
        before = np.cumsum(check + passes * answer) - (check + passes * answer)
        right = passes & (winners == truth[order])
        for cell, budget in zip(cells, BUDGETS.values(), strict=True):
            asked = int((before + check + answer <= gdp_mu(budget, DELTA) ** 2).sum())
            cell.append((int(passes[:asked].sum()), int(right[:asked].sum())))
    show("worst case, exact Gaussian DP", cells)


def affordable(aggregator: LNMax | GNMax | PermuteAndFlip | ExponentialMax, budget: float) -> int:
    """Answers that the package's worst-case account allows."""
    plan = Uniform().plan({"all": Budget(budget, DELTA)}, {"all": 60000}, 250)
    cost = aggregator.answer_event(plan.electorate(0).ballot(0))
    gaussian = gdp_mu(budget, DELTA) ** 2 / cost.mu_squared[0]
    pure = budget / cost.pure_epsilon[0]
    account = GaussianAccountant([budget], DELTA)
    count = int(max(gaussian, pure))
    while count and account.overspent(Composition([cost], [count])).any():
        count -= 1
    return count


def zcdp_budget(epsilon: float, delta: float) -> float:
    """Largest rho for which rho-zCDP is seen to imply (epsilon, delta)-DP, rounded down.

    At any order alpha, Canonne, Kamath & Steinke 2020 (arXiv 2004.00010), Proposition 12, allows
    rho = (epsilon - log(1 - 1/alpha) + (log delta + log alpha)/(alpha - 1))/alpha; this takes the best
    of a fine grid of orders.
    """
    orders = 1 + np.geomspace(1e-3, 1e7, 20_001)
    tail = (math.log(delta) + np.log(orders)) / (orders - 1)
    rho = (epsilon - np.log1p(-1 / orders) + tail) / orders
    return max(float(rho.max()) * (1 - 1e-9), 0.0)


def by_zcdp(range_epsilon: float, pure: float, budget: float) -> int:
    """Answers by zero-concentrated DP of a mechanism of bounded range, or by its pure ε."""
    return max(int(zcdp_budget(budget, DELTA) / (range_epsilon**2 / 8)), int(budget / pure))


def by_optimal_composition(range_epsilon: float, budget: float) -> int:
    """Answers to fixed queries by the optimal composition of bounded range.

    Dong, Durfee & Rogers 2020: the worst are equal two-outcome pairs with log-ratios t and
    t - range, at the worst t (here of a grid: an estimate of what is left to gain, not a bound).
    """

    def delta(count: int) -> float:
        first = np.arange(count + 1)
        worst = 0.0
        for t in np.linspace(0, range_epsilon, 31)[1:-1]:
            there = -math.expm1(t - range_epsilon) / (math.exp(t) - math.exp(t - range_epsilon))
            loss = first * t + (count - first) * (t - range_epsilon)
            here = binom.pmf(first, count, there * math.exp(t))
            worst = max(worst, float((here * np.maximum(-np.expm1(budget - loss), 0)).sum()))
        return worst

    low, high = 0, 16
    while high <= 9000 and delta(high) <= DELTA:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if delta(middle) <= DELTA else (low, middle)
    return low


# Noise of scale 1.
NOISES: dict[str, Callable[..., np.ndarray]] = {
    "gaussian": lambda rng, size: rng.normal(0, 1, size),
    "laplace": lambda rng, size: rng.laplace(0, 1, size),
    "exponential": lambda rng, size: rng.exponential(1, size),
    "gumbel": lambda rng, size: rng.gumbel(0, 1, size),
}
ACCOUNTS: dict[str, tuple[str, Callable[[float, float], int]]] = {
    "GNMax, exact Gaussian DP": ("gaussian", lambda s, e: affordable(GNMax(s), e)),
    "LNMax, as priced": ("laplace", lambda s, e: affordable(LNMax(1 / s), e)),
    "permute-and-flip, as priced": (
        "exponential",
        lambda s, e: affordable(PermuteAndFlip(1 / s), e),
    ),
    "permute-and-flip, zCDP": ("exponential", lambda s, e: by_zcdp(4 / s, 2 / s, e)),
    "exponential mechanism, as priced": (
        "gumbel",
        lambda s, e: affordable(ExponentialMax(1 / s), e),
    ),
    "exponential mechanism, zCDP": ("gumbel", lambda s, e: by_zcdp(2 / s, 2 / s, e)),
    "exponential mechanism, optimal composition": (
        "gumbel",
        lambda s, e: max(by_optimal_composition(2 / s, e), int(e * s / 2)),
    ),
}


def without_check(counts: np.ndarray, truth: np.ndarray, seeds: int, target: float) -> None:
    for words, (noise, account) in ACCOUNTS.items():
        draw = NOISES[noise]
        scale = scale_for(counts, truth, draw, target)
        cells = []
        for budget in BUDGETS.values():
            answers = min(account(scale, budget), len(counts))
            cells.append(
                [one_run(counts, truth, draw, scale, answers, seed) for seed in range(seeds)]
            )
        show(words, cells, [f"@{scale:.0f}"] * len(cells))


def scale_for(
    counts: np.ndarray, truth: np.ndarray, draw: Callable[..., np.ndarray], target: float
) -> float:
    """Noise scale at which a share of the answers is correct, by bisection on one fixed draw."""
    low, high = 1.0, 1000.0
    for _ in range(30):
        middle = math.sqrt(low * high)
        enough = right_share(counts, truth, draw, middle) >= target
        low, high = (middle, high) if enough else (low, middle)
    return low


def right_share(
    counts: np.ndarray, truth: np.ndarray, draw: Callable[..., np.ndarray], scale: float
) -> float:
    rng = np.random.default_rng(0)
    winners = (counts + scale * draw(rng, counts.shape)).argmax(axis=1)
    return float((winners == truth).mean())


def one_run(
    counts: np.ndarray,
    truth: np.ndarray,
    draw: Callable[..., np.ndarray],
    scale: float,
    answers: int,
    seed: int,
) -> tuple[int, int]:
    rng = np.random.default_rng(1000 + seed)
    asked = rng.permutation(len(counts))[:answers]
    winners = (counts[asked] + scale * draw(rng, (answers, counts.shape[1]))).argmax(axis=1)
    return answers, int((winners == truth[asked]).sum())


if __name__ == "__main__":
    main()
