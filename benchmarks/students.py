"""What students make of the same release: each ingredient's gain, on MNIST and Adult.

Worst case, δ = 1e-5, 250 teachers; noise is seeded, teachers hold shards of equal size: these are
experiments. The n answers that a budget buys have σ = √(2n)/μ votes (uniform budgets); with weights ∝ μ
(1-2-3: ε = 1, 2, 3 for 34, 43, 23 % of owners) μ is the mean over the owners. Truth is used to measure
only. Private are the 60,000 training images of MNIST; each seed deals them to teachers, and splits the
10,000 test images into 9,000 public and 1,000 test ones (Adult: 37,250, 7,000 and 972 rows without missing
values, drawn from all).

    python benchmarks/students.py --data-dir DATA --dataset mnist [--seeds 3] [--students all] [--quick]

Features and votes are kept in ``--cache``; without it, they are computed anew.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from collegium.accounting.gaussian import gdp_mu
from collegium.data.datasets import load_dataset
from collegium.distillation.gaussian_process import GaussianProcessStudent
from collegium.distillation.graph import GraphStudent
from collegium.distillation.neural_student import METHODS, NeuralStudent
from collegium.distillation.regression import RegressionStudent
from collegium.distillation.supervised import fit_released
from collegium.models.closed_form.ridge import RidgeTeachers
from collegium.models.closed_form.tabular import TabularTeachers
from collegium.models.features import PublicComponents, ScatteringTransform
from collegium.models.preprocessing import PrincipalTable
from collegium.pate.voting.targets import class_posterior

K, DELTA = 250, 1e-5
BUDGETS = {"ln 2": {np.log(2): 1.0}, "1": {1.0: 1.0}, "1-2-3": {1.0: 0.34, 2.0: 0.43, 3.0: 0.23}}
SIZES = {"mnist": (60_000, 9_000), "adult": (37_250, 7_000)}


@dataclass(frozen=True, eq=False)
class World:
    """One split: public and test records as teachers, graphs and networks see them; truth; votes."""

    features: NDArray[Any]
    test_features: NDArray[Any]
    points: NDArray[Any]
    test_points: NDArray[Any]
    raw: NDArray[Any]
    test_raw: NDArray[Any]
    truth: NDArray[np.intp]
    test_truth: NDArray[np.intp]
    votes: NDArray[np.intp]  # (n_teachers, n_public)
    n_classes: int


def kept(cache: Path | None, name: str, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """Load an array, or make and store it."""
    if cache is None:
        return make()
    path = cache / f"{name}.npy"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        np.save(path, make())
    return np.asarray(np.load(path))


def build(dataset: str, data_dir: str | None, cache: Path | None, seed: int) -> World:
    """Split the records, train teachers and ask them."""
    n_private, n_public = SIZES[dataset]
    data = load_dataset(dataset, data_dir, drop_missing=dataset == "adult")
    codes = np.unique(data.y, return_inverse=True)[1].astype(np.intp)
    generator = np.random.default_rng([seed, 0])
    if dataset == "mnist":
        rest = n_private + generator.permutation(len(codes) - n_private)
        order = np.concatenate([generator.permutation(n_private), rest])
    else:
        order = generator.permutation(len(codes))
    private, public = order[:n_private], order[n_private : n_private + n_public]
    test = order[n_private + n_public :]
    if dataset == "mnist":
        table = kept(cache, "mnist-scattering", lambda: ScatteringTransform().fit_transform(data.X))
        # The square root is what ScatteringTransform(root=True) does, as the study's preprocessing.
        rooted = np.sign(table) * np.sqrt(np.abs(table))
        prepared = PublicComponents(200, whiten=0.25).fit(rooted[public]).transform(rooted)
        strengths = np.square(table[public]).reshape(n_public, 81, -1).mean(axis=(0, 2)) ** 0.375
        points = table / np.repeat(strengths, table.shape[1] // 81).astype(np.float32)
        raw = (np.asarray(data.X).reshape(len(codes), -1) / 255).astype(np.float32)
        teacher: Any = RidgeTeachers()
    else:
        encoder = PrincipalTable().fit(data.X.iloc[public])
        prepared = np.asarray(encoder.transform(data.X), dtype=np.float64)
        points = raw = prepared
        teacher = TabularTeachers()
    n_classes = int(codes.max()) + 1

    def ask() -> NDArray[Any]:
        size = n_private // K
        shards = [private[i * size : (i + 1) * size] for i in range(K)]
        answers: list[Any] = []
        for first in range(0, K, teacher.teachers_at_once):
            rows = shards[first : first + teacher.teachers_at_once]
            pairs = [(prepared[part], codes[part]) for part in rows]
            models = teacher.fit_shards(pairs, range(first, first + len(rows)), n_classes)
            answers += list(teacher.predict_shards(models, prepared[public]))
        return np.stack(answers).astype(np.int8)

    votes = kept(cache, f"{dataset}-votes-{seed}", ask).astype(np.intp)
    return World(
        prepared[public],
        prepared[test],
        points[public],
        points[test],
        raw[public],
        raw[test],
        codes[public],
        codes[test],
        votes,
        n_classes,
    )


def release(
    world: World, budget: str, n_answers: int, seed: int, what: str
) -> tuple[NDArray[np.intp], NDArray[np.float64], float]:
    """Draw what a worst-case account of this budget releases: rows, targets, and σ in votes."""
    generator = np.random.default_rng([seed, 1, n_answers])
    mus = np.array([gdp_mu(epsilon, DELTA) for epsilon in BUDGETS[budget]])
    shares = np.array(list(BUDGETS[budget].values()))
    mean = float(mus @ shares)
    groups = np.minimum(np.searchsorted(shares.cumsum(), (np.arange(K) + 0.5) / K), len(mus) - 1)
    weights = mus[groups] * K / mus[groups].sum()
    queries = generator.permutation(len(world.truth))[:n_answers]
    counts = np.zeros((n_answers, world.n_classes))
    for weight, answers in zip(weights, world.votes[:, queries], strict=True):
        counts[np.arange(n_answers), answers] += weight
    sigma = float(np.sqrt(2 * n_answers) / mean)
    noisy = counts + generator.normal(0, sigma, counts.shape)
    method = "argmax" if what == "labels" else "mixture"
    even = np.full(world.n_classes, 1 / world.n_classes)
    return queries, class_posterior(noisy, sigma, K, method, prior=even), sigma


@dataclass(frozen=True)
class Row:
    """One student on one kind of release."""

    name: str
    answers: int
    what: str
    make: Callable[[int], Any]
    sees: str = "features"


def linear(_: int) -> Any:
    """Make the supervised reference."""
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=300))


class _OnFeatures(GaussianProcessStudent):
    """A guide on features that are known beforehand, for records that are told apart by their pixels."""

    table: dict[bytes, NDArray[Any]]  # set by `rows`: not a parameter, so that clones share it

    def _seen(self, X: Any) -> NDArray[Any]:
        return np.stack([type(self).table[row.tobytes()] for row in np.ascontiguousarray(X)])

    def fit_released(self, X_public: Any, queries: Any, targets: Any) -> Any:
        return super().fit_released(self._seen(X_public), queries, targets)

    def predict_proba(self, X: Any) -> Any:
        return super().predict_proba(self._seen(X))


def network(method: str, epochs: int, device: str) -> Callable[[int], Any]:
    """Make a neural student whose guide's features are known beforehand."""

    def make(seed: int) -> Any:
        return NeuralStudent(
            method=method,
            guide=_OnFeatures(),
            input_shape=(1, 28, 28),
            epochs=epochs,
            device=device,
            random_state=seed,
        )

    return make


def graph(method: str) -> Callable[[int], Any]:
    """Make a graph student."""
    return lambda seed: GraphStudent(method=method, random_state=seed)


def process(seed: int) -> Any:
    """Make a Gaussian process."""
    return GaussianProcessStudent(random_state=seed)


def regression(seed: int) -> Any:
    """Make the regression of released evidence."""
    return RegressionStudent(random_state=seed)


def rows(dataset: str, n_public: int, epochs: int, device: str) -> list[Row]:
    """List what is compared: one ingredient after the other."""
    few = {"mnist": 359, "adult": 2_000}[dataset]
    made = [
        Row("logistic regression", few, "labels", linear),
        Row("logistic regression", few, "histograms", linear),
        Row("logistic regression", n_public, "histograms", linear),
        Row("regression", few, "histograms", regression),
        Row("regression", n_public, "histograms", regression),
        Row("graph, posterior", few, "labels", graph("posterior"), "points"),
        Row("graph, posterior", few, "histograms", graph("posterior"), "points"),
        Row("graph, spreading", n_public, "histograms", graph("spreading"), "points"),
        Row("graph, harmonic", n_public, "histograms", graph("harmonic"), "points"),
        Row("graph, posterior", n_public, "histograms", graph("posterior"), "points"),
        Row("Gaussian process", n_public, "histograms", process, "points"),
    ]
    if dataset == "mnist":
        made += [
            Row(method, n_public, "histograms", network(method, epochs, device), "raw")
            for method in METHODS
        ]
    return made


def measure(world: World, row: Row, budget: str, seed: int) -> dict[str, float]:
    """Train one student; accuracy on the test and the public records, and seconds."""
    queries, targets, sigma = release(world, budget, row.answers, seed, row.what)
    public, test = getattr(world, row.sees), getattr(world, f"test_{row.sees}")
    if row.sees == "raw":
        pairs = zip(
            np.concatenate([public, test]),
            np.concatenate([world.points, world.test_points]),
            strict=True,
        )
        _OnFeatures.table = {np.ascontiguousarray(r).tobytes(): f for r, f in pairs}
    started = time.perf_counter()
    student = fit_released(
        row.make(seed),
        public,
        queries,
        targets.argmax(axis=1),
        np.arange(world.n_classes),
        targets,
        tell=lambda line: None,
    )
    seconds = time.perf_counter() - started
    result = {
        "test": float(np.mean(student.predict(test) == world.test_truth)),
        "public": float(np.mean(student.predict(public) == world.truth)),
        "seconds": seconds,
        "sigma": sigma,
    }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir")
    parser.add_argument("--dataset", choices=("mnist", "adult"), default="mnist")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budgets", nargs="+", choices=tuple(BUDGETS), default=tuple(BUDGETS))
    parser.add_argument("--students", default="all", help="only rows whose name contains this")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--quick", action="store_true", help="one seed, ε = 1, no networks")
    options = parser.parse_args()
    seeds = range(1 if options.quick else options.seeds)
    budgets = ("1",) if options.quick else options.budgets
    worlds = [build(options.dataset, options.data_dir, options.cache, seed) for seed in seeds]
    for seed, world in zip(seeds, worlds, strict=True):
        teachers = np.mean(world.votes == world.truth)
        counts = np.stack([(world.votes == c).sum(axis=0) for c in range(world.n_classes)], axis=1)
        print(
            f"seed {seed}: teachers {teachers:.2%}, majority of {K} without noise "
            f"{np.mean(counts.argmax(axis=1) == world.truth):.2%}"
        )
    print("| ε | student | answers | released | σ | test % (mean ± sd) | public % | s |")
    print("|---|---|---|---|---|---|---|---|")
    compared = rows(options.dataset, SIZES[options.dataset][1], options.epochs, options.device)
    for budget in budgets:
        for row in compared:
            if options.students not in ("all",) and options.students not in row.name:
                continue
            if options.quick and row.sees == "raw":
                continue
            found = [measure(w, row, budget, s) for s, w in zip(seeds, worlds, strict=True)]
            test = 100 * np.array([one["test"] for one in found])
            spread = f" ± {test.std(ddof=1):.2f}" if len(test) > 1 else ""
            print(
                f"| {budget} | {row.name} | {row.answers} | {row.what} | {found[0]['sigma']:.0f} | "
                f"{test.mean():.2f}{spread} | {100 * np.mean([one['public'] for one in found]):.2f} | "
                f"{np.median([one['seconds'] for one in found]):.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
