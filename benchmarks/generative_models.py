"""PATE-GAN and DP-GAN on Adult, DP-GAN on images, PATE-G beside other students: collapses included.

    python -m benchmarks.generative_models [--quick] [--data-dir DATA] [--only adult digits mnist pate-g]

Both GANs learn from the real training records, at δ = 1e-5, everybody at the same ε; the scores are of models
that learn from what it makes, and are judged by real test records (Adult: areas under the ROC curve of
logistic regression and boosting, and mean total variation of all columns and pairs from the training rows;
images: accuracy of logistic regression on pixels). "independent columns" is a table whose columns were
shuffled one by one, without privacy: what is no better has learnt no relation. How many rows of a GAN are
effectively different, and how many columns have one value, is seen in its rows alone. Settings are the
defaults, chosen on 6,000 training rows of Adult that were held out.

PATE-G: votes of the 250 published teachers (Papernot et al. 2018), label by label by the noisy maximum with
Laplace noise of scale 20 (each label spends ε = 0.1 by itself; 100 have ε = 2.04 at δ = 1e-5 in Papernot et
al. 2017, a cost that depends on the votes). Public are the first 9,000 test images of MNIST, without labels;
accuracy is of the last 1,000. Settings of PATE-G were chosen on 1,000 of the public images, held out, by
agreement with released labels. Noise is seeded: these are experiments, and nothing here is private.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import collegium as cg
from benchmarks.synthetic_data import found_data_dir, tables
from benchmarks.synthetic_scores import scores
from collegium.data.cells import Cells
from collegium.data.datasets import load_dataset
from collegium.distillation.gaussian_process import GaussianProcessStudent
from collegium.distillation.generative_student import GenerativeStudent
from collegium.distillation.graph import GraphStudent
from collegium.generative.adversary_collapse import collapse_of
from collegium.generative.dp_gan import DPGAN
from collegium.generative.pate_gan import PATEGAN

PARTS = ("adult", "digits", "mnist", "pate-g")
_COLLAPSED = 0.6  # of the predictions are of one class


def adult(data_dir: Path, quick: bool) -> Iterator[str]:
    """Compare both GANs with ours, with real rows, and with rows whose columns are independent."""
    its = tables("adult", data_dir)
    cells = Cells(its.schema)
    train, test = cells.codes(its.train), cells.codes(its.test)
    target = cells.names.index(its.target)
    rng = np.random.default_rng(0)
    shuffled = np.stack([rng.permutation(column) for column in train.T], axis=1)
    yield "| Adult | ε | seed | logistic AUC | boosting AUC | TV, 1 | TV, 2 | > 50K | fit, CPU s | its rows |"
    yield "|---|---|---|---|---|---|---|---|---|---|"

    def row(name: str, epsilon: str, seed: Any, codes: np.ndarray, *told: str) -> str:
        found = scores(codes, train, test, cells, its.target)
        figures = [f"{one:.4f}" for one in (found.logistic, found.boosting)]
        figures += [f"{one:.3f}" for one in (found.tv1, found.tv2, codes[:, target].mean())]
        return f"| {' | '.join((name, epsilon, str(seed), *figures, *(told or ('', ''))))} |"

    yield row("real rows", "∞", "", train)
    yield row("independent columns, without noise", "∞", "", shuffled)
    budgets = cg.Policy({"all": 1.0}).assign(["all"] * len(train))
    for seed in range(1 if quick else 3):
        seeds = {"random_state": seed, "noise_seed": seed}
        models: dict[str, Any] = {
            "collegium.Synthesizer": cg.Synthesizer(its.schema, target=its.target, **seeds),
            "PATE-GAN": PATEGAN(its.schema, **seeds),
            "DP-GAN": DPGAN(its.schema, **seeds),
        }
        for name, model in models.items():
            started = time.process_time()
            model.fit(its.train, budgets=budgets)
            seconds = f"{time.process_time() - started:.0f}"
            made = cells.codes(model.sample(len(train), random_state=seed))
            # What it says of itself, which nothing but its own rows decides.
            told = collapse_of(made, cells.sizes, cells.names)
            few = f"{told.effective_rows:,.0f} different rows, {len(told.single_valued)} columns of one value"
            yield row(name, "1", seed, made, seconds, few)


def images(name: str, data_dir: Path, quick: bool) -> Iterator[str]:
    """Train on what DP-GAN made of images, test on real ones."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(X))
        n, side, top = 1_437, 8, 16
        X, y = X[order] / top, y[order]
    else:
        data = load_dataset("mnist", data_dir, download=False)
        n, side, top = 60_000, 28, 255
        X = (np.asarray(data.X).reshape(len(data.y), -1) / top).astype(np.float32)
        y = np.asarray(data.y).astype(np.int64)
    yield f"| {name} | ε | network | seed | accuracy | classes predicted | fit, CPU s |"
    yield "|---|---|---|---|---|---|---|"

    def row(what: str, epsilon: Any, network: str, seed: Any, made: Any, seconds: str) -> str:
        learnt = LogisticRegression(max_iter=100, C=0.1).fit(made[0], made[1])
        named = learnt.predict(X[n:])
        right = float((named == y[n:]).mean())
        most = np.bincount(named, minlength=10).max() / len(named)
        told = f"{len(np.unique(named))}" + (
            f" (collapsed: {most:.0%} are one)" if most > _COLLAPSED else ""
        )
        return f"| {what} | {epsilon} | {network} | {seed} | {right:.3f} | {told} | {seconds} |"

    some = np.random.default_rng(0).permutation(n)[:10_000]
    yield row("real images, 10,000 at most", "∞", "", "", (X[some], y[some]), "")
    settings = {"steps": 400 if quick else 1_500, "rate": 0.05 if name == "digits" else 0.01}
    for epsilon in (1.0, 10.0):
        budgets = cg.Policy({"all": epsilon}).assign(["all"] * n)
        for network in ("mlp",) if quick else ("mlp", "convolutional"):
            model = DPGAN(
                (side, side), classes=list(range(10)), network=network, random_state=0, noise_seed=0,
                **settings,
            )  # fmt: skip
            started = time.process_time()
            model.fit(X[:n].reshape(n, side, side), y[:n], budgets=budgets)
            seconds = f"{time.process_time() - started:.0f}"
            made, classes = model.sample(10_000, random_state=0)
            yield row(
                "DP-GAN",
                f"{epsilon:g}",
                network,
                0,
                (made.reshape(len(made), -1), classes),
                seconds,
            )


def students(data_dir: Path, quick: bool, n_labels: Sequence[int]) -> Iterator[str]:
    """Let students learn from the labels that the published votes give."""
    data = load_dataset("mnist", data_dir, download=False)
    X = (np.asarray(data.X)[60_000:].reshape(10_000, -1) / 255).astype(np.float32)
    y = np.asarray(data.y).astype(np.int64)[60_000:]
    votes = np.load(data_dir / "pate_votes" / "mnist_250_teachers.npy")
    yield "| student | labels | of which right | seed | accuracy, last 1,000 test images | fit, CPU s |"
    yield "|---|---|---|---|---|---|"
    public, test = X[:9_000], X[9_000:]
    for n in n_labels:
        for seed in range(1 if quick else 3):
            rng = np.random.default_rng([seed, n])
            queries = rng.permutation(len(public))[:n]
            labels = (votes[queries] + rng.laplace(0, 20, (n, 10))).argmax(axis=1)
            compared: dict[str, Any] = {
                "logistic regression": LogisticRegression(C=0.1, max_iter=300),
                "graph, scattering": GraphStudent("scattering", random_state=seed),
                "gaussian-process, scattering": GaussianProcessStudent(
                    "scattering", random_state=seed
                ),
                "PATE-G, scattering": GenerativeStudent(
                    "scattering",
                    hidden=(250, 250),
                    epochs=10 if quick else 40,
                    device="cpu",
                    random_state=seed,
                ),
            }
            if seed == 0:
                compared["PATE-G, pixels"] = GenerativeStudent(
                    input_shape=(1, 28, 28), epochs=5 if quick else 80, device="cpu", random_state=0
                )
            for name, student in compared.items():
                started = time.process_time()
                if name == "logistic regression":
                    student.fit(public[queries], labels)
                else:
                    student.fit_released(public, queries, np.eye(10)[labels])
                seconds = time.process_time() - started
                right = float((student.predict(test) == y[9_000:]).mean())
                yield (
                    f"| {name} | {n:,} | {(labels == y[queries]).mean():.3f} | {seed} | {right:.3f} | "
                    f"{seconds:.0f} |"
                )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--quick", action="store_true", help="one seed; fewer steps on images")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--labels", nargs="+", type=int, default=[100, 1_000], help="of pate-g")
    options = parser.parse_args(arguments)
    data_dir = found_data_dir(options.data_dir)
    for part in options.only:
        if part == "adult":
            lines = adult(data_dir, options.quick)
        elif part == "pate-g":
            lines = students(data_dir, options.quick, options.labels)
        else:
            lines = images(part, data_dir, options.quick)
        for line in lines:
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
