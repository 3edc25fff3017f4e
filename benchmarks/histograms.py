"""What the noisy histogram is worth: targets and students from the published votes of 250 MNIST teachers.

Worst case, uniform budgets, δ = 1e-5. Teachers' votes are those of Papernot et al. 2018 on the first 9,000
MNIST test images, which are the public records; truth is used to measure only. Noise is seeded: these
are experiments.

    python benchmarks/histograms.py --data-dir DATA [--epsilon 1] [--seeds 5] [--quick]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem

from collegium.budgets import Budget
from collegium.data.datasets import read_any
from collegium.noise.sources import SeededNoise
from collegium.pate.voting.aggregators import Aggregator, ConfidentGNMax, GNMax
from collegium.pate.voting.histograms import NoisyHistograms, released_histograms
from collegium.pate.voting.labelling import LabellingJob
from collegium.pate.voting.pricing import WorstCasePricing
from collegium.pate.voting.targets import class_posterior
from collegium.pate.voting.vote_table import VoteTable
from collegium.personalisation import Uniform

K, DELTA, CLASSES = 250, 1e-5, 10
N_PUBLIC, N_TEST = 9_000, 10_000
METHODS = (
    "argmax",
    "noise",
    "mixture",
    "estimated",
)  # estimated: mixture, with shares of the classes
REGULARISATION = np.geomspace(1e-3, 1e3, 13)


def mechanisms(quick: bool) -> list[tuple[str, Aggregator]]:
    """Make the mechanisms to compare: plain ones by σ, and behind the published check."""
    plain = (40, 100, 300) if quick else (40, 70, 100, 150, 200, 300, 500)
    checked = (40,) if quick else (40, 70, 100)
    made: list[tuple[str, Aggregator]] = [(f"GNMax, σ = {s}", GNMax(sigma=s)) for s in plain]
    for s in checked:
        confident = ConfidentGNMax(threshold=200, sigma_threshold=150, sigma=s)
        made.append((f"Confident, σ = {s}", confident))
    return made


def release(votes: VoteTable, aggregator: Aggregator, epsilon: float, seed: int) -> NoisyHistograms:
    """Run a labelling job that releases histograms."""
    plan = Uniform().plan({"all": Budget(epsilon, DELTA)}, {"all": 60_000}, K)
    electorate = plan.electorate(seed)
    pricing = WorstCasePricing(aggregator, electorate)
    order = np.random.default_rng([seed, 1]).permutation(votes.n_queries)
    job = LabellingJob(
        votes, electorate, aggregator, pricing, SeededNoise(seed), order, release="histogram"
    )
    return released_histograms(job.run(), electorate, aggregator, votes.n_classes)


def judged(targets: np.ndarray, truth: np.ndarray) -> tuple[float, float, float]:
    """Accuracy, log loss (a probability of 0 counts as 1e-3), and expected calibration error."""
    sure, right = targets.max(axis=1), targets.argmax(axis=1) == truth
    loss = -np.log(np.maximum(targets[np.arange(len(truth)), truth], 1e-3))
    cell = np.minimum((10 * sure).astype(int), 9)
    gaps = [
        (cell == c).mean() * abs(sure[cell == c].mean() - right[cell == c].mean())
        for c in np.unique(cell)
    ]
    return float(right.mean()), float(loss.mean()), float(sum(gaps))


class Probe:
    """A student: ridge regression of the targets on public features, regularised by leaving one out."""

    def __init__(self, public: np.ndarray, test: np.ndarray, components: int) -> None:
        reduced = PCA(50, random_state=0).fit(public)
        a, b = reduced.transform(public), reduced.transform(test)
        gamma = 0.5 / np.median(((a[:500, None] - a[None, 500:1000]) ** 2).sum(axis=2))
        lift = Nystroem(gamma=gamma, n_components=components, random_state=0).fit(a)
        self.public, self.test = lift.transform(a), lift.transform(b)

    def learn(self, queries: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Prepare for these queries; the result learns from targets, and names the test records' classes."""
        known = self.public[queries]
        values, axes = np.linalg.eigh(known.T @ known)
        turned = known @ axes

        def predict(targets: np.ndarray) -> np.ndarray:
            mean = targets.mean(axis=0)
            along = turned.T @ (targets - mean)
            best = (np.inf, along)
            for strength in REGULARISATION:
                weights = along / (values + strength)[:, None]
                leverage = (turned**2 / (values + strength)).sum(axis=1)
                error = ((targets - mean - turned @ weights) / (1 - leverage)[:, None]) ** 2
                if error.sum() < best[0]:
                    best = (error.sum(), weights)
            return (self.test @ (axes @ best[1]) + mean).argmax(axis=1)

        return predict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    seeds = 2 if options.quick else options.seeds
    counts = np.load(options.data_dir / "pate_votes" / "mnist_250_teachers.npy")
    mnist = options.data_dir / "mnist"
    truth = np.asarray(read_any(mnist / "t10k-labels-idx1-ubyte.gz"))[:N_PUBLIC].astype(int)
    public = _pixels(mnist / "t10k-images-idx3-ubyte.gz", N_PUBLIC)
    test = _pixels(mnist / "train-images-idx3-ubyte.gz", N_TEST)
    test_truth = np.asarray(read_any(mnist / "train-labels-idx1-ubyte.gz"))[:N_TEST].astype(int)
    probe = Probe(public, test, 300 if options.quick else 1000)
    votes = VoteTable.from_counts(counts)
    print(
        f"ε = {options.epsilon:g}, δ = {DELTA:g}, worst case, {seeds} seeds: means (student: ± sd)"
    )
    print(f"plurality of the teachers right: {np.mean(counts.argmax(axis=1) == truth):.4f}")
    everything = probe.learn(np.arange(N_PUBLIC))(np.eye(CLASSES)[truth])
    print(f"probe with {N_PUBLIC} true labels: {np.mean(everything == test_truth):.4f}")
    what_the_check_adds(votes, truth, 3)
    print(
        f"{'mechanism':<20}{'answers':>8}  {'targets':<9}{'right':>7}{'loss':>7}{'cal.':>7}   student"
    )
    for name, aggregator in mechanisms(options.quick):
        began, rows = time.perf_counter(), {m: [] for m in (*METHODS, "counts")}
        answers = []
        for seed in range(seeds):
            shown = release(votes, aggregator, options.epsilon, seed)
            shown = shown.rows(shown.answered)
            answers.append(len(shown))
            if not len(shown):
                continue
            right, student = truth[shown.queries], probe.learn(shown.queries)
            for method in METHODS:
                kind, prior = ("mixture", method) if method == "estimated" else (method, None)
                targets = class_posterior(
                    shown.counts, shown.noise_scales, shown.totals, kind, prior=prior
                )
                guessed = student(targets)
                rows[method].append((*judged(targets, right), np.mean(guessed == test_truth)))
            guessed = student(shown.counts / K)
            rows["counts"].append((np.nan, np.nan, np.nan, np.mean(guessed == test_truth)))
        for position, (method, results) in enumerate(rows.items()):
            first = f"{name:<20}{np.mean(answers):>8.0f}" if position == 0 else " " * 28
            mean, spread = np.mean(results, axis=0), np.std(results, axis=0)
            shown_numbers = "".join("      —" if np.isnan(v) else f"{v:>7.3f}" for v in mean[:3])
            print(f"{first}  {method:<9}{shown_numbers}   {mean[3]:.4f} ± {spread[3]:.4f}")
        print(f"{'':<28}  ({time.perf_counter() - began:.0f} s)", flush=True)


def what_the_check_adds(votes: VoteTable, truth: np.ndarray, seeds: int) -> None:
    """Log loss of the answered queries' targets without and with the noisy checks of all queries."""
    mechanism = ConfidentGNMax(threshold=200, sigma_threshold=150, sigma=40)
    for seed in range(seeds):
        shown = release(votes, mechanism, 1e4, seed).rows(np.arange(2000))
        own = shown.rows(shown.answered)
        plain = class_posterior(own.counts, own.noise_scales, own.totals)
        levels = np.arange(20) / 20
        rest = K * levels / CLASSES
        means = K * (1 - levels)[:, None, None] * np.eye(CLASSES) + rest[:, None, None]
        logs = np.zeros((len(shown), len(levels), CLASSES))
        logs[shown.answered] = -((own.counts[:, None, None, :] - means) ** 2).sum(axis=3) / 3200
        logs -= ((shown.checks[:, None] - K * (1 - levels) - rest) ** 2 / 45_000)[:, :, None]
        likelihood = np.exp(logs - logs.max(axis=(1, 2), keepdims=True))
        weights = np.full(len(levels), 1 / len(levels))
        for _ in range(200):
            joint = likelihood * weights[:, None]
            joint /= joint.sum(axis=(1, 2), keepdims=True)
            weights = (1 + joint.sum(axis=(0, 2))) / (len(levels) + len(joint))
        checked, right = joint.sum(axis=1)[shown.answered], truth[own.queries]
        losses = [judged(targets, right)[1] for targets in (plain, checked)]
        print(f"log loss of {len(own)} answers: {losses[0]:.4f}; with checks {losses[1]:.4f}")
    print()


def _pixels(path: Path, number: int) -> np.ndarray:
    images = np.asarray(read_any(path))[:number]
    return images.reshape(len(images), -1).astype(np.float32) / 255


if __name__ == "__main__":
    main()
