"""Does it matter which public records are asked about? Random, coverage and active, for released labels.

Worst case, uniform budgets, δ = 1e-5; the n answers that a budget buys have σ = √(2n)/μ votes. Noise is
seeded: these are experiments. A seed draws which records are public and which are for testing, and the
noise; the three orders share all that. Truth is used to measure only. ``student``: accuracy on the test
records; ``labels``: how many of the released labels are right.

- digits: 1,000 private images for 50 ridge teachers (shards of equal size), 500 public; graph student.
- mnist: the published votes of 250 teachers; 2,500 of the first 9,000 test images are public, in scattering
  components; graph student.
- adult: 10,000 private rows for 100 tabular teachers (shards of equal size), 2,000 public; regression of
  released evidence.

    python -m reproduction.benchmarks.query_order [--data-dir DATA --dataset mnist] [--seeds 5] [--quick]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from collegium import Budget, GNMax, Uniform, VoteTable, load_dataset
from collegium.accounting import gdp_mu
from collegium.data.datasets import read_any
from collegium.distillation.graph import GraphStudent
from collegium.distillation.regression import RegressionStudent
from collegium.distillation.supervised import fit_released
from collegium.mechanisms import SeededNoise
from collegium.models.closed_form.ridge import RidgeTeachers
from collegium.models.closed_form.tabular import TabularTeachers
from collegium.models.features import PublicComponents, ScatteringTransform
from collegium.models.preprocessing import PrincipalTable
from collegium.pate.queries.active_choice import ActiveChooser
from collegium.pate.queries.selection import QUERY_ORDERS, query_order
from collegium.pate.voting.labelling import LabellingJob, Labels
from collegium.pate.voting.pricing import WorstCasePricing

DELTA = 1e-5
ANSWERS = (60, 180, 360)


@dataclass(frozen=True, eq=False)
class World:
    """What one seed draws: public and test records, truth, votes on the public ones, and a student."""

    public: NDArray[Any]
    test: NDArray[Any]
    truth: NDArray[np.intp]
    test_truth: NDArray[np.intp]
    votes: VoteTable
    student: Any


def ask(
    teacher: Any, prepared: NDArray[Any], codes: NDArray[np.intp], rows: Any, k: int
) -> VoteTable:
    """Train k teachers on shards of the private rows, and let them vote on the public ones."""
    private, public = rows
    size, n_classes = len(private) // k, int(codes.max()) + 1
    shards = [private[i * size : (i + 1) * size] for i in range(k)]
    answers: list[Any] = []
    for first in range(0, k, teacher.teachers_at_once):
        parts = shards[first : first + teacher.teachers_at_once]
        pairs = [(prepared[part], codes[part]) for part in parts]
        models = teacher.fit_shards(pairs, range(first, first + len(parts)), n_classes)
        answers += list(teacher.predict_shards(models, prepared[public]))
    return VoteTable.from_predictions(np.stack(answers, axis=1), n_classes)


def digits(_: Path | None, quick: bool) -> Callable[[int], World]:
    """Small images of digits, embedded in scikit-learn."""
    data = load_dataset("digits")
    images, codes = np.asarray(data.X).reshape(len(data.y), -1) / 16, data.y.astype(np.intp)

    def world(seed: int) -> World:
        order = np.random.default_rng([seed, 0]).permutation(len(codes))
        private, public, test = np.split(order, [1000, 1500])
        prepared = PCA(30, random_state=0).fit(images[public]).transform(images)
        votes = ask(RidgeTeachers(), prepared, codes, (private, public), 50)
        student = GraphStudent(n_components=30)
        return World(prepared[public], prepared[test], codes[public], codes[test], votes, student)

    return world


def mnist(folder: Path | None, quick: bool) -> Callable[[int], World]:
    """Published votes on the first 9,000 test images."""
    assert folder is not None
    counts = np.load(folder / "pate_votes" / "mnist_250_teachers.npy")
    raw = folder / "mnist"
    images = np.asarray(read_any(raw / "t10k-images-idx3-ubyte.gz"))
    codes = np.asarray(read_any(raw / "t10k-labels-idx1-ubyte.gz")).astype(np.intp)
    transform = ScatteringTransform(root=True).fit(images[:10])
    made: dict[int, NDArray[Any]] = {}

    def scattered(rows: NDArray[np.intp]) -> NDArray[Any]:
        missing = [row for row in rows.tolist() if row not in made]
        if missing:
            made.update(zip(missing, transform.transform(images[missing]), strict=True))
        return np.stack([made[row] for row in rows.tolist()])

    def world(seed: int) -> World:
        # Test images are the last 1,000, which nobody voted on, for all seeds.
        public = np.random.default_rng([seed, 0]).permutation(9000)[: 1000 if quick else 2500]
        test = np.arange(9000, 10000)
        reduce = PublicComponents(100, whiten=0.25).fit(scattered(public))
        return World(
            reduce.transform(scattered(public)),
            reduce.transform(scattered(test)),
            codes[public],
            codes[test],
            VoteTable.from_counts(counts[public]),
            GraphStudent(n_components=100),
        )

    return world


def adult(folder: Path | None, quick: bool) -> Callable[[int], World]:
    """Incomes, from a table whose classes overlap."""
    data = load_dataset("adult", folder, drop_missing=True)
    codes = np.unique(data.y, return_inverse=True)[1].astype(np.intp)

    def world(seed: int) -> World:
        order = np.random.default_rng([seed, 0]).permutation(len(codes))
        private, public, test, _ = np.split(order, [10_000, 12_000, 16_000])
        encoder = PrincipalTable().fit(data.X.iloc[public])
        prepared = np.asarray(encoder.transform(data.X), dtype=np.float64)
        votes = ask(TabularTeachers(), prepared, codes, (private, public), 100)
        return World(
            prepared[public],
            prepared[test],
            codes[public],
            codes[test],
            votes,
            RegressionStudent(),
        )

    return world


#: How records are made, and ε: a budget at which 60 labels are mostly right and 360 are not.
DATASETS = {"digits": (digits, 4.0), "mnist": (mnist, 1.0), "adult": (adult, 2.0)}


def release(world: World, kind: str, n_answers: int, epsilon: float, seed: int) -> Labels:
    """Run a labelling job whose budget is used up by so many labels."""
    # A little more noise than √(2n)/μ, so that rounding prices up does not cost the last answer.
    sigma = math.sqrt(2 * n_answers) / gdp_mu(epsilon, DELTA) * (1 + 1e-9)
    aggregator = GNMax(sigma=sigma)
    k = world.votes.n_teachers
    electorate = Uniform().plan({"all": Budget(epsilon, DELTA)}, {"all": 60_000}, k).electorate(0)
    if kind == "random":
        asking: Any = query_order("random", world.public, seed)
    else:
        asking = query_order("coverage", world.public, seed)
    if kind == "active":
        asking = ActiveChooser(
            world.student,
            world.public,
            world.public,
            asking,
            electorate,
            aggregator,
            world.votes.n_classes,
        )
    pricing = WorstCasePricing(aggregator, electorate)
    noise = SeededNoise(seed)
    job = LabellingJob(world.votes, electorate, aggregator, pricing, noise, asking)
    labels = job.run()
    assert labels.n_answered == n_answers, (labels.n_answered, n_answers)
    return labels


def measure(world: World, kind: str, n_answers: int, epsilon: float, seed: int) -> list[float]:
    """Accuracy of the student and of the labels in per cent, and seconds of voting and choosing."""
    began = time.perf_counter()
    labels = release(world, kind, n_answers, epsilon, seed)
    seconds = time.perf_counter() - began
    student = fit_released(
        world.student,
        world.public,
        labels.queries,
        labels.labels,
        np.arange(world.votes.n_classes),
        tell=lambda line: None,
    )
    right = np.mean(student.predict(world.test) == world.test_truth)
    return [100 * right, 100 * np.mean(labels.labels == world.truth[labels.queries]), seconds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--dataset", choices=tuple(DATASETS), default="digits")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilon", type=float)
    parser.add_argument("--quick", action="store_true", help="two seeds, fewer records")
    options = parser.parse_args()
    if options.dataset != "digits" and options.data_dir is None:
        parser.error(f"--dataset {options.dataset} needs --data-dir")
    make, epsilon = DATASETS[options.dataset]
    epsilon = options.epsilon or epsilon
    world_of = make(options.data_dir, options.quick)
    seeds = range(2 if options.quick else options.seeds)
    found: dict[tuple[int, str], list[list[float]]] = {}
    for seed in seeds:
        world = world_of(seed)
        for n_answers in ANSWERS:
            for kind in QUERY_ORDERS:
                row = measure(world, kind, n_answers, epsilon, seed)
                found.setdefault((n_answers, kind), []).append(row)
    print(f"{options.dataset}, ε = {epsilon:g}, {len(seeds)} seeds: mean ± sd")
    print("| answers | order | student % | against random | labels right % | s |")
    print("|--:|---|--:|--:|--:|--:|")
    for (n_answers, kind), rows in found.items():
        student, labels, seconds = np.array(rows).T
        gain = student - np.array(found[n_answers, "random"])[:, 0]
        against = "" if kind == "random" else f"{gain.mean():+.2f} ± {gain.std(ddof=1):.2f}"
        print(
            f"| {n_answers} | {kind} | {student.mean():.2f} ± {student.std(ddof=1):.2f} | {against} | "
            f"{labels.mean():.1f} | {np.median(seconds):.1f} |"
        )


if __name__ == "__main__":
    main()
