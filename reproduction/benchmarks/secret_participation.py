"""Vanishing with secret random participation, against public participation and weighting.

Every answer and every check draws anew, in secret, who takes part: teachers of group g with probability
p_g, independently. ``reproduction/docs/secret-participation.md`` derives the account; here it is computed
with privacy-loss distributions (dp-accounting's, all rounded up). Published MNIST votes: 250 teachers,
54/37/9 %, ε = 1, 2, 3, δ = 1e-5, T = 200, σ_T = 150, σ = 40, scaled to the expected vote weight.

    python -m reproduction.benchmarks.secret_participation --data-dir DATA [--seeds 20]
"""

from __future__ import annotations

import argparse
import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from dp_accounting.pld import pld_pmf
from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType, GaussianPrivacyLoss

from collegium.accounting import gdp_epsilon, gdp_mu

DELTA, TEACHERS, THRESHOLD, SIGMA_THRESHOLD, SIGMA = 1e-5, 250, 200.0, 150.0, 40.0
EPSILON = {"high": 1.0, "average": 2.0, "low": 3.0}
MEMBERS = {"high": 135, "average": 92, "low": 23}
CHECKS_PER_ANSWER = 640 / 283
INTERVAL = 1e-4


def _deltas(noise: float, p: float, kind: AdjacencyType, epsilons: np.ndarray) -> np.ndarray:
    loss = GaussianPrivacyLoss(noise, sampling_prob=p, adjacency_type=kind)
    return np.asarray(loss.get_delta_for_epsilon(epsilons))


def _dots(profile: Any, noise: float) -> Any:
    """Round a privacy profile up to a privacy-loss distribution on the grid."""
    reach = math.ceil((12 / noise + 0.5 / noise**2) / INTERVAL)
    rounded = np.arange(-reach, reach + 1)
    return pld_pmf.create_pmf_pessimistic_connect_dots(
        INTERVAL, rounded, profile(rounded * INTERVAL)
    )


def answer_loss(noise: float, p: float) -> Any:
    """One answer: (A, B) ⊗ (B, A) with A = p·N(1, noise²) + (1 − p)·N(0, noise²), B = N(0, noise²)."""
    parts = [
        _dots(lambda epsilons, kind=kind: _deltas(noise, p, kind, epsilons), noise)
        for kind in (AdjacencyType.REMOVE, AdjacencyType.ADD)
    ]
    return parts[0].compose(parts[1], 1e-15)


def check_loss(noise: float, p: float) -> Any:
    """One check: whichever of (A, B) and (B, A) is worse, at each ε."""

    def profile(epsilons: np.ndarray) -> np.ndarray:
        return np.maximum(
            _deltas(noise, p, AdjacencyType.REMOVE, epsilons),
            _deltas(noise, p, AdjacencyType.ADD, epsilons),
        )

    return _dots(profile, noise)


@lru_cache(maxsize=256)
def _secret(p: float, scale: float, answers: int, checks: int) -> Any:
    loss = answer_loss(scale * SIGMA, p).self_compose(answers, 1e-12)
    if checks:
        loss = loss.compose(
            check_loss(scale * SIGMA_THRESHOLD, p).self_compose(checks, 1e-12), 1e-12
        )
    return loss


def secret_epsilon(p: float, scale: float, answers: int, checks: int) -> float:
    """ε of a job towards an owner whose teacher takes part with secret probability p."""
    return float(_secret(p, scale, answers, checks).get_epsilon_for_delta(DELTA))


def squared(scale: float, answers: float, checks: float) -> float:
    """μ² of a job towards an owner who always moves one vote."""
    return 2 * answers / (scale * SIGMA) ** 2 + checks / (scale * SIGMA_THRESHOLD) ** 2


def largest_p(epsilon: float, scale: float, answers: int, checks: int) -> float:
    low, high = 0.0, 1.0
    while high - low > 2e-4:
        middle = (low + high) / 2
        fits = secret_epsilon(middle, scale, answers, checks) <= epsilon
        low, high = (middle, high) if fits else (low, middle)
    return low


def expected_scale(shares: dict[str, float]) -> float:
    return sum(MEMBERS[name] * share for name, share in shares.items()) / TEACHERS


def plans() -> dict[str, tuple[dict[str, float], int]]:
    """Each method's influence per group, and its number of answers: all budgets run out together."""
    mu = {name: gdp_mu(epsilon, DELTA) for name, epsilon in EPSILON.items()}
    most = max(mu.values())
    per_answer = squared(1.0, 1.0, CHECKS_PER_ANSWER)
    uniform = math.floor(min(mu.values()) ** 2 / per_answer)
    weights = {name: value / most for name, value in mu.items()}
    scale = expected_scale(weights)
    weighted = math.floor((most * scale) ** 2 / per_answer)
    public = {name: weight**2 for name, weight in weights.items()}
    vanished = math.floor((most * expected_scale(public)) ** 2 / per_answer)
    secret = dict(weights)
    for _ in range(6):
        scale = expected_scale(secret)
        answers = math.floor((most * scale) ** 2 / per_answer)
        checks = math.ceil(answers * CHECKS_PER_ANSWER)
        found = {
            name: 1.0 if mu[name] == most else largest_p(EPSILON[name], scale, answers, checks)
            for name in secret
        }
        settled = max(abs(found[name] - secret[name]) for name in secret) < 5e-4
        secret = found
        if settled:
            break
    answers = math.floor((most * expected_scale(secret)) ** 2 / per_answer)
    return {
        "uniform at ε = 1": (dict.fromkeys(mu, 1.0), uniform),
        "weighting": ({name: w / expected_scale(weights) for name, w in weights.items()}, weighted),
        "vanishing, public": (public, vanished),
        "vanishing, secret": (secret, answers),
    }


def quality(
    counts: np.ndarray, shares: dict[str, float], how: str, seeds: int
) -> tuple[float, float]:
    """Share of checks that pass, and of answers that name the plurality of all 250 votes."""
    groups = np.repeat(np.arange(3), list(MEMBERS.values()))
    share = np.array([shares[name] for name in MEMBERS])[groups]
    scale = share.sum() / TEACHERS
    votes = np.repeat(np.tile(np.arange(10), len(counts)), counts.ravel()).reshape(len(counts), -1)
    passed = right = 0
    for seed in range(seeds):
        generator = np.random.default_rng(seed)
        shuffled = generator.permuted(
            votes, axis=1
        )  # which teacher voted for what is not published
        tallies = []
        for _ in range(2):
            here = generator.random(votes.shape) < share if how == "vanishing" else share
            tallies.append(
                np.stack([((shuffled == label) * here).sum(axis=1) for label in range(10)], axis=1)
            )
        check, answer = tallies
        noisy = check.max(axis=1) + generator.normal(0, scale * SIGMA_THRESHOLD, len(votes))
        passes = noisy >= scale * THRESHOLD
        winner = (answer + generator.normal(0, scale * SIGMA, answer.shape)).argmax(axis=1)
        passed += passes.mean()
        right += (winner == counts.argmax(axis=1))[passes].mean()
    return passed / seeds, right / seeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    counts = np.load(options.data_dir / "pate_votes" / "mnist_250_teachers.npy").astype(int)
    print("ε of 283 answers and 640 checks at full noise, towards an owner with share p")
    print(f"  {'p':>5}{'public':>10}{'secret':>10}{'weight p':>10}")
    for p in (0.1, 0.2, 0.373, 0.5, 0.698, 0.9, 1.0):
        public, weight = (gdp_epsilon(math.sqrt(factor * squared(1.0, 283, 640)), DELTA)
                          for factor in (p, p * p))  # fmt: skip
        print(f"  {p:>5}{public:>10.4f}{secret_epsilon(p, 1.0, 283, 640):>10.4f}{weight:>10.4f}")
    print("\nanswers at ε = 1, 2, 3 (2.26 checks for each)")
    for name, (shares, answers) in plans().items():
        passed, right = quality(counts, shares, name.split(",")[0], options.seeds)
        influence = " ".join(f"{share:.4f}" for share in shares.values())
        print(f"  {name:<18} {answers:>5} answers   shares or weights {influence}   scale "
              f"{expected_scale(shares):.3f}   {passed:.1%} of checks pass, {right:.2%} of answers are "
              "the plurality", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
