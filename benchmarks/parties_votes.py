"""Votes of three hospitals on MNIST: together through files, as one table with the same noise, and apart.

    python -m benchmarks.parties_votes [--data-dir DATA] [--seeds 1 2 3] [--people 9000] [--public 600]

People of ε = 1, 2, 3 (54, 37, 9 %; δ = 1e-5) are dealt out to three parties at random, each in a thread of
its own, with a folder that they share. Settings are chosen by rule (:mod:`collegium.pate.by_rule`).
**Together**: what all of them get. **Pooled**: one table, with noise as large as the parties' (√(3/2) of what
was asked for: each knows its own share). **Three noises**: the same teachers, each hospital's histograms with
noise of their own, added up. **Alone**: what each hospital gets by itself, on average.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import collegium as cg
from collegium.datasets import load_dataset
from collegium.noise.sources import SecureNoise
from collegium.noise.sums import Integers, Noise
from collegium.parties.quorum import Quorum
from collegium.parties.waiting import Patience

PARTIES, N_TEST = 3, 5_000


class Larger(SecureNoise):
    """Noise that is larger than what was asked for, and says so."""

    def __init__(self, excess: float) -> None:
        super().__init__()
        self._excess = excess

    @property
    def excess(self) -> float:
        """By how much."""
        return self._excess

    def noised(
        self, sensitive_sum: Integers, noise: Noise, *, query: int, purpose: str
    ) -> Integers:
        """Draw it."""
        larger = Noise(noise.kind, noise.scale * self._excess)
        return super().noised(sensitive_sum, larger, query=query, purpose=purpose)


class Company:
    """The hospitals, what each has, and what is public."""

    def __init__(self, data: Any, seed: int, people: int, public: int) -> None:
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(data.y))[: people + public + N_TEST]
        self.X, self.y = data.X[rows], np.asarray(data.y)[rows].astype(int)
        self.private, self.public = slice(people), slice(people, people + public)
        self.test = slice(people + public, None)
        self.epsilon = rng.choice([1.0, 2.0, 3.0], people, p=[0.54, 0.37, 0.09])
        self.place, self.seed = rng.integers(0, PARTIES, people), seed

    def fit(self, its: Any, party: cg.Party | None = None) -> cg.PATEClassifier:
        """Let some people's teachers vote, with others' or alone."""
        model = cg.PATEClassifier(classes=range(10), random_state=self.seed)
        return model.fit(
            self.X[self.private][its],
            self.y[self.private][its],
            budgets=self.epsilon[its],
            X_public=self.X[self.public],
            parties=party,
        )

    def accuracy(self, model: cg.PATEClassifier) -> float:
        """Of a student, in percent."""
        return 100 * float(model.score(self.X[self.test], self.y[self.test]))

    def together(self, folder: Path) -> tuple[float, str]:
        """Accuracy of all hospitals' student, if it is one; and how they got there."""
        keys = [cg.IdentityKey.fresh() for _ in range(PARTIES)]
        collective = cg.Collective(
            [key.member(f"Hospital {name}") for key, name in zip(keys, "ABC", strict=True)]
        )
        (folder / "shared").mkdir()

        def hospital(number: int) -> cg.PATEClassifier:
            memory, patience = folder / str(number), Patience(poll_s=0.02)
            party = cg.Party(collective, keys[number], folder / "shared", memory, patience)
            return self.fit(self.place == number, party)

        with ThreadPoolExecutor(PARTIES) as threads:
            models = list(threads.map(hospital, range(PARTIES)))
        assert all(np.array_equal(one.labels_, models[0].labels_) for one in models)
        posted = sum(file.stat().st_size for file in (folder / "shared").rglob("*.json"))
        first = models[0]
        said = f"{first.plan_.n_teachers} teachers, {first.n_queries_} histograms, {posted:,} bytes"
        return self.accuracy(first), said

    def with_noise(self, excess: float) -> float:
        """Accuracy of the student of one table, under larger noise."""
        with patch("collegium.pate.recipe.noise_from", lambda seed: Larger(excess)):
            return self.accuracy(self.fit(np.full(len(self.place), True)))


def row(name: str, found: Sequence[float]) -> str:
    """Write a line of the table: the mean, and the standard error of it."""
    error = np.std(found, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else float("nan")
    return f"{name:13} {np.mean(found):6.2f} ± {error:.2f}   ({', '.join(f'{one:.2f}' for one in found)})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", help="folder with mnist/")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--people", type=int, default=9_000)
    parser.add_argument("--public", type=int, default=600)
    given = parser.parse_args()
    warnings.simplefilter("ignore", cg.errors.PrivacyWarning)
    data = load_dataset("mnist", given.data_dir, download=False)
    found: dict[str, list[float]] = {}
    for seed in given.seeds:
        company = Company(data, seed, given.people, given.public)
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            accuracy, said = company.together(Path(folder))
        print(f"seed {seed}: {said}, {time.perf_counter() - began:.1f} s for all three", flush=True)
        found.setdefault("together", []).append(accuracy)
        of_all = company.with_noise(Quorum(PARTIES).excess(PARTIES))
        found.setdefault("pooled", []).append(of_all)
        found.setdefault("three noises", []).append(company.with_noise(np.sqrt(PARTIES)))
        alone = [company.accuracy(company.fit(company.place == one)) for one in range(PARTIES)]
        found.setdefault("alone", []).append(float(np.mean(alone)))
    for name, values in found.items():
        print(row(name, values))


if __name__ == "__main__":
    main()
